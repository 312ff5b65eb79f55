"""Group: mutations that only insert and wait at the same time share one sidecar and one publish.

The first caller of a branch commits at once, alone. Who comes meanwhile waits, and the first of
them leads all (`group_queue.py`). Each member keeps its own commit, result and error, and each of
its tables a version of its own, so a commit of a group is read like any other.

    step           what happens                                        a crash here leaves
    queues         of all members, in one acquisition                  nothing
    members        one after the other, each over the rows of those    nothing
                   before it: one that fails takes no part
    files          of every member                                     nothing
    A to D         `protocol.py`: one sidecar names all commits and    all members or none, by
                   transactions, once the files are synced; one        the rules of a lone write
                   version per member and table, synced side by
                   side; one publish

What cannot be shared runs alone, in the thread of its caller: a member that replaces stored rows
or notes something on its commit, and all members of a group whose commit failed, once that is
undone.

Invariant: the commits of a group follow each other in the order of its members; `if_commit` is
compared with the one before; each but the last says which versions it shows (`GraphCommit.pins`).
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError, PreconditionFailed, RecoveryRequired
from omnigraph.failpoints import Failpoint, FailpointError, hit
from omnigraph.manifest import GraphCommit, Lineage, ManifestState, TableEntry
from omnigraph.manifest.rows import commits_newest_first
from omnigraph.storage.durability import put_off_syncs
from omnigraph.ulids import new_ulid
from omnigraph.write.commit import Inserts, WriteRequest, refuse_other_schema, run_write
from omnigraph.write.drift import UnfinishedWrite, check_heads
from omnigraph.write.environment import WriteEnvironment, publish_turn, queue_keys
from omnigraph.write.fork import fork_for_write, open_pin
from omnigraph.write.group_queue import GroupQueue, Member
from omnigraph.write.intent import Intent, TableAppends
from omnigraph.write.protocol import carry_out
from omnigraph.write.recovery import retry_after_recovery
from omnigraph.write.sidecar import WriterKind

MEMBERS_MAX = 64
_INTERRUPTED = (
    "the caller that committed this write with its own was interrupted, and it may still take "
    "effect: look at the history of the branch before you repeat it, after the next write, "
    "`refresh()` or opening the graph read-write"
)

log = logging.getLogger("omnigraph.write")

Work: TypeAlias = tuple[WriteEnvironment, WriteRequest]
Outcome: TypeAlias = Callable[[], GraphCommit | None]
_Member: TypeAlias = Member[Work, Outcome]


class InsertGroups:
    """The groups of one open graph. Thread-safe."""

    def __init__(self) -> None:
        self.queue = GroupQueue[Work, Outcome](_lead, MEMBERS_MAX)

    def run(self, environment: WriteEnvironment, request: WriteRequest) -> GraphCommit | None:
        """Commit a brief request, together with those that wait for the same branch.

        Raises what `run_write` raises.
        """
        return self.queue.run(request.branch, (environment, request))()


def _lead(members: Sequence[_Member]) -> None:
    """Complete every member: with its commit, its error, or a call that runs it alone."""
    leader, *others = members
    try:
        if others:
            _try_to_share(members)
    finally:
        for each in others:
            if not each.is_done:
                each.complete(partial(run_write, *each.work))
    if not leader.is_done:
        # At once: who comes meanwhile makes the next group.
        try:
            leader.complete(partial(_identity, run_write(*leader.work)))
        except Exception as error:
            leader.fail(error)


def _try_to_share(members: Sequence[_Member]) -> None:
    """Commit the members as a group; one that is not done then has had no effect."""
    try:
        _commit(members)
    except (FailpointError, RecoveryRequired) as error:
        # It may have taken effect, or a crash is being played: for every member alike.
        if not isinstance(error, UnfinishedWrite):
            _fail(members, error)
    except Exception as error:
        log.info("a group of %d runs one by one: %s", len(members), error)


def _fail(members: Sequence[_Member], error: Exception) -> None:
    for each in members:
        if not each.is_done:
            each.fail(copy.copy(error))


def _commit(members: Sequence[_Member]) -> None:
    """Commit what can be shared, and complete those members; the others stay as they are."""
    environment, _ = members[0].work
    requests = [each.work[1] for each in members]
    branch = requests[0].branch
    keys = frozenset[str]().union(*(each.touched.all for each in requests))
    queues = queue_keys(keys, branch)
    environment.coordinator.last_seen(branch)  # a branch that is not there has no queues

    def commit() -> None:
        with ExitStack() as held:
            held.enter_context(environment.queues.acquire_many(queues))
            turn = None
            if any(each.if_commit is not None for each in requests):
                # From here on the head cannot move, so conditions still hold at the publish.
                turn = held.enter_context(publish_turn(environment, branch))
            group = _Group(environment, environment.coordinator.fresh(branch))
            group.admit_all(members)
            if len(group.admitted) < 2:
                return  # nothing is shared: the one that is left runs alone
            intent = group.build_intent()
            try:
                group.complete(carry_out(environment, intent, turn=turn))
            except Exception:
                raise
            except BaseException:
                _fail(members, RecoveryRequired(_INTERRUPTED))
                raise

    retry_after_recovery(environment, queues, commit)


@dataclass(slots=True)
class _Admitted:
    """A member that takes part: the rows it adds to each table, and its commit."""

    member: _Member
    rows: Mapping[str, pa.Table]
    commit: Lineage


@dataclass(slots=True)
class _Group:
    """The members of one commit, over one state of their branch. The queues are held."""

    environment: WriteEnvironment
    state: ManifestState
    admitted: list[_Admitted] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    if_commit: str | None = None
    failed: list[tuple[_Member, OmnigraphError]] = field(default_factory=list)
    _earlier: dict[str, pa.Table] = field(default_factory=dict)
    _taken: dict[str, set[str]] = field(default_factory=dict)

    # Members

    def admit_all(self, members: Sequence[_Member]) -> None:
        """Run each member over the ones before it. A condition on the head holds for the first."""
        in_order = sorted(members, key=lambda each: each.work[1].if_commit is None)
        self._find_taken_ids([_inserts_of(each) for each in in_order])
        # Ids of commits sort in the order of the commits, also of those of one millisecond.
        ids = iter(sorted(new_ulid() for _ in in_order))
        for member in in_order:
            if self._replaces_rows(_inserts_of(member)):
                continue
            try:
                self._admit(member, next(ids))
            except OmnigraphError as error:
                self.failed.append((member, error))

    def _find_taken_ids(self, members: Sequence[Inserts]) -> None:
        """Which ids of all members are there already: one look at each table."""
        tables, wanted = self.environment.tables, dict[str, list[pa.Array]]()
        for member in members:
            for key, ids in member.ids.items():
                wanted.setdefault(key, []).extend(ids)
        for key, ids in wanted.items():
            entry = self.state.entries.get(key)
            if entry is not None:  # otherwise preparing the member says so
                asked = pa.concat_arrays(ids)
                found = tables.rows.keys.find(open_pin(tables, entry), "id", asked)
                self._taken[key] = set(found.to_pylist())

    def _replaces_rows(self, member: Inserts) -> bool:
        """Whether a row of the member is there already, stored or of a member before it."""
        return any(
            not taken.isdisjoint(pa.chunked_array(ids).to_pylist())
            for key, ids in member.ids.items()
            if (taken := self._taken.get(key))
        )

    def _admit(self, member: _Member, commit_id: str) -> None:
        environment, request = member.work
        refuse_other_schema(environment, self.state)
        before = self.admitted[-1].commit.commit_id if self.admitted else self.state.head.commit_id
        if request.if_commit is not None and request.if_commit != before:
            raise PreconditionFailed(expected=request.if_commit, actual=before)
        prepared = _inserts_of(member).prepare(self.state.snapshot(), self._earlier)
        if request.properties():
            return  # it changes more than rows, such as which model makes vectors: it runs alone
        rows = prepared.list_new_rows()
        commit = Lineage(
            commit_id,
            request.actor,
            time.time_ns() // 1_000,
            properties=request.note,
        )
        self.admitted.append(_Admitted(member, rows, commit))
        self.expected.update(prepared.read_versions)
        self.if_commit = self.if_commit or request.if_commit
        for key, added in rows.items():
            known = self._earlier.get(key)
            self._earlier[key] = added if known is None else pa.concat_tables([known, added])
            self._taken.setdefault(key, set()).update(added["id"].to_pylist())

    # The commit

    def build_intent(self) -> Intent:
        """Write the files of every member, and say what the group is about to do."""
        branch = self.state.branch
        entries = {key: self.state.entries[key] for key in sorted(self._earlier)}
        check_heads(self.environment, branch, entries)
        tables = self.environment.tables
        commits, unsynced = dict[str, TableAppends](), list[str]()
        for key, entry in entries.items():
            handle = fork_for_write(self.environment, entry, branch)
            parts = [each.rows[key] for each in self.admitted if key in each.rows]
            with put_off_syncs() as files:
                staged = tables.rows.stage_appends(handle, parts)
            unsynced += files
            commits[key] = TableAppends(key, handle, tuple(staged))
        hit(Failpoint.COMMIT_AFTER_STAGE)
        *earlier, last = self._list_lineages(commits)
        return Intent(
            kind=WriterKind.MUTATION_GROUP,
            branch=branch,
            branch_id=self.state.incarnation,
            tables=tuple(commits.values()),
            expected=self.expected,
            commit=last,
            earlier=tuple(earlier),
            if_commit=self.if_commit,
            syncs_together=True,
            unsynced=unsynced,
            after_table=Failpoint.COMMIT_AFTER_TABLE,
            before_publish=lambda: hit(Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER),
        )

    def _list_lineages(self, commits: Mapping[str, TableAppends]) -> list[Lineage]:
        """The commits, each with what it shows of the tables that later ones move on."""
        shown = {key: _pin_of(self.state.entries[key]) for key in commits}
        staged = {key: iter(each.staged) for key, each in commits.items()}
        states = []
        for each in self.admitted:
            for key, rows in each.rows.items():
                version, _, count, _ = shown[key]
                branch, uuid = commits[key].handle.location.branch, next(staged[key]).uuid
                shown[key] = [version + 1, branch, count + rows.num_rows, uuid]
            states.append(dict(shown))
        return [
            _with_pins(each.commit, state, shown)
            for each, state in zip(self.admitted, states, strict=True)
        ]

    def complete(self, made: ManifestState) -> None:
        """Give every member that took part its commit, or its error."""
        commits = islice(commits_newest_first(made.commit_rows), len(self.admitted))
        for each, commit in zip(reversed(self.admitted), commits, strict=True):
            assert commit.commit_id == each.commit.commit_id
            each.member.complete(partial(_identity, commit))
        for member, error in self.failed:
            member.fail(error)


def _inserts_of(member: _Member) -> Inserts:
    inserts = member.work[1].inserts
    assert inserts is not None
    return inserts


def _identity(commit: GraphCommit | None) -> GraphCommit | None:
    return commit


def _pin_of(entry: TableEntry) -> list[Any]:
    return [entry.version, entry.table_branch, entry.row_count, entry.transaction_uuid]


def _with_pins(
    commit: Lineage, shown: Mapping[str, list[Any]], last: Mapping[str, list[Any]]
) -> Lineage:
    pins = {key: pin for key, pin in shown.items() if pin != last[key]}
    return replace(commit, pins=pins)
