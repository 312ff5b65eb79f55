"""Commit states: what a commit left, wherever that can still be found.

place                                             there until
the manifest of the branch it was made on         a cleanup, or the branch is deleted
a compaction of that branch, published after it   a cleanup that keeps an earlier commit only
texts written down with a deleted branch or tag   a cleanup; the tag is deleted
the line of another branch that received it       that branch is deleted
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from omnigraph.errors import CommitStateGone, ConflictError, NotFoundError
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.manifest.model import GraphCommit, ManifestState, Snapshot, TableEntry
from omnigraph.manifest.rows import find_known_commit, find_row, row_to_commit
from omnigraph.manifest.state_text import find_forks
from omnigraph.storage.control import ControlTable
from omnigraph.storage.listing import Files
from omnigraph.storage.location import version_file
from omnigraph.storage.version_identity import is_version_of

if TYPE_CHECKING:
    from omnigraph.manifest.coordinator import Coordinator


class CommitStates:
    """The states that the commits of one graph left."""

    def __init__(self, coordinator: Coordinator, control: ControlTable) -> None:
        self._coordinator = coordinator
        self._control = control

    def get(self, commit: GraphCommit) -> Snapshot:
        """The graph as a commit left it, also when the branch it was made on is gone.

        Raises:
            CommitStateGone: Its tables were removed with the branch, or by a cleanup.
        """
        found = self.find(commit)
        if found is None:
            raise CommitStateGone(commit.commit_id, commit.manifest_version, commit.branch)
        return found

    def get_whole(self, commit: GraphCommit) -> Snapshot:
        """The same; where a cleanup has left the manifest only, what was written down since.

        A state that was lost here may have come back from another store.
        """
        found = self.find(commit)
        if found is None or not self.has_tables(found):
            others = (self.find_kept(commit.commit_id), *self._list_on_lines(commit.commit_id))
            found = next(filter(self.has_tables, filter(None, others)), found)
        if found is None:
            raise CommitStateGone(commit.commit_id, commit.manifest_version, commit.branch)
        return found

    def find(self, commit: GraphCommit) -> Snapshot | None:
        """The graph as a commit left it, None when that is gone.

        Where it was made it may be gone, and be there on the line of a branch that received it.
        """
        found = self.find_placed(commit)
        return found or next(self._list_on_lines(commit.commit_id), None)

    def find_placed(self, commit: GraphCommit) -> Snapshot | None:
        """The same, where the commit says it was made, or written down."""
        with suppress(NotFoundError):
            state = self._coordinator.at_version(commit.branch, commit.manifest_version)
            # A branch that was made again counts through the same versions: its commits differ.
            row = find_row(state.commit_rows, commit.commit_id)
            made = None if row is None else row_to_commit(row)
            # One of another store counts by the manifests there.
            if made is not None and made.manifest_version == commit.manifest_version:
                if made.is_kept:
                    return self.find_kept(commit.commit_id)
                snapshot = state.snapshot_at(made)
                # A cleanup that keeps a later commit of the same publish keeps the manifest of all.
                if all(self.has_version(snapshot.entries[key]) for key in made.pins):
                    return snapshot
        with suppress(NotFoundError):
            found = self._find_compacted(commit)
            if found is not None:
                return found
        return self.find_kept(commit.commit_id)

    def find_kept(self, commit_id: str) -> Snapshot | None:
        """A state that was written down: with the branch it outlived, or with a tag."""
        coordinator = self._coordinator
        return coordinator.retained.read(commit_id) or coordinator.tags.find_state(commit_id)

    def find_origin(self, commit: GraphCommit) -> ManifestState:
        """The state of a manifest that a branch can start from to show what a commit left.

        Raises:
            ConflictError: No manifest shows just that any more.
        """
        with suppress(NotFoundError):
            state = self._coordinator.at_version(commit.branch, commit.manifest_version)
            if state.head.commit_id == commit.commit_id:
                return state
        with suppress(NotFoundError):
            compacted = self._read_compacted(commit)
            if compacted is not None:
                return compacted
        raise ConflictError(
            f"no branch can start at commit '{commit.commit_id}': its branch '{commit.branch}' is "
            "gone, a cleanup removed the manifest, or it was published together with later ones — "
            "it can still be read, compared and restored from"
        )

    def has_tables(self, snapshot: Snapshot) -> bool:
        """Whether the version of every table of a state is still there."""
        return all(map(self.has_version, snapshot.entries.values()))

    def has_version(self, entry: TableEntry) -> bool:
        """Whether a version of a table is still there, and no other one has its number by now."""
        texts, fork = self._coordinator.retained.texts, entry.table_branch
        if fork is None:  # the numbers of a main lineage go up for as long as it is there
            return texts.exists(f"{entry.table_path}/{version_file(entry.version)}")
        location = texts.root.table(entry.table_path, fork)
        files = Files(location.uri, self._control.storage_options)
        return is_version_of(files, location, entry.version, entry.transaction_uuid)

    def list_kept_forks(self) -> set[tuple[str, str]]:
        """Path and Lance branch of every table fork that a state needs which was written down."""
        coordinator = self._coordinator
        return find_forks([*coordinator.retained, *(state for _, state in coordinator.tags)])

    def _list_on_lines(self, commit_id: str) -> Iterator[Snapshot]:
        """What the branches show of a commit that have it on their line."""
        asked: set[tuple[str, int]] = set()
        for state in self._coordinator.fresh_each(self._coordinator.branches()):
            if state.head.commit_id == commit_id:
                yield state.snapshot()
                continue
            found = find_known_commit(state, commit_id)
            place = ("", 0) if found is None else (found.branch, found.manifest_version)
            if found is not None and found.manifest_version and place not in asked:
                asked.add(place)
                snapshot = self.find_placed(found)
                if snapshot is not None:
                    yield snapshot

    def _find_compacted(self, commit: GraphCommit) -> Snapshot | None:
        """The state that a compaction after the commit has published, without a commit of its own.

        It has the same rows in other files, and stays when a cleanup removes the first ones.
        """
        state = self._read_compacted(commit)
        return None if state is None else state.snapshot()

    def _read_compacted(self, commit: GraphCommit) -> ManifestState | None:
        later = self._control.next_version(lance_branch(commit.branch), commit.manifest_version)
        if later is None:
            return None
        state = self._coordinator.at_version(commit.branch, later)
        return state if state.head.commit_id == commit.commit_id else None
