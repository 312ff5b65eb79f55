"""The workbench in a browser: first paint, a picture of 40,000 things, a table of a million rows.

There is no graphics card where this usually runs, so frames are drawn by software on the same
processors: beside the frames that were seen stands what the main thread of the page did for each,
in CPU time, which is what a card would leave. Needs chromium and Playwright (the `dev` extra).
"""

from __future__ import annotations

import math
import random
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

import omnigraph as og
from benchmarks.harness import Figure, is_quick
from benchmarks.server import serve

NODES, EDGES, ROWS = (300, 900, 5_000) if is_quick() else (10_000, 30_000, 1_000_000)
LAYOUT_TURNS = 20 if is_quick() else 60
PAINTS = 3 if is_quick() else 15
SCHEMA = "node Thing { name: String @key  size: I64 }\nedge Links: Thing -> Thing"
TABLE = "node Row { number: I64 @key  name: String  size: F64 }"
LINKS = "query links() { match { $a: Thing $a links $b } return { $a.name, $b.name } }"
ALL = "query all() { match { $r: Row } return { $r.number, $r.name, $r.size } }"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
COUNTERS = """
    window.seen = { frames: [], long: [], turns: [], calls: 0, drawn: 0 };
    const note = (list) => list.getEntries().forEach((each) => seen.long.push(each.duration));
    new PerformanceObserver(note).observe({ entryTypes: ["longtask"] });
    const next = (time) => (seen.frames.push(time), requestAnimationFrame(next));
    requestAnimationFrame(next);
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (message, ...rest) {
        if (message === "drawn") seen.turns.push(performance.now());
        return post.call(this, message, ...rest);
    };
    let last = 0;
    for (const name of ["drawArrays", "drawArraysInstanced"]) {
        const draw = WebGL2RenderingContext.prototype[name];
        WebGL2RenderingContext.prototype[name] = function (...given) {
            seen.calls += 1;
            if (last !== seen.frames.length) seen.drawn += 1;
            last = seen.frames.length;
            return draw.apply(this, given);
        };
    }
"""
TURNS = """(wanted) => new Promise((resolve) => {
    const look = () => seen.turns.length >= wanted ? resolve(1) : setTimeout(look, 50);
    look();
})"""
PAINTED = """() => new Promise((resolve) => {
    new PerformanceObserver(resolve).observe({ type: "paint", buffered: true });
}).then(() => 1)"""
RECEIVED = """() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    sent: performance.getEntriesByType("resource")
        .filter((each) => each.name.includes("/workbench/"))
        .reduce((sum, each) => sum + each.encodedBodySize, 0)
        + performance.getEntriesByType("navigation")[0].encodedBodySize,
})"""
HAND = """async (isZooming) => {
    const canvas = document.querySelector(".canvas"), box = canvas.getBoundingClientRect();
    const send = (name, x) => canvas.dispatchEvent(new PointerEvent(name, {
        clientX: box.left + x, clientY: box.top + 4, pointerId: 7, button: 0, bubbles: true,
    }));
    canvas.setPointerCapture = () => 0;
    const drawn = seen.drawn, start = performance.now();
    let step = 0;
    if (!isZooming) send("pointerdown", 4);
    while (performance.now() - start < 4000) {
        step += 1;
        const swing = 100 + 80 * Math.sin(step / 10);
        if (!isZooming) send("pointermove", swing);
        else canvas.dispatchEvent(new WheelEvent("wheel", {
            clientX: box.left + box.width / 2, clientY: box.top + box.height / 2,
            deltaY: 30 * Math.sin(step / 10), bubbles: true, cancelable: true,
        }));
        await new Promise(requestAnimationFrame);
    }
    if (!isZooming) send("pointerup", 4);
    return (seen.drawn - drawn) * 1000 / (performance.now() - start);
}"""
SCROLL = """async () => {
    const grid = document.querySelector(".grid");
    const start = performance.now();
    let steps = 0, most = 0;
    while (steps < 200) {
        grid.scrollTop = (grid.scrollHeight * (steps * 37 % 200)) / 200;
        await new Promise(requestAnimationFrame);
        most = Math.max(most, document.querySelectorAll(".grid .rows .row").length);
        steps += 1;
    }
    return { milliseconds: performance.now() - start, steps, most };
}"""


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        linked, table = Path(folder) / "linked", Path(folder) / "table"
        make_linked(linked)
        with serve(linked) as url:
            # The overview draws nothing by WebGL, so its browser need not start a renderer for it.
            with open_browser(playwright, ARGUMENTS[:3]) as browser:
                yield from measure_paint(browser, url)
            with open_browser(playwright, ARGUMENTS) as browser:
                yield from measure_picture(browser, url)
        make_table(table)
        with serve(table) as url, open_browser(playwright, ARGUMENTS) as browser:
            yield from measure_table(browser, url)


