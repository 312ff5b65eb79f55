"""Every object that a person evaluates shows itself, briefly, and its values as text only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.display import LINES_MAX, Grid, Sheet, sheet_to_html, show_text

SCHEMA = """
node Person { name: String @key  note: String?  age: I32? }
edge Knows: Person -> Person
"""
ADD = """
query person($name: String, $note: String?) { insert Person { name: $name, note: $note } }
query knows($a: String, $b: String) { insert Knows { from: $a, to: $b } }
query all() { match { $p: Person } return { $p.name, $p.note } }
"""
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m&\n\tend"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    """A graph with hostile values on main and a branch that conflicts with it."""
    graph = og.init(tmp_path_factory.mktemp("display") / "g", schema=SCHEMA, durability="process")
    graph.load(
        [{"type": "Person", "data": {"name": f"p{n:03}", "note": HOSTILE}} for n in range(60)],
        mode="append",
    )
    graph.create_branch("review")
    for branch in ("main", "review"):
        for name in ("p001", "p002"):
            graph.mutate(ADD, "person", {"name": name, "note": branch + HOSTILE}, branch=branch)
    graph.mutate(ADD, "knows", {"a": "p001", "b": "p002"}, branch="review")
    yield graph
    graph.close()


def schema_plan(graph: og.Graph) -> Any:
    return graph.plan_schema(SCHEMA.replace("age: I32?", "age: I32?  born: Date?"))


SHOWN: dict[str, Callable[[og.Graph], Any]] = {
    "query": lambda graph: graph.query(ADD, "all"),
    "explanation": lambda graph: graph.explain(ADD, "all", analyze=True),
    "catalog": lambda graph: graph.catalog,
    "snapshot": lambda graph: graph.snapshot(),
    "log": lambda graph: graph.log(),
    "commits": lambda graph: graph.commits(),
    "diff": lambda graph: graph.diff("main", "review"),
    "preview": lambda graph: graph.merge("review", preview=True),
    "plan": schema_plan,
    "verification": lambda graph: graph.verify(),
    "doctor": lambda graph: graph.doctor(),
    "history": lambda graph: graph.history("Person", "p001"),
    "blame": lambda graph: graph.blame("Person", "p001"),
    "feed": lambda graph: graph.poll_changes(start="beginning"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_object_is_shown_in_at_most_twenty_lines(graph: og.Graph, name: str) -> None:
    text = repr(SHOWN[name](graph))

    lines = text.split("\n")
    assert 2 <= len(lines) <= LINES_MAX
    assert max(map(len, lines)) <= 160
    assert not any(ord(each) < 32 for each in text.replace("\n", ""))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


PLAIN_TAGS = {"div", "p", "b", "br", "table", "thead", "tbody", "tr", "th", "td", "bdi", "pre"}


@pytest.mark.parametrize("name", [*SHOWN, "graph"])
def test_the_html_of_an_object_holds_values_as_text_only(graph: og.Graph, name: str) -> None:
    shown = graph if name == "graph" else SHOWN[name](graph)

    parsed = Tags()
    parsed.feed(shown._repr_html_() or "")

    assert parsed.tags <= PLAIN_TAGS
    assert parsed.attributes <= {"style"}
    assert "\u202e" not in "".join(parsed.text)
    assert "".join(parsed.text).strip()


def test_a_result_says_how_many_rows_are_left_out(graph: og.Graph) -> None:
    result = graph.query(ADD, "all")

    assert repr(result).splitlines()[0] == "60 rows of all, branch main"
    assert repr(result).splitlines()[-1] == "… and 44 more"
    assert "… and 10 more" in result._repr_html_()


def test_a_graph_shows_types_branches_and_commits_and_nothing_once_closed(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", schema=SCHEMA, durability="process")
    graph.create_branch("review")

    html = graph._repr_html_()

    assert html is not None
    assert "Person → Person" in html
    assert "review" in html
    assert graph.commits()[0].commit_id in html
    graph.close()
    assert graph._repr_html_() is None
    assert "Graph" in repr(graph)


def test_a_schema_is_lines_in_a_notebook_and_a_string_everywhere_else(graph: og.Graph) -> None:
    from IPython.core.formatters import PlainTextFormatter

    shown = PlainTextFormatter()(graph.schema)

    assert shown.splitlines()[:3] == ["schema", *SCHEMA.splitlines()[:2]]
    assert "edge Knows" in graph.schema._repr_html_()
    assert (graph.schema, graph.branch_schema("review")) == (SCHEMA, SCHEMA)


def test_the_time_of_a_commit_is_a_datetime(graph: og.Graph) -> None:
    commit = graph.commits(limit=1)[0]

    assert commit.time.tzinfo is not None
    assert round(commit.time.timestamp() * 1_000_000) == commit.created_at


class Page:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet

    def make_sheet(self) -> Sheet:
        return self.sheet


@pytest.mark.parametrize("text", ["", "one line", "line\n" * 50])
def test_a_sheet_of_any_size_fits_twenty_lines(text: str) -> None:
    for grids, rows, facts in product([0, 1, 2, 5, 12], [0, 1, 3, 17, 18, 40], [0, 3, 30]):
        sheet = Sheet(
            "title",
            {f"fact {n}": n for n in range(facts)},
            [Grid(("a", "b"), [(n, "x" * 400) for n in range(rows)]) for _ in range(grids)],
            text,
        )

        lines = show_text(Page(sheet)).split("\n")

        assert len(lines) <= LINES_MAX, (grids, rows, facts)
        assert lines[0] == "title"


def test_a_table_that_just_fits_is_shown_whole() -> None:
    sheet = Sheet("title", grids=[Grid(("n",), [(n,) for n in range(17)])])

    assert show_text(Page(sheet)).split("\n")[-1] == "16"
    assert "more" not in sheet_to_html(sheet)


def test_an_error_in_a_notebook_shows_its_text_and_no_line_of_ours(graph: og.Graph) -> None:
    with pytest.raises(og.errors.TypeCheckError) as caught:
        graph.query("query q() { match { $p: Person } return { $p.nmae } }")

    lines = caught.value._render_traceback_()

    assert any("graph.query(" in line for line in lines)
    assert not any("/omnigraph/" in line for line in lines)
    assert "did you mean `name`?" in lines[-1]
    assert len("\n".join(lines).splitlines()) < 12
