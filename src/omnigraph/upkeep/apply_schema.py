"""Apply a schema: bring the tables of a branch in line with another schema, or change nothing.

    phase   what happens                                  a crash here leaves
            lock, plan, check rows, stage tables          the lock, which the next open removes
    A       sidecar: tables to move, add and hide         nothing to restore
    B       commit rewrites, write new tables             drift that the sidecar names: undone
            schema files beside the present ones          all that a publish needs: finished
    C       publish: pins, registrations, tombstones      the new schema, files still to be moved
            move the schema files, purge if asked         a sidecar to remove
    D       delete the sidecar, unlock

Recovery decides from the sidecar, the staged files and the manifest which side of the publish a
change died on. A change that touches no table needs no sidecar: the manifest alone says whether
it was published.

The schema files at the root are those of main. A change of another branch confirms its sidecar
instead of staging them; its schema is the one that its manifest names, kept in `__schemas/`.
Other branches stay as they are, and so do their tables: a branch changes a table on a fork of its
own, and a new one lies at a path that no other has. Changes take turns across the whole graph, so
that no two of them hand out the same identity.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeGuard, assert_never

from omnigraph.catalog import (
    Catalog,
    EntityType,
    MigrationPlan,
    MigrationStep,
    arrow_schema,
    plan_migration,
)
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import MAIN, ManifestState, Tombstone, load_accepted_contract
from omnigraph.manifest.contract import schema_id
from omnigraph.manifest.schema_files import promote, reconcile_staging, write_staging
from omnigraph.manifest.schemas import draw_next_id, keep_accepted, keep_schema, read_schema
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.queues import SCHEMA_APPLY_KEY
from omnigraph.syntax import parse_schema
from omnigraph.upkeep.purged_paths import find_purged_paths, refuse_needed
from omnigraph.upkeep.schema_plan import RowCheck
from omnigraph.write.checks import compile_check
from omnigraph.write.drift import check_heads
from omnigraph.write.environment import (
    BRANCHES_QUEUE,
    HISTORY_QUEUE,
    WriteEnvironment,
    publish_turn,
    queue_keys,
)
from omnigraph.write.fork import fork_for_write, open_pin
from omnigraph.write.intent import Intent, NewTable, TableCommits, mint_commit, to_commit_step
from omnigraph.write.new_image import NewImage
from omnigraph.write.new_tables import create_empty, create_with_rows, free_path, open_head
from omnigraph.write.protocol import carry_out
from omnigraph.write.purge import purge_history
from omnigraph.write.rewrite import stage_alter, stage_rewrite
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.table_changes import (
    AddTable,
    AlterTable,
    DropTable,
    RenameTable,
    RewriteTable,
    TableChange,
    drops_columns,
    has_other_rows,
    table_changes,
)


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What an apply did. `commit_id` is None when there was nothing to change."""

    supported: bool
    applied: bool
    manifest_version: int
    steps: tuple[MigrationStep, ...]
    commit_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "supported": self.supported,
            "applied": self.applied,
            "step_count": len(self.steps),
            "manifest_version": self.manifest_version,
            "commit_id": self.commit_id,
            "steps": [step.to_json() for step in self.steps],
        }

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


def apply_schema(
    environment: WriteEnvironment,
    source: str,
    *,
    branch: str = MAIN,
    allow_data_loss: bool = False,
    actor: str | None = None,
    note: CommitNote = NO_NOTE,
) -> SchemaResult:
    """Make `source` the schema of a branch. The caller has recovered what dead writers left.

    Raises:
        SourceError: The schema is not valid, or a rename hint cannot be followed.
        BadRequestError: A check of the branch would not fit it any more.
        MigrationError: A step is not supported, or rows do not fit; the first one is named.
        ConflictError: Another change is in progress, a table has drift, or a tag or another branch
            keeps what is to be removed for good.
    """
    root = environment.tables.root
    turns = [(HISTORY_QUEUE, None), (BRANCHES_QUEUE, None), SCHEMA_APPLY_KEY]
    with environment.queues.acquire_many(turns):
        # Staged files of a change that died before its sidecar must not be taken for ours.
        reconcile_staging(environment.texts, environment.coordinator)
        accepted = _read_accepted(environment, branch)
        plan = plan_migration(accepted, parse_schema(source), allow_data_loss=allow_data_loss)
        desired = plan.require_supported()
        if not plan.steps:
            version = environment.coordinator.fresh(branch).version
            return SchemaResult(True, False, version, ())
        for check in environment.coordinator.fresh(branch).checks.values():
            compile_check(check, desired)
        # We hold the queue: on a local disk a lock that is there belongs to a dead process.
        environment.coordinator.unlisted.lock_schema(is_stale=root.is_local)
        try:
            hit(Failpoint.SCHEMA_APPLY_AFTER_LOCK)
            _admit_branches(environment, branch)
            facts = (branch, source, accepted, desired, plan, actor, note, allow_data_loss)
            return _Change(environment, *facts).run()
        finally:
            environment.coordinator.unlisted.unlock_schema()


