"""Sidecars: written before the first HEAD moves, exact about what will happen, gone at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.failpoints import ENVIRONMENT_VARIABLE, Failpoint, FailpointError, arm_failpoints
from omnigraph.testing.inside import inside
from omnigraph.write.sidecar import SCHEMA_VERSION
from tests.graph.reading import ADD, add, heads, links, names, pins, reopen, run, sidecars, standing

TWO_TABLES = ("edge:Knows", "node:Person")


def moved(graph: og.Graph, before: dict[str, int]) -> list[str]:
    """The tables whose HEAD is not where it was."""
    return [key for key, head in heads(graph).items() if head != before[key]]


@pytest.mark.accepts("S-085", "S-087", "S-091")
@pytest.mark.parametrize(
    ("point", "mode", "tables_moved", "is_published"),
    [
        (Failpoint.COMMIT_AFTER_SIDECAR, "raise", [], False),
        (Failpoint.COMMIT_AFTER_TABLE, "raise@1", ["edge:Knows"], False),
        (Failpoint.COMMIT_AFTER_TABLE, "raise@2", [*TWO_TABLES], False),
        (Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER, "raise", [*TWO_TABLES], False),
        (Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, "raise", [*TWO_TABLES], False),
        (Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, "raise", [*TWO_TABLES], True),
    ],
)
def test_whatever_a_crash_leaves_a_sidecar_covers_it(
    pair: og.Graph, point: Failpoint, mode: str, tables_moved: list[str], is_published: bool
) -> None:
    before, shown = heads(pair), pins(pair)

    with arm_failpoints({point: mode}), pytest.raises(FailpointError):
        add(pair, "pair", a="cy", b="dee")

    reader = reopen(pair, mode="r")
    assert moved(reader, before) == tables_moved
    assert (pins(reader) != shown) is is_published
    (left,) = sidecars(pair)
    assert {pin["table_key"] for pin in left["tables"]} == set(TWO_TABLES)


@pytest.mark.accepts("S-086", "S-128")
@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_sidecar_says_exactly_what_will_happen(pair: og.Graph, branch: str) -> None:
    pair.create_branch("b")
    shown = pins(pair, branch)
    signed = reopen(pair, actor="ada")

    with arm_failpoints({Failpoint.COMMIT_AFTER_SIDECAR: "raise"}), pytest.raises(FailpointError):
        add(signed, "pair", branch=branch, a="cy", b="dee")

    (left,) = sidecars(pair)
    (file,) = Path(pair.uri, "__recovery").glob("*.json")
    lance_branch = None if branch == "main" else branch
    assert left["operation_id"] == file.stem
    assert (left["schema_version"], left["writer_kind"]) == (SCHEMA_VERSION, "Mutation")
    assert (left["branch"], left["actor_id"]) == (lance_branch, "ada")
    assert int(left["started_at"]) > 0
    for pin in left["tables"]:
        entry = pair.snapshot(branch).entries[pin["table_key"]]
        assert pin["table_path"] == f"{pair.uri}/{entry.table_path}"
        assert pin["expected_version"] == shown[pin["table_key"]]
        assert pin["post_commit_pin"] == pin["expected_version"] + 1
        assert pin["table_branch"] == lance_branch
        assert len(pin["transactions"]) == 1
        assert "confirmed_version" not in pin


def test_the_transaction_a_sidecar_names_is_the_one_that_moves_the_head(pair: og.Graph) -> None:
    """Ownership is proved by UUID, not by arithmetic."""
    with (
        arm_failpoints({Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER: "raise"}),
        pytest.raises(FailpointError),
    ):
        add(pair, "pair", a="cy", b="dee")

    (left,) = sidecars(pair)
    tables = inside(pair).store.tables
    for pin in left["tables"]:
        location = tables.root.table(pair.snapshot().entries[pin["table_key"]].table_path)
        made_by = tables.read_transaction(location, pin["post_commit_pin"])
        assert made_by is not None
        assert made_by.uuid == pin["transactions"][0]["uuid"]
        assert made_by.properties["omnigraph.operation_id"] == left["operation_id"]


@pytest.mark.parametrize(
    ("write", "kind", "tables"),
    [
        (lambda g: add(g, "gone", name="ann"), "Mutation", {"edge:Knows", "node:Person"}),
        (
            lambda g: g.load([{"type": "Firm", "data": {"code": "f"}}], mode="overwrite"),
            "Load",
            {"node:Firm"},
        ),
        (
            lambda g: g.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge"),
            "Load",
            {"node:Person"},
        ),
    ],
    ids=["delete", "overwrite", "merge"],
)
def test_every_writer_has_a_sidecar_over_exactly_the_tables_it_moves(
    pair: og.Graph, write: object, kind: str, tables: set[str]
) -> None:
    """A table that is only read is not named: it would look like one that failed to move."""
    before = heads(pair)

    with (
        arm_failpoints({Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER: "raise"}),
        pytest.raises(FailpointError),
    ):
        write(pair)  # type: ignore[operator]

    (left,) = sidecars(pair)
    assert left["writer_kind"] == kind
    assert {pin["table_key"] for pin in left["tables"]} == tables == set(moved(pair, before))


@pytest.mark.accepts("S-136")
def test_a_sidecar_that_cannot_be_written_stops_the_write_without_a_trace(pair: og.Graph) -> None:
    before = standing(pair)

    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: "raise"}), pytest.raises(FailpointError):
        add(pair, "pair", a="cy", b="dee")

    assert standing(pair) == before
    assert add(pair, "pair", a="cy", b="dee").affected_edges == 1


@pytest.mark.accepts("S-137")
def test_a_sidecar_that_cannot_be_deleted_does_not_fail_the_write(pair: og.Graph) -> None:
    def refuse() -> None:
        raise og.errors.StorageError("the store does not answer")

    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_DELETE: refuse}):
        result = add(pair, "person", name="cy")

    assert result.commit_id is not None
    assert names(reopen(pair, mode="r")) == ["ann", "bob", "cy"]
    assert len(sidecars(pair)) == 1


def test_a_finished_write_leaves_no_sidecar(pair: og.Graph) -> None:
    run(pair, 'insert Person { name: "cy" }')
    pair.load([{"type": "Firm", "data": {"code": "f"}}], mode="append")

    assert sidecars(pair) == []
    assert os.listdir(Path(pair.uri, "__recovery")) == []


KILLED = f"""
import omnigraph as og, sys
graph = og.open(sys.argv[1], durability="process")
graph.mutate({ADD!r}, "pair", {{"a": "cy", "b": "dee"}})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "tables_moved", "is_visible"),
    [
        ("commit.after_table=kill@1", ["edge:Knows"], False),
        ("graph_publish.after_manifest_commit=kill", [*TWO_TABLES], True),
    ],
)
def test_a_killed_writer_leaves_the_old_graph_or_the_new_one(
    pair: og.Graph, setting: str, tables_moved: list[str], is_visible: bool
) -> None:
    """The same, with a process that really dies: no lock stays, no half of it is seen."""
    before = heads(pair)

    child = subprocess.run(
        [sys.executable, "-c", KILLED, pair.uri],
        env={**os.environ, ENVIRONMENT_VARIABLE: setting},
        check=False,
        timeout=120,
    )

    assert child.returncode == -signal.SIGKILL
    reader = reopen(pair, mode="r")
    assert moved(reader, before) == tables_moved
    assert names(reader) == ["ann", "bob", *(["cy", "dee"] if is_visible else [])]
    assert len(links(reader)) == 1 + is_visible
    assert len(sidecars(pair)) == 1
