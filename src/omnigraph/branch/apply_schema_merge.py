"""Apply a merge that changes the schema of its target: rows, tables and schema in one publish.

    a type of the merge               its table in the target
    the target has it, same columns   as in any merge (see `apply.py`)
    only new empty columns            altered, and then as in any merge
    other columns, values or ids      written anew, with the merged rows
    the target has it not             the source's, where the target is a branch that can show it;
                                      else a new one with the source's rows
    another name                      registered under it; the old key is hidden
    dropped                           hidden

A branch that has not changed a table since the base is pointed at the source's version, or forked
from it, as in any merge. The sidecar is confirmed when every table is ready; the schema is kept
before. The schema files of main follow the publish: until they do, the manifest is what counts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.branch.apply import LayoutMoved, build_steps
from omnigraph.branch.merged_rows import read_merged
from omnigraph.branch.plan import TablePlan
from omnigraph.branch.schema_join import SchemaJoin
from omnigraph.branch.virtual_base import entry_of, is_same_entry
from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, ExpectedVersionMismatch
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import MAIN, GraphCommit, ManifestState, TableEntry, Tombstone, UpdatePin
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.manifest.contract import schema_id
from omnigraph.manifest.schema_files import promote, write_staging
from omnigraph.manifest.schemas import keep_schema
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.queues import SCHEMA_APPLY_KEY
from omnigraph.write.drift import check_heads
from omnigraph.write.environment import (
    BRANCHES_QUEUE,
    HISTORY_QUEUE,
    WriteEnvironment,
    publish_turn,
    queue_keys,
)
from omnigraph.write.fork import fork_for_write, open_pin
from omnigraph.write.intent import (
    CommitStep,
    Intent,
    NewTable,
    TableCommits,
    mint_commit,
    to_commit_step,
)
from omnigraph.write.new_tables import create_with_rows, free_path, open_head
from omnigraph.write.pins import handle_to_pin
from omnigraph.write.protocol import carry_out
from omnigraph.write.rewrite import stage_alter
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.table_changes import has_other_rows

TableWork = TableCommits | NewTable | Tombstone | UpdatePin


@dataclass(frozen=True, slots=True)
class PlannedSchemaMerge:
    """A merge that is planned, free of conflicts, and leads its target to another schema.

    `plans` have the tables whose rows change, by their keys in the merged schema. `adopted` are
    the keys of tables that the target has not changed since the base.
    """

    source: ManifestState
    target: ManifestState
    join: SchemaJoin
    plans: Mapping[str, TablePlan]
    adopted: frozenset[str]
    actor: str | None
    properties: Mapping[str, Any]
    ancestors: tuple[GraphCommit, ...] = ()


def find_adopted(join: SchemaJoin) -> frozenset[str]:
    """The tables, by their keys in the merged schema, that the target has as the base has them."""
    three = join.images
    assert three is not None
    return frozenset(
        key
        for key, entry in three.target.entries.items()
        if is_same_entry(entry_of(three.base, key, three.snapshot_of), entry)
    )


def apply_schema_merge(environment: WriteEnvironment, request: PlannedSchemaMerge) -> GraphCommit:
    """Make the merge visible as one commit with two parents.

    Raises:
        ExpectedVersionMismatch: The target moved since the merge was planned. Nothing is visible.
        ConflictError: A schema change is in progress.
    """
    turns = [(HISTORY_QUEUE, None), (BRANCHES_QUEUE, None), SCHEMA_APPLY_KEY]
    coordinator = environment.coordinator
    with environment.queues.acquire_many(turns):
        coordinator.unlisted.lock_schema(is_stale=environment.tables.root.is_local)
        try:
            with environment.queues.acquire_many(_queue_keys(request)):
                state = _check_unmoved(environment, request)
                with publish_turn(environment, MAIN):
                    coordinator.admit_branch_schemas()
                return _Apply(environment, request, state).run().head
        finally:
            coordinator.unlisted.unlock_schema()


def _queue_keys(request: PlannedSchemaMerge) -> list[tuple[str, str | None]]:
    """Everything the merge writes, shows or trusts, and the source's tables while rows are read."""
    merged = [each.table_key for each in request.join.merged.catalog.entities()]
    return [
        *queue_keys({*request.target.entries, *merged}, request.target.branch),
        *queue_keys(request.source.entries, request.source.branch),
    ]


