"""The schema contract: three files that agree, checked at every operation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError
from tests.graph.reading import SCHEMA, add, names, reopen

FILES = ("_schema.pg", "_schema.ir.json", "__schema_state.json")


def change(graph: og.Graph, name: str, old: str, new: str) -> None:
    path = Path(graph.uri, name)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("_schema.pg", "age: I32?", "age: I64?"),
        ("_schema.pg", "node Firm", "node Firma"),
        ("_schema.pg", "node Firm", "nod Firm"),
        ("_schema.ir.json", '"I32"', '"I64"'),
        ("_schema.ir.json", "{", "["),
        ("__schema_state.json", '"schema_ir_hash": "', '"schema_ir_hash": "0'),
        ("__schema_state.json", "schema_ir_hash", "hash"),
        ("__schema_state.json", "{", ""),
    ],
)
def test_an_edit_behind_the_engines_back_stops_every_operation(
    pair: og.Graph, name: str, old: str, new: str
) -> None:
    """Invariant I23, on a live handle as well as at open."""
    accepted = Path(pair.uri, name).read_text()
    change(pair, name, old, new)

    for act in (
        lambda: add(pair, "person", name="cy"),
        lambda: pair.load([], mode="merge"),
        pair.snapshot,
        pair.branches,
        pair.commits,
        lambda: pair.create_branch("b"),
        lambda: pair.delete_branch("b"),
        pair.refresh,
        lambda: reopen(pair),
        lambda: reopen(pair, mode="r"),
    ):
        with pytest.raises(ConflictError):
            act()

    Path(pair.uri, name).write_text(accepted)
    assert names(pair) == ["ann", "bob"]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(pair: og.Graph, name: str) -> None:
    Path(pair.uri, name).unlink()

    with pytest.raises(ConflictError, match=name):
        pair.snapshot()


def test_a_comment_does_not_change_the_schema(pair: og.Graph) -> None:
    change(pair, "_schema.pg", "node Firm", "// a place to work\nnode Firm")

    assert add(pair, "person", name="cy").affected_nodes == 1
    assert "a place to work" in pair.schema
    assert names(reopen(pair)) == ["ann", "bob", "cy"]


def test_the_state_file_has_the_hash_of_the_catalogue(graph: og.Graph) -> None:
    state = json.loads(Path(graph.uri, "__schema_state.json").read_text())

    assert state["format_version"] == 1
    assert state["schema_identity_version"] == 1
    assert state["schema_ir_hash"] == og.build_catalog(og.parse_schema(SCHEMA)).shape_hash
