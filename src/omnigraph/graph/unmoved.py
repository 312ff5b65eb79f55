"""Unmoved: whether anything that decides what a read sees has changed since it was looked at.

A read looks at the schema files and at the manifest of its branch. Both are files of a local graph,
and every change to them shows in the attributes of a file or directory: a schema file is replaced,
a publish adds a file to the versions of the manifest, a branch is made or deleted among its refs.
So a handle that has looked at them once need not read them again while these attributes stand.

The system notes the time of a change in ticks. A file that changed a moment ago might change again
within the same tick, so what was seen is trusted only of files that had been still for a while.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeAlias, TypeVar

from omnigraph.manifest import MAIN
from omnigraph.manifest.contract import FILES
from omnigraph.storage.location import GraphRoot, TableLocation

_T = TypeVar("_T")
_Marks: TypeAlias = tuple[tuple[int, int, int] | None, ...]

STILL_NS = 25_000_000
"""Longer than the ticks of a system's clock: ten milliseconds at most."""
STILL_COARSE_NS = 3_000_000_000
"""Longer than those of a file system that keeps whole seconds: two seconds at most."""
_SECOND_NS = 1_000_000_000
_BRANCHES_MAX = 64


@dataclass(frozen=True, slots=True)
class _Seen(Generic[_T]):
    marks: _Marks
    found: _T


class Unmoved(Generic[_T]):
    """What was found of each branch, as long as nothing it depends on has moved. Thread-safe."""

    def __init__(self, root: GraphRoot, manifest: str) -> None:
        # The time of change means something else, or nothing, elsewhere.
        self._is_usable = root.is_local and os.name == "posix"
        self._root = root
        self._manifest = manifest
        self._seen: OrderedDict[str, _Seen[_T]] = OrderedDict()
        self._paths: dict[str, tuple[str, ...]] = {}
        self._lock = Lock()

    def look(self, branch: str) -> _Marks | None:
        """How the files of a branch stand now; None when that says nothing."""
        return self._marks(branch) if self._is_usable else None

    def find(self, branch: str, marks: _Marks | None) -> _T | None:
        """What was kept of a branch whose files still stand as they stood then."""
        seen = self._seen.get(branch) if marks is not None else None
        return seen.found if seen is not None and seen.marks == marks else None

    def keep(self, branch: str, marks: _Marks | None, found: _T) -> None:
        """Keep what was found after `marks` were looked at, if they can be trusted."""
        if marks is None or not _are_still(marks):
            return
        with self._lock:
            self._seen[branch] = _Seen(marks, found)
            self._seen.move_to_end(branch)
            if len(self._seen) > _BRANCHES_MAX:
                name, _ = self._seen.popitem(last=False)
                self._paths.pop(name, None)

    def forget(self) -> None:
        """Look at everything again."""
        with self._lock:
            self._seen.clear()

    def _marks(self, branch: str) -> _Marks:
        paths = self._paths.get(branch)
        if paths is None:
            paths = self._paths[branch] = self._watched(branch)
        return tuple(map(_mark, paths))

    def _watched(self, branch: str) -> tuple[str, ...]:
        manifest = self._root.child(self._manifest)
        schema = [self._root.child(name) for name in FILES]
        versions = [f"{manifest}/_versions"]
        if branch != MAIN:
            lane = TableLocation(manifest, branch).physical_uri
            versions += [f"{lane}/_versions", f"{manifest}/_refs/branches"]
        return (*schema, *versions)


def _mark(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, found.st_size


def _are_still(marks: _Marks) -> bool:
    """Whether every file is there and has not changed for a while."""
    now = time.time_ns()
    return all(mark is not None and now - mark[1] > _while(mark[1]) for mark in marks)


def _while(changed_ns: int) -> int:
    is_whole_second = changed_ns % _SECOND_NS == 0
    return STILL_COARSE_NS if is_whole_second else STILL_NS