@contextmanager
def open_browser(playwright: Playwright, arguments: list[str]) -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    browser = playwright.chromium.launch(executable_path=found, args=arguments)
    yield browser
    browser.close()


def make_linked(path: Path) -> None:
    chance = random.Random(5)
    names = [f"thing {place}" for place in range(NODES)]
    things = [{"type": "Thing", "data": {"name": each, "size": 1}} for each in names]
    links = [
        {"edge": "Links", "from": names[place % NODES], "to": chance.choice(names), "data": {}}
        for place in range(EDGES)
    ]
    with og.init(path, schema=SCHEMA, durability="process") as graph:
        graph.load([*things, *links], mode="overwrite")


def make_table(path: Path) -> None:
    with og.init(path, schema=TABLE, durability="process") as graph:
        columns = {
            "number": pa.array(range(ROWS), pa.int64()),
            "name": pa.array(f"row {place}" for place in range(ROWS)),
            "size": pa.array((place / 7 for place in range(ROWS)), pa.float64()),
        }
        file = path.with_suffix(".parquet")
        pq.write_table(pa.table(columns), file)
        graph.load({"Row": file}, mode="overwrite")


class Traced:
    """What the main thread of a page did, from the trace of the browser."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._events: list[dict[str, Any]] = []
        self._session.on("Tracing.dataCollected", lambda data: self._events.extend(data["value"]))

    def start(self) -> None:
        self._session.send(
            "Tracing.start",
            {"categories": "toplevel,loading,devtools.timeline", "transferMode": "ReportEvents"},
        )

    def stop(self, page: Page) -> None:
        done: list[bool] = []
        self._session.on("Tracing.tracingComplete", lambda _: done.append(True))
        self._session.send("Tracing.end")
        while not done:
            page.wait_for_timeout(50)

    def find_paint(self) -> float:
        """When something was first painted, by the clock of the trace."""
        times = (e["ts"] for e in self._events if e["name"] == "firstContentfulPaint")
        return float(min(times))

    def list_tasks(self, until: float = math.inf) -> list[float]:
        """CPU milliseconds of every task of the busiest renderer's main thread."""
        names = {
            (each["pid"], each["tid"])
            for each in self._events
            if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
        }
        tasks: dict[tuple[int, int], list[float]] = {}
        for each in self._events:
            place = (each["pid"], each["tid"])
            is_task = "tdur" in each and each["name"].endswith("RunTask")
            if place in names and is_task and each["ts"] < until:
                tasks.setdefault(place, []).append(each["tdur"] / 1000)
        return max(tasks.values(), key=sum, default=[])


def measure_paint(browser: Browser, url: str) -> Iterator[Figure]:
    """The overview in a browser that has never been here."""
    first, whole, spent, complete = list[float](), list[float](), list[float](), list[float]()
    least = list[float]()
    sent = 0.0
    for _ in range(PAINTS):
        least.append(measure_least_paint(browser, url))
        page = browser.new_context().new_page()
        traced = Traced(page)
        traced.start()
        page.goto(url)
        page.locator(".diagram .type").first.wait_for()
        whole.append(page.evaluate("performance.now()"))
        page.evaluate(PAINTED)
        found = page.evaluate(RECEIVED)
        traced.stop(page)
        first.append(found["paint"])
        spent.append(sum(traced.list_tasks(until=traced.find_paint())))
        complete.append(sum(traced.list_tasks()))
        sent = found["sent"]
        page.context.close()
    yield median("first paint of one line of text from the same server", least, "wall ms")
    yield median("first paint of the workbench", first, "wall ms")
    yield median("first paint of the workbench, main thread until then", spent, "cpu ms")
    yield median("the overview is complete", whole, "wall ms")
    yield median("the overview, main thread", complete, "cpu ms")
    yield Figure("the overview, compressed", sent / 1000, "kB")


