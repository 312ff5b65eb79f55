"""Ensure indices: build every declared index that is not there, one transaction per table.

Existence decides: an index that is there is left alone, however far it lags; folding newer rows
into it is the work of `optimize`. Nothing missing means no sidecar and no version. Tables are
staged without any lock; one that another writer moved meanwhile is staged again.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.catalog import Catalog, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.failpoints import Failpoint, hit
from omnigraph.json_form import JsonForm
from omnigraph.manifest import MAIN, ManifestState, TableEntry
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.handles import StagedIndexes, TableHandle
from omnigraph.storage.table_tasks import TableTasks
from omnigraph.upkeep.content_keeping import TableWork, commit_work, to_stage
from omnigraph.upkeep.index_work import PendingIndex, plan_indexes, to_index_specs
from omnigraph.upkeep.progress import OnProgress, track
from omnigraph.write.drift import check_heads
from omnigraph.write.environment import WriteEnvironment, queue_keys
from omnigraph.write.fork import fork_for_write, open_pin
from omnigraph.write.sidecar import WriterKind

ATTEMPTS_WITHOUT_LOCK = 3


@dataclass(frozen=True, slots=True)
class IndexReport(JsonForm):
    """What was built, by table key, and what has to wait."""

    branch: str
    manifest_version: int
    built: Mapping[str, tuple[str, ...]]
    pending: tuple[PendingIndex, ...]

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class _Built:
    """The missing indexes of one table, staged at its pin."""

    entry: TableEntry
    handle: TableHandle
    staged: StagedIndexes


def ensure_indices(
    environment: WriteEnvironment,
    catalog: Catalog,
    branch: str = MAIN,
    on_progress: OnProgress | None = None,
    tasks: TableTasks | None = None,
) -> IndexReport:
    """Build what is missing on a branch; with `tasks`, for large tables by those.

    On a branch only tables with a lineage of their own are touched; one that it shares with main is
    indexed on main.

    Raises:
        ConflictError: A table's HEAD is not its pin: an unfinished write or an outside one is
            there. Nothing was built.
    """
    entities = {entity.table_key: entity for entity in catalog.entities()}
    built: dict[str, _Built] = {}
    for _ in range(ATTEMPTS_WITHOUT_LOCK):
        state = environment.coordinator.fresh(branch)
        check_heads(environment, branch, state.entries)
        built = _stage_all(environment, state, entities, built, on_progress, tasks)
        keys = [key for key, each in built.items() if each.staged.transaction]
        if not keys:
            return _report(state, built)
        with environment.queues.acquire_many(queue_keys(keys, branch)):
            now = environment.coordinator.fresh(branch)
            if all(now.entries.get(key) == built[key].entry for key in keys):
                return _commit(environment, now, built)
    # Under constant writes the attempts above never succeed: hold the queues while staging.
    with environment.queues.acquire_many(queue_keys(entities, branch)):
        now = environment.coordinator.fresh(branch)
        built = _stage_all(environment, now, entities, built, on_progress, tasks)
        return _commit(environment, now, built)


def _stage_all(
    environment: WriteEnvironment,
    state: ManifestState,
    entities: Mapping[str, EntityType],
    known: Mapping[str, _Built],
    on_progress: OnProgress | None,
    tasks: TableTasks | None,
) -> dict[str, _Built]:
    """Stage every table that lacks an index; what is staged already at the same pin stays."""
    found: dict[str, _Built] = {}
    for key in track(state.entries, on_progress, str, "publish"):
        entry = state.entries[key]
        if state.branch != MAIN and entry.table_branch is None:
            continue  # shared with main, where it is indexed
        if key in known and known[key].entry == entry:
            found[key] = known[key]
            continue
        handle = open_pin(environment.tables, entry)
        plan = plan_indexes(environment.tables, handle, to_index_specs(entities[key]))
        if plan.missing:
            staged = environment.tables.indexes.stage_create(handle, plan.missing, tasks=tasks)
            found[key] = _Built(entry, handle, staged)
    hit(Failpoint.ENSURE_INDICES_POST_STAGE_PRE_COMMIT_BTREE)
    return found


def _commit(
    environment: WriteEnvironment, state: ManifestState, built: Mapping[str, _Built]
) -> IndexReport:
    """Commit and publish. The caller holds the queue of every table that is built."""
    branch = state.branch
    ready = {key: each for key, each in built.items() if each.staged.transaction is not None}
    check_heads(environment, branch, {key: each.entry for key, each in ready.items()})
    works: dict[str, TableWork] = {}
    for key, each in ready.items():
        handle, staged = each.handle, each.staged
        if not owns_lineage(branch, each.entry.table_branch):
            # A table of an ancestor branch: the index belongs on a lineage of our own.
            handle = fork_for_write(environment, each.entry, branch)
            staged = environment.tables.indexes.stage_create(handle, staged.built)
        assert staged.transaction is not None
        works[key] = TableWork(each.entry, handle, (to_stage(staged.transaction),))
    if works:
        state = commit_work(environment, branch, WriterKind.ENSURE_INDICES, works)
    return _report(state, built)


def _report(state: ManifestState, built: Mapping[str, _Built]) -> IndexReport:
    return IndexReport(
        branch=state.branch,
        manifest_version=state.version,
        built={
            key: tuple(spec.column for spec in each.staged.built)
            for key, each in sorted(built.items())
            if each.staged.built
        },
        pending=tuple(
            PendingIndex(key, waiting.spec.column, waiting.reason)
            for key, each in sorted(built.items())
            for waiting in each.staged.pending
        ),
    )
