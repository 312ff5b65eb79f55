"""Hostile records: values that no store can hold are bad rows with a place and a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, OmnigraphError
from omnigraph.write.bad_rows import BadRowsError
from tests.pipeline.conftest import Loads

SCHEMA = """
node Doc {
    slug: String @key  title: String?  n: I64?  u: U64?  f: F64?  d: Date?  t: DateTime?  b: Bool?
    tags: [String]?  counts: [I32]?  place: Vector(2)?  file: Blob?
}
edge Cites: Doc -> Doc { note: String? }
"""
PROPERTIES = ("slug", "title", "n", "u", "f", "d", "t", "b", "tags", "counts", "place", "file")
VALUES: list[Any] = [
    *("\ud800", "a\udfffb", 2**63, 2**64, -(2**63) - 1, 10**400, 10**5_000, float("nan")),
    *(float("inf"), b"\xff", object(), {}, {"\ud800": 1}, {1: 2}, {(): 1}, [None], ["\ud800"]),
    *([2**64], [[]], [object()], {2, 3}, 1 + 2j, "", "\0", "x\0y", True, 1.5, range(3)),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(
        tmp_path_factory.mktemp("records") / "graph",
        schema=SCHEMA,
        durability="process",
        self_care=False,
    )
    graph.load([{"type": "Doc", "data": {"slug": slug}} for slug in "ab"], mode="append")
    return graph


def records(value: Any) -> list[Any]:
    """A value at every place of a record."""
    cites = {"edge": "Cites", "from": "a", "to": "b"}
    return [
        *({"type": "Doc", "data": {"slug": "x", name: value}} for name in (*PROPERTIES, "id")),
        *({"type": "Doc", "data": value}, {"type": value}, {"edge": value}, value),
        *(cites | {"from": value}, cites | {"to": value}, cites | {"data": {"note": value}}),
        cites | {"data": {"id": value}},
        *([{"type": "Doc", "data": {value: 1}}] if isinstance(value, str | int | bytes) else []),
    ]


@pytest.mark.parametrize("place", range(len(VALUES)))
def test_a_value_that_cannot_be_stored_is_a_bad_row(graph: og.Graph, place: int) -> None:
    """One by one: only our errors come out, and what is taken can be read and exported."""
    before = graph.commits()[0].commit_id

    for record in records(VALUES[place]):
        try:
            graph.load([record], mode="merge", branch="main", engine="inline")
        except OmnigraphError as error:
            str(error).encode()

    if graph.commits()[0].commit_id != before:
        for line in graph.export():
            json.dumps(line).encode()


def test_bad_rows_are_quarantined_with_their_values(graph: og.Graph, tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"type": "Doc", "data": {"slug": "\ud800"}},
        {"type": "Doc", "data": {"slug": "x", "n": 2**64}},
        {"edge": "Cites", "from": "a\udfff", "to": "b"},
        {"type": "Doc", "data": {"slug": "x", 7: 1}},
        {"type": "Doc", "data": {"slug": "x", "u": 10**5_000}},
    ]
    kept = tmp_path / "aside.jsonl"

    with pytest.raises(BadRowsError) as caught:
        graph.load(bad, mode="merge", engine="inline")
    result = graph.load(bad, mode="merge", engine="inline", on_error="quarantine", quarantine=kept)

    told = str(caught.value)
    for part in (
        "record 1: Doc.slug: is not valid Unicode",
        "record 2: Doc.n: 18446744073709551616 exceeds Int64 range",
        "record 3: record: `from` is not valid Unicode",
        "record 4: record: a name of `data` is 7, expected text",
        "record 5: Doc.u: an integer of 16610 bits exceeds UInt64 range",
    ):
        assert part in told
    assert result.rows_rejected == len(kept.read_text().splitlines()) == len(bad)


def test_a_record_with_a_member_twice_is_quarantined_as_it_came(
    graph: og.Graph, tmp_path: Path
) -> None:
    """As JSON it would have one of the two values only, and look like a record that is right."""
    line = '{"type": "Doc", "data": {"slug": "a", "slug": "b"}}'
    source, kept = tmp_path / "twice.jsonl", tmp_path / "aside.jsonl"
    source.write_text(line + "\n")

    graph.load(source, mode="merge", engine="inline", on_error="quarantine", quarantine=kept)

    assert json.loads(kept.read_text())["record"] == line


FRAMES: dict[str, Any] = {
    "lone surrogate": lambda pd: pd.DataFrame({"slug": ["\ud800"]}),
    "name with a lone surrogate": lambda pd: pd.DataFrame({"\ud800": ["x"]}),
    "integer beyond 64 bits": lambda pd: pd.DataFrame({"slug": ["x"], "n": [2**64]}),
    "mixed types": lambda pd: pd.DataFrame({"slug": ["x", "y"], "n": ["x", 1]}),
    "mixed list": lambda pd: pd.DataFrame({"slug": ["x"], "tags": [("a", 1)]}),
    "objects": lambda pd: pd.DataFrame({"slug": [object()]}),
    "complex numbers": lambda pd: pd.DataFrame({"slug": ["x"], "f": [1 + 2j]}),
    "pandas column twice": lambda pd: pd.DataFrame([["a", "b"]], columns=["slug", "slug"]),
    "column twice": lambda _: pa.table([["a"], ["b"]], names=["slug", "slug"]),
    "instant beyond the calendar": lambda _: pa.table(
        {"slug": ["x"], "d": pa.array([2**62], pa.timestamp("s"))}
    ),
    "no frame": lambda _: "x",
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_that_cannot_be_read_is_refused(graph: og.Graph, name: str) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    before = graph.commits()[0]

    with pytest.raises(BadRequestError) as caught:
        graph.load_dataframe(FRAMES[name](pd), type="Doc", mode="merge", engine="inline")

    assert "nothing was written" in str(caught.value) or "is not a DataFrame" in str(caught.value)
    assert graph.commits()[0] == before


def test_a_member_that_is_there_twice_is_refused(alone: Loads) -> None:
    """Parsers take the last one and say nothing; colons inside texts are no members."""
    text = (
        '{"type": "Person", "data": {"name": "a: b", "name": "c"}}\n'
        '{"type": "Person", "type": "Team", "data": {"name": "d"}}\n'
        '{"type": "Person", "data": {"name": "e: f, g:h"}}\n'
        '{"type": "Person", "data": {"name": "e", "n\\u0061me": "f"}}\n'
    )

    with pytest.raises(BadRowsError) as caught:
        alone.load(text)

    assert [(bad.location, bad.reason) for bad in caught.value.bad_rows] == [
        ("data:1", 'the member "name" is there twice'),
        ("data:2", 'the member "type" is there twice'),
        ("data:4", 'the member "name" is there twice'),
    ]


@pytest.mark.parametrize("end", ["", '"', ",", ":", '{"a":', "[1,"])
def test_a_line_that_is_cut_off_never_takes_bytes_of_its_neighbour(alone: Loads, end: str) -> None:
    """Whatever the neighbour begins with: here a record whose `data` comes first."""
    cut = '{"type": "Person", "data": {"name": "cut"' + end
    text = f'{cut}\n{{"data": {{"name": "next"}}, "type": "Person"}}\n'

    with pytest.raises(BadRowsError) as caught:
        alone.load(text)
    alone.load(text, on_error="quarantine")

    assert caught.value.bad_rows.total == 1
    assert alone.ids("Person") == ["next"]
