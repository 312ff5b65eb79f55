"""Every write takes a message and metadata, and its commit keeps them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.commit_note import parse_metadata, read_note
from omnigraph.errors import BadRequestError, OmnigraphError, ResourceLimitError
from omnigraph.manifest.rows import commit_to_row, row_to_commit
from omnigraph.testing.together import run_together
from tests.branch.people import CHANGES, SCHEMA, new_people

NOTE: dict[str, Any] = {"message": "Why\nin full", "metadata": {"ticket": "T-1", "empty": ""}}
EDGE: dict[str, Any] = {"node": "Person", "edge": "Knows"}


def _merge(graph: og.Graph) -> None:
    graph.create_branch("dev")
    graph.mutate(CHANGES, "person", {"name": "eve"}, branch="dev")
    graph.merge("dev", **NOTE)


WRITES: dict[str, Callable[[og.Graph], Any]] = {
    "mutate": lambda g: g.mutate(CHANGES, "person", {"name": "eve"}, **NOTE),
    "update": lambda g: g.mutate(CHANGES, "age", {"name": "bob", "age": 3}, **NOTE),
    "load": lambda g: g.load([{"type": "Firm", "data": {"code": "x"}}], mode="append", **NOTE),
    "ingest": lambda g: g.ingest([{"type": "Firm", "data": {"code": "x"}}], branch="main", **NOTE),
    "load_dataframe": lambda g: g.load_dataframe(
        pa.table({"code": ["x"]}), type="Firm", mode="append", **NOTE
    ),
    "load_dataframes": lambda g: g.load_dataframes(
        {"Firm": pa.table({"code": ["x"]})}, mode="append", **NOTE
    ),
    "algorithm": lambda g: g.algorithm("degrees", **EDGE, write_to="age", **NOTE),
    "merge": _merge,
    "apply_schema": lambda g: g.apply_schema(SCHEMA.replace("I32?", "I64?", 1), **NOTE),
}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "graph")


@pytest.mark.parametrize("write", WRITES)
def test_every_write_notes_its_message_and_metadata(write: str, graph: og.Graph) -> None:
    WRITES[write](graph)

    head = og.open(graph.uri, mode="r").commits()[0]
    assert (head.message, dict(head.metadata)) == (NOTE["message"], NOTE["metadata"])
    assert graph.commit_changes(head.commit_id).cause["message"] == NOTE["message"]


def test_every_member_of_a_group_keeps_its_own_message(graph: og.Graph) -> None:
    names = ["eve", "fay", "gus"]
    calls = [
        partial(graph.mutate, CHANGES, "person", {"name": each}, message=f"hire {each}")
        for each in names
    ]

    made = run_together(graph, calls)

    assert [graph.commit(each.commit_id).message for each in made] == [
        f"hire {each}" for each in names
    ]
    assert len({each.manifest_version for each in made}) == 1


def test_the_commits_of_a_merged_branch_keep_theirs_when_it_is_gone(graph: og.Graph) -> None:
    graph.create_branch("dev")
    graph.mutate(CHANGES, "person", {"name": "eve"}, branch="dev", message="on dev")

    graph.merge("dev", delete_branch=True, message="bring it in")

    assert [each.message for each in graph.log(limit=2)] == ["bring it in", "on dev"]
    graph.tag("v1")
    assert graph.commit("tag:v1").message == "bring it in"


def test_a_commit_of_an_older_omnigraph_has_no_message(graph: og.Graph) -> None:
    row = commit_to_row(graph.commits()[0])

    commit = row_to_commit(row)

    assert "properties" not in row["metadata"]
    assert (commit.message, dict(commit.metadata)) == (None, {})


BAD: list[tuple[Any, Any, type[OmnigraphError], str]] = [
    (" \n", None, BadRequestError, "message is empty"),
    ("x" * 8_193, None, ResourceLimitError, "is 8193, the limit is 8192"),
    ("é" * 4_097, None, ResourceLimitError, "is 8194, the limit is 8192"),
    ("\ud800", None, BadRequestError, "lone surrogate"),
    (None, {"a": 1}, BadRequestError, "metadata 'a' is of type int, expected text"),
    (None, {1: "a"}, BadRequestError, "key of metadata is of type int"),
    (None, {"": "a"}, BadRequestError, "key of metadata is empty"),
    (None, {"a=b": "c"}, BadRequestError, "without '='"),
    (None, {"a\x1b": "c"}, BadRequestError, "printable"),
    (None, {"k" * 65: "a"}, ResourceLimitError, "is 65, the limit is 64"),
    (None, {"k": "v" * 1_025}, ResourceLimitError, "is 1025, the limit is 1024"),
    (None, {str(n): "" for n in range(33)}, ResourceLimitError, "is 33, the limit is 32"),
]


@pytest.mark.parametrize(("message", "metadata", "kind", "text"), BAD)
def test_a_bad_note_is_refused_before_anything_is_written(
    message: Any, metadata: Any, kind: type[OmnigraphError], text: str
) -> None:
    with pytest.raises(kind, match=text):
        read_note(message, metadata)


def test_a_bad_note_writes_nothing(graph: og.Graph) -> None:
    before = graph.commits()

    with pytest.raises(BadRequestError, match="expected a mapping"):
        graph.mutate(CHANGES, "person", {"name": "x"}, metadata="a=b")  # type: ignore[arg-type]
    with pytest.raises(ResourceLimitError):
        graph.load([{"type": "Firm", "data": {"code": "x"}}], mode="append", message="x" * 9_000)

    assert graph.commits() == before


def test_metadata_are_read_from_texts_of_a_key_and_a_value() -> None:
    assert parse_metadata(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(BadRequestError, match="expected key=value"):
        parse_metadata(["a"])
    with pytest.raises(BadRequestError, match="given twice"):
        parse_metadata(["a=1", "a=2"])
