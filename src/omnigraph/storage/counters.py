"""Counters: what storage did, so that tests and `explain` can state the cost of an operation.

A counter moves only after the thing it counts succeeded. `counting()` scopes a fresh set of
counters to the current context; scopes nest and each sees what happens inside it. Work handed to
a thread is seen when the thread runs in a copy of the context (`contextvars.copy_context`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from threading import Lock

from omnigraph.dataclass import dataclass


@dataclass(slots=True)
class Counters:
    """How often each thing succeeded."""

    opens: int = 0
    head_probes: int = 0
    scans: int = 0
    rows_scanned: int = 0
    value_sets: int = 0
    rows_taken: int = 0
    blobs_read: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    stage_append_calls: int = 0
    stage_append_rows: int = 0
    stage_merge_insert_calls: int = 0
    stage_merge_insert_rows: int = 0
    stage_update_rows: int = 0
    joins: int = 0
    """Upserts that Lance carried out as a join with the whole table."""
    bytes_staged: int = 0
    index_builds: int = 0
    commits: int = 0
    forks: int = 0
    control_reads: int = 0
    control_merges: int = 0
    control_appends: int = 0
    control_compactions: int = 0
    text_reads: int = 0
    text_writes: int = 0
    text_lists: int = 0
    text_deletes: int = 0
    fsyncs: int = 0
    sync_waits: int = 0


PROCESS = Counters()
"""Everything since the process started."""

_scopes: ContextVar[tuple[Counters, ...]] = ContextVar("omnigraph_storage_counters", default=())
_lock = Lock()


@contextmanager
def counting() -> Iterator[Counters]:
    """Count what the block does."""
    counters = Counters()
    token = _scopes.set((*_scopes.get(), counters))
    try:
        yield counters
    finally:
        _scopes.reset(token)


def record(**amounts: int | Counter[str]) -> None:
    """Add to every open scope and to the process total. Call it after success only."""
    with _lock:
        for counters in (PROCESS, *_scopes.get()):
            for name, amount in amounts.items():
                setattr(counters, name, getattr(counters, name) + amount)
