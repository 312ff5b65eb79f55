"""Line reader: many branches and commits, with few reads of the manifests that tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from omnigraph.dataclass import dataclass
from omnigraph.errors import BranchNotFound, NotFoundError
from omnigraph.manifest.branch_names import PREPARED
from omnigraph.manifest.model import MAIN, GraphCommit, ManifestState, TableEntry, with_pins
from omnigraph.manifest.rows import find_row, row_to_commit

if TYPE_CHECKING:
    from omnigraph.manifest.coordinator import Coordinator
    from omnigraph.manifest.line_states import LineStates
    from omnigraph.storage.handles import BranchInfo


class Shown(Protocol):
    """The pins of a commit, and the manifest version that has them. A snapshot is one."""

    @property
    def manifest_version(self) -> int: ...

    @property
    def entries(self) -> Mapping[str, TableEntry]: ...


@dataclass(frozen=True, slots=True)
class _Shown:
    manifest_version: int
    entries: Mapping[str, TableEntry]


class LineReader:
    """Reads branches and commits. The second one of a line that has to be read brings all others.

    For one operation.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._found: dict[str, Shown | None] = {}
        self._asked: set[str] = set()
        self._lines: dict[str, LineStates] = {}

    def fresh(self, branch: str) -> ManifestState:
        """A branch as it is now, by what it came with and what it has published since.

        The former is told by the branch that it came from; only the latter is read.

        Raises:
            BranchNotFound: There is no such branch.
        """
        states = self._coordinator.states
        if branch == MAIN or states.find(branch) is not None:
            return self._coordinator.fresh(branch)
        info = self._coordinator.find_branch(branch)
        origin = self._find_origin(info)
        found = None if origin is None else self._read_onto(origin, branch, info)
        return self._coordinator.fresh(branch) if found is None else states.remember(found)

    def _read_onto(
        self, origin: ManifestState, branch: str, info: BranchInfo
    ) -> ManifestState | None:
        """A branch that came with a state; None when it has to be read as a whole."""
        at_first = replace(origin, branch=branch, branch_id=info.identifier)
        version = self._coordinator.latest_version(branch)
        if version == at_first.version:
            return at_first
        return self._coordinator.read_onto(at_first, version)

    def _find_origin(self, info: BranchInfo) -> ManifestState | None:
        """The state that a branch was made from; None when only the branch itself tells."""
        parent = info.parent_branch or MAIN
        if parent.startswith(PREPARED):
            return None
        with suppress(BranchNotFound):
            state = self.fresh(parent)
            # There may be another branch of that name by now.
            if state.branch_id == (info.identifier.rpartition("/")[0] or None):
                if state.version == info.parent_version:
                    return state
                line = self._line_of(state)
                return None if line is None else line.at(info.parent_version)
        return None

    def find(self, commit: GraphCommit) -> Shown | None:
        """What a commit shows, None when that is gone.

        Says what `CommitStates.find_placed` says, of branches that do not change meanwhile.
        """
        if commit.commit_id not in self._found:
            found = self._find_on_line(commit)
            self._found[commit.commit_id] = found or self._coordinator.commit_states.find_placed(
                commit
            )
        return self._found[commit.commit_id]

    def _find_on_line(self, commit: GraphCommit) -> Shown | None:
        with suppress(NotFoundError):
            state = self._coordinator.last_seen(commit.branch)
            if state.version == commit.manifest_version:
                return None  # what is known already costs no read
            line = self._line_of(state)
            row = None if line is None else find_row(state.commit_rows, commit.commit_id)
            if line is None or row is None or not self._coordinator.has_manifest(commit):
                return None
            made = row_to_commit(row)
            entries = None if made.is_kept else line.entries_at(made.manifest_version)
            if entries is None:
                return None
            entries = with_pins(entries, made)
            # A cleanup that keeps a later commit of the same publish keeps the manifest of all.
            if all(self._coordinator.commit_states.has_version(entries[key]) for key in made.pins):
                return _Shown(made.manifest_version, entries)
        return None

    def _line_of(self, state: ManifestState) -> LineStates | None:
        if state.branch in self._asked and state.branch not in self._lines:
            self._lines[state.branch] = self._coordinator.read_line_states(state)
        self._asked.add(state.branch)
        return self._lines.get(state.branch)
