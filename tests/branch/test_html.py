"""The page of a diff: it shows what changed, asks for nothing, and runs nothing."""

from __future__ import annotations

import http.server
import re
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.catalog.step_text import describe_step
from tests.branch.people import change, new_people

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

HOSTILE = [
    "<script>document.title='owned'</script>",
    "</style><script>document.title='owned'</script>",
    "</title><img src=x onerror=\"document.title='owned'\">",
    '"><svg onload="document.title=\'owned\'">',
    "javascript:document.title='owned'",
    "<link rel=stylesheet href=http://localhost:{port}/fetched>",
    "<img src=http://localhost:{port}/fetched>",
    "<iframe src=http://localhost:{port}/fetched></iframe>",
    "a & b &lt;c&gt; 'quoted' \"twice\"",
    "\u202egnp.exe\u2066 \x00\x07 \ufeff ünïcødé 漢字 🙂",
    "{{7*7}} ${7*7} <!-- --> ]]> <![CDATA[",
]


TEXT_ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "b", "bdi", "div", "span"),
    *("table", "tr", "th", "td", "details", "summary"),
}
PICTURE_ELEMENTS = {"svg", "defs", "marker", "path", "g", "circle", "line", "text"}


def page_of(graph: og.Graph, before: og.Snapshot, title: str = "Changes") -> str:
    return graph.diff_html(before, "main", title=title)


def hostile_page(path: Path, port: int = 9) -> str:
    graph = new_people(path)
    before = graph.snapshot()
    texts = [text.replace("{port}", str(port)) for text in HOSTILE]
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": text, "email": text + "!"}} for text in texts
    ]
    records += [
        {"edge": "Knows", "from": one, "to": other, "data": {}}
        for one, other in zip(texts, [*texts[1:], "alice"], strict=True)
    ]
    graph.load(records, mode="append")
    return page_of(graph, before, title=texts[0])


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_shows_summary_properties_and_the_graph_around(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph")
    before = graph.snapshot()
    change(graph, "age", name="bob", age=26)
    change(graph, "person", name="eve", age=1)
    change(graph, "gone", name="dan")
    change(graph, "knows", a="eve", b="alice")

    page = page_of(graph, before)

    assert "4 changes" in page
    assert '<td class="count insert">1</td>' in page
    assert re.search(r"<td>age</td><td class=.before.><bdi>25</bdi></td>", page)
    picture = page[page.index("<svg") : page.index("</svg>")]
    # Carol and f1 did not change: they are one hop from Bob.
    for name in ("bob", "eve", "dan", "alice", "carol", "f1"):
        assert f">{name}</text>" in picture
    assert picture.count('<g class="context">') == 3 + 2
    assert page == page_of(graph, before)


def test_nothing_differs_is_a_page_too(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph")

    page = page_of(graph, graph.snapshot())

    assert "Nothing differs" in page
    assert "<svg" not in page


def test_no_value_becomes_markup(tmp_path: Path) -> None:
    found = Elements(hostile_page(tmp_path / "graph")).found

    allowed = {*TEXT_ELEMENTS, *PICTURE_ELEMENTS}
    assert {tag for tag, _ in found} <= allowed
    names = {name for _, attributes in found for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href", "style")}


def test_the_policy_forbids_scripts_and_requests(tmp_path: Path) -> None:
    found = Elements(hostile_page(tmp_path / "graph")).found
    (policy,) = [
        attributes["content"]
        for tag, attributes in found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]

    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_what_cannot_be_seen_is_shown(tmp_path: Path) -> None:
    page = hostile_page(tmp_path / "graph")

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page)
    assert "\\u202e" in page
    assert "␀" in page


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
def test_a_browser_runs_and_fetches_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = tmp_path / "page.html"
    page.write_text(hostile_page(tmp_path / "graph", server.server_port), encoding="utf-8")

    assert CHROMIUM is not None
    shown = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=2000",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    server.shutdown()
    server.server_close()

    title = shown[shown.index("<title>") : shown.index("</title>")]
    assert "&lt;script&gt;" in title
    assert "<script" not in shown
    assert asked == []
    assert "<svg" in shown


def test_the_page_shows_the_steps_of_the_schema_beside_the_rows(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "g.omni")
    graph.create_branch("next")
    text = graph.schema.replace("email: String?", 'mail: String? @rename_from("email")')
    graph.apply_schema(f"{text}\nnode Hobby {{ name: String @key }}", branch="next")

    page = graph.diff_html("main", "next")

    assert "<p>No row differs.</p>" in page
    for step in graph.diff("main", "next").schema_steps:
        assert f"<bdi>{describe_step(step.to_json())}</bdi>" in page
    assert "rename property email of node Person to mail" in page
    assert "add node Hobby" in page
    change(graph, "age", "main", name="alice", age=31)
    assert "Change by change" in graph.diff_html("main", "next")
    assert "The schema" not in graph.diff_html("main", "main~1")
    assert "The schema" not in graph.diff_html("main", "next", types=["Firm"])