def _check_unmoved(environment: WriteEnvironment, request: PlannedSchemaMerge) -> ManifestState:
    source = environment.coordinator.fresh(request.source.branch)
    state = environment.coordinator.fresh(request.target.branch)
    for seen, now in ((request.source, source), (request.target, state)):
        if seen.incarnation != now.incarnation:
            raise ConflictError(
                f"branch '{seen.branch}' was deleted and made again, or reset — refresh and retry"
            )
    if state.schema_name != request.target.schema_name:
        raise ConflictError("the schema was changed meanwhile — nothing was written; merge again")
    for key, entry in sorted(request.target.entries.items()):
        actual = state.latest_version(key)
        if actual != entry.version:
            refusal = LayoutMoved if state.has_rows_of(request.target) else ExpectedVersionMismatch
            raise refusal(key, expected=entry.version, actual=actual)
    check_heads(environment, state.branch, state.entries)
    return state


@dataclass(frozen=True, slots=True)
class _Apply:
    """One merge, with every queue and the schema lock held."""

    environment: WriteEnvironment
    request: PlannedSchemaMerge
    state: ManifestState

    def run(self) -> ManifestState:
        environment, request, schema = self.environment, self.request, self.request.join.merged
        keep_schema(environment.texts, schema.source, schema.catalog)
        # A key is given up before it is taken: the manifest is changed in this order.
        works = sorted(self._list_work(), key=_order)
        named = [each.table_key for each in works if isinstance(each, NewTable)]
        expected = {key: entry.version for key, entry in self.state.entries.items()}
        expected |= {key: self.state.latest_version(key) for key in named}
        intent = Intent(
            kind=WriterKind.BRANCH_MERGE,
            branch=self.state.branch,
            branch_id=self.state.incarnation,
            tables=tuple(each for each in works if not isinstance(each, UpdatePin)),
            expected=expected,
            commit=mint_commit(
                request.actor,
                merged_parent_id=request.source.head.commit_id,
                properties={**request.properties, "schema_hash": schema.catalog.shape_hash},
            ),
            pointed=tuple(each for each in works if isinstance(each, UpdatePin)),
            ancestors=request.ancestors,
            source_branch=request.source.branch,
            schema_hash=schema.catalog.shape_hash,
            schema_id=schema_id(schema.source, schema.catalog),
            confirms=True,
            after_table=Failpoint.SCHEMA_APPLY_AFTER_TABLE,
            before_publish=lambda: hit(Failpoint.BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT),
            after_publish=lambda _: self._write_schema_files(),
        )
        return carry_out(environment, intent)

    def _write_schema_files(self) -> None:
        """Bring the files at the root in line with main; a death here leaves them to recovery."""
        hit(Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT)
        if self.state.branch == MAIN:
            schema = self.request.join.merged
            write_staging(self.environment.texts, schema.source, schema.catalog)
            promote(self.environment.texts)

    def _list_work(self) -> Iterator[TableWork]:
        join = self.request.join
        ours = {each.type_id: each for each in join.target.entities()}
        theirs = {each.type_id: each for each in join.source.entities()}
        merged = list(join.merged.catalog.entities())
        for entity in merged:
            old, other = ours.get(entity.type_id), theirs.get(entity.type_id)
            if old is None:
                assert other is not None, f"'{entity.table_key}' is on neither side"
                yield self._add(entity, other)
            else:
                yield from self._change(old, entity, other)
        left = {each.type_id for each in merged}
        for old in join.target.entities():
            if old.type_id not in left:
                yield Tombstone(old.table_key, self.state.entries[old.table_key].version + 1)

    # A table that the target does not have

    def _add(self, entity: EntityType, other: EntityType) -> NewTable:
        entry = self.request.source.entries[other.table_key]
        plan = self.request.plans.get(entity.table_key)
        takes_all = plan is None or len(plan.delta) == entry.row_count
        if self.state.branch != MAIN and _has_layout(other, entity) and takes_all:
            return _show(entity, entry.table_path, self._borrow(entry))
        return self._copy(entity, plan)

    def _copy(self, entity: EntityType, plan: TablePlan | None) -> NewTable:
        """A new table with the merged rows of a type."""
        tables = self.environment.tables
        # Another store of the graph may make the same merge.
        path = f"{free_path(entity)}-{secrets.token_hex(4)}"
        shown = self.request.join.images
        assert shown is not None
        image = open_pin(tables, shown.target.entries[entity.table_key])
        location = tables.root.table(path)

        def write(_: str) -> TableHandle:
            return create_with_rows(tables, location, entity, read_merged(tables, image, plan))

        return NewTable(entity.table_key, path, write)

    def _is_reused(self, old: EntityType) -> bool:
        """Whether another type of the merge takes over the key of one of the target's."""
        return self.request.join.merged.catalog.by_table_key(old.table_key) is not None

    def _borrow(self, entry: TableEntry) -> TableHandle:
        """The source's version: of main as it is, else on a fork of the target's own."""
        if entry.table_branch is None:
            return open_pin(self.environment.tables, entry)
        return fork_for_write(self.environment, entry, self.state.branch)

    # A table that the target has

    def _change(
        self, old: EntityType, entity: EntityType, other: EntityType | None
    ) -> Iterator[TableWork]:
        entry, plan = self.state.entries[old.table_key], self.request.plans.get(entity.table_key)
        is_renamed = old.table_key != entity.table_key
        is_same, moved = _has_layout(old, entity), 1
        if self._is_adopted(entry, entity, other) and (plan is not None or not is_same):
            assert other is not None
            theirs = self.request.source.entries[other.table_key]
            handle = self._borrow(theirs)
            if is_renamed:
                yield _show(entity, theirs.table_path, handle)
            else:
                yield handle_to_pin(entity.table_key, handle)
        elif (plan is not None or not is_same) and is_renamed and self._is_reused(old):
            # The key will be another table's, so no version of this one can be shown under it.
            yield self._copy(entity, plan)
        elif plan is not None or not is_same:
            commits = self._write(old, entity, entry, plan)
            moved = len(commits.steps)
            yield commits
            if is_renamed:
                location, tables = commits.handle.location, self.environment.tables
                yield NewTable(
                    entity.table_key,
                    entry.table_path,
                    lambda _: open_head(tables, location),
                    location.branch,
                )
        elif is_renamed:
            yield _show(entity, entry.table_path, open_pin(self.environment.tables, entry))
        if is_renamed:
            yield Tombstone(old.table_key, entry.version + moved)

    def _is_adopted(self, entry: TableEntry, entity: EntityType, other: EntityType | None) -> bool:
        """Whether the target can show the source's version instead of writing one of its own."""
        if self.state.branch == MAIN or other is None or not _has_layout(other, entity):
            return False
        if entity.table_key not in self.request.adopted:
            return False
        plan = self.request.plans.get(entity.table_key)
        theirs = self.request.source.entries[other.table_key]
        is_whole = plan is None or not plan.is_rewrite
        is_own = owns_lineage(self.state.branch, entry.table_branch)
        # A branch shows the greatest version it was given, so a lower number would not be seen.
        is_later = theirs.table_path == entry.table_path and theirs.version > entry.version
        return is_whole and is_later and not is_own

    def _write(
        self, old: EntityType, entity: EntityType, entry: TableEntry, plan: TablePlan | None
    ) -> TableCommits:
        tables = self.environment.tables
        handle = fork_for_write(self.environment, entry, self.state.branch)
        if _has_layout(old, entity):
            assert plan is not None
            return TableCommits(old.table_key, handle, tuple(build_steps(tables, plan, None)))
        if not has_other_rows(old, entity):
            alter = to_commit_step(stage_alter(tables, handle, entity))
            steps: list[CommitStep] = [] if plan is None else list(build_steps(tables, plan, None))
            return TableCommits(old.table_key, handle, (alter, *steps))
        shown = self.request.join.images
        assert shown is not None
        image = open_pin(tables, shown.target.entries[entity.table_key])
        rows = read_merged(tables, image, plan)
        staged = tables.rows.stage_rewrite(handle, arrow_schema(entity), rows)
        return TableCommits(old.table_key, handle, (to_commit_step(staged),))


def _order(work: TableWork) -> int:
    return (UpdatePin, TableCommits, Tombstone, NewTable).index(type(work))


def _show(entity: EntityType, path: str, handle: TableHandle) -> NewTable:
    """Register a table that is there already."""
    place = handle.location.branch, handle.version
    return NewTable(entity.table_key, path, lambda _: handle, *place)


def _has_layout(old: EntityType, new: EntityType) -> bool:
    """Whether a table of `old` is one of `new` as it stands, whatever it is called."""
    return arrow_schema(old) == arrow_schema(new) and not has_other_rows(old, new)
