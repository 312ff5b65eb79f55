"""Coordinator: the commits and branches of a graph, and how a publish reaches its manifest.

`freshness.py` says which call sees which state of a branch. All changes go through the publisher,
which hands the new state back, so a single writer never reads the manifest again.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    CommitNotFound,
    ForkExists,
    InvariantViolated,
    TableVersionNotFound,
    VersionNotFound,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.lru import Lru
from omnigraph.manifest.branch_names import (
    PREPARED,
    SCHEMA_APPLY_LOCK,
    check_new_branch,
    lance_branch,
)
from omnigraph.manifest.freshness import (
    BranchStates,
    CommitObserver,
    NoObserver,
    apply_delta,
    list_branches,
)
from omnigraph.manifest.model import (
    MAIN,
    MANIFEST_TABLE,
    GraphCommit,
    ManifestState,
    PublishDelta,
    TableEntry,
)
from omnigraph.manifest.retained_commits import RetainedCommits
from omnigraph.manifest.rows import (
    commits_newest_first,
    find_known_commit,
    list_locations,
    rows_to_state,
)
from omnigraph.manifest.stamp import admit_branch_schemas, migrate
from omnigraph.storage.control import ControlTable
from omnigraph.storage.handles import BranchInfo
from omnigraph.storage.location import TableLocation, version_file
from omnigraph.storage.predicates import Compare, CompareOp

if TYPE_CHECKING:
    from omnigraph.manifest.commit_states import CommitStates
    from omnigraph.manifest.line_states import LineStates
    from omnigraph.manifest.pin_history import PinnedCommit
    from omnigraph.manifest.request_events import RequestEvents
    from omnigraph.manifest.tags import Tags
    from omnigraph.manifest.unlisted_branches import UnlistedBranches

ULID_TEXT = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
FRAGMENTS_MAX = 32
"""Fragments of `__manifest` that are worth a compaction: each publish adds one."""
LINES_MAX = 4
"""Branches whose earlier versions are remembered: kilobytes for each thousand commits."""
_VERSIONS_END = 2**63


class Coordinator:
    """The manifest of one graph, on all of its branches. Thread-safe."""

    def __init__(
        self,
        control: ControlTable,
        retained: RetainedCommits,
        observer: CommitObserver | None = None,
    ) -> None:
        self._control = control
        self.retained = retained
        self.observer = observer or NoObserver()
        self.states = BranchStates(control)
        self._fragments: dict[str, int] = {}
        self._lines: Lru[tuple[str, str | None], LineStates] = Lru(LINES_MAX)
        self._asked: set[tuple[str, str | None]] = set()
        self._stamped_version: int | None = None
        self._lock = threading.Lock()

    @cached_property
    def commit_states(self) -> CommitStates:
        from omnigraph.manifest.commit_states import CommitStates

        return CommitStates(self, self._control)

    @cached_property
    def tags(self) -> Tags:
        from omnigraph.manifest.tags import Tags

        return Tags(self.retained.texts)

    @cached_property
    def request_events(self) -> RequestEvents:
        from omnigraph.manifest.request_events import RequestEvents

        return RequestEvents(self.retained.texts)

    @cached_property
    def unlisted(self) -> UnlistedBranches:
        from omnigraph.manifest.unlisted_branches import UnlistedBranches

        return UnlistedBranches(self._control, self.states)

    # Reading

    def last_seen(self, branch: str) -> ManifestState:
        """The newest state this handle knows; reads only a branch it has never seen."""
        return self.states.last_seen(branch)

    def fresh(self, branch: str) -> ManifestState:
        """The branch as it is now. Raises BranchNotFound."""
        return self.states.fresh(branch)

    def at_version(self, branch: str, version: int) -> ManifestState:
        """The branch as it stood at a manifest version, if that is still stored."""
        known = self.last_seen(branch)
        if known.version == version:
            return known
        if not 0 < version < _VERSIONS_END:
            raise VersionNotFound(version, branch)  # before anything tries to store it
        derived = self._derive(known, version)
        if derived is not None:
            if not self._has_manifest(branch, version):
                raise VersionNotFound(version, branch)
            return derived
        try:
            found = self._control.read(lance_branch(branch), version)
        except TableVersionNotFound:
            raise VersionNotFound(version, branch) from None
        return rows_to_state(branch, version, found.rows, known.branch_id)

    def _derive(self, known: ManifestState, version: int) -> ManifestState | None:
        """A branch at a version, by a later manifest that was read before; None if none tells.

        The second version that has to be read brings all those before the known one.
        """
        branch, branch_id = known.branch, known.branch_id
        if self.states.read_branch_id(branch) != branch_id:
            return None  # another branch has the name now
        line = self._lines.get((branch, branch_id))
        if line is None or version > line.newest.version:
            if version > known.version or (branch, branch_id) not in self._asked:
                self._asked.add((branch, branch_id))
                return None
            line = self.read_line_states(known)
            self._lines.put((branch, branch_id), line)
            self._asked.discard((branch, branch_id))
        return line.at(version)

    def list_shown(self, state: ManifestState, path: str, fork: str) -> list[int]:
        """The versions of a table, under any name, that a branch had ever shown on this fork."""
        same_fork = Compare("table_branch", CompareOp.EQ, pa.scalar(fork))
        columns = ["table_key", "location", "table_version"]
        found = self._control.read(
            lance_branch(state.branch), state.version, columns=columns, predicate=same_fork
        ).rows
        at_path = [each == path for each in list_locations(found)]
        return list(found["table_version"].filter(pa.array(at_path, pa.bool_())).to_pylist())

    def list_transactions(self, state: ManifestState, path: str) -> set[str]:
        """What made the versions of a table that a branch had ever shown, those that went too."""
        pins = Compare("object_type", CompareOp.EQ, pa.scalar("table_version"))
        columns = ["table_key", "location", "metadata"]
        found = self._control.read(
            lance_branch(state.branch), state.version, columns=columns, predicate=pins
        ).rows
        at_path = [each == path for each in list_locations(found)]
        metadata = map(json.loads, found["metadata"].filter(pa.array(at_path)).to_pylist())
        return {each.get("transaction_uuid") for each in metadata} - {None}

    def commit(self, commit_id: str) -> GraphCommit:
        """Find a commit on any branch.

        Raises:
            CommitNotFound: No branch knows it.
        """
        # Often the caller has just made it: what is known costs no scan. Main, where no commit is
        # ever dropped, needs no look at the store either.
        received: GraphCommit | None = None
        for state in sorted(self.states.newest_first(), key=lambda each: each.branch != MAIN):
            found = find_known_commit(state, commit_id)
            if found is not None and self._is_still_known(state, commit_id):
                if found.manifest_version:
                    return found
                received = found
        for state in self.fresh_each(self.branches()):
            found = find_known_commit(state, commit_id)
            if found is not None and found.manifest_version:
                return found
            received = received or found
        if received is not None:
            return received  # from another store, and on the line of no branch here
        kept = self.commit_states.find_kept(commit_id) if ULID_TEXT.fullmatch(commit_id) else None
        if kept is None:
            raise CommitNotFound(commit_id)
        return kept.head

    def _is_still_known(self, state: ManifestState, commit_id: str) -> bool:
        """Whether a commit of a known state is there now; a reset of its branch drops some."""
        if state.branch == MAIN:
            return True
        try:
            now = self.fresh(state.branch)
        except BranchNotFound:
            return False
        is_same = (now.branch_id, now.version) == (state.branch_id, state.version)
        return is_same or find_known_commit(now, commit_id) is not None

    def commits(self, branch: str) -> Iterator[GraphCommit]:
        """Every commit visible on a branch, newest first; parsed as they are asked for."""
        return commits_newest_first(self.fresh(branch).commit_rows)

    def pinned_commits(self, state: ManifestState, entry: TableEntry) -> list[PinnedCommit]:
        """The commits of a branch's line that published a table, newest first; costs one scan."""
        from omnigraph.manifest.pin_history import list_pinned_commits

        return list_pinned_commits(self._control, state, entry)

    def read_line_states(self, state: ManifestState) -> LineStates:
        """A branch at every manifest version up to this one; costs one scan."""
        from omnigraph.manifest.line_states import read_line_states

        return read_line_states(self._control, state)

    def read_onto(self, origin: ManifestState, version: int) -> ManifestState | None:
        """A branch at a version, by what it has added to the state that it came with; or None."""
        from omnigraph.manifest.line_states import read_onto

        return read_onto(self._control, origin, version)

    def fresh_each(self, branches: Iterable[str]) -> Iterator[ManifestState]:
        """Branches as they are now, with few scans; those that are gone are left out."""
        from omnigraph.manifest.line_reader import LineReader

        reader = LineReader(self)
        for branch in branches:
            with suppress(BranchNotFound):  # deleted since it was listed
                yield reader.fresh(branch)

    def has_manifest(self, commit: GraphCommit) -> bool:
        """Whether the manifest version that a commit made is still there."""
        return self._has_manifest(commit.branch, commit.manifest_version)

    def _has_manifest(self, branch: str, version: int) -> bool:
        prefix = TableLocation(MANIFEST_TABLE, lance_branch(branch)).physical_uri
        return self.retained.texts.exists(f"{prefix}/{version_file(version)}")

    # Publishing

    def migrate(self) -> bool:
        """Bring the manifest up to the current format, also if it was replaced since."""
        latest = self._control.latest_version()
        if latest == self._stamped_version:
            return False
        is_migrated = migrate(self._control)
        # A stamp is a new version as well: without a new version there is none to read.
        self._stamped_version = None if is_migrated else latest
        return is_migrated

    def admit_branch_schemas(self) -> None:
        """From now on branches may be in different schemas. The caller holds main's turn."""
        if admit_branch_schemas(self._control):
            self._stamped_version = None

    def merge(
        self,
        state: ManifestState,
        rows: pa.Table,
        delta: PublishDelta,
        *,
        replaced: str | None = None,
    ) -> ManifestState:
        """Merge the rows of a delta into the manifest; returns the state that makes.

        `replaced` is the only key of the rows that can be there already, if there is just one. The
        observer is notified once readers can see it, while it is still being made durable.
        """
        made = apply_delta(state, delta)
        with ExitStack() as updating:
            updating.enter_context(self.states.update_lock(state.branch))

            def notify(version: int) -> None:
                if version != made.version:
                    raise InvariantViolated(
                        f"a publish on branch '{state.branch}' landed as manifest version "
                        f"{version} instead of {made.version} — another process compacted the "
                        "manifest without its lock"
                    )
                self.states.remember(made)
                updating.close()
                self.observer.after_publish(delta)

            self._control.merge_rows(
                rows,
                read_version=state.version,
                branch=lance_branch(state.branch),
                replaced=replaced,
                on_visible=notify,
            )
        if state.branch == MAIN and self._stamped_version == state.version:
            self._stamped_version = made.version
        with self._lock:
            if state.branch in self._fragments:
                self._fragments[state.branch] += 1
        return made

    def replace_rows(
        self,
        state: ManifestState,
        list_rows: Callable[[ControlTable], tuple[Collection[str], pa.Table]],
    ) -> ManifestState:
        """Remove rows of a branch's manifest by their keys and add others; returns its new state.

        Readers elsewhere find out by its version.
        """
        removed, rows = list_rows(self._control)
        branch = lance_branch(state.branch)
        assert branch is not None
        with self.states.update_lock(state.branch):
            self._control.replace_rows(removed, rows, read_version=state.version, branch=branch)
        with self._lock:
            self._fragments.pop(state.branch, None)
        return self.fresh(state.branch)

    def make_durable(self, branch: str) -> None:
        """Sync what a branch shows now: a publish that failed may have become visible first."""
        self._control.make_durable(lance_branch(branch))

    def mark_unfinished(self, branch: str) -> AbstractContextManager[None]:
        """Held during what no sidecar speaks of, a publish or the creation of a branch.

        A power cut may leave part of it, and an open looks only at branches that are marked.
        """
        return self._control.power_cut.mark_unfinished(lance_branch(branch))

    def is_compaction_due(self, branch: str) -> bool:
        """Whether the manifest seems to have enough fragments to be compacted."""
        with self._lock:
            fragments = self._fragments.get(branch)
        return (self.fragment_count(branch) if fragments is None else fragments) >= FRAGMENTS_MAX

    def compact_if_due(self, branch: str, fragments_max: int = FRAGMENTS_MAX) -> bool:
        """Compact the manifest when it has enough fragments; whether it was.

        They are counted in storage once and then in memory; another process's publishes are
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
        """How many fragments the manifest of a branch has, counted in storage."""
        count = self._control.fragment_count(lance_branch(branch))
        with self._lock:
            self._fragments[branch] = count
        return count

    # Branches

    def branches(self) -> list[str]:
        """Every branch, `main` first, the others sorted."""
        return list_branches(self._control)

    def find_branch(self, name: str) -> BranchInfo:
        """Where a branch came from, and its id. Raises BranchNotFound; main came from nowhere."""
        found = self._control.find_branch(name)
        if found is None:
            raise BranchNotFound(name, self.branches())
        return found

    def latest_version(self, branch: str) -> int:
        """The manifest version of a branch now, freshly looked up."""
        return self._control.latest_version(lance_branch(branch))

    def has_branch(self, name: str) -> bool:
        """Whether there is a branch of that name now."""
        return name == MAIN or self._control.find_branch(name) is not None

    def list_changed(self, since_ns: int | None) -> list[str]:
        """`main`, and every other branch that may have changed since a time; None for ever."""
        changed = self._control.list_changed_branches(since_ns) - {SCHEMA_APPLY_LOCK}
        return [MAIN, *sorted(each for each in changed if not each.startswith(PREPARED))]

    def create_branch(self, name: str, origin: ManifestState) -> ManifestState:
        """Make a branch that shows what a state of another shows. Copies nothing."""
        existing = self.branches()
        branch = check_new_branch(name, existing)
        if branch in existing:
            raise BranchExists(branch)
        parent, version = lance_branch(origin.branch), origin.version
        with self.mark_unfinished(branch):
            try:
                self._control.create_branch(branch, source=parent, version=version)
                is_taken = False
            except ForkExists as collision:
                is_taken = collision.has_ref
                if not is_taken:
                    # Files of a creation that died before its ref was written: no reader sees them.
                    self._control.delete_branch_tree(branch)
                    self._control.create_branch(branch, source=parent, version=version)
            hit(Failpoint.BRANCH_CREATE_AFTER_MANIFEST_BRANCH_CREATE)
        if is_taken:
            raise BranchExists(branch)
        # A fork has the rows of where it came from, and goes on with its version numbers.
        branch_id = self.states.read_branch_id(branch)
        return self.states.remember(replace(origin, branch=branch, branch_id=branch_id))

    def delete_branch(self, branch: str) -> None:
        """Remove the branch's ref: from here on the branch does not exist."""
        self._control.delete_branch(branch)
        self.states.forget(branch)
