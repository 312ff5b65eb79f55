"""Recovery actions: carry out what recovery decided about one sidecar.

    roll_forward      publish what the writer committed
    roll_back         restore the pinned rows of every table that moved, and publish that
    write_up          the tables are recovered already: only the records are missing
    discard_orphan    the branch is gone, and with it every way to see the write

Each ends with a recovery commit, an audit row and, last of all, without the sidecar.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from omnigraph.dataclass import dataclass
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import MAIN, Lineage, ManifestState, Publish, UpdatePin, publish
from omnigraph.manifest.model import Change
from omnigraph.ulids import new_ulid
from omnigraph.write.audit import RecoveryKind, RecoveryRecord, TableOutcome, record_recovery
from omnigraph.write.classify import TableClass
from omnigraph.write.environment import WriteEnvironment, publish_turn
from omnigraph.write.evidence import Found
from omnigraph.write.pins import handle_to_pin
from omnigraph.write.schema_recovery import (
    complete_schema_change,
    is_published,
    schema_changes,
    undo_schema_change,
)
from omnigraph.write.sidecar import Sidecar, SidecarSwitch
from omnigraph.write.sidecar_files import delete_sidecar, withdraw_confirmation

RECOVERY_ACTOR = "omnigraph:recovery"

log = logging.getLogger("omnigraph.recovery")


@dataclass(frozen=True, slots=True)
class RecoveryActions:
    """What recovery may do about one sidecar, whose queues the caller holds."""

    environment: WriteEnvironment
    sidecar: Sidecar

    def roll_forward(self, found: Sequence[Found]) -> None:
        """Publish what the writer committed, at the versions that were just classified."""
        # It may have died before its syncs: what is published now has to be on the disk.
        for each in found:
            first = each.seen.head - each.seen.steps + 1
            for version in range(first, each.seen.head + 1):
                self.environment.tables.flush(each.location, version)
        record = self._record(
            RecoveryKind.ROLLED_FORWARD,
            [TableOutcome(f.pin.table_key, f.seen.expected, f.seen.head) for f in found],
        )
        sidecar, state = self.sidecar, self._state()
        self._publish(
            Publish(
                state.branch,
                (
                    *(self._pin_at(each, each.seen.head) for each in found),
                    *(self._to_pin(state, each) for each in sidecar.switches),
                    *schema_changes(self.environment, state, sidecar),
                ),
                {
                    **sidecar.read_versions,
                    **{each.pin.table_key: each.pin.expected_version for each in found},
                },
                (*self._original_commits(record), _recovery_commit(record)),
                sidecar.if_commit,
                sidecar.schema.schema_hash,
                sidecar.schema.schema_id,
                sidecar.ancestors,
            )
        )
        self.close(record)

    def roll_back(self, found: Sequence[Found]) -> None:
        self.close(self.restore(found))

    def restore(self, found: Sequence[Found], *, is_recorded: bool = True) -> RecoveryRecord:
        """Bring back the pinned rows of every table that moved, and publish so that pin == HEAD.

        Without a record it is a publish that keeps the content of the graph, and no commit.
        """
        if self._is_schema_change and not self.sidecar.stages_schema_files:
            # New tables are removed: what is half undone must never be finished.
            withdraw_confirmation(self.environment.texts, self.sidecar)
        moved = [each for each in found if each.table_class is not TableClass.NO_MOVEMENT]
        record = self._record(
            RecoveryKind.ROLLED_BACK,
            [TableOutcome(f.pin.table_key, f.seen.head, f.seen.pin) for f in moved],
        )
        pins = []
        for each in moved:
            restored = self.environment.tables.restore(
                each.location, each.seen.pin, operation_id=self.sidecar.operation_id
            )
            pins.append(self._pin_at(each, restored))
            hit(Failpoint.RECOVERY_AFTER_RESTORE)
        expected = {each.pin.table_key: each.seen.pin for each in moved}
        if is_recorded:
            self._publish_record(record, pins, expected)
        else:
            self._publish(Publish(self.sidecar.branch or MAIN, tuple(pins), expected))
        return record

    def write_up(self, found: Sequence[Found]) -> None:
        """Record what became of a write whose tables are recovered already."""
        outcomes = []
        kind = RecoveryKind.ROLLED_BACK
        for each in found:
            # Nothing proves what a sidecar of an older writer led to: the pin moved, so it was
            # published.
            is_provable = bool(each.pin.transaction_uuids)
            outcome = each.proof if is_provable else RecoveryKind.ROLLED_FORWARD
            if outcome is RecoveryKind.ROLLED_FORWARD:
                kind = outcome
                outcomes.append(TableOutcome(each.pin.table_key, each.seen.expected, each.seen.pin))
            elif outcome is RecoveryKind.ROLLED_BACK:
                outcomes.append(TableOutcome(each.pin.table_key, each.seen.pin, each.seen.expected))
        if self._is_schema_change and is_published(self._state(), self.sidecar):
            kind = RecoveryKind.ROLLED_FORWARD
        record = self._record(kind, outcomes)
        self._publish_record(record)
        self.close(record)

    def discard_orphan(self) -> None:
        """Record that the branch is gone, and with it every way to see the write."""
        hit(Failpoint.RECOVERY_ORPHAN_DISCARD_AUDIT_APPEND)
        record = self._record(RecoveryKind.ORPHANED_BRANCH_DISCARDED, [])
        self._publish(Publish(MAIN, (), {}, (_recovery_commit(record),)))
        self.close(record)

    def close(self, record: RecoveryRecord) -> None:
        """Complete or remove the schema files, write the audit row, delete the sidecar."""
        environment = self.environment
        if self._is_schema_change:
            if record.kind is RecoveryKind.ROLLED_FORWARD:
                complete_schema_change(environment, self.sidecar)
            else:
                undo_schema_change(environment, self._state(), self.sidecar)
        record_recovery(environment.audit, record)
        delete_sidecar(environment.texts, self.sidecar.operation_id)
        log.info("sidecar %s: %s", self.sidecar.operation_id, record.kind)

    @property
    def _is_schema_change(self) -> bool:
        return self.sidecar.changes_schema

    def _state(self) -> ManifestState:
        return self.environment.coordinator.fresh(self.sidecar.branch or MAIN)

    def _publish_record(
        self,
        record: RecoveryRecord,
        changes: Iterable[Change] = (),
        expected: Mapping[str, int] | None = None,
    ) -> None:
        branch, commit = self.sidecar.branch or MAIN, _recovery_commit(record)
        self._publish(Publish(branch, tuple(changes), expected or {}, (commit,)))

    def _publish(self, request: Publish) -> None:
        with publish_turn(self.environment, request.branch):
            publish(self.environment.coordinator, request)
        hit(Failpoint.RECOVERY_AFTER_PUBLISH)

    def _pin_at(self, each: Found, version: int) -> UpdatePin:
        # A branch that was deleted and made again may use a version number twice: the operation's
        # own incarnation keeps a handle of the other one out.
        tables = self.environment.tables
        incarnation = next(iter(each.pin.transaction_uuids), None)
        handle = tables.open_at(each.location, version, incarnation=incarnation)
        return handle_to_pin(each.pin.table_key, handle)

    def _to_pin(self, state: ManifestState, switch: SidecarSwitch) -> UpdatePin:
        tables, path = self.environment.tables, state.entries[switch.table_key].table_path
        location = tables.root.table(path, switch.table_branch)
        handle = tables.open_at(location, switch.version, incarnation=self.sidecar.operation_id)
        return handle_to_pin(switch.table_key, handle)

    def _record(self, kind: RecoveryKind, outcomes: Sequence[TableOutcome]) -> RecoveryRecord:
        return RecoveryRecord(
            commit_id=new_ulid(),
            kind=kind,
            for_actor=self.sidecar.actors,
            operation_id=self.sidecar.operation_id,
            writer_kind=self.sidecar.writer_kind.value,
            outcomes=tuple(outcomes),
            created_at=time.time_ns() // 1_000,
        )

    def _original_commits(self, record: RecoveryRecord) -> tuple[Lineage, ...]:
        """The commits the writer had announced, under the ids and actors it announced them with."""
        sidecar = self.sidecar
        if sidecar.commit_id is None:
            return ()
        return (
            *(replace(each, created_at=record.created_at) for each in sidecar.earlier),
            Lineage(
                sidecar.commit_id,
                sidecar.actor_id,
                created_at=record.created_at,
                merged_parent_id=sidecar.merge_source_commit_id,
                properties=sidecar.commit_properties,
            ),
        )


def _recovery_commit(record: RecoveryRecord) -> Lineage:
    return Lineage(record.commit_id, RECOVERY_ACTOR, created_at=record.created_at)