def measure_least_paint(browser: Browser, url: str) -> float:
    """What the browser itself takes to start a page and to paint one line of text."""
    page = browser.new_context().new_page()
    page.goto(f"{url}/healthz")
    page.evaluate(PAINTED)
    found = page.evaluate(RECEIVED)["paint"]
    page.context.close()
    return float(found)


def median(name: str, values: list[float], unit: str) -> Figure:
    return Figure(name, statistics.median(values), unit, min(values), max(values), len(values))


def measure_picture(browser: Browser, url: str) -> Iterator[Figure]:
    """The first steps of a layout, from the moment that its rows are asked for."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(600_000)
    page.add_init_script(COUNTERS)
    page.goto(f"{url}/#/query?q={quote(LINKS)}")
    page.get_by_role("button", name="Run").click()
    page.locator(".canvas[data-nodes]").wait_for()
    traced = Traced(page)
    page.evaluate("seen.frames.length = seen.long.length = seen.turns.length = 0")
    page.evaluate("seen.drawn = seen.calls = 0")
    traced.start()
    before = measure_graphics()
    page.locator(".corner button").click()
    page.locator(f".canvas[data-nodes='{NODES}']").wait_for()
    page.evaluate(TURNS, LAYOUT_TURNS)
    seen = page.evaluate("seen")
    graphics = (measure_graphics() - before) * 1000 / seen["drawn"]
    traced.stop(page)
    tasks = traced.list_tasks()
    frames, turns = gaps(seen["frames"]), gaps(seen["turns"])
    name = f"a picture of {NODES:,} nodes and {EDGES:,} edges, laid out"
    yield median(f"{name}: between two frames", frames, "wall ms")
    yield median(f"{name}: between two turns of the layout", turns, "wall ms")
    yield Figure(f"{name}: main thread per turn", sum(tasks) / len(seen["turns"]), "cpu ms")
    yield Figure(f"{name}: graphics process per frame drawn", graphics, "cpu ms")
    yield Figure(f"{name}: longest task", max(tasks), "cpu ms")
    yield Figure(f"{name}: tasks over 50 ms of CPU", sum(each > 50 for each in tasks), "count")
    yield Figure(f"{name}: tasks over 50 ms of wall time", len(seen["long"]), "count")
    yield Figure(f"{name}: draw calls per frame", seen["calls"] / seen["drawn"], "count")
    span = (seen["turns"][-1] - seen["turns"][0]) / 1000
    yield Figure(f"{name}: new places drawn", len(turns) / span, "frames/s")
    yield from measure_hand(page, f"{name}, still moving")
    page.locator(".canvas[data-still]").wait_for()
    yield from measure_hand(page, f"{name}, at rest")
    page.close()


def measure_hand(page: Page, name: str) -> Iterator[Figure]:
    """How often it is drawn anew while a hand pulls at it without a pause."""
    yield Figure(f"{name}: panned", page.evaluate(HAND, False), "frames/s")
    yield Figure(f"{name}: zoomed", page.evaluate(HAND, True), "frames/s")


def measure_graphics() -> float:
    """CPU seconds of the process that draws, by software where there is no graphics card."""
    spent = 0.0
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "--type=gpu-process" in " ".join(each.cmdline()):
                spent += sum(each.cpu_times()[:2])
    return spent


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def measure_table(browser: Browser, url: str) -> Iterator[Figure]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(600_000)
    asked: list[str] = []
    page.on("request", lambda each: asked.append(each.url) if each.url.endswith("/query") else None)
    page.goto(f"{url}/#/query?q={quote(ALL)}")
    page.get_by_role("button", name="Run").click()
    page.locator(f".grid[aria-rowcount='{ROWS}']").wait_for()
    traced = Traced(page)
    traced.start()
    before = len(asked)
    done = page.evaluate(SCROLL)
    traced.stop(page)
    tasks = traced.list_tasks()
    name = f"a table of {ROWS:,} rows, scrolled 200 times"
    yield Figure(f"{name}: per step", done["milliseconds"] / done["steps"], "wall ms")
    yield Figure(f"{name}: main thread per step", sum(tasks) / done["steps"], "cpu ms")
    yield Figure(f"{name}: longest task", max(tasks), "cpu ms")
    yield Figure(f"{name}: rows in the page at most", done["most"], "count")
    yield Figure(f"{name}: requests", len(asked) - before, "count")
    page.locator(".grid").evaluate("element => element.scrollTop = element.scrollHeight")
    page.locator(f".grid [aria-rowindex='{ROWS}']").wait_for()
    page.close()