def _read_accepted(environment: WriteEnvironment, branch: str) -> Catalog:
    """The schema of a branch, to go on from with identities that no branch has handed out."""
    texts, coordinator = environment.texts, environment.coordinator
    current = load_accepted_contract(texts, coordinator, None)
    keep_accepted(texts, coordinator.fresh(MAIN), current)
    accepted = read_schema(texts, coordinator.fresh(branch), current).catalog
    return replace(accepted, next_id=max(accepted.next_id, draw_next_id(texts)))


def _admit_branches(environment: WriteEnvironment, branch: str) -> None:
    """Make sure that every other branch says which schema it is in, before one goes its own way.

    Raises:
        ConflictError: Branches of an early Omnigraph do not: they would follow main.
    """
    coordinator = environment.coordinator
    others = [each for each in coordinator.branches() if each != branch]
    if not others:
        return
    if branch == MAIN and coordinator.fresh(MAIN).schema_name is None:
        named = ", ".join(f"'{each}'" for each in others[:3])
        raise ConflictError(
            f"the manifest of {named} does not say which schema it is in: it is of an early "
            "Omnigraph — merge or delete the other branches before this first schema change"
        )
    with publish_turn(environment, MAIN):
        coordinator.admit_branch_schemas()


@dataclass(frozen=True, slots=True)
class _Change:
    """One schema change, from plan to acknowledgement. The caller holds the schema lock."""

    environment: WriteEnvironment
    branch: str
    source: str
    accepted: Catalog
    desired: Catalog
    plan: MigrationPlan
    actor: str | None
    note: CommitNote
    is_hard: bool

    def run(self) -> SchemaResult:
        changes = table_changes(self.accepted, self.desired)
        entities = (*self.accepted.entities(), *self.desired.entities())
        keys = {entity.table_key for entity in entities}
        with self.environment.queues.acquire_many(queue_keys(keys, self.branch)):
            state = self.environment.coordinator.fresh(self.branch)
            moved = {
                each.old.table_key: state.entries[each.old.table_key]
                for each in changes
                if not isinstance(each, AddTable)
            }
            check_heads(self.environment, self.branch, moved)
            tables = self.environment.tables
            check = RowCheck(tables, state.entries, self.accepted, self.desired)
            check.refuse_broken(self.plan.steps)
            state = self._commit(state, changes)
        return SchemaResult(
            True, True, state.version, self.plan.steps, commit_id=state.head.commit_id
        )

    def _commit(self, state: ManifestState, changes: Sequence[TableChange]) -> ManifestState:
        environment, purged = self.environment, self._find_purged(state, changes)
        refuse_needed(environment, self.branch, purged)
        is_main = self.branch == MAIN
        if not is_main:
            # Durable before the sidecar: from its confirmation on, recovery names this schema.
            keep_schema(environment.texts, self.source, self.desired)
        works = sorted(self._list_work(state, changes), key=_order)
        intent = Intent(
            kind=WriterKind.SCHEMA_APPLY,
            branch=self.branch,
            branch_id=state.incarnation,
            tables=tuple(works),
            expected=_read_versions(state, changes),
            commit=mint_commit(
                self.actor,
                properties={"schema_hash": self.desired.shape_hash, **self.note.to_json()},
            ),
            schema_hash=self.desired.shape_hash,
            schema_id=schema_id(self.source, self.desired),
            purged=purged,
            confirms=not is_main,
            after_table=Failpoint.SCHEMA_APPLY_AFTER_TABLE,
            after_publish=lambda published: self._finish(published, purged),
        )
        if is_main:
            intent = replace(
                intent,
                before_publish=self._stage_schema_files,
                withdraw=lambda: reconcile_staging(environment.texts, environment.coordinator),
            )
        return carry_out(environment, intent)

    def _stage_schema_files(self) -> None:
        """Write the new schema files: from here on recovery finishes the change."""
        hit(Failpoint.SCHEMA_APPLY_BEFORE_STAGING_WRITE)
        keep_schema(self.environment.texts, self.source, self.desired)
        write_staging(self.environment.texts, self.source, self.desired)
        hit(Failpoint.SCHEMA_APPLY_AFTER_STAGING_WRITE)

    def _finish(self, published: ManifestState, purged: Sequence[str]) -> None:
        hit(Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT)
        if self.branch == MAIN:
            promote(self.environment.texts)
        if purged:
            purge_history(self.environment.tables, purged, published.entries.values())

    def _list_work(
        self, state: ManifestState, changes: Sequence[TableChange]
    ) -> Iterator[TableCommits | NewTable | Tombstone]:
        for each in changes:
            yield from self._work(state, each)
        yield from self._hide_tables(state, changes)

    def _work(self, state: ManifestState, each: TableChange) -> Iterator[TableCommits | NewTable]:
        """What becomes of one table; rewrites are staged here, before anything is written down."""
        tables = self.environment.tables
        match each:
            case RewriteTable(old, new) | RenameTable(old, new) if self._moves(state, each):
                yield self._copy(state, old, new)
            case RewriteTable(old, new):
                yield self._rewrite(state, old, new)
            case AlterTable(old, new):
                yield self._alter(state, old, new)
            case RenameTable(old, new):
                yield from self._rename(state, old, new)
            case AddTable(new):
                path = free_path(new)
                location = tables.root.table(path)
                yield NewTable(new.table_key, path, lambda _: create_empty(tables, location, new))
            case DropTable():
                pass
            case _:
                assert_never(each)

    def _rename(
        self, state: ManifestState, old: EntityType, new: EntityType
    ) -> Iterator[TableCommits | NewTable]:
        """The table stays at its path: only its key changes, and its rows where they have to."""
        tables, entry = self.environment.tables, state.entries[old.table_key]
        if not has_other_rows(old, new) and arrow_schema(old) == arrow_schema(new):
            shown = open_pin(tables, entry)
            place = (entry.table_branch, entry.version)
            yield NewTable(new.table_key, entry.table_path, lambda _: shown, *place)
            return
        change = self._rewrite if has_other_rows(old, new) else self._alter
        moved = change(state, old, new)
        location = moved.handle.location
        yield moved
        yield NewTable(
            new.table_key,
            entry.table_path,
            lambda _: open_head(tables, location),
            location.branch,
        )

    def _moves(self, state: ManifestState, change: RewriteTable | RenameTable) -> bool:
        """Whether a table goes on at another path, so that all of the present one can go.

        A fork stands on the version that it came from, whose values could not be removed.
        """
        if not self.is_hard or not _loses_columns(change):
            return False
        is_fork = state.entries[change.old.table_key].table_branch is not None
        return is_fork or self.branch != MAIN

    def _copy(self, state: ManifestState, old: EntityType, new: EntityType) -> NewTable:
        tables = self.environment.tables
        image = NewImage(tables, open_pin(tables, state.entries[old.table_key]), old, new)
        path = f"{free_path(new)}-{secrets.token_hex(4)}"
        location = tables.root.table(path)

        def write(_: str) -> TableHandle:
            return create_with_rows(tables, location, new, image.read_batches())

        return NewTable(new.table_key, path, write)

    def _rewrite(self, state: ManifestState, old: EntityType, new: EntityType) -> TableCommits:
        tables = self.environment.tables
        handle = fork_for_write(self.environment, state.entries[old.table_key], self.branch)
        staged = stage_rewrite(tables, handle, old, new)
        return TableCommits(old.table_key, handle, (to_commit_step(staged),))

    def _alter(self, state: ManifestState, old: EntityType, new: EntityType) -> TableCommits:
        handle = fork_for_write(self.environment, state.entries[old.table_key], self.branch)
        staged = stage_alter(self.environment.tables, handle, new)
        return TableCommits(old.table_key, handle, (to_commit_step(staged),))

    def _find_purged(self, state: ManifestState, changes: Sequence[TableChange]) -> tuple[str, ...]:
        """The tables whose earlier versions hold what a hard drop has to make unreachable."""
        if not self.is_hard:
            return ()
        losing = [
            each.old for each in changes if isinstance(each, DropTable) or _loses_columns(each)
        ]
        return find_purged_paths(self.environment, self.accepted, state, losing)

    def _hide_tables(
        self, state: ManifestState, changes: Sequence[TableChange]
    ) -> Iterator[Tombstone]:
        """Hide what is gone, and what goes on under another name or at another path."""
        for each in changes:
            if isinstance(each, AddTable | AlterTable):
                continue
            if isinstance(each, DropTable | RenameTable) or self._moves(state, each):
                yield Tombstone(each.old.table_key, state.entries[each.old.table_key].version + 1)


def _loses_columns(change: TableChange) -> TypeGuard[RewriteTable | RenameTable]:
    return isinstance(change, RewriteTable | RenameTable) and drops_columns(change.old, change.new)


def _order(work: TableCommits | NewTable | Tombstone) -> int:
    """A key is given up before it is taken: the manifest is changed in this order."""
    return (TableCommits, Tombstone, NewTable).index(type(work))


def _read_versions(state: ManifestState, changes: Sequence[TableChange]) -> dict[str, int]:
    """The version of every table that is there, or will be: the publish insists on all of them."""
    added = [each.new for each in changes if isinstance(each, AddTable | RenameTable)]
    reads = {key: entry.version for key, entry in state.entries.items()}
    return reads | {one.table_key: state.latest_version(one.table_key) for one in added}
