"""Self-care: after a write, merge the small pieces that many small writes have left.

Costs follow fragments, not rows or versions, so a graph that is written to in small steps is kept
fast by merging its small fragments every few dozen commits. A table is compacted through the same
sidecar, commit and publish as any write; the publish carries no graph commit, since nothing a
reader can see has changed, and the head stays where the last writer left it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from ulid import ULID

from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import Publish, TableEntry, publish
from omnigraph.storage.handles import StagedTransaction
from omnigraph.write.commit import (
    WriteEnvironment,
    finish,
    lane_of,
    pin_of,
    publish_turn,
)
from omnigraph.write.sidecar import Sidecar, SidecarPin, WriterKind, write_sidecar

CHECK_EVERY_VERSIONS = 32
SMALL_FRAGMENTS_MAX = 24
MERGED_FRAGMENT_ROWS = 8_192
"""Fragments of this many rows are left alone, so a large table is not rewritten for small ones."""

log = logging.getLogger("omnigraph.upkeep")


def care_for(environment: WriteEnvironment, branch: str, table_keys: Iterable[str]) -> None:
    """Compact what is due. The write before it is done: trouble here is logged, never raised."""
    try:
        for key in sorted(table_keys):
            _compact_table_if_due(environment, branch, key)
        with publish_turn(environment, branch):
            environment.coordinator.compact_if_due(branch)
    except OmnigraphError as error:
        log.warning("self-care of branch '%s' was put off: %s", branch, error)


def _compact_table_if_due(environment: WriteEnvironment, branch: str, table_key: str) -> None:
    entry = environment.coordinator.last_seen(branch).entries.get(table_key)
    if entry is None or entry.version % CHECK_EVERY_VERSIONS:
        return
    if entry.table_branch != lane_of(branch):
        return
    tables = environment.tables
    location = tables.root.table(entry.table_path, entry.table_branch)
    handle = tables.open_at(location, entry.version, incarnation=entry.transaction_uuid)
    if tables.table_state(handle).small_fragments < SMALL_FRAGMENTS_MAX:
        return
    staged = tables.stage_compaction(handle, MERGED_FRAGMENT_ROWS)
    if staged is not None:
        _commit_compaction(environment, branch, entry, staged)


def _commit_compaction(
    environment: WriteEnvironment, branch: str, entry: TableEntry, staged: StagedTransaction
) -> None:
    lane = lane_of(branch)
    with environment.queues.acquire_many([(entry.table_key, lane)]):
        now = environment.coordinator.fresh(branch).entries.get(entry.table_key)
        head = environment.tables.head_version(staged.location)
        if now != entry or head != entry.version:
            return  # somebody wrote meanwhile; their write will come by here as well
        sidecar = Sidecar(
            operation_id=str(ULID()),
            writer_kind=WriterKind.OPTIMIZE,
            started_at=time.time_ns() // 1_000,
            branch=lane,
            actor_id=None,
            commit_id=None,
            pins=(
                SidecarPin(
                    table_key=entry.table_key,
                    table_path=staged.location.uri,
                    expected_version=entry.version,
                    post_commit_pin=entry.version + 1,
                    table_branch=lane,
                    transaction_uuids=(staged.uuid,),
                ),
            ),
        )
        write_sidecar(environment.texts, sidecar)
        committed = environment.tables.commit_staged(staged, operation_id=sidecar.operation_id)
        hit(Failpoint.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT)
        with publish_turn(environment, branch):
            publish(
                environment.coordinator,
                Publish(
                    branch=branch,
                    changes=(pin_of(entry.table_key, committed),),
                    expected={entry.table_key: entry.version},
                ),
            )
        finish(environment, sidecar.operation_id)
