"""Receive: a branch of one store comes to another, by the commits and files that are missing there.

    step                          a crash here leaves
    files of missing versions     files that nothing names; the same transfer goes on with them
    lineages of these versions    forks that no branch shows; a cleanup removes them
    schemas that they are in      texts that no manifest names
    checks of the branch          the same
    one publish                   –, or schema files of main that the next open writes

A branch that is there moves to the received head only if that comes from its own head, in one
publish: readers see none of the commits, or all. One that is not there is prepared under a name
that is never listed and then made, as one ref. Commits keep their ids, parents, actors and times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from omnigraph.errors import (
    ChecksFailed,
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
    GraphCommit,
    ManifestState,
    Publish,
    Snapshot,
    TableEntry,
    publish,
)
from omnigraph.manifest.schema_files import catch_up_files, reconcile_staging
from omnigraph.storage.control import ControlTable
from omnigraph.storage.queues import SCHEMA_APPLY_KEY, QueueKey
from omnigraph.transfer.contents import ATTEMPTS_MAX, Source
from omnigraph.transfer.histories import History, KnownCommits, list_ancestors, list_ids
from omnigraph.transfer.line import ReceivedLine
from omnigraph.transfer.result import TransferResult
from omnigraph.transfer.schemas import bring_schemas
from omnigraph.transfer.table_import import TableImport
from omnigraph.write.environment import (
    BRANCHES_QUEUE,
    HISTORY_QUEUE,
    WriteEnvironment,
    publish_turn,
    queue_keys,
)
from omnigraph.write.pending_checks import PendingChecks


def receive(
    source: Source,
    source_branch: str,
    target: WriteEnvironment,
    branch: str,
    history: ControlTable,
    *,
    is_checked: bool = True,
) -> TransferResult:
    """Move a branch of the target to the head of a branch of the source, or make it.

    `history` is that of the target.
    A branch that moves is held to its checks and those that come along, as by a merge, unless
    `is_checked` says that it only mirrors the source.

    Raises:
        UnrelatedHistories: The graphs are not copies of one another.
        NotFastForward: The branch has commits that the source does not have. Nothing changed.
        ChecksFailed: One does not hold at the received head. Nothing changed.
        ConflictError: The stores use one identity or place for different things, a schema change is
            in progress, or writers of the branch did not pause.
    """
    moved = TransferResult()
    for attempt in range(ATTEMPTS_MAX):
        transfer = _Transfer(source, target, source_branch, branch, history, is_checked)
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
        history: ControlTable,
        is_checked: bool,
    ) -> None:
        self.source, self.target, self.branch = source, target, branch
        self.is_checked = is_checked
        self.theirs = source.environment.coordinator.fresh(source_branch)
        self.near = (branch, MAIN, source_branch)
        self.known = KnownCommits(target, history, self.near)
        self.tables = TableImport(
            source.environment.tables, target.tables, self._is_named, self._is_same_table
        )
        self._starts_over = False

    def run(self) -> TransferResult:
        found = self._compare()
        if found is None:
            return TransferResult()
        # Without a lock, as this may take long; a second look with it copies what has changed.
        states = self._read_states(found)
        self.tables.bring(_entries(states.values()), is_final=False)
        hit(Failpoint.TRANSFER_BEFORE_LINEAGES)
        queues, turns = self.target.queues, [(BRANCHES_QUEUE, None), (HISTORY_QUEUE, None)]
        # Writers of the branch wait from here on, so nothing that is compared can move.
        with queues.acquire_many([*turns, SCHEMA_APPLY_KEY]), self._lock_schema() as is_other:
            with queues.acquire_many(self._queue_keys()):
                found = self._compare()
                if found is None:
                    return self.tables.moved
                self._publish(found)
            if is_other and self.branch == MAIN:
                self._write_schema_files()
        return self.tables.moved + TransferResult(commits=len(found.missing))

    def _queue_keys(self) -> list[QueueKey]:
        """Those of every table that the branch shows now or afterwards."""
        here = self._find_here()
        shown = () if here is None else here.entries
        return queue_keys({*self.theirs.entries, *shown}, self.branch)

    def _find_here(self) -> ManifestState | None:
        coordinator = self.target.coordinator
        return coordinator.fresh(self.branch) if coordinator.has_branch(self.branch) else None

    # Schemas

    @contextmanager
    def _lock_schema(self) -> Iterator[bool]:
        """Take turns with schema changes if the branch gets another schema; whether it does.

        Raises:
            ConflictError: Another change is in progress, or a manifest does not name its schema.
        """
        target, coordinator = self.target, self.target.coordinator
        known = self._find_here() or coordinator.fresh(MAIN)
        if known.schema_name == self.theirs.schema_name:
            yield False
            return
        self._refuse_unnamed(known)
        # We hold the queue: on a local disk a lock that is there belongs to a dead process.
        coordinator.unlisted.lock_schema(is_stale=target.tables.root.is_local)
        try:
            reconcile_staging(target.texts, coordinator)
            with publish_turn(target, MAIN):
                coordinator.admit_branch_schemas()
            yield True
        finally:
            coordinator.unlisted.unlock_schema()

    def _refuse_unnamed(self, here: ManifestState) -> None:
        """Refuse to mix manifests that name their schema with such that do not."""
        others = [each for each in self.target.coordinator.branches() if each != here.branch]
        is_unnamed = here.schema_name is None and here.branch == MAIN and others
        if self.theirs.schema_name is None or is_unnamed:
            raise ConflictError(
                f"branch '{self.theirs.branch}' of '{self.source.files.uri}' and "
                f"'{self.target.tables.root}' are in different schemas, and a manifest of an early "
                "Omnigraph does not say in which — nothing was changed; apply a schema to it first"
            )

    def _write_schema_files(self) -> None:
        """Bring the files at the root in line with main; a death here leaves them to recovery."""
        hit(Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT)
        catch_up_files(self.target.texts, self.target.coordinator)

    # Comparing histories

    def _compare(self) -> History | None:
        """What the target lacks; None when it has the head on this branch already."""
        here, commits = self._find_here(), list_ancestors(self.theirs)
        known = self.known.find(commits)
        first = next(each for each in commits.values() if each.parent_id is None)
        if first.commit_id not in known:
            raise UnrelatedHistories(str(self.source.files.uri), str(self.target.tables.root))
        head = self.theirs.head
        if here is not None:
            if head.commit_id in set(list_ids(here)):
                return None
            if here.head.commit_id not in commits:
                raise NotFastForward(self.branch, here.head.commit_id, head.commit_id)
        missing = tuple(each for each in commits.values() if each.commit_id not in known)
        return History(head, commits, missing)

    # States

    def _read_states(self, found: History) -> dict[str, Snapshot]:
        """What the missing commits show, as far as the source can tell; the head always."""
        coordinator = self.source.environment.coordinator
        states = {found.head.commit_id: self.theirs.snapshot()}
        for commit in (*found.missing, found.head):
            # Of the head, too, what the commit itself published: the other side may have it.
            state = coordinator.commit_states.find(coordinator.commit(commit.commit_id))
            if state is not None and coordinator.commit_states.has_tables(state):
                states[commit.commit_id] = state
        return states | self._match(found, states)

    def _match(self, found: History, states: Mapping[str, Snapshot]) -> dict[str, Snapshot]:
        """Note which versions both stores have, by commits that both have.

        These are the last ones before the missing. What other branches show tells no more, unless
        one of these is gone or a table is another version there, as after a compaction.

        Returns what the target has lost of these: a merge compares with it.
        """
        coordinator = self.target.coordinator
        missing = {each.commit_id for each in found.missing}
        parents = {
            each
            for commit in (*found.missing, found.head)
            for each in (commit.parent_id, commit.merged_parent_id)
        }
        last = {*filter(None, parents), found.head.commit_id} - missing
        near = {state.head.commit_id for state in coordinator.fresh_each(self.near)}
        compared, lost = self._match_at(found, (last | near) - missing)
        if not (last <= compared and self.tables.has_origins(_entries(states.values()))):
            heads = coordinator.fresh_each(coordinator.branches())
            others = {state.head.commit_id for state in heads} - last - near - missing
            lost |= self._match_at(found, others)[1]
        return lost

    def _match_at(
        self, found: History, commit_ids: Iterable[str]
    ) -> tuple[set[str], dict[str, Snapshot]]:
        """Compare what both stores show of commits: which this told of, and what is lost here."""
        coordinator = self.target.coordinator
        compared, lost = set[str](), dict[str, Snapshot]()
        for commit_id in sorted(commit_ids):
            theirs = found.commits.get(commit_id)
            if theirs is None:
                continue
            sender = self.source.environment.coordinator
            before = sender.commit_states.find(sender.commit(theirs.commit_id))
            now = coordinator.commit_states.find(coordinator.commit(theirs.commit_id))
            for each in filter(None, (before, now)):
                self.tables.share(entry.table_path for entry in each.entries.values())
            if before is None or not sender.commit_states.has_tables(before):
                continue
            if now is None or not coordinator.commit_states.has_tables(now):
                lost[theirs.commit_id] = before
                continue
            for key, entry in before.entries.items():
                self.tables.match(entry, now.entries.get(key))
            compared.add(commit_id)
        return compared, lost

    def _is_named(self, path: str) -> bool:
        """Whether some branch of the target shows a table at this place, or has shown one."""
        here = self.target.coordinator
        return any(path in each.known_paths for each in here.fresh_each(here.branches()))

    def _is_same_table(self, path: str) -> bool:
        """Whether both stores had one version of a table at some time, though none is left."""
        here, there = self.target.coordinator, self.source.environment.coordinator
        theirs = there.list_transactions(self.theirs, path)
        ours = (here.list_transactions(here.fresh(each), path) for each in here.branches())
        return any(not theirs.isdisjoint(each) for each in ours)

    # Publishing

    def _publish(self, found: History) -> None:
        coordinator, target = self.target.coordinator, self.target
        states = self._read_states(found)
        self.tables.bring(_entries(states.values()), is_final=True)
        names = {each.schema_name for each in states.values()}
        bring_schemas(self.source.environment.texts, target.texts, names)
        hit(Failpoint.TRANSFER_BEFORE_PUBLISH)
        here = self._find_here()
        if here is None:
            coordinator.unlisted.remove_prepared()
            prepared = self._prepare(found)
            made = publish(coordinator, self._to_line(found, states, prepared).build(prepared))
            hit(Failpoint.TRANSFER_BEFORE_BRANCH)
            coordinator.create_branch(self.branch, made)
            return
        if here.head.commit_id not in found.commits:
            # Committed since the histories were compared.
            raise NotFastForward(self.branch, here.head.commit_id, found.head.commit_id)
        request = self._to_line(found, states, here).build(here)
        if self.is_checked:
            self._require_checks(here, request)
        with publish_turn(target, self.branch), coordinator.mark_unfinished(self.branch):
            publish(coordinator, request)

    def _to_line(
        self, found: History, states: Mapping[str, Snapshot], here: ManifestState
    ) -> ReceivedLine:
        before = self._find_common_state(here, found)
        line = ReceivedLine(self.target, self.branch, self.tables, found, states, before)
        line.keep_side_states()
        return line

    def _find_common_state(self, here: ManifestState, found: History) -> Snapshot | None:
        """What the source has of the head that the branch has now."""
        coordinator = self.source.environment.coordinator
        if self._starts_over or here.head.commit_id not in found.commits:
            return None
        state = coordinator.commit_states.find(coordinator.commit(here.head.commit_id))
        return state if state is not None and coordinator.commit_states.has_tables(state) else None

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

    def _prepare(self, found: History) -> ManifestState:
        """A branch without a name, from the newest state of the target that the head comes from.

        Without one, since cleanups removed them, it starts from what main shows, and forgets the
        commits that the head does not come from. The head becomes a commit of the branch: the
        manifest that showed it is gone.
        """
        coordinator = self.target.coordinator
        missing = {each.commit_id for each in found.missing}
        commit: GraphCommit | None = found.head
        while commit is not None:
            if commit.commit_id not in missing:
                with suppress(ConflictError):
                    origin = coordinator.commit_states.find_origin(
                        coordinator.commit(commit.commit_id)
                    )
                    # A cleanup may have left the manifest alone.
                    if coordinator.commit_states.has_tables(origin.snapshot()):
                        return coordinator.unlisted.prepare(origin)
            commit = found.commits.get(commit.parent_id or "")
        self._starts_over = True
        known = found.commits.keys() - ({found.head.commit_id} if found.head.parent_id else set())
        return coordinator.unlisted.prepare(coordinator.fresh(MAIN), known)


def _entries(states: Iterable[Snapshot]) -> Iterator[TableEntry]:
    for state in states:
        yield from state.entries.values()
