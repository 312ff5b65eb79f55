"""Unmoved: whether anything that decides what a read sees has changed since it was looked at.

A read looks at the schema files and at the manifest of its branch. Both are files of a local graph,
and every change to them shows in the attributes of a file or directory: a schema file is replaced,
a publish adds a file to the versions of the manifest, a branch is made or deleted among its refs.
So a handle that has looked at them once need not read them again while these attributes stand.

The system notes the time of a change in ticks. A file that changed a moment ago might change again
within the same tick, so what was seen is trusted only of files that had been still for a while. Of
the versions of `main` there is another proof until then: the file of the next one is not there. (It
would not be there either once it was cleaned away, but nobody publishes and cleans in one tick.)
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from omnigraph.manifest import MAIN
from omnigraph.manifest.contract import FILES
from omnigraph.storage.datasets import manifest_path
from omnigraph.storage.location import GraphRoot, TableLocation

_T = TypeVar("_T")
_Marks: TypeAlias = tuple[tuple[int, int, int] | None, ...]

STILL_NS = 25_000_000
"""Longer than the ticks of a system's clock: ten milliseconds at most."""
STILL_COARSE_NS = 3_000_000_000
"""Longer than those of a file system that keeps whole seconds: two seconds at most."""
_SECOND_NS = 1_000_000_000
_BRANCHES_MAX = 64


class Look(NamedTuple):
    """How the files of a branch stood, at the earliest, at a time."""

    time_ns: int
    marks: _Marks

    @property
    def is_still(self) -> bool:
        """Whether all are there, and whatever changes after this look will show."""
        return self.are_still(self.marks)

    def are_still(self, marks: _Marks) -> bool:
        return all(mark is not None and self.time_ns - mark[1] > _while(mark[1]) for mark in marks)


@dataclass(frozen=True, slots=True)
class _Seen(Generic[_T]):
    """What was found; as long as there is a `following` version to rule out, only without it."""

    marks: _Marks
    found: _T
    following: str | None


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

    def look(self, branch: str) -> Look | None:
        """How the files of a branch stand now; None when that says nothing."""
        if not self._is_usable:
            return None
        paths = self._paths.get(branch) or self._watched(branch)
        return Look(time.time_ns(), tuple(map(_mark, paths)))

    def find(self, branch: str, look: Look | None) -> _T | None:
        """What was kept of a branch whose files still stand as they stood then."""
        seen = self._seen.get(branch) if look is not None else None
        if seen is None or look is None or seen.marks != look.marks:
            return None
        if seen.following is not None:
            if os.path.lexists(seen.following):
                return None
            if look.is_still:
                self._seen[branch] = replace(seen, following=None)
        return seen.found

    def keep(self, branch: str, look: Look | None, found: _T, version: int) -> None:
        """Keep what was found after a look, at a version of the manifest, if it can be trusted."""
        if look is None:
            return
        following = None
        if not look.is_still:
            following = self._following(branch, look, version)
            if following is None:
                return
        with self._lock:
            self._seen[branch] = _Seen(look.marks, found, following)
            self._seen.move_to_end(branch)
            self._paths[branch] = self._watched(branch)
            if len(self._seen) > _BRANCHES_MAX:
                name, _ = self._seen.popitem(last=False)
                self._paths.pop(name, None)

    def _following(self, branch: str, look: Look, version: int) -> str | None:
        """The file of the next version, where that decides; None where it does not."""
        *schema, versions = look.marks
        if branch != MAIN or versions is None or not look.are_still(tuple(schema)):
            return None
        if _is_coarse(versions[1]):
            return None  # a tick has room for many writes
        manifest = TableLocation(self._root.child(self._manifest))
        if not os.path.lexists("/" + manifest_path(manifest, version)):
            return None  # its files are named in another way
        return "/" + manifest_path(manifest, version + 1)

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


def _while(changed_ns: int) -> int:
    return STILL_COARSE_NS if _is_coarse(changed_ns) else STILL_NS


def _is_coarse(changed_ns: int) -> bool:
    """Whether a file system seems to keep whole seconds."""
    return changed_ns % _SECOND_NS == 0
