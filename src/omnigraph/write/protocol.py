"""Protocol: make every table of one write visible together, or not at all.

Invariant: a reader reaches a table version only through a pin in the manifest, a pin only names a
version that is durable, and no HEAD moves before a sidecar covers it.

    phase                      durable afterwards      a crash here leaves
    A  write_sidecar           the intent              no effect; recovery drops the sidecar
    B  tables.commit_staged    HEADs, step by step     drift that the sidecar names: undone
       or commit_appends       (of a group: for all)
    B  confirm_sidecar         that B is complete      (a merge, or a write with checks) drift that
                                                       can be published
    C  publish                 every pin at once       the write, visible
    D  delete_sidecar          nothing more            a clean graph

Every writer builds an `Intent` and hands it over here with its queues held; no other module takes
these steps. Errors are definite: one that is not `RecoveryRequired` means that the write is not
done and never will be.

    what fails                                   then
    A                                            nothing was done
    B, no HEAD has moved                         the sidecar is taken back
    B, a HEAD has moved; C is refused            undone in place, with the code of recovery
    C, and the manifest shows the write          done
    C, and the manifest is proved not to show it undone in place
    C, and that is unknown; an undo fails        `RecoveryRequired`; the sidecar stays
    D                                            done; the next writer removes the sidecar

In place means now: the queues are held, so nothing else can be at work on these tables.
A `FailpointError` stands for a crash and is let through: nothing is undone for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    ChecksFailed,
    ConflictError,
    ExpectedVersionMismatch,
    HeadMoved,
    OmnigraphError,
    RecoveryRequired,
    StorageFull,
)
from omnigraph.failpoints import Failpoint, FailpointError, hit
from omnigraph.manifest import ManifestState, Publish, RegisterTable, Tombstone, UpdatePin, publish
from omnigraph.manifest.checks import Checks
from omnigraph.manifest.model import Change
from omnigraph.storage.handles import CommittedVersion
from omnigraph.storage.queues import Guard
from omnigraph.write.environment import WriteEnvironment, publish_turn
from omnigraph.write.evidence import has_commit
from omnigraph.write.intent import Intent, NewTable, TableAppends, TableCommits, build_sidecar
from omnigraph.write.pins import handle_to_pin, version_to_pin
from omnigraph.write.recovery import undo
from omnigraph.write.sidecar import Sidecar
from omnigraph.write.sidecar_files import alive, confirm_sidecar, delete_sidecar, write_sidecar

if TYPE_CHECKING:
    from omnigraph.write.pending_checks import PendingChecks

log = logging.getLogger("omnigraph.write")


def carry_out(
    environment: WriteEnvironment, intent: Intent, *, turn: Guard | None = None
) -> ManifestState:
    """Phases A to D; returns the branch as the write leaves it.

    `turn` is the turn to publish, when the caller holds it already; it is given back.

    Raises:
        ExpectedVersionMismatch: A table moved first. Nothing of the write is there.
        RecoveryRequired: The write may still take effect; recovery finishes or undoes it.
    """
    from omnigraph.write.pending_checks import find_checks  # a query loads this module too

    checks = find_checks(environment, intent)
    if checks is not None:
        intent = replace(
            intent,
            expected={**checks.read_versions, **intent.expected},
            confirms=True,
            is_checked=True,
        )
    sidecar = build_sidecar(intent)
    with alive(sidecar.operation_id):
        return _Run(environment, intent, sidecar, _Progress(), checks).carry_out(turn)


@dataclass(slots=True)
class _Progress:
    """How far a write has come with its tables."""

    has_moved: bool = False
    is_unknown: bool = False
    """A commit has failed, and not because it was refused."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One write in progress. A write that touches no table needs no sidecar."""

    environment: WriteEnvironment
    intent: Intent
    sidecar: Sidecar
    progress: _Progress
    checks: PendingChecks | None

    def carry_out(self, turn: Guard | None) -> ManifestState:
        if self.intent.tables:
            write_sidecar(self.environment.texts, self.sidecar, self.intent.unsynced)
        changes = self._make_ready()
        state = self._publish(changes, turn)
        self._conclude(state)
        return state

    # Phase B

    def _make_ready(self) -> tuple[Change, ...]:
        """Commit every table and confirm it, and make ready what else the publish needs."""
        try:
            changes = [*self.intent.pointed, *self._commit_tables()]
            if self.checks is not None:
                self.checks.require(tuple(changes))
            if self.intent.confirms and self.intent.tables:
                versions = {p.table_key: p.version for p in changes if isinstance(p, UpdatePin)}
                confirm_sidecar(self.environment.texts, self.sidecar, versions)
            self.intent.before_publish()
        except FailpointError:
            raise
        except Exception as error:
            self._take_back(error)
            raise
        return tuple(changes)

    def _commit_tables(self) -> list[Change]:
        changes: list[Change] = []
        versions: list[CommittedVersion] = []
        for table in self.intent.tables:
            match table:
                case TableCommits(table_key=key):
                    versions += self._commit_steps(table)
                    changes.append(version_to_pin(key, versions[-1]))
                case TableAppends(table_key=key):
                    versions += self._commit_appends(table)
                    changes.append(version_to_pin(key, versions[-1]))
                case NewTable():
                    changes += self._write_table(table)
                case Tombstone():
                    changes.append(table)
                case _:
                    assert_never(table)
            if self.intent.after_table is not None:
                hit(self.intent.after_table)
        self.environment.tables.sync_commits(versions)
        return changes

    def _commit_steps(self, table: TableCommits) -> list[CommittedVersion]:
        tables, handle = self.environment.tables, table.handle
        made: list[CommittedVersion] = []
        for step in table.steps:
            staged = step.stage(handle)
            if staged is None:
                continue
            with self._committing(table.table_key):
                # The sidecar named this transaction before its files could be written.
                committed = tables.commit_staged(
                    replace(staged, uuid=step.uuid),
                    operation_id=self.sidecar.operation_id,
                    is_synced=not self.intent.syncs_together,
                )
            self.progress.has_moved = True
            made.append(committed)
            if len(table.steps) > 1:
                handle = tables.open_at(
                    committed.location, committed.version, incarnation=committed.transaction_uuid
                )
            if step.after is not None:
                hit(step.after)
        assert made, f"'{table.table_key}' is named and has nothing to commit"
        return made

    def _commit_appends(self, table: TableAppends) -> list[CommittedVersion]:
        def note() -> None:
            self.progress.has_moved = True
            hit(Failpoint.GROUP_AFTER_MEMBER)

        with self._committing(table.table_key):
            return self.environment.tables.commit_appends(
                table.staged, operation_id=self.sidecar.operation_id, on_moved=note
            )

    @contextmanager
    def _committing(self, table_key: str) -> Iterator[None]:
        """Note what is known of a commit that fails."""
        try:
            yield
        except HeadMoved as moved:
            raise ExpectedVersionMismatch(
                table_key, expected=moved.expected, actual=moved.actual
            ) from moved
        except ConflictError:
            raise  # refused, and so certainly not committed
        except BaseException:
            self.progress.is_unknown = True
            raise

    def _write_table(self, table: NewTable) -> list[Change]:
        self.progress.has_moved = True
        handle = table.write(self.sidecar.operation_id)
        return [
            RegisterTable(table.table_key, table.table_path),
            handle_to_pin(table.table_key, handle),
        ]

    def _take_back(self, error: Exception) -> None:
        """The tables are not ready, and will not be: leave nothing of them.

        Raises:
            RecoveryRequired: Something may be left.
        """
        if isinstance(error, RecoveryRequired):
            raise self._require_recovery(error) from error
        if self.progress.is_unknown and not self.environment.has_system_locks:
            # A request that was given up may still arrive at the store.
            raise self._require_recovery(error) from error
        if not self.progress.has_moved and self._is_unmoved():
            self._drop_sidecar()
        else:
            self._undo(error)

    def _is_unmoved(self) -> bool:
        """Whether every HEAD is where the write found it."""
        if not self.progress.is_unknown:
            return True
        tables = self.environment.tables
        try:
            return all(
                tables.head_version(each.handle.location) == each.handle.version
                for each in self.intent.tables
                if isinstance(each, TableCommits | TableAppends)
            )
        except OmnigraphError:
            return False

    # Phase C

    def _publish(self, changes: tuple[Change, ...], turn: Guard | None) -> ManifestState:
        environment, intent = self.environment, self.intent
        pins = [change for change in changes if isinstance(change, UpdatePin)]
        environment.coordinator.observer.before_publish(intent.branch, pins)
        request = Publish(
            branch=intent.branch,
            changes=changes,
            expected=intent.expected,
            commits=() if intent.commit is None else (*intent.earlier, intent.commit),
            if_commit=intent.if_commit,
            schema_hash=intent.schema_hash,
            schema_id=intent.schema_id,
            ancestors=intent.ancestors,
            checks=None if intent.commit is None else self._seen_checks(),
        )
        with turn or publish_turn(environment, intent.branch), self._cover():
            try:
                return publish(environment.coordinator, request)
            except FailpointError:
                raise
            except RecoveryRequired as error:
                raise self._require_recovery(error) from error
            except ConflictError as error:
                refusal: Exception = error
            except Exception as error:
                shown = self._read_back(pins, error)
                if shown is not None:
                    return shown
                refusal = error
        # The turn is given back: an undo is a publish of its own.
        self._undo(refusal)
        raise refusal

    def _seen_checks(self) -> Checks:
        """The checks that the write was held to."""
        return self.environment.coordinator.last_seen(self.intent.branch).checks

    def _cover(self) -> AbstractContextManager[None]:
        """Where no sidecar says that a publish is under way, a mark in the manifest does."""
        if self.intent.tables:
            return nullcontext()
        return self.environment.coordinator.mark_unfinished(self.intent.branch)

    def _read_back(self, pins: Sequence[UpdatePin], error: Exception) -> ManifestState | None:
        """The branch, when it shows the write though its publish failed; None when it does not.

        Raises:
            RecoveryRequired: It cannot be determined.
        """
        coordinator = self.environment.coordinator
        try:
            state = coordinator.fresh(self.intent.branch)
            if self._is_shown(state, pins):
                coordinator.make_durable(self.intent.branch)
                log.warning("a publish failed and took effect all the same: %s", error)
                return state
        except OmnigraphError as unreadable:
            raise self._require_recovery(unreadable) from error
        if not self.environment.has_system_locks:
            raise self._require_recovery(error) from error
        return None

    def _is_shown(self, state: ManifestState, pins: Sequence[UpdatePin]) -> bool:
        if self.intent.commit is not None:
            return has_commit(state, self.intent.commit.commit_id)
        entries = (state.entries.get(pin.table_key) for pin in pins)
        return all(
            entry is not None
            and (entry.version, entry.transaction_uuid) == (pin.version, pin.transaction_uuid)
            for entry, pin in zip(entries, pins, strict=True)
        )

    # Phase D

    def _conclude(self, state: ManifestState) -> None:
        """The write is published: what is left to do is a chore that recovery can do as well."""
        try:
            self.intent.after_publish(state)
        except OmnigraphError as error:
            log.warning("operation %s is published, but: %s", self.sidecar.operation_id, error)
            return
        self._drop_sidecar()

    def _drop_sidecar(self) -> None:
        if not self.intent.tables:
            return
        operation_id = self.sidecar.operation_id
        try:
            delete_sidecar(self.environment.texts, operation_id)
        except OmnigraphError as error:
            log.warning("sidecar %s could not be deleted: %s", operation_id, error)

    # When it is not to be

    def _undo(self, error: Exception) -> None:
        """Undo what is there of the write. The caller holds its queues, and raises `error` then.

        Raises:
            RecoveryRequired: It cannot be undone now. The sidecar stays for recovery.
        """
        try:
            if self.intent.tables:
                # Nothing has failed when a check refuses a write: that is no recovery.
                is_refusal = isinstance(error, ChecksFailed) and self.intent.schema_id is None
                undo(self.environment, self.sidecar, is_recorded=not is_refusal)
            else:
                self.intent.withdraw()
        except FailpointError:
            raise
        except Exception as failure:
            if not self.intent.tables:
                log.warning("what was laid down for a publish stays: %s", failure)
                return
            raise self._require_recovery(error) from failure
        if isinstance(error, OmnigraphError):
            error.add_outcome("nothing was written")

    def _require_recovery(self, error: Exception) -> RecoveryRequired:
        said = "the write failed"
        if isinstance(error, OmnigraphError):
            # Behind the dash is advice for a write that is certainly not done.
            said = error.message.partition(" — ")[0]
        if isinstance(error, StorageFull):
            said += "; free some space"
        if not self.intent.tables:
            return RecoveryRequired(
                f"{said}. Whether the write took effect could not be found out: look at the "
                "history of the branch before you repeat it"
            )
        recoverer = "the next write, `refresh()` or opening the graph read-write"
        if not self.environment.has_system_locks:
            recoverer = "opening the graph read-write"
        return RecoveryRequired(
            f"{said}. The write was under way and may still take effect: do not repeat it before "
            f"it is finished or undone, which {recoverer} does",
            operation_id=self.sidecar.operation_id,
        )
