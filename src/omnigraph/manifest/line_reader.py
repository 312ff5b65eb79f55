"""Line reader: what many commits show, with few reads of the manifests of their branches."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from omnigraph.dataclass import dataclass
from omnigraph.errors import NotFoundError
from omnigraph.manifest.model import GraphCommit, TableEntry

if TYPE_CHECKING:
    from omnigraph.manifest.coordinator import Coordinator
    from omnigraph.manifest.line_pins import LinePins


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
    """Finds what commits show. The second commit of a line that has to be read brings all others.

    Says what `Coordinator.find_snapshot` says, of branches that do not change meanwhile.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._found: dict[str, Shown | None] = {}
        self._asked: set[str] = set()
        self._lines: dict[str, LinePins] = {}

    def find(self, commit: GraphCommit) -> Shown | None:
        """What a commit shows, None when that is gone."""
        if commit.commit_id not in self._found:
            found = self._find_on_line(commit)
            self._found[commit.commit_id] = found or self._coordinator.find_snapshot(commit)
        return self._found[commit.commit_id]

    def _find_on_line(self, commit: GraphCommit) -> Shown | None:
        with suppress(NotFoundError):
            line = self._line_of(commit)
            found = None if line is None else line.find(commit)
            if found is None or not self._coordinator.has_manifest(commit):
                return None
            # A cleanup that keeps a later commit of the same publish keeps the manifest of all.
            entries, pins = found
            if all(self._coordinator.has_version(entries[key]) for key in pins):
                return _Shown(commit.manifest_version, entries)
        return None

    def _line_of(self, commit: GraphCommit) -> LinePins | None:
        state = self._coordinator.last_seen(commit.branch)
        if state.version == commit.manifest_version:
            return None  # what is known already costs no read
        if state.branch in self._asked and state.branch not in self._lines:
            self._lines[state.branch] = self._coordinator.read_line_pins(state)
        self._asked.add(state.branch)
        return self._lines.get(state.branch)
