"""The page "How do I say …?": every query of it runs, and finds or changes something."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import compile_query
from tests.docs_blocks import ROOT, Block, blocks_of

PAGE = ROOT / "docs" / "guides" / "how-do-i-say.md"
BLOCKS = blocks_of(PAGE)
QUERIES = [block for block in BLOCKS if block.language == "gq"]


def _schema(blocks: list[Block], name: str) -> str:
    return next(block.text for block in blocks if block.option("name") == name)


LIBRARY = _schema(blocks_of(ROOT / "docs" / "reference" / "query-language.md"), "library")
PARAMS: dict[str, Any] = {
    "t": "GRAPH",
    "status": None,
    "slug": "ada",
    "isbn": "b1",
    "isbns": ["b1", "b2", "none"],
    "q": [1.0, 0.0, 0.0],
    "f": {"from": 1990},
    "part": "a",
    "card": "r1",
    "a": "r1",
    "b": "r3",
    "day": "2024-05-01",
    "since": 1990,
    "k": 3,
    "text": "graphs",
    "name": "Ada",
    "by": 1.5,
    "before": 2030,
    "rows": [{"slug": "new", "name": "New"}, {"slug": "ada", "name": "Ada L."}],
}
"""What parameters without a default are given, by their names."""


def book(number: int, **values: Any) -> dict[str, Any]:
    known = {"isbn": f"b{number}", "title": f"On graphs {number}", "year": 1990 + 5 * number}
    return {"type": "Book", "data": known | {"status": "ordered"} | values}


DATA: list[dict[str, Any]] = [
    {"type": "Author", "data": {"slug": "ada", "name": "Ada", "born": 1970}},
    {"type": "Author", "data": {"slug": "lin", "name": "Lin"}},
    {"type": "Author", "data": {"slug": "new-born", "name": "Sam"}},
    book(1, price=10.0, topics=["graphs"], summary="graphs", embedding=[1.0, 0.0, 0.0]),
    book(2, status="shelved", summary="more graphs", embedding=[0.9, 0.1, 0.0]),
    book(3, status="lent", price=30.0, added="2999-01-01T00:00:00Z", embedding=[0.0, 1.0, 0.0]),
    book(4, status="shelved", price=5.0),
    book(5, status="shelved", price=7.0),
    *({"type": "Reader", "data": {"card": f"r{n}", "name": f"R{n}"}} for n in range(1, 6)),
    *({"edge": "Wrote", "from": "ada", "to": f"b{n}", "data": {"position": n}} for n in (1, 2, 3)),
    {"edge": "Wrote", "from": "lin", "to": "b1"},
    *(
        {"edge": "Borrowed", "from": reader, "to": isbn, "data": {"since": "2024-06-01"}}
        for reader, isbn in (("r1", "b1"), ("r2", "b1"), ("r1", "b2"), ("r3", "b3"), ("r1", "b3"))
    ),
    *({"edge": "Cites", "from": f"b{n}", "to": f"b{n + 1}"} for n in range(1, 4)),
    *(
        {"edge": "Follows", "from": a, "to": b}
        for a, b in (("r1", "r2"), ("r2", "r3"), ("r1", "r4"), ("r4", "r3"), ("r1", "r3"))
    ),
]


DIRECTORY: list[dict[str, Any]] = [
    {"type": "Person", "data": {"slug": "ada", "name": "Ada"}},
    {"type": "Company", "data": {"slug": "acme", "name": "Acme", "since": 1990}},
]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A graph for each schema that the page uses."""
    folder = tmp_path_factory.mktemp("answers")
    schemas = {"library": (LIBRARY, DATA), "directory": (_schema(BLOCKS, "directory"), DIRECTORY)}
    for name, (schema, data) in schemas.items():
        with og.init(folder / name, schema=schema, durability="process") as graph:
            graph.load(data, mode="append")
    return {name: folder / name for name in schemas}


@pytest.mark.parametrize("block", [pytest.param(each, id=each.place) for each in QUERIES])
def test_an_answer_finds_or_changes_something(
    block: Block, graphs: dict[str, Path], tmp_path: Path
) -> None:
    path = graphs[str(block.option("schema"))]
    with og.open(path, mode="r") as graph:
        compiled = compile_query(block.text, graph.catalog)
        given = {each.name: PARAMS[each.name] for each in compiled.params if each.default is None}
        if compiled.kind == "read":
            assert graph.query(block.text, params=given).rows()
            return
    shutil.copytree(path, tmp_path / "copy")
    with og.open(tmp_path / "copy", durability="process") as graph:
        done = graph.mutate(block.text, params=given)
        assert done.affected_nodes + done.affected_edges


def test_there_are_sixty_questions_each_beside_cypher() -> None:
    text = PAGE.read_text()
    questions = [line for line in text.splitlines() if line.startswith("### ")]
    cypher = [block for block in BLOCKS if block.language == "text"]

    assert len(questions) >= 60
    assert len(QUERIES) == len(questions) == len(cypher)
