"""Fence: refuse an update or delete whose tables changed after its request arrived.

Updates and deletes are decisions about rows the client has read. Of several in flight for the same
table one wins; the others fail with nothing written, since the rows they were decided on changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from omnigraph.errors import ExpectedVersionMismatch, PreconditionFailed
from omnigraph.graph import Graph, MutationResult
from omnigraph.manifest import GraphCommit, Snapshot

HEADS_TRIED_MAX = 8

Mutate: TypeAlias = Callable[[str | None], tuple[MutationResult, GraphCommit | None]]
"""Runs the mutation, on condition that a commit is the head when one is given."""


class StaleWrite(ExpectedVersionMismatch):
    """A table moved after the request arrived, and the head of its branch with it."""

    def __init__(self, mismatch: ExpectedVersionMismatch, *, seen: Snapshot, now: Snapshot) -> None:
        super().__init__(mismatch.table_key, expected=mismatch.expected, actual=mismatch.actual)
        self.branch = seen.branch
        self.head_expected = seen.head.commit_id
        self.head_actual = now.head.commit_id


def mutate_as_seen(
    graph: Graph, tables: frozenset[str], seen: Snapshot, mutate: Mutate
) -> tuple[MutationResult, GraphCommit | None]:
    """Run a mutation that was decided on `seen`, by the rows of these tables.

    The engine checks what moved since it prepared a write, which may be long after the request
    arrived. So the write is tied to a head at which none of its tables had moved; when only others
    move the head, it is tied to the next one.

    Raises:
        StaleWrite: A table it changes has moved. Nothing was written.
    """
    if not tables:
        return mutate(None)
    for _ in range(HEADS_TRIED_MAX):
        now = graph.snapshot(seen.branch)
        _refuse_if_moved(tables, seen, now)
        try:
            return mutate(now.head.commit_id)
        except PreconditionFailed:
            continue
    # The branch moves all the time, in other tables. Waiting for a still moment could take forever.
    return mutate(None)


def _refuse_if_moved(tables: frozenset[str], seen: Snapshot, now: Snapshot) -> None:
    if now.head.commit_id == seen.head.commit_id:
        return  # a compaction moves versions and no rows
    for key in sorted(tables):
        expected, actual = seen.version_of(key), now.version_of(key)
        if actual > expected:
            mismatch = ExpectedVersionMismatch(key, expected=expected, actual=actual)
            raise StaleWrite(mismatch, seen=seen, now=now)


def with_heads(error: ExpectedVersionMismatch, graph: Graph, seen: Snapshot) -> StaleWrite:
    """The error with the heads of the branch: as they were, and as they are."""
    return StaleWrite(error, seen=seen, now=graph.snapshot(seen.branch))
