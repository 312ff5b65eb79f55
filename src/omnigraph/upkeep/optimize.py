"""Optimize: fewer, larger fragments and complete indexes, for all tables of main in one publish.

What a table goes through, each step one version, all covered by one sidecar:

    drop       full-text and vector indexes that are built anew, when they keep fragments apart
    compact    fragments that fit together become one; BTREEs and zone maps lose coverage of them
    fold       missing indexes are built, lagging ones continued or built anew

Rows, ids and values stay, and so does every earlier version. A table whose HEAD is ahead of its
pin is left alone and reported. A second run finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from omnigraph.catalog import Catalog, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.json_form import JsonForm
from omnigraph.manifest import MAIN, ManifestState, TableEntry
from omnigraph.storage.handles import BY_PLACE, NotTrainable, StagedTransaction, TableHandle
from omnigraph.storage.table_tasks import TableTasks
from omnigraph.storage.tables import TableStorage
from omnigraph.upkeep.content_keeping import (
    Stage,
    TableWork,
    commit_work,
    refuse_while_pending,
    to_stage,
)
from omnigraph.upkeep.index_work import plan_indexes, to_index_specs
from omnigraph.upkeep.progress import OnProgress, track
from omnigraph.write.drift import read_head
from omnigraph.write.environment import WriteEnvironment, publish_turn, queue_keys
from omnigraph.write.fork import open_pin
from omnigraph.write.sidecar import WriterKind

ATTEMPTS_WITHOUT_LOCK = 3
MANIFEST = "__manifest"
DRIFT = "drift_needs_repair"


@dataclass(frozen=True, slots=True)
class TableOptimized(JsonForm):
    """What was done with one table. `manifest_version` is its pin, which HEAD should equal."""

    table_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    manifest_version: int | None = None
    lance_head_version: int | None = None
    pending_indexes: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        pending = [{"column": column, "reason": why} for column, why in self.pending_indexes]
        return JsonForm.to_json(self) | {"pending_indexes": pending}


@dataclass(frozen=True, slots=True)
class OptimizeReport(JsonForm):
    """What an optimize did, table by table, the manifest last."""

    uri: str
    tables: tuple[TableOptimized, ...]

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class _Prepared:
    """One table, inspected and staged as far as possible without moving its HEAD."""

    entry: TableEntry
    work: TableWork | None
    fragments: frozenset[int] = frozenset()
    pending: list[NotTrainable] = field(default_factory=list)
    head: int | None = None


def optimize(
    environment: WriteEnvironment,
    catalog: Catalog,
    on_progress: OnProgress | None = None,
    tasks: TableTasks | None = None,
) -> OptimizeReport:
    """Compact and index every table of main; with `tasks`, large ones by those.

    Raises:
        ConflictError: An interrupted write is pending.
    """
    refuse_while_pending(environment, "optimize")
    prepared = _optimize_tables(environment, catalog, on_progress, tasks)
    state = environment.coordinator.fresh(MAIN)
    rows = [_row(environment, state, key, each) for key, each in sorted(prepared.items())]
    rows.append(_optimize_manifest(environment))
    return OptimizeReport(str(environment.tables.root), tuple(rows))


def _optimize_tables(
    environment: WriteEnvironment,
    catalog: Catalog,
    on_progress: OnProgress | None,
    tasks: TableTasks | None,
) -> dict[str, _Prepared]:
    prepared: dict[str, _Prepared] = {}
    for _ in range(ATTEMPTS_WITHOUT_LOCK):
        prepared = _prepare_all(environment, catalog, prepared, on_progress, tasks)
        keys = [key for key, each in prepared.items() if each.work is not None]
        if not keys:
            return prepared
        with environment.queues.acquire_many(queue_keys(keys, MAIN)):
            if not _has_moved(environment, prepared):
                _commit(environment, prepared)
                return prepared
    # Under constant writes the attempts above never succeed: hold the queues while staging.
    every = [entity.table_key for entity in catalog.entities()]
    with environment.queues.acquire_many(queue_keys(every, MAIN)):
        prepared = _prepare_all(environment, catalog, prepared, on_progress, tasks)
        _commit(environment, prepared)
    return prepared


def _commit(environment: WriteEnvironment, prepared: Mapping[str, _Prepared]) -> None:
    works = {key: each.work for key, each in prepared.items() if each.work is not None}
    if works:
        commit_work(environment, MAIN, WriterKind.OPTIMIZE, works)


def _has_moved(environment: WriteEnvironment, prepared: Mapping[str, _Prepared]) -> bool:
    now = environment.coordinator.fresh(MAIN).entries
    return any(
        now.get(key) != each.entry
        or read_head(environment.tables, each.entry) != each.entry.version
        for key, each in prepared.items()
        if each.work is not None
    )


def _prepare_all(
    environment: WriteEnvironment,
    catalog: Catalog,
    known: Mapping[str, _Prepared],
    on_progress: OnProgress | None,
    tasks: TableTasks | None,
) -> dict[str, _Prepared]:
    """Look at every table; one that is at the same pin as before keeps what was staged."""
    prepared: dict[str, _Prepared] = {}
    entries = environment.coordinator.fresh(MAIN).entries
    for key in track(entries, on_progress, str, "publish"):
        entry = entries[key]
        entity = catalog.by_table_key(key)
        if key in known and known[key].entry == entry:
            prepared[key] = known[key]
        elif entity is not None:
            prepared[key] = _prepare(environment.tables, entry, entity, tasks)
    return prepared


def _prepare(
    tables: TableStorage, entry: TableEntry, entity: EntityType, tasks: TableTasks | None
) -> _Prepared:
    head = read_head(tables, entry)
    if head > entry.version:
        return _Prepared(entry, None, head=head)
    handle = open_pin(tables, entry)
    wanted = to_index_specs(entity)
    plan = plan_indexes(tables, handle, wanted)
    anew = [spec.name for spec in plan.anew if spec.kind not in BY_PLACE]
    compaction = tables.compaction.stage(handle, without=anew, tasks=tasks)
    pending: list[NotTrainable] = []

    def fold(at: TableHandle) -> StagedTransaction | None:
        left = plan_indexes(tables, at, wanted)
        if left.is_empty:
            return None
        staged = tables.indexes.stage_create(at, left.to_build, left.extended, tasks)
        pending[:] = staged.pending
        return staged.transaction

    steps: list[Stage] = []
    if compaction is None:
        folded = fold(handle)
        if folded is not None:
            steps.append(to_stage(folded))
    else:
        if anew:
            steps.append(to_stage(tables.indexes.stage_drop(handle, anew)))
        steps.append(to_stage(compaction))
        if handle.row_count:
            # The structural indexes always have to be caught up with a compaction.
            steps.append(_require(fold))
    work = TableWork(entry, handle, tuple(steps)) if steps else None
    return _Prepared(entry, work, frozenset(tables.reads.fragment_ids(handle)), pending)


def _require(fold: Callable[[TableHandle], StagedTransaction | None]) -> Stage:
    def stage(handle: TableHandle) -> StagedTransaction:
        staged = fold(handle)
        assert staged is not None, "a compacted table has an index to catch up"
        return staged

    return stage


def _row(
    environment: WriteEnvironment, state: ManifestState, key: str, each: _Prepared
) -> TableOptimized:
    row = TableOptimized(
        key,
        manifest_version=each.entry.version,
        lance_head_version=each.head or each.entry.version,
        pending_indexes=tuple((one.spec.column, one.reason) for one in each.pending),
    )
    if each.head is not None:
        return replace(row, skipped=DRIFT)
    if each.work is None:
        return row
    entry = state.entries[key]
    now = frozenset(environment.tables.reads.fragment_ids(open_pin(environment.tables, entry)))
    return replace(
        row,
        fragments_removed=len(each.fragments - now),
        fragments_added=len(now - each.fragments),
        committed=True,
        manifest_version=entry.version,
        lance_head_version=entry.version,
    )


def _optimize_manifest(environment: WriteEnvironment) -> TableOptimized:
    coordinator = environment.coordinator
    with publish_turn(environment, MAIN):
        before = coordinator.fragment_count(MAIN)
        committed = coordinator.compact_if_due(MAIN, fragments_max=2)
    version = coordinator.fresh(MAIN).version
    return TableOptimized(
        MANIFEST,
        fragments_removed=before if committed else 0,
        fragments_added=coordinator.fragment_count(MAIN) if committed else 0,
        committed=committed,
        manifest_version=version,
        lance_head_version=version,
    )
