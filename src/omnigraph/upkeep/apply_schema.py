"""Apply a schema: bring the tables of a graph in line with another schema, or change nothing.

    phase   what happens                                  a crash here leaves
            lock, plan, stage rewritten tables            the lock, which the next open removes
    A       sidecar: tables to move, add and hide         nothing to restore
    B       commit rewrites, write new tables             drift that the sidecar names: undone
            schema files beside the present ones          all that a publish needs: finished
    C       publish: pins, registrations, tombstones      the new schema, files still to be moved
            move the schema files, purge if asked         a sidecar to remove
    D       delete the sidecar, unlock

Recovery decides from the sidecar, the staged files and the manifest which side of the publish a
change died on. A change that touches no table needs no sidecar: the manifest alone says whether
it was published.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from ulid import ULID

from omnigraph.branch.create import BRANCHES_QUEUE
from omnigraph.catalog import Catalog, MigrationPlan, MigrationStep, plan_migration
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import (
    MAIN,
    Lineage,
    ManifestState,
    Publish,
    RegisterTable,
    Tombstone,
    UpdatePin,
    load_contract,
    publish,
)
from omnigraph.manifest.contract import schema_id
from omnigraph.manifest.model import Change
from omnigraph.manifest.schema_files import promote, reconcile_staging, write_staging
from omnigraph.manifest.schemas import keep_schema
from omnigraph.storage.handles import StagedTransaction
from omnigraph.storage.location import table_path
from omnigraph.storage.queues import SCHEMA_APPLY_KEY
from omnigraph.syntax import parse_schema
from omnigraph.upkeep.rewrite import rewritten_rows, stage_rewrite, write_table
from omnigraph.upkeep.table_changes import (
    AddTable,
    DropTable,
    MoveTable,
    RewriteTable,
    TableChange,
    drops_columns,
    table_changes,
)
from omnigraph.write.commit import (
    WriteEnvironment,
    check_heads,
    finish,
    pin_of,
    pin_of_handle,
    publish_turn,
    queue_keys,
)
from omnigraph.write.fork import open_pin
from omnigraph.write.purge import purge_history
from omnigraph.write.sidecar import (
    SchemaIntent,
    Sidecar,
    SidecarPin,
    SidecarTable,
    SidecarTombstone,
    WriterKind,
    write_sidecar,
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


def apply_schema(
    environment: WriteEnvironment,
    source: str,
    *,
    allow_data_loss: bool = False,
    actor: str | None = None,
) -> SchemaResult:
    """Make `source` the schema of the graph. The caller has healed what dead writers left.

    Raises:
        SourceError: The schema is not valid, or a rename hint cannot be followed.
        MigrationError: A step is not supported; its code and reason are those of the first one.
        ConflictError: Other branches exist, another change is in progress, or a table has drift.
    """
    root = environment.tables.root
    with environment.queues.acquire_many([(BRANCHES_QUEUE, None), SCHEMA_APPLY_KEY]):
        # What a change that died before its sidecar has left would be taken for ours.
        reconcile_staging(environment.texts, environment.coordinator)
        accepted = load_contract(environment.texts).catalog
        plan = plan_migration(accepted, parse_schema(source), allow_data_loss=allow_data_loss)
        desired = plan.require_supported()
        if not plan.steps:
            version = environment.coordinator.fresh(MAIN).version
            return SchemaResult(True, False, version, ())
        _refuse_branches(environment)
        # We hold the queue: on a local disk a lock that is there belongs to a dead process.
        environment.coordinator.lock_schema(is_stale=root.is_local)
        try:
            hit(Failpoint.SCHEMA_APPLY_AFTER_LOCK)
            _refuse_branches(environment)
            change = _Change(environment, source, accepted, desired, plan, actor, allow_data_loss)
            return change.run()
        finally:
            environment.coordinator.unlock_schema()


def _refuse_branches(environment: WriteEnvironment) -> None:
    others = [branch for branch in environment.coordinator.branches() if branch != MAIN]
    if others:
        named = ", ".join(f"'{branch}'" for branch in others[:3])
        raise ConflictError(
            f"a schema change requires a graph with only main, but there is {named} — merge or "
            "delete the other branches first"
        )


@dataclass(frozen=True, slots=True)
class _Change:
    """One schema change, from plan to acknowledgement. The caller holds the schema lock."""

    environment: WriteEnvironment
    source: str
    accepted: Catalog
    desired: Catalog
    plan: MigrationPlan
    actor: str | None
    is_hard: bool

    def run(self) -> SchemaResult:
        changes = table_changes(self.accepted, self.desired)
        before = frozenset(entity.table_key for entity in self.accepted.entities())
        after = frozenset(entity.table_key for entity in self.desired.entities())
        with self.environment.queues.acquire_many(queue_keys(before | after, MAIN)):
            state = self.environment.coordinator.fresh(MAIN)
            moved = {
                each.old.table_key: state.entries[each.old.table_key]
                for each in changes
                if not isinstance(each, AddTable)
            }
            check_heads(self.environment, MAIN, moved)
            state = self._commit(state, changes)
        return SchemaResult(
            True, True, state.version, self.plan.steps, commit_id=state.head.commit_id
        )

    def _commit(self, state: ManifestState, changes: Sequence[TableChange]) -> ManifestState:
        environment = self.environment
        staged = self._stage(state, changes)
        sidecar = self._sidecar(state, changes, staged)
        if changes:
            write_sidecar(environment.texts, sidecar)
        # No `try/finally` from here on: the sidecar alone tells our half-done work from damage.
        made = self._write_tables(state, changes, staged, sidecar.operation_id)
        hit(Failpoint.SCHEMA_APPLY_BEFORE_STAGING_WRITE)
        keep_schema(environment.texts, self.source, self.desired)
        write_staging(environment.texts, self.source, self.desired)
        hit(Failpoint.SCHEMA_APPLY_AFTER_STAGING_WRITE)
        with publish_turn(environment, MAIN):
            published = publish(
                environment.coordinator,
                Publish(
                    branch=MAIN,
                    changes=tuple(made),
                    expected=sidecar.read_versions,
                    commits=(self._lineage(sidecar),),
                    schema_hash=self.desired.shape_hash,
                    schema_id=sidecar.schema.schema_id,
                ),
            )
        hit(Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT)
        promote(environment.texts)
        shown = {entry.table_path for entry in published.entries.values()}
        purge_history(environment.tables, sidecar.schema.purged, shown)
        if changes:
            finish(environment, sidecar.operation_id)
        return published

    def _stage(
        self, state: ManifestState, changes: Sequence[TableChange]
    ) -> Mapping[str, StagedTransaction]:
        tables = self.environment.tables
        return {
            each.new.table_key: stage_rewrite(
                tables, open_pin(tables, state.entries[each.new.table_key]), each.old, each.new
            )
            for each in changes
            if isinstance(each, RewriteTable)
        }

    def _write_tables(
        self,
        state: ManifestState,
        changes: Sequence[TableChange],
        staged: Mapping[str, StagedTransaction],
        operation_id: str,
    ) -> list[Change]:
        """Phase B: every table as the new schema has it; what the publish has to say of each."""
        made: list[Change] = []
        for each in changes:
            match each:
                case RewriteTable(new=new):
                    made.append(self._commit_rewrite(new.table_key, staged, operation_id))
                case AddTable() | MoveTable():
                    made += self._write_new(state, each, operation_id)
                case DropTable():
                    pass
                case _:
                    assert_never(each)
            hit(Failpoint.SCHEMA_APPLY_AFTER_TABLE)
        made += [Tombstone(one.table_key, one.version) for one in _tombstones(state, changes)]
        return made

    def _commit_rewrite(
        self, key: str, staged: Mapping[str, StagedTransaction], operation_id: str
    ) -> UpdatePin:
        committed = self.environment.tables.commit_staged(staged[key], operation_id=operation_id)
        return pin_of(key, committed)

    def _write_new(
        self, state: ManifestState, each: AddTable | MoveTable, operation_id: str
    ) -> list[Change]:
        tables, key = self.environment.tables, each.new.table_key
        path = table_path(each.new.kind, each.new.name)
        rows = iter(())
        if isinstance(each, MoveTable):
            source = open_pin(tables, state.entries[each.old.table_key])
            rows = rewritten_rows(tables, source, each.old, each.new)
        handle = write_table(
            tables,
            tables.root.table(path),
            each.new,
            rows,
            above=state.hidden.get(key, 0),
            operation_id=operation_id,
        )
        return [RegisterTable(key, path), pin_of_handle(tables, key, handle)]

    def _sidecar(
        self,
        state: ManifestState,
        changes: Sequence[TableChange],
        staged: Mapping[str, StagedTransaction],
    ) -> Sidecar:
        added = [each.new for each in changes if isinstance(each, AddTable | MoveTable)]
        reads = {key: entry.version for key, entry in state.entries.items()}
        reads |= {one.table_key: state.latest_version(one.table_key) for one in added}
        return Sidecar(
            operation_id=str(ULID()),
            writer_kind=WriterKind.SCHEMA_APPLY,
            started_at=time.time_ns() // 1_000,
            branch=None,
            actor_id=self.actor,
            commit_id=str(ULID()),
            read_versions=reads,
            commit_properties={"schema_hash": self.desired.shape_hash},
            pins=tuple(
                SidecarPin(
                    table_key=key,
                    table_path=each.location.uri,
                    expected_version=each.read_version,
                    post_commit_pin=each.read_version + 1,
                    table_branch=None,
                    transaction_uuids=(each.uuid,),
                )
                for key, each in sorted(staged.items())
            ),
            schema=SchemaIntent(
                registrations=tuple(
                    SidecarTable(one.table_key, table_path(one.kind, one.name)) for one in added
                ),
                tombstones=_tombstones(state, changes),
                schema_hash=self.desired.shape_hash,
                schema_id=schema_id(self.source, self.desired),
                purged=self._purged(state, changes),
            ),
        )

    def _purged(self, state: ManifestState, changes: Sequence[TableChange]) -> tuple[str, ...]:
        """The tables whose earlier versions hold what a hard drop has to make unreachable."""
        if not self.is_hard:
            return ()
        paths = []
        for each in changes:
            match each:
                case DropTable(old):
                    paths.append(state.entries[old.table_key].table_path)
                case RewriteTable(old, new) | MoveTable(old, new) if drops_columns(old, new):
                    paths.append(state.entries[old.table_key].table_path)
                case _:
                    pass
        return tuple(sorted(paths))

    def _lineage(self, sidecar: Sidecar) -> Lineage:
        assert sidecar.commit_id is not None
        return Lineage(
            sidecar.commit_id,
            self.actor,
            created_at=sidecar.started_at,
            properties=sidecar.commit_properties,
        )


def _tombstones(
    state: ManifestState, changes: Sequence[TableChange]
) -> tuple[SidecarTombstone, ...]:
    """Hide what is gone, and what goes on under another name."""
    return tuple(
        SidecarTombstone(each.old.table_key, state.entries[each.old.table_key].version + 1)
        for each in changes
        if isinstance(each, DropTable | MoveTable)
    )
