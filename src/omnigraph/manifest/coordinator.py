"""Coordinator: what a handle knows of each branch's manifest, and how it learns more.

States are immutable and cached per branch. `last_seen` costs no I/O, `fresh` one probe and a scan
only when the branch has moved. All changes go through the publisher, which hands the new state
back, so a single writer never reads the manifest again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    CommitNotFound,
    CommitStateGone,
    ConflictError,
    ForkExists,
    InvariantViolated,
    NotFoundError,
    TableVersionNotFound,
    VersionNotFound,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.branch_names import (
    SCHEMA_APPLY_LOCK,
    canonical_branch,
    check_new_branch,
    lance_branch,
)
from omnigraph.manifest.follow import followed
from omnigraph.manifest.model import MAIN, GraphCommit, ManifestState, PublishDelta, Snapshot
from omnigraph.manifest.retained_commits import RetainedCommits
from omnigraph.manifest.rows import row_to_commit, rows_to_state
from omnigraph.manifest.stamp import migrate, read_stamp
from omnigraph.storage.control import ControlTable

ULID_TEXT = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
FRAGMENTS_MAX = 32
"""Pieces of `__manifest` that are worth a compaction: each publish leaves one."""
NOTIFICATION_WAIT_SECONDS = 0.1
"""How long news of another process is waited for, when it has announced some."""
_VERSIONS_END = 2**63


class Coordinator:
    """The manifest of one graph, on all of its branches. Thread-safe."""

    def __init__(
        self,
        control: ControlTable,
        retained: RetainedCommits,
        on_publish: Callable[[PublishDelta], None] = lambda _: None,
    ) -> None:
        self._control = control
        self.retained = retained
        self._on_publish = on_publish
        self._states: dict[str, ManifestState] = {}
        self._expected: dict[str, threading.Event] = {}
        self._turns: dict[str, AbstractContextManager[object]] = {}
        self._fragments: dict[str, int] = {}
        self._lock = threading.Lock()

    # Reading

    def last_seen(self, branch: str) -> ManifestState:
        """The newest state this handle knows; reads only a branch it has never seen."""
        with self._lock:
            known = self._states.get(branch)
        return known if known is not None else self.fresh(branch)

    def fresh(self, branch: str) -> ManifestState:
        """The branch as it stands now.

        Raises:
            BranchNotFound: There is no such branch.
        """
        branch_id = self._native_id(branch)
        known = self._known_if_latest(branch, branch_id)
        if known is not None:
            return known
        # One thread reads for all of them; a publish of ours need not be read at all.
        with self.turn(branch):
            expected = self._expected.get(branch)  # before a look, or what comes then is missed
            known = self._known_if_latest(branch, branch_id)
            if known is None and expected is not None and self._was_told(branch, expected):
                known = self._known_if_latest(branch, branch_id)
            if known is not None:
                return known
            # A stamp is a new version as well, so a handle that sees no new one need not look.
            read_stamp(self._control)
            found = self._control.read(lance_branch(branch))
            return self.advance(rows_to_state(branch, found.version, found.rows, branch_id))

    def turn(self, branch: str) -> AbstractContextManager[object]:
        """Held while the state of a branch is about to become known: by reading, or a publish."""
        with self._lock:
            return self._turns.setdefault(branch, threading.RLock())

    def _known_if_latest(self, branch: str, branch_id: str | None) -> ManifestState | None:
        with self._lock:
            known = self._states.get(branch)
        if known is None or known.branch_id != branch_id:
            return None
        return (
            known if known.version == self._control.latest_version(lance_branch(branch)) else None
        )

    def expect(self, branch: str) -> None:
        """Another process is about to publish, and will tell what: that is quicker than reading."""
        with self._lock:
            self._expected.setdefault(branch, threading.Event())

    def _was_told(self, branch: str, expected: threading.Event) -> bool:
        """Wait a moment for what a branch is expected to become."""
        if expected.wait(NOTIFICATION_WAIT_SECONDS):
            return True
        with self._lock:
            self._expected.pop(branch, None)
        return False

    def is_known(self, branch: str) -> bool:
        """Whether this handle has ever seen the branch."""
        with self._lock:
            return branch in self._states

    def at_version(self, branch: str, version: int) -> ManifestState:
        """The branch as it stood at a manifest version. Never cached: cleanup may remove it."""
        known = self.last_seen(branch)
        if known.version == version:
            return known
        if not 0 < version < _VERSIONS_END:
            raise VersionNotFound(version, branch)  # before anything tries to store it
        try:
            found = self._control.read(lance_branch(branch), version)
        except TableVersionNotFound:
            raise VersionNotFound(version, branch) from None
        return rows_to_state(branch, version, found.rows, known.branch_id)

    def snapshot_of(self, commit: GraphCommit) -> Snapshot:
        """The graph as a commit left it, also when the branch it was made on is gone.

        Raises:
            CommitStateGone: Its tables were removed with the branch, or by a cleanup.
        """
        with suppress(NotFoundError):
            state = self.at_version(commit.branch, commit.manifest_version)
            # A branch that was made again counts through the same versions: its commits differ.
            if is_on_line(state, commit):
                return replace(state.snapshot(), head=commit)
        kept = self.retained.read(commit.commit_id)
        if kept is None:
            raise CommitStateGone(commit.commit_id, commit.manifest_version, commit.branch)
        return kept

    def has_state(self, commit: GraphCommit) -> bool:
        """Whether the state that a commit left can still be read from its branch's manifest."""
        try:
            self.snapshot_of(commit)
        except CommitStateGone:
            return False
        return True

    def commit(self, commit_id: str) -> GraphCommit:
        """Find a commit on any branch.

        Raises:
            CommitNotFound: No branch knows it.
        """
        for state in self._states_newest_first():
            found = find_commit(state, commit_id)
            if found is not None and self._is_there(state):
                return found
        for branch in self.branches():
            with suppress(BranchNotFound):  # deleted since it was listed
                found = find_commit(self.fresh(branch), commit_id)
                if found is not None:
                    return found
        kept = self.retained.read(commit_id) if ULID_TEXT.fullmatch(commit_id) else None
        if kept is None:
            raise CommitNotFound(commit_id)
        return kept.head

    def _states_newest_first(self) -> list[ManifestState]:
        """What is known without a look: whoever asks for a commit has often just made it."""
        with self._lock:
            return list(reversed(self._states.values()))

    def _is_there(self, state: ManifestState) -> bool:
        try:
            return self._native_id(state.branch) == state.branch_id
        except BranchNotFound:
            return False

    def commits(self, branch: str) -> list[GraphCommit]:
        """Every commit visible on a branch, newest first."""
        rows = self.fresh(branch).commit_rows.to_pylist()
        return sorted(map(row_to_commit, rows), key=lambda commit: commit.order, reverse=True)

    # Publishing

    def migrate(self) -> bool:
        """Bring the manifest up to the current format, whatever came by since it was opened."""
        return migrate(self._control)

    def merge(self, state: ManifestState, rows: pa.Table, step: PublishDelta) -> ManifestState:
        """Merge the rows of a step into the manifest; returns the state that makes.

        Readers are told as soon as they can see it: what takes long then is making it durable.
        """
        made = followed(state, step)
        with ExitStack() as turn:
            turn.enter_context(self.turn(state.branch))

            def show(version: int) -> None:
                if version != made.version:
                    raise InvariantViolated(
                        f"a publish on branch '{state.branch}' landed as manifest version "
                        f"{version} instead of {made.version} — another process compacted the "
                        "manifest without its lock"
                    )
                self.advance(made)
                turn.close()
                self._on_publish(step)

            self._control.merge_rows(
                rows, read_version=state.version, branch=lance_branch(state.branch), on_visible=show
            )
        with self._lock:
            if state.branch in self._fragments:
                self._fragments[state.branch] += 1
        return made

    def make_durable(self, branch: str) -> None:
        """Sync what a branch shows now: a publish that failed may have become visible first."""
        self._control.make_durable(lance_branch(branch))

    def mark_unfinished(self, branch: str) -> AbstractContextManager[None]:
        """Held during a publish that no sidecar speaks of: a power cut may leave part of it."""
        return self._control.unfinished(lance_branch(branch))

    def follow(self, step: PublishDelta) -> None:
        """Take the step that another process has told of, when it goes on from what is known."""
        with self._lock:
            known = self._states.get(step.branch)
        start = step.branch_id, step.from_version
        if known is not None and (known.branch_id, known.version) == start:
            self.advance(followed(known, step))
        with self._lock:
            told = self._expected.pop(step.branch, None)
        if told is not None:
            told.set()

    def advance(self, state: ManifestState) -> ManifestState:
        """Remember a state, unless a newer one of the same branch is known."""
        with self._lock:
            known = self._states.get(state.branch)
            if (
                known is None
                or known.branch_id != state.branch_id
                or known.version <= state.version
            ):
                self._states.pop(state.branch, None)
                self._states[state.branch] = state
        return state

    def compact_if_due(self, branch: str, fragments_max: int = FRAGMENTS_MAX) -> bool:
        """Compact the manifest when enough publishes have left it in pieces; whether it was.

        Pieces are counted in storage once and then in memory; another process's publishes are
        counted by that process. The caller holds the branch's publish turn, so that no publish
        can be in flight.
        """
        with self._lock:
            fragments = self._fragments.get(branch)
        if fragments is None:
            fragments = self._control.fragment_count(lance_branch(branch))
        is_due = fragments >= fragments_max
        if is_due:
            hit(Failpoint.OPTIMIZE_BEFORE_MANIFEST_COMPACTION)
            self._control.compact(lance_branch(branch))
            hit(Failpoint.OPTIMIZE_AFTER_MANIFEST_COMPACTION)
            self.fresh(branch)
        with self._lock:
            self._fragments[branch] = 1 if is_due else fragments
        return is_due

    def fragment_count(self, branch: str) -> int:
        """In how many pieces the manifest of a branch is, counted in storage."""
        count = self._control.fragment_count(lance_branch(branch))
        with self._lock:
            self._fragments[branch] = count
        return count

    # Branches

    def branches(self) -> list[str]:
        """Every branch, `main` first, the others sorted."""
        hidden = {SCHEMA_APPLY_LOCK}
        return [MAIN, *sorted(self._control.branch_names() - hidden)]

    def create_branch(self, name: str, source: str) -> ManifestState:
        """Make a branch that shows what `source` shows now. Copies nothing."""
        existing = self.branches()
        branch = check_new_branch(name, existing)
        if branch in existing:
            raise BranchExists(branch)
        origin = self.fresh(canonical_branch(source))
        try:
            self._control.create_branch(
                branch, source=lance_branch(origin.branch), version=origin.version
            )
        except ForkExists as collision:
            if collision.has_ref:
                raise BranchExists(branch) from None
            # Files of a creation that died before its ref was written: nobody can see them.
            self._control.delete_branch_tree(branch)
            self._control.create_branch(
                branch, source=lance_branch(origin.branch), version=origin.version
            )
        hit(Failpoint.BRANCH_CREATE_AFTER_MANIFEST_BRANCH_CREATE)
        # A fork has the rows of where it came from, and goes on with its version numbers.
        return self.advance(replace(origin, branch=branch, branch_id=self._native_id(branch)))

    def delete_branch(self, branch: str) -> None:
        """Remove the branch's ref: from here on the branch does not exist."""
        self._control.delete_branch(branch)
        with self._lock:
            self._states.pop(branch, None)
            self._turns.pop(branch, None)

    def lock_schema(self, *, is_stale: bool) -> None:
        """Take the lock of schema changes: a branch of the manifest that nobody sees.

        With `is_stale` a lock that is there belongs to nobody alive and is taken over.

        Raises:
            ConflictError: Another schema change holds it.
        """
        for _ in range(2):
            version = self._control.latest_version()
            try:
                self._control.create_branch(SCHEMA_APPLY_LOCK, source=None, version=version)
            except ForkExists as collision:
                if collision.has_ref and not is_stale:
                    break
                if collision.has_ref:
                    self._control.delete_branch(SCHEMA_APPLY_LOCK)
                else:
                    self._control.delete_branch_tree(SCHEMA_APPLY_LOCK)
                continue
            return
        raise ConflictError("a schema change is already in progress — try again when it is done")

    def unlock_schema(self) -> None:
        """Give the lock of schema changes back; nothing to give back is success."""
        with suppress(BranchNotFound):
            self._control.delete_branch(SCHEMA_APPLY_LOCK)

    def _native_id(self, branch: str) -> str | None:
        if branch == MAIN:
            return None
        found = self._control.find_branch(branch)
        if found is None:
            raise BranchNotFound(branch, self.branches())
        return found.identifier


def is_on_line(state: ManifestState, commit: GraphCommit) -> bool:
    """Whether a commit was made on a branch, or on one that it came from before it did."""
    place = pc.index(state.commit_rows["object_id"], pa.scalar(commit.commit_id)).as_py()
    return bool(place >= 0)


def find_commit(state: ManifestState, commit_id: str) -> GraphCommit | None:
    """A commit that a branch knows: on its own line, or brought in by a merge."""
    for rows in (state.commit_rows, state.ancestor_rows):
        place = pc.index(rows["object_id"], pa.scalar(commit_id)).as_py()
        if place >= 0:
            return row_to_commit(rows.slice(place, 1).to_pylist()[0])
    return None
