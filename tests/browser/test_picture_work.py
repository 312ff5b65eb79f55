"""What a picture costs the page: counted, not timed. `benchmarks/workbench.py` has the times."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import omnigraph as og
from tests.browser.conftest import needs_browser
from tests.depth import IS_TORTURE
from tests.http.serving import Served

pytestmark = needs_browser

TURNS = 4
COUNT = """
    window.work = { draws: [], uploaded: [], filled: 0, instanced: 0, vertices: [], messages: [] };
    let frame = -1;
    const next = () => { frame += 1; requestAnimationFrame(next); };
    requestAnimationFrame(next);
    const spy = (name, note) => {
        const call = WebGL2RenderingContext.prototype[name];
        WebGL2RenderingContext.prototype[name] = function (...given) {
            note(given);
            return call.apply(this, given);
        };
    };
    for (const kind of ["Arrays", "Elements"])
        for (const how of ["", "Instanced"])
            spy(`draw${kind}${how}`, () => (work.draws[frame] = (work.draws[frame] ?? 0) + 1));
    spy("texSubImage2D", (given) => work.uploaded.push(given[8].byteLength));
    for (const name of ["bufferData", "texImage2D"]) spy(name, () => (work.filled += 1));
    spy("drawArrays", ([mode, , count]) => mode && work.vertices.push(count));  // 0: points
    spy("drawArraysInstanced", () => (work.instanced += 1));
    const Real = window.Worker;
    window.Worker = class extends Real {
        postMessage(message, ...rest) {
            if (message === "drawn" && work.messages.length >= %d) return;
            super.postMessage(message, ...rest);
        }
        set onmessage(act) {
            super.onmessage = (event) => {
                work.messages.push(event.data.positions.length);
                act(event);
            };
        }
    };
"""
WAIT = """() => new Promise((resolve) => {
    const look = () => (work.messages.length >= %d ? resolve(work) : setTimeout(look, 20));
    look();
})"""

REST = """async () => {
    const { drawing } = document.getElementById("picture");
    drawing.drag(0, 1, 1);  // a hand on a node ends the layout
    const until = Date.now() + 30_000;
    for (let last = -1; last !== work.vertices.length && Date.now() < until; ) {
        last = work.vertices.length;
        await new Promise((resolve) => setTimeout(resolve, 400));
    }
}"""


def test_a_frame_is_two_draw_calls_and_one_small_upload_however_many_nodes_move(
    browser: Browser, library: Served, tmp_path: Path
) -> None:
    with og.open(Path(library.serving.settings.graphs[0].uri)) as graph:
        page = graph.picture().to_html(tmp_path / "picture.html").read_text()
    done = {nodes: count_work(browser, tmp_path, page, nodes) for nodes in (400, 4_000)}

    for nodes, work in done.items():
        drawn = [each for each in work["draws"] if each]
        assert max(drawn) == 2, f"{nodes} nodes"
        assert work["messages"] == [2 * nodes] * TURNS
        assert set(work["uploaded"]) == {8 * 1024 * -(-nodes // 1024)}
        assert len(work["uploaded"]) <= TURNS + 1  # and one for the hand
        # Colours of nodes, places, radii, ends and colours of edges: once, not per frame.
        assert work["filled"] == 5
        every = 3 * nodes * (9 if nodes == 400 else 6)  # with arrows, or without
        assert work["vertices"][-1] == every, "all of it is drawn once it rests"
        moving = work["vertices"][0]
        assert moving == every if nodes == 400 else moving <= every / 12, "thin, and some only"
        assert work["instanced"] == 0  # software draws instances one by one, 25 µs each


def count_work(browser: Browser, folder: Path, page: str, nodes: int) -> dict[str, Any]:
    """The same page with another graph in it: `nodes` nodes, and three edges for each."""
    things = [{"type": "T", "id": str(n), "label": f"t{n}", "properties": {}} for n in range(nodes)]
    edges = [["E", str(n), n % nodes, n * 7919 % nodes] for n in range(3 * nodes)]
    data = json.dumps({"nodes": things, "edges": edges, "note": ""})
    file = folder / f"{nodes}.html"
    file.write_text(re.sub(r'(id="data">).*?(</script>)', lambda m: m[1] + data + m[2], page))
    tab = browser.new_page(viewport={"width": 500, "height": 300})
    tab.add_init_script(COUNT % TURNS)
    tab.goto(file.as_uri())
    tab.evaluate(WAIT % TURNS)
    tab.evaluate(REST)
    work: dict[str, Any] = tab.evaluate("work")
    tab.close()
    return work


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_a_lost_graphics_context_comes_back_with_the_picture(
    browser: Browser, library: Served, tmp_path: Path
) -> None:
    with og.open(Path(library.serving.settings.graphs[0].uri)) as graph:
        file = graph.picture().to_html(tmp_path / "picture.html")
    tab = browser.new_page(viewport={"width": 500, "height": 300})
    tab.goto(file.as_uri())
    tab.wait_for_selector(".canvas[data-still]")
    canvas = ".canvas canvas >> nth=0"
    before = tab.locator(canvas).screenshot()

    tab.locator(canvas).evaluate(
        """async (canvas) => {
            const lose = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
            const restored = new Promise((resolve) =>
                canvas.addEventListener("webglcontextrestored", resolve));
            lose.loseContext();
            await new Promise((resolve) => setTimeout(resolve));
            lose.restoreContext();
            await restored;
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
        }"""
    )

    assert tab.locator(canvas).screenshot() == before
    tab.close()
