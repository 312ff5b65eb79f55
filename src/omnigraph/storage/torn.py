"""Torn files: what a power cut leaves of a file that had its name before its data was on the disk.

Lance writes a version, or the ref of a fork, under another name and links it to its own; the sync
is ours and comes after. A cut between the two leaves a file that is empty, cut short, or zeros.
What was acknowledged was synced, so a torn file was never part of that; damage of a synced file
looks different: its length and its end are right.

    torn        no bytes, no Lance footer, or a block of zeros where a version has none
    damaged     anything else that cannot be read: it is an error, and never moved

Torn files are moved to `_damaged/` of their dataset, never deleted. Object stores have none: there
an object is whole or not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from omnigraph.dataclass import dataclass
from omnigraph.storage.durability import Durability, sync_paths
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import MAGIC, message_start
from omnigraph.storage.location import VERSIONS, TableLocation, parse_version, ref_file
from omnigraph.ulids import new_ulid

DAMAGED_DIRECTORY = "_damaged"
_BLOCK_BYTES = 4096
_ABSENT = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class TornFile:
    """A file below the dataset at `top` that was cut off by a loss of power.

    Of a version: which one it is, and the lineage it was to be on.
    """

    top: str
    path: str
    version: int = 0
    location: TableLocation | None = None

    def quarantine(self, durability: Durability) -> str:
        """Move the file to `_damaged/` of its dataset; returns where it is now."""
        directory = os.path.join(self.top, DAMAGED_DIRECTORY)
        target = os.path.join(directory, f"{new_ulid()}-{os.path.basename(self.path)}")
        with lance_errors("moving a torn file away", self.path):
            os.makedirs(directory, exist_ok=True)
            os.rename(self.path, target)
            if durability == "power":
                sync_paths([os.path.dirname(self.path), directory, self.top])
        return target


def last_whole_version(location: TableLocation) -> int | None:
    """The newest version that is whole when the very newest is torn; None when it is not torn.

    0 stands for no whole version at all.
    """
    if not location.is_local:
        return None
    versions = _versions(location)
    newest = next(versions, None)
    if newest is None or not _is_torn_version(newest[1]):
        return None
    return next((version for version, path in versions if not _is_torn_version(path)), 0)


def newest_version(location: TableLocation) -> TornFile | None:
    """The newest version, for a caller that knows that its rows are torn."""
    for version, path in _versions(location):
        return TornFile(location.physical_uri, path, version, location)
    return None


def list_torn_versions(location: TableLocation, above: int = 0) -> list[TornFile]:
    """The newest versions as far as they are torn.

    With `above` every torn one after it: the versions of a group are synced together, so a whole
    one may lie behind a torn one.
    """
    found: list[TornFile] = []
    if location.is_local:
        for version, path in _versions(location):
            is_torn = version > above and _is_torn_version(path)
            if version <= above or (not is_torn and not above):
                break
            if not is_torn:
                continue
            found.append(TornFile(location.physical_uri, path, version, location))
    return found


def list_torn_refs(uri: str, names: Iterable[str]) -> dict[str, TornFile]:
    """Those of some forks of a dataset whose creation was cut off: no ref, or no version, is whole.

    A fork that was acknowledged had both on the disk.
    """
    found: dict[str, TornFile] = {}
    for name in names if "://" not in uri else ():
        path = os.path.join(uri, ref_file(name))
        versions = _versions(TableLocation(uri, name))
        if os.path.lexists(path) and (
            is_torn_ref(_read(path)) or all(_is_torn_version(file) for _, file in versions)
        ):
            found[name] = TornFile(uri, path)
    return found


def is_torn_ref(data: bytes) -> bool:
    """Whether the ref of a fork, a JSON object, is not there to its end."""
    return not data.rstrip().endswith(b"}") or b"\0" in data


def _is_torn_version(path: str) -> bool:
    data = _read(path)
    start, holes = message_start(data), find_holes(data)
    if start is None:
        return not data.endswith(MAGIC) or bool(holes)
    # Before the message there may be a filter of keys, which is mostly zeros.
    return bool(holes) and (holes[0] == 0 or holes[-1] >= start)


def find_holes(data: bytes) -> list[int]:
    """Where blocks begin that have nothing but zeros in them."""
    starts = range(0, len(data) - _BLOCK_BYTES + 1, _BLOCK_BYTES)
    return [start for start in starts if not any(data[start : start + _BLOCK_BYTES])]


def _versions(location: TableLocation) -> Iterator[tuple[int, str]]:
    """Number and path of every version, newest first."""
    directory = os.path.join(location.physical_uri, VERSIONS)
    # Lance counts versions down in the names of their files, which all have the same length.
    for name in sorted(_list_names("listing versions", location, directory)):
        version = parse_version(name)
        if version is not None:
            yield version, os.path.join(directory, name)


def _list_names(action: str, place: object, directory: str) -> list[str]:
    with lance_errors(action, place), suppress(*_ABSENT):
        return os.listdir(directory)
    return []


def _read(path: str) -> bytes:
    with lance_errors("reading", path):
        try:
            with open(path, "rb") as file:
                return file.read()
        except _ABSENT:
            return b""
