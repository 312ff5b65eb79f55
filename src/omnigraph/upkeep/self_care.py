"""Self-care: after writes, merge the small fragments that many small ones have left, and remove the
history that a retention setting lets go (see retention.py).

Costs follow fragments, not rows or versions, so a graph that is written to in small steps is kept
fast by merging its small fragments every few dozen commits. A table is compacted through the same
sidecar, commit and publish as any write; the publish carries no graph commit, since nothing a
reader can see has changed, and the head stays where the last writer left it. BTREE and zone map
indexes that lose coverage to the compaction get it back in the same publish.

The write that makes a compaction due is acknowledged first: a thread of its own compacts. It writes
the new fragments without the queue of the table, and commits them behind rows that were added
meanwhile. If rows were changed or removed it begins again with the queue held: beside writers that
never pause it would otherwise always be late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from threading import Lock

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.lru import Lru
from omnigraph.manifest import MAIN, ManifestState, TableEntry
from omnigraph.manifest.branch_names import lance_branch, owns_lineage
from omnigraph.storage.control import ControlTable
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.upkeep.content_keeping import Stage, TableWork, commit_work, to_stage
from omnigraph.upkeep.index_work import existing_by_place
from omnigraph.upkeep.retention import Retention, clean_if_due, is_cleanup_due
from omnigraph.write.environment import WriteEnvironment, publish_turn
from omnigraph.write.fork import open_pin
from omnigraph.write.sidecar import WriterKind

CHECK_EVERY_VERSIONS = 32
SMALL_FRAGMENTS_MAX = 24
MERGED_FRAGMENT_ROWS = 8_192
"""Fragments of this many rows are left alone, so a large table is not rewritten for small ones."""
CATCH_UP_ROWS_MAX = 100_000
"""An index that lags further behind than this is left to `optimize`: a write should not wait."""

SEEN_MAX = 4_096
"""Tables of branches of which the last version is kept in memory."""

_HISTORY = "history"
"""In place of a table key: the cleanup of the whole graph."""

log = logging.getLogger("omnigraph.upkeep")


class SelfCare:
    """The compactions and cleanups of one open graph, one after the other. Thread-safe."""

    def __init__(self) -> None:
        self._pending: dict[tuple[str, str | None], Future[None]] = {}
        self._seen = Lru[tuple[str, str], int](SEEN_MAX)
        """The version of each table after the last write to it."""
        self._lock = Lock()

    def compact_if_due(
        self, environment: WriteEnvironment, branch: str, table_keys: Iterable[str]
    ) -> None:
        """Have compacted, soon, what a write has made due. Costs the caller next to nothing.

        The write is published, so whatever stands in the way is logged, never raised.
        """
        try:
            state = environment.coordinator.last_seen(branch)
            due: list[str | None] = [key for key in sorted(table_keys) if self._is_due(state, key)]
            if environment.coordinator.is_compaction_due(branch):
                due.append(None)
            for table_key in due:
                self._submit(branch, table_key, partial(_compact, environment, branch, table_key))
        except (OmnigraphError, RuntimeError) as error:  # a pool takes no more work at the end
            log.warning("self-care of branch '%s' was postponed: %s", branch, error)

    def clean_if_due(
        self,
        environment: WriteEnvironment,
        projections: Sequence[ControlTable],
        retention: Retention,
    ) -> None:
        """Have the history cleaned up, soon, once enough was published since the last time."""
        try:
            if is_cleanup_due(environment):
                work = partial(clean_if_due, environment, projections, retention)
                self._submit(MAIN, _HISTORY, work)
        except (OmnigraphError, RuntimeError) as error:
            log.warning("the cleanup of the history was postponed: %s", error)

    def _is_due(self, state: ManifestState, table_key: str) -> bool:
        """Whether a table has come to, or past, a version at which its fragments are counted.

        A write that goes with others makes several versions at once, and passes most of them by.
        """
        entry = state.entries.get(table_key)
        if entry is None or not owns_lineage(state.branch, entry.table_branch):
            return False
        seen = self._seen.get((state.branch, table_key))
        self._seen.put((state.branch, table_key), entry.version)
        before = entry.version - 1 if seen is None else seen
        return entry.version // CHECK_EVERY_VERSIONS != before // CHECK_EVERY_VERSIONS

    def _submit(self, branch: str, table_key: str | None, work: Callable[[], None]) -> None:
        with self._lock:
            if (branch, table_key) not in self._pending:
                job = _pool().submit(self._run, branch, table_key, work)
                self._pending[branch, table_key] = job

    def wait(self) -> None:
        """Wait for what is due now."""
        with self._lock:
            pending = list(self._pending.values())
        wait(pending)

    def _run(self, branch: str, table_key: str | None, work: Callable[[], None]) -> None:
        try:
            work()
        except OmnigraphError as error:
            log.warning("self-care of branch '%s' was postponed: %s", branch, error)
        except Exception as error:
            log.error("self-care of branch '%s' failed", branch, exc_info=error)
        finally:
            # What Arrow has freed stays with the thread that used it, until that uses it again.
            pa.default_memory_pool().release_unused()
            with self._lock:
                self._pending.pop((branch, table_key), None)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "omnigraph-self-care")


def _compact(environment: WriteEnvironment, branch: str, table_key: str | None) -> None:
    """Compact a table, or the manifest."""
    if table_key is not None:
        _compact_table(environment, branch, table_key)
        return
    with publish_turn(environment, branch):
        environment.coordinator.compact_if_due(branch)


def _compact_table(environment: WriteEnvironment, branch: str, table_key: str) -> None:
    tables = environment.tables
    found = _find_due(environment, branch, table_key)
    if found is None:
        return
    staged = tables.compaction.stage(found.handle, MERGED_FRAGMENT_ROWS)
    if staged is None:
        return
    hit(Failpoint.OPTIMIZE_AFTER_STAGE)
    with environment.queues.acquire_many([(table_key, lance_branch(branch))]):
        found = _find_due(environment, branch, table_key)
        if found is None or tables.head_version(found.handle.location) != found.entry.version:
            return  # recovery comes first, and the next write compacts
        staged = tables.compaction.rebase(staged, found.handle) or tables.compaction.stage(
            found.handle, MERGED_FRAGMENT_ROWS
        )
        if staged is not None:
            steps = _steps(tables, found.handle, staged)
            work = TableWork(found.entry, found.handle, steps)
            commit_work(environment, branch, WriterKind.OPTIMIZE, {table_key: work})


@dataclass(frozen=True, slots=True)
class _Due:
    """A table with many small fragments, as its branch shows it."""

    entry: TableEntry
    handle: TableHandle


def _find_due(environment: WriteEnvironment, branch: str, table_key: str) -> _Due | None:
    entry = environment.coordinator.fresh(branch).entries.get(table_key)
    if entry is None or not owns_lineage(branch, entry.table_branch):
        return None
    handle = open_pin(environment.tables, entry)
    small = environment.tables.table_state(handle).small_fragments
    return None if small < SMALL_FRAGMENTS_MAX else _Due(entry, handle)


def _steps(
    tables: TableStorage, handle: TableHandle, compaction: StagedTransaction
) -> tuple[Stage, ...]:
    """The compaction, and the part of indexes that it takes away, built again."""
    btrees = existing_by_place(tables, handle, CATCH_UP_ROWS_MAX - compaction.rows)
    if not btrees:
        return (to_stage(compaction),)

    def catch_up(at: TableHandle) -> StagedTransaction:
        staged = tables.indexes.stage_create(at, (), btrees).transaction
        assert staged is not None, "a compaction always takes coverage away"
        return staged

    return (to_stage(compaction), catch_up)
