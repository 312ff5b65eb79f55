"""Receive: a branch of one store comes to another, by the commits and files that are missing there.

    step                          a crash here leaves
    files of missing versions     files that nothing names; the same transfer goes on with them
    lineages of these versions    forks that no branch shows; a cleanup removes them
    checks of the branch          the same
    one publish                   –

A branch that is there moves to the received head only if that comes from its own head, in one
publish: readers see none of the commits, or all. One that is not there is prepared under a name
that is never listed and then made, as one ref. Commits keep their ids, parents, actors and times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    ChecksFailed,
    CommitNotFound,
    ConflictError,
    ExpectedVersionMismatch,
    NotFastForward,
    PreconditionFailed,
    SourceChanged,
    UnrelatedHistories,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import (
    MAIN,
    Facts,
    GraphCommit,
    ManifestState,
    Publish,
    Snapshot,
    TableEntry,
    publish,
)
from omnigraph.manifest.rows import row_to_commit
from omnigraph.transfer.contents import ATTEMPTS_MAX, Source
from omnigraph.transfer.result import TransferResult
from omnigraph.transfer.table_import import TableImport
from omnigraph.write.environment import (
    BRANCHES_QUEUE,
    HISTORY_QUEUE,
    WriteEnvironment,
    publish_turn,
    queue_keys,
)
from omnigraph.write.fork import open_pin
from omnigraph.write.pending_checks import PendingChecks
from omnigraph.write.pins import handle_to_pin


@dataclass(frozen=True, slots=True)
class _History:
    """The commits that a state comes from, and those of them that the receiver does not know."""

    head: GraphCommit
    commits: Mapping[str, GraphCommit]
    missing: tuple[GraphCommit, ...]

    def line(self, known: Mapping[str, object]) -> list[GraphCommit]:
        """The head and its first parents that are not known, the oldest first."""
        found: list[GraphCommit] = []
        commit: GraphCommit | None = self.head
        while commit is not None and commit.commit_id not in known:
            found.append(commit)
            commit = self.commits.get(commit.parent_id or "")
        return found[::-1]


def receive(
    source: Source,
    source_branch: str,
    target: WriteEnvironment,
    branch: str,
    *,
    is_checked: bool = True,
) -> TransferResult:
    """Move a branch of the target to the head of a branch of the source, or make it.

    A branch that moves is held to its checks and those that come along, as by a merge, unless
    `is_checked` says that it only mirrors the source.

    Raises:
        UnrelatedHistories: The graphs are not copies of one another.
        NotFastForward: The branch has commits that the source does not have. Nothing changed.
        ChecksFailed: One does not hold at the received head. Nothing changed.
        ConflictError: The schemas differ, or writers of the branch did not pause.
    """
    moved = TransferResult()
    for attempt in range(ATTEMPTS_MAX):
        transfer = _Transfer(source, target, source_branch, branch, is_checked)
        try:
            return moved + transfer.run()
        except (SourceChanged, ExpectedVersionMismatch, PreconditionFailed):
            moved += transfer.tables.moved
            if attempt == ATTEMPTS_MAX - 1:
                raise
    raise AssertionError("unreachable")


class _Transfer:
    """One attempt at one branch."""

    def __init__(
        self,
        source: Source,
        target: WriteEnvironment,
        source_branch: str,
        branch: str,
        is_checked: bool,
    ) -> None:
        self.source, self.target, self.branch = source, target, branch
        self.is_checked = is_checked
        self.theirs = source.environment.coordinator.fresh(source_branch)
        self.tables = TableImport(source.environment.tables, target.tables)
        self._starts_over = False

    def run(self) -> TransferResult:
        found = self._compare()
        if found is None:
            return TransferResult()
        # Without a lock, as this may take long; a second look with it copies what has changed.
        states = self._read_states(found)
        self.tables.bring(_entries(states.values()), is_final=False)
        hit(Failpoint.TRANSFER_BEFORE_LINEAGES)
        target = self.target
        turns = [(BRANCHES_QUEUE, None), (HISTORY_QUEUE, None)]
        keys = queue_keys(self.theirs.entries, self.branch)
        # Writers of the branch wait from here on, so nothing that is compared can move.
        with target.queues.acquire_many(turns), target.queues.acquire_many(keys):
            found = self._compare()
            if found is None:
                return self.tables.moved
            self._publish(found)
        return self.tables.moved + TransferResult(commits=len(found.missing))

    # Comparing histories

    def _compare(self) -> _History | None:
        """What the target lacks; None when it has the head on this branch already."""
        coordinator = self.target.coordinator
        ours = [coordinator.fresh(branch) for branch in coordinator.branches()]
        known = {each for state in ours for each in _ids(state)}
        commits = _list_ancestors(self.theirs)
        first = next(each for each in commits.values() if each.parent_id is None)
        if first.commit_id not in known:
            raise UnrelatedHistories(str(self.source.files.uri), str(self.target.tables.root))
        head = self.theirs.head
        here = next((state for state in ours if state.branch == self.branch), None)
        if here is not None:
            if head.commit_id in set(_ids(here)):
                return None
            if here.head.commit_id not in commits:
                raise NotFastForward(self.branch, here.head.commit_id, head.commit_id)
        self._check_schema(here or ours[0])
        missing = tuple(each for each in commits.values() if each.commit_id not in known)
        return _History(head, commits, missing)

    def _check_schema(self, here: ManifestState) -> None:
        if here.snapshot().schema_name != self.theirs.snapshot().schema_name:
            raise ConflictError(
                f"the schemas differ: branch '{self.theirs.branch}' of '{self.source.files.uri}' "
                f"is in another one than '{self.target.tables.root}' — nothing was changed; clone "
                "the graph whose schema is newer"
            )

    # States

    def _read_states(self, found: _History) -> dict[str, Snapshot]:
        """What the missing commits show, as far as the source can tell; the head always."""
        coordinator = self.source.environment.coordinator
        states = {found.head.commit_id: self.theirs.snapshot()}
        for commit in (*found.missing, found.head):
            # Of the head, too, what the commit itself published: the other side may have it.
            state = coordinator.find_snapshot(coordinator.commit(commit.commit_id))
            if state is not None and coordinator.has_tables(state):
                states[commit.commit_id] = state
        return states | self._match(found)

    def _match(self, found: _History) -> dict[str, Snapshot]:
        """Note which versions both stores have, by commits that both have.

        Returns what the target has lost of these: a merge compares with it.
        """
        coordinator = self.target.coordinator
        missing = {each.commit_id for each in found.missing}
        parents = {
            each
            for commit in (*found.missing, found.head)
            for each in (commit.parent_id, commit.merged_parent_id)
        }
        lost: dict[str, Snapshot] = {}
        heads = {coordinator.fresh(each).head.commit_id for each in coordinator.branches()}
        known = {*filter(None, parents), *heads, found.head.commit_id} - missing
        for commit_id in sorted(known):
            theirs = found.commits.get(commit_id)
            if theirs is None:
                continue
            sender = self.source.environment.coordinator
            before = sender.find_snapshot(sender.commit(theirs.commit_id))
            now = coordinator.find_snapshot(coordinator.commit(theirs.commit_id))
            for each in filter(None, (before, now)):
                self.tables.share(entry.table_path for entry in each.entries.values())
            if before is None or not sender.has_tables(before):
                continue
            if now is None or not coordinator.has_tables(now):
                lost[theirs.commit_id] = before
                continue
            for key, entry in before.entries.items():
                if key in now.entries:
                    self.tables.match(entry, now.entries[key])
        return lost

    # Publishing

    def _publish(self, found: _History) -> None:
        coordinator, target = self.target.coordinator, self.target
        states = self._read_states(found)
        self.tables.bring(_entries(states.values()), is_final=True)
        self._keep_side_states(found, states)
        hit(Failpoint.TRANSFER_BEFORE_PUBLISH)
        if self.branch in coordinator.branches():
            here = coordinator.fresh(self.branch)
            if here.head.commit_id not in found.commits:
                # Committed since the histories were compared.
                raise NotFastForward(self.branch, here.head.commit_id, found.head.commit_id)
            request = self._build(here, found, states)
            if self.is_checked:
                self._require_checks(here, request)
            with publish_turn(target, self.branch), coordinator.mark_unfinished(self.branch):
                publish(coordinator, request)
            return
        coordinator.remove_prepared()
        made = publish(coordinator, self._build(self._prepare(found), found, states))
        hit(Failpoint.TRANSFER_BEFORE_BRANCH)
        coordinator.create_branch(self.branch, made)

    def _require_checks(self, here: ManifestState, request: Publish) -> None:
        """Refuse a line whose head breaks a check.

        The publish happens only on top of the head that was looked at here, so no other write can
        come in between and break a check together with it.
        """
        assert request.facts is not None
        checks = tuple(request.facts.checks.values())
        if checks:
            pending = PendingChecks(self.target, here, request.adopted, checks, request.schema_id)
            try:
                pending.require(request.changes)
            except ChecksFailed as error:
                error.add_outcome("nothing was written")
                raise

    def _prepare(self, found: _History) -> ManifestState:
        """A branch without a name, from the newest state of the target that the head comes from.

        Without one, since cleanups removed them, it starts from what main shows, and forgets the
        commits that the head does not come from.
        """
        coordinator = self.target.coordinator
        missing = {each.commit_id for each in found.missing}
        commit: GraphCommit | None = found.head
        while commit is not None:
            if commit.commit_id not in missing:
                with suppress(ConflictError):
                    origin = coordinator.find_origin(coordinator.commit(commit.commit_id))
                    return coordinator.prepare_branch(origin)
            commit = found.commits.get(commit.parent_id or "")
        self._starts_over = True
        return coordinator.prepare_branch(coordinator.fresh(MAIN), found.commits.keys())

    def _build(
        self, here: ManifestState, found: _History, states: Mapping[str, Snapshot]
    ) -> Publish:
        known = dict.fromkeys(_ids(here))
        line = [each for each in found.line(known) if self._state_of(each, states) is not None]
        head = states[found.head.commit_id]
        final = self._choose_entries(here, found, head)
        handles = {
            key: open_pin(self.target.tables, entry)
            for key, entry in final.items()
            if not entry.shows_same_rows(here.entries[key])
        }
        changes = tuple(handle_to_pin(key, handle) for key, handle in handles.items())
        entries = {**here.entries, **final}
        commits = tuple(
            replace(
                each,
                branch=self.branch,
                manifest_version=here.version + 1,
                pins=self._pins(each, states, entries) if each is not line[-1] else {},
            )
            for each in line
        )
        return Publish(
            here.branch,
            changes,
            {key: here.entries[key].version for key in handles},
            if_commit=here.head.commit_id,
            ancestors=tuple(
                self._to_ancestor(each) for each in found.commits.values() if each not in line
            ),
            adopted=commits,
            # Not by their notes: commits whose state is gone over there are not on this line.
            facts=Facts(head.vector_models, head.checks),
        )

    def _to_ancestor(self, commit: GraphCommit) -> GraphCommit:
        """A commit beside the line of the branch: as this store knows it, if it does.

        One that was received has no manifest of this store that shows it.
        """
        try:
            return self.target.coordinator.commit(commit.commit_id)
        except CommitNotFound:
            return replace(commit, manifest_version=0)

    def _keep_side_states(self, found: _History, states: Mapping[str, Snapshot]) -> None:
        """Write down what the commits beside the line show: no manifest here says so."""
        missing = {each.commit_id for each in found.missing}
        line = {each.commit_id for each in found.line({})} & missing | {found.head.commit_id}
        kept = [
            replace(
                state,
                entries=self._state_of(state.head, states) or {},
                manifest_version=0,
                head=replace(found.commits[commit_id], manifest_version=0, pins={}),
            )
            for commit_id, state in states.items()
            if commit_id not in line
        ]
        self.target.coordinator.retained.write(kept)

    def _choose_entries(
        self, here: ManifestState, found: _History, head: Snapshot
    ) -> dict[str, TableEntry]:
        """What the branch shows from now on, of the tables that changed since its head."""
        before = self._find_common_state(here, found)
        final = {}
        for key, entry in head.entries.items():
            known = None if before is None else before.entries.get(key)
            if known is not None and entry.shows_same_rows(known):
                continue  # its layout here may be better by now
            chosen = self.tables.find(entry)
            shown = here.entries[key]
            if (chosen.table_branch, chosen.version) == (shown.table_branch, shown.version):
                continue
            if chosen.version <= here.pinned.get(key, 0):
                chosen = self.tables.renumber(chosen, here.pinned[key] + 1)
            final[key] = chosen
        return final

    def _find_common_state(self, here: ManifestState, found: _History) -> Snapshot | None:
        """What the source has of the head that the branch has now."""
        coordinator = self.source.environment.coordinator
        if self._starts_over or here.head.commit_id not in found.commits:
            return None
        state = coordinator.find_snapshot(coordinator.commit(here.head.commit_id))
        return state if state is not None and coordinator.has_tables(state) else None

    def _state_of(
        self, commit: GraphCommit, states: Mapping[str, Snapshot]
    ) -> Mapping[str, TableEntry] | None:
        """What a commit shows, with versions of the target; None when that is gone."""
        state = states.get(commit.commit_id)
        if state is not None:
            return {key: self.tables.find(entry) for key, entry in state.entries.items()}
        coordinator = self.target.coordinator
        try:
            here = coordinator.find_snapshot(coordinator.commit(commit.commit_id))
        except CommitNotFound:
            return None
        return None if here is None else here.entries

    def _pins(
        self,
        commit: GraphCommit,
        states: Mapping[str, Snapshot],
        final: Mapping[str, TableEntry],
    ) -> dict[str, list[object]]:
        """What a commit of the line shows otherwise than its head."""
        shown = self._state_of(commit, states) or {}
        return {
            key: [entry.version, entry.table_branch, entry.row_count, entry.transaction_uuid]
            for key, entry in shown.items()
            if key in final and not entry.shows_same_rows(final[key])
        }


def _entries(states: Iterable[Snapshot]) -> Iterator[TableEntry]:
    for state in states:
        yield from state.entries.values()


def _ids(state: ManifestState) -> Iterator[str]:
    yield from state.commit_rows["object_id"].to_pylist()
    yield from state.ancestor_rows["object_id"].to_pylist()


def _list_ancestors(state: ManifestState) -> dict[str, GraphCommit]:
    """Every commit that the head of a branch comes from, by its id."""
    rows = [*state.commit_rows.to_pylist(), *state.ancestor_rows.to_pylist()]
    known = {each.commit_id: each for each in map(row_to_commit, rows)}
    found: dict[str, GraphCommit] = {}
    pending: list[str | None] = [state.head.commit_id]
    while pending:
        commit = known.get(pending.pop() or "")
        if commit is not None and commit.commit_id not in found:
            found[commit.commit_id] = commit
            pending += [commit.parent_id, commit.merged_parent_id]
    return found
