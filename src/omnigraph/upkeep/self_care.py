"""Self-care: after a write, merge the small fragments that many small writes have left.

Costs follow fragments, not rows or versions, so a graph that is written to in small steps is kept
fast by merging its small fragments every few dozen commits. A table is compacted through the same
sidecar, commit and publish as any write; the publish carries no graph commit, since nothing a
reader can see has changed, and the head stays where the last writer left it. BTREE indexes that
lose coverage to the compaction get it back in the same publish.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from omnigraph.errors import OmnigraphError
from omnigraph.manifest.branch_names import lance_branch, owns_lineage
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.upkeep.content_keeping import Stage, TableWork, commit_work, to_stage
from omnigraph.upkeep.index_work import existing_btrees
from omnigraph.write.environment import WriteEnvironment, publish_turn
from omnigraph.write.fork import open_pin
from omnigraph.write.sidecar import WriterKind

CHECK_EVERY_VERSIONS = 32
SMALL_FRAGMENTS_MAX = 24
MERGED_FRAGMENT_ROWS = 8_192
"""Fragments of this many rows are left alone, so a large table is not rewritten for small ones."""
CATCH_UP_ROWS_MAX = 100_000
"""An index that lags further behind than this is left to `optimize`: a write should not wait."""

log = logging.getLogger("omnigraph.upkeep")


def compact_if_due(environment: WriteEnvironment, branch: str, table_keys: Iterable[str]) -> None:
    """Compact what is due. The write is already published, so errors are logged, never raised."""
    try:
        for key in sorted(table_keys):
            _compact_table_if_due(environment, branch, key)
        with publish_turn(environment, branch):
            environment.coordinator.compact_if_due(branch)
    except OmnigraphError as error:
        log.warning("self-care of branch '%s' was postponed: %s", branch, error)


def _compact_table_if_due(environment: WriteEnvironment, branch: str, table_key: str) -> None:
    entry = environment.coordinator.last_seen(branch).entries.get(table_key)
    if entry is None or entry.version % CHECK_EVERY_VERSIONS:
        return
    if not owns_lineage(branch, entry.table_branch):
        return
    tables = environment.tables
    handle = open_pin(tables, entry)
    if tables.table_state(handle).small_fragments < SMALL_FRAGMENTS_MAX:
        return
    staged = tables.compaction.stage(handle, MERGED_FRAGMENT_ROWS)
    if staged is not None:
        _commit_compaction(
            environment, branch, TableWork(entry, handle, _steps(tables, handle, staged))
        )


def _steps(
    tables: TableStorage, handle: TableHandle, compaction: StagedTransaction
) -> tuple[Stage, ...]:
    """The compaction, and the part of BTREE indexes that it takes away, built again."""
    btrees = existing_btrees(tables, handle, CATCH_UP_ROWS_MAX - compaction.rows)
    if not btrees:
        return (to_stage(compaction),)

    def catch_up(at: TableHandle) -> StagedTransaction:
        staged = tables.indexes.stage_create(at, (), btrees).transaction
        assert staged is not None, "a compaction always takes coverage away"
        return staged

    return (to_stage(compaction), catch_up)


def _commit_compaction(environment: WriteEnvironment, branch: str, work: TableWork) -> None:
    entry, location = work.entry, work.handle.location
    with environment.queues.acquire_many([(entry.table_key, lance_branch(branch))]):
        now = environment.coordinator.fresh(branch).entries.get(entry.table_key)
        if now != entry or environment.tables.head_version(location) != entry.version:
            return  # another writer came first and compacts in turn
        commit_work(environment, branch, WriterKind.OPTIMIZE, {entry.table_key: work})
