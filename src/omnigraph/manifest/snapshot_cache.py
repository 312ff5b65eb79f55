"""Snapshot cache: what a read found of a branch, for as long as the branch's files stay unchanged.

A read depends on the schema files and on the manifest of its branch. Both are files of a local
graph, and every change to them shows in the attributes of a file or directory: a schema file is
replaced, a publish adds a file to the versions of the manifest, a branch is made or deleted among
its refs. So a handle need not read them again while these attributes stay the same.

The system notes the time of a change in ticks. A file that changed a moment ago might change again
within the same tick, so only the attributes of files that have been stable for a while are trusted.
For the versions of `main` there is another proof until then: the file of the next version does not
exist. (It would not exist either once it was cleaned up, but no writer publishes and cleans up
within one tick.)
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from omnigraph.dataclass import dataclass
from omnigraph.lru import Lru
from omnigraph.manifest.contract import FILES
from omnigraph.manifest.model import MAIN, MANIFEST_TABLE
from omnigraph.storage.datasets import manifest_path
from omnigraph.storage.file_times import Attributes, is_coarse, read_attributes, stable_after
from omnigraph.storage.location import GraphRoot, TableLocation

_T = TypeVar("_T")
_Attributes: TypeAlias = tuple[Attributes | None, ...]
"""None for a file that is not there."""

_BRANCHES_MAX = 64


@dataclass(frozen=True, slots=True)
class _Entry(Generic[_T]):
    """What was found. `next_version` is a file whose absence is needed as a proof, if any is."""

    paths: tuple[str, ...]
    attributes: _Attributes
    found: _T
    next_version: str | None


class Probe(NamedTuple, Generic[_T]):
    """The attributes of a branch's files, read no earlier than `time_ns`."""

    branch: str
    time_ns: int
    attributes: _Attributes
    entry: _Entry[_T] | None = None
    """What was in the cache before the attributes were read."""

    @property
    def is_stable(self) -> bool:
        """Whether all files are there, and every change after this probe will show."""
        return self.are_stable(self.attributes)

    def are_stable(self, attributes: _Attributes) -> bool:
        return all(
            each is not None and self.time_ns - each[1] > stable_after(each[1])
            for each in attributes
        )


class SnapshotCache(Generic[_T]):
    """What was found of each branch, until a file that it depends on changes. Thread-safe."""

    def __init__(self, root: GraphRoot) -> None:
        # Elsewhere the time of change means something else, or nothing.
        self._is_usable = root.is_local and os.name == "posix"
        self._root = root
        self._entries = Lru[str, _Entry[_T]](_BRANCHES_MAX)

    def probe(self, branch: str) -> Probe[_T] | None:
        """Read the attributes of a branch's files; None where they prove nothing."""
        if not self._is_usable:
            return None
        entry = self._entries.get(branch)
        paths = self._paths(branch) if entry is None else entry.paths
        return Probe(branch, time.time_ns(), tuple(map(read_attributes, paths)), entry)

    def get(self, probe: Probe[_T] | None) -> _T | None:
        """What was put for a branch whose files are unchanged since."""
        entry = None if probe is None else probe.entry
        if probe is None or entry is None or entry.attributes != probe.attributes:
            return None
        if entry.next_version is not None:
            if os.path.lexists(entry.next_version):
                return None
            if probe.is_stable:
                self._entries.put(probe.branch, replace(entry, next_version=None))
        return entry.found

    def put(self, probe: Probe[_T] | None, found: _T, version: int) -> None:
        """Keep what was found after a probe, at a version of the manifest, if it can be trusted."""
        if probe is None:
            return
        next_version = None
        if not probe.is_stable:
            next_version = self._find_next_version(probe, version)
            if next_version is None:
                return
        branch = probe.branch
        self._entries.put(
            branch, _Entry(self._paths(branch), probe.attributes, found, next_version)
        )

    def _find_next_version(self, probe: Probe[_T], version: int) -> str | None:
        """The file of the next version, where its absence is a proof; else None."""
        *schema, versions = probe.attributes
        if probe.branch != MAIN or versions is None or not probe.are_stable(tuple(schema)):
            return None
        if is_coarse(versions[1]):
            return None  # a tick has room for many writes
        manifest = TableLocation(self._root.child(MANIFEST_TABLE))
        if not os.path.lexists("/" + manifest_path(manifest, version)):
            return None  # its files are named in another way
        return "/" + manifest_path(manifest, version + 1)

    def _paths(self, branch: str) -> tuple[str, ...]:
        manifest = self._root.child(MANIFEST_TABLE)
        schema = [self._root.child(name) for name in FILES]
        versions = [f"{manifest}/_versions"]
        if branch != MAIN:
            own = TableLocation(manifest, branch).physical_uri
            versions += [f"{own}/_versions", f"{manifest}/_refs/branches"]
        return (*schema, *versions)
