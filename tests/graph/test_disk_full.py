"""A full disk: a typed error, nothing torn, and the same command works once there is room."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import OmnigraphError, RecoveryRequired, StorageError, StorageFull
from tests.graph.reading import SCHEMA, add, heads, links, names, pins, rows, sidecars
from tests.small_disk import PAGE, ROOMY, resize, used

pytestmark = pytest.mark.slow


def fill(graph: og.Graph, acknowledged: list[object]) -> None:
    """Write notes of 40 kB, numbered, until the disk is full."""
    for number in range(10_000):
        text = f"{number:05}" + os.urandom(20_000).hex()
        acknowledged.append(add(graph, "note", text=text))


def test_filling_a_small_disk_loses_nothing_that_was_acknowledged(disk: Path) -> None:
    graph = og.init(disk / "graph", schema=SCHEMA)
    acknowledged: list[object] = []

    # When not even an undo finds room, the write may still be finished; then that is said.
    with pytest.raises((StorageFull, RecoveryRequired), match="free some space") as refused:
        fill(graph, acknowledged)

    reader = og.open(disk / "graph", mode="r")
    assert [row["text"][:5] for row in sorted(rows(reader, "Note"), key=lambda r: r["text"])] == [
        f"{number:05}" for number in range(len(acknowledged))
    ]

    resize(disk, ROOMY)
    again = og.open(disk / "graph")
    finished = len(rows(again, "Note")) - len(acknowledged)
    assert finished in ((0, 1) if refused.type is RecoveryRequired else (0,))
    add(again, "note", text="more")
    assert len(rows(again, "Note")) == len(acknowledged) + finished + 1
    assert heads(again) == pins(again)
    assert sidecars(again) == []


def test_at_whatever_page_the_disk_runs_out_a_write_is_old_or_new(disk: Path) -> None:
    """Leave one page more each time: every write of a two-table mutation fails once."""
    resize(disk, ROOMY)
    og.init(disk / "graph", schema=SCHEMA)
    outcomes = []

    for pages in range(0, 40, 2):
        graph = og.open(disk / "graph", self_care=False)
        before = names(graph)
        resize(disk, used(disk) + pages * PAGE)
        try:
            add(graph, "pair", a=f"a{pages:02}", b=f"b{pages:02}")
            outcomes.append("done")
        except (StorageError, RecoveryRequired):
            outcomes.append("failed")
        reader = og.open(disk / "graph", mode="r")
        assert names(reader) in (before, sorted([*before, f"a{pages:02}", f"b{pages:02}"]))
        assert 2 * len(links(reader)) == len(names(reader))

        resize(disk, ROOMY)
        again = og.open(disk / "graph", self_care=False)
        assert heads(again) == pins(again)
        assert sidecars(again) == []
        if f"a{pages:02}" not in names(again):
            add(again, "pair", a=f"a{pages:02}", b=f"b{pages:02}")
        assert len(names(again)) == len(before) + 2
        assert 2 * len(links(again)) == len(names(again))

    assert {"done", "failed"} <= set(outcomes)


def test_a_graph_that_cannot_be_created_says_why_and_can_be_created_later(disk: Path) -> None:
    resize(disk, 8 * PAGE)

    with pytest.raises(OmnigraphError):
        og.init(disk / "graph", schema=SCHEMA)

    with pytest.raises(OmnigraphError):
        og.open(disk / "graph")
    resize(disk, ROOMY)
    assert og.init(disk / "graph2", schema=SCHEMA).branches() == ["main"]
