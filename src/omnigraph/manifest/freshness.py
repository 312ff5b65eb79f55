"""Freshness: which state of a branch a call sees, and what that costs.

States are immutable. A handle keeps the newest one it knows of each branch, and learns a newer one
by publishing it, by reading it, or from the writer of another process, which notifies it.

    call                       sees                     costs                 use it for
    Coordinator.last_seen      the newest known state   nothing; `fresh` the  the start of a write:
                                                        first time            its publish checks
    Coordinator.fresh          the branch as it is now  one probe of the      deciding on a write,
                                                        version; a scan if    and reading what the
                                                        it is unknown         cache below misses
    SnapshotCache.probe, .get  the branch as it is now  attributes of 4 to 6  queries of a local
                                                        files; opens none     graph
    BranchStates.read_anew     what the files say now   a scan                verifying them
    Coordinator.at_version,    the past                 a scan                time travel, diffs,
      CommitStates.get                                                        merge bases
    BranchStates.notify        what another process     nothing               `after_publish`
                               has published

A writer that notifies says so before it publishes (`expect_notification`). Until its delta comes, a
`fresh` that meets the new version waits for it a moment instead of scanning; if it never comes,
because the writer died, `fresh` scans.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from omnigraph.errors import BranchNotFound
from omnigraph.manifest.branch_names import PREPARED, SCHEMA_APPLY_LOCK, lance_branch
from omnigraph.manifest.facts import derive_facts
from omnigraph.manifest.model import (
    MAIN,
    ManifestState,
    PublishDelta,
    RegisterTable,
    TableEntry,
    Tombstone,
    UpdatePin,
)
from omnigraph.manifest.rows import (
    ancestor_to_row,
    commit_to_row,
    default_path,
    rows_to_state,
    rows_to_table,
)
from omnigraph.manifest.stamp import read_stamp
from omnigraph.nonblocking import may_block
from omnigraph.storage.control import ControlTable

NOTIFICATION_WAIT_SECONDS = 0.1
"""How long a read waits for the delta that another process has announced."""
CHUNKS_MAX = 64
"""Chunks of the commits in memory that are worth joining: one per publish, of kilobytes each."""


class CommitObserver(Protocol):
    """Is notified by a writer of what it publishes, so that readers are ready for it."""

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        """A branch is about to show these versions. Returns when the readers are ready."""

    def after_publish(self, delta: PublishDelta) -> None:
        """A branch shows this change now."""


class NoObserver:
    """The observer of a writer that has none."""

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None: ...

    def after_publish(self, delta: PublishDelta) -> None: ...


class BranchStates:
    """The newest known state of every branch. Thread-safe."""

    def __init__(self, control: ControlTable) -> None:
        self._control = control
        self._states: dict[str, ManifestState] = {}
        self._expected: dict[str, threading.Event] = {}
        self._updating: dict[str, AbstractContextManager[object]] = {}
        self._stamped_version: int | None = None
        self._lock = threading.Lock()

    def last_seen(self, branch: str) -> ManifestState:
        """The newest state this handle knows; reads only a branch it has never seen."""
        known = self.find(branch)
        return known if known is not None else self.fresh(branch)

    def find(self, branch: str) -> ManifestState | None:
        """The newest state this handle knows, None for a branch it has never seen."""
        with self._lock:
            return self._states.get(branch)

    def fresh(self, branch: str) -> ManifestState:
        """The branch as it is now.

        Raises:
            BranchNotFound: There is no such branch.
        """
        branch_id = self.read_branch_id(branch)
        known = self._find_if_latest(branch, branch_id)
        if known is not None:
            return known
        may_block()
        # One thread reads for all of them; a publish of ours need not be read at all.
        with self.update_lock(branch):
            expected = self._expected.get(branch)  # before the probe: it may come right after it
            known = self._find_if_latest(branch, branch_id)
            if known is None and expected is not None and self._wait(branch, expected):
                known = self._find_if_latest(branch, branch_id)
            if known is not None:
                return known
            self._check_stamp()
            found = self._control.read(lance_branch(branch))
            return self.remember(rows_to_state(branch, found.version, found.rows, branch_id))

    def _check_stamp(self) -> None:
        """Refuse a format that is not known, once for each version of main.

        A stamp is a new version as well, so without a new version there is none to check.
        """
        latest = self._control.latest_version()
        if latest != self._stamped_version:
            read_stamp(self._control)
            self._stamped_version = latest

    def read_anew(self, branch: str) -> ManifestState:
        """The branch as its files are now, whatever this handle knows; it is not remembered.

        Raises:
            BranchNotFound: There is no such branch.
        """
        branch_id = self.read_branch_id(branch)
        found = self._control.read(lance_branch(branch))
        return rows_to_state(branch, found.version, found.rows, branch_id)

    def refresh(self) -> None:
        """Look again at every known branch; one that is gone is forgotten."""
        for state in self.newest_first():
            try:
                self.fresh(state.branch)
            except BranchNotFound:
                self.forget(state.branch)

    def update_lock(self, branch: str) -> AbstractContextManager[object]:
        """Held while the state of a branch is about to become known: by a read, or a publish."""
        with self._lock:
            return self._updating.setdefault(branch, threading.RLock())

    def newest_first(self) -> list[ManifestState]:
        """Every known state, the one that became known last first."""
        with self._lock:
            return list(reversed(self._states.values()))

    def expect_notification(self, branch: str) -> None:
        """Another process is about to publish and to notify this one: quicker than a scan."""
        with self._lock:
            self._expected.setdefault(branch, threading.Event())

    def notify(self, delta: PublishDelta) -> None:
        """Apply what another process has published, when it starts from the known state."""
        known = self.find(delta.branch)
        start = delta.branch_id, delta.from_version
        if known is not None and (known.branch_id, known.version) == start:
            self.remember(apply_delta(known, delta))
        with self._lock:
            expected = self._expected.pop(delta.branch, None)
        if expected is not None:
            expected.set()

    def remember(self, state: ManifestState) -> ManifestState:
        """Make a state the known one, unless a newer one of the same branch is known."""
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

    def forget(self, branch: str) -> None:
        """Drop what is known of a deleted branch."""
        with self._lock:
            self._states.pop(branch, None)
            self._updating.pop(branch, None)

    def read_branch_id(self, branch: str) -> str | None:
        """What tells a branch from an earlier one of its name; None for main.

        Raises:
            BranchNotFound: There is no such branch.
        """
        if branch == MAIN:
            return None
        found = self._control.find_branch(branch)
        if found is None:
            raise BranchNotFound(branch, list_branches(self._control))
        return found.identifier

    def _find_if_latest(self, branch: str, branch_id: str | None) -> ManifestState | None:
        known = self.find(branch)
        if known is None or known.branch_id != branch_id:
            return None
        return (
            known if known.version == self._control.latest_version(lance_branch(branch)) else None
        )

    def _wait(self, branch: str, expected: threading.Event) -> bool:
        """Wait a moment for an expected notification; whether it came."""
        if expected.wait(NOTIFICATION_WAIT_SECONDS):
            return True
        with self._lock:
            self._expected.pop(branch, None)
        return False


def list_branches(control: ControlTable) -> list[str]:
    """Every branch, `main` first, the others sorted."""
    names = control.branch_names() - {SCHEMA_APPLY_LOCK}
    return [MAIN, *sorted(each for each in names if not each.startswith(PREPARED))]


def apply_delta(state: ManifestState, delta: PublishDelta) -> ManifestState:
    """The state that a publish on top of `state` has made, without reading it."""
    assert (state.branch_id, state.version) == (delta.branch_id, delta.from_version)
    entries = dict(state.entries)
    hidden = dict(state.hidden)
    paths = dict(state.paths)
    gone = set(state.hidden_paths)
    pinned = dict(state.pinned)
    for change in delta.changes:
        match change:
            case UpdatePin(key):
                entries[key] = TableEntry(
                    table_key=key,
                    table_path=paths[key],
                    version=change.version,
                    table_branch=change.table_branch,
                    row_count=change.row_count,
                    transaction_uuid=change.transaction_uuid,
                )
                pinned[key] = max(pinned.get(key, 0), change.version)
            case Tombstone(key, hidden_version):
                hidden[key] = max(hidden.get(key, 0), hidden_version)
                gone.add(paths.get(key, default_path(key)))
                if key in entries and entries[key].version <= hidden_version:
                    del entries[key]
            case RegisterTable(key, path):
                hidden.pop(key, None)
                paths[key] = path
    facts = derive_facts(state, delta.commits, delta.facts)
    new = replace(
        state,
        version=delta.from_version + 1,
        entries=dict(sorted(entries.items())),
        hidden=hidden,
        paths=paths,
        hidden_paths=frozenset(gone - {entry.table_path for entry in entries.values()}),
        schema_hash=delta.schema_hash or state.schema_hash,
        schema_id=delta.schema_id if delta.schema_hash is not None else state.schema_id,
        pinned=pinned,
        vector_models=facts.vector_models,
        checks=facts.checks,
    )
    if delta.ancestors:
        rows = rows_to_table(map(ancestor_to_row, delta.ancestors))
        new = replace(new, ancestor_rows=_append(state.ancestor_rows, rows))
    if not delta.commits:
        return new
    rows = rows_to_table(map(commit_to_row, delta.commits))
    return replace(new, head=delta.commits[-1], commit_rows=_append(state.commit_rows, rows))


def _append(rows: pa.Table, new: pa.Table) -> pa.Table:
    joined = pa.concat_tables([rows, new])
    return joined.combine_chunks() if joined["object_id"].num_chunks > CHUNKS_MAX else joined
