"""Latest versions: which version of a local table is still the latest, without listing any.

Invariant: `find` answers only while nothing has added or removed a version since it was told. What
proves it are the attributes of the directory of versions, and that the next version has no file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import TypeAlias

import pyarrow as pa
from lance import LanceDataset

from omnigraph.dataclass import dataclass
from omnigraph.storage.file_times import stable_after
from omnigraph.storage.location import VERSIONS, TableLocation, version_file

Attributes: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Latest:
    """The version that was the latest one while the directory of versions had these attributes.

    If this process wrote it, `dataset` is open there and has the columns `schema`; `places` are the
    addresses of rows in it, and no fragment has a greater id than `max_fragment_id`.
    """

    version: int
    attributes: Attributes
    dataset: LanceDataset | None = None
    schema: pa.Schema | None = None
    places: Mapping[str, int] = field(default_factory=dict)
    max_fragment_id: int | None = None


class LatestVersions:
    """The latest version of each branch of one table, as far as this process knows it."""

    def __init__(self, uri: str, *, is_local: bool) -> None:
        self._uri = uri
        self._is_local = is_local
        self._known: dict[str | None, Latest] = {}

    def put(self, branch: str | None, latest: Latest) -> None:
        self._known[branch] = latest

    def forget(self, branch: str | None) -> None:
        self._known.pop(branch, None)

    def find(self, branch: str | None) -> Latest | None:
        """What is known to be the latest version still; None when it has to be looked up.

        A new version is a new file, and shows in the attributes of its directory: but not always
        when the directory has changed at almost the same time before, so its file is looked for.
        """
        known = self._known.get(branch)
        if known is None or known.attributes != self.read_attributes(branch):
            return None
        top = TableLocation(self._uri, branch).physical_uri
        return None if os.path.lexists(f"{top}/{version_file(known.version + 1)}") else known

    def read_attributes(self, branch: str | None) -> Attributes | None:
        """What changes when a version is added or removed; None where nothing proves that.

        A file system that keeps whole seconds has room in one for a write and a cleanup.
        """
        if self._is_local:
            with suppress(OSError):
                found = os.stat(f"{TableLocation(self._uri, branch).physical_uri}/{VERSIONS}")
                is_coarse = found.st_mtime_ns % 1_000_000_000 == 0
                return None if is_coarse else (found.st_ino, found.st_mtime_ns)
        return None


def may_be_newer(location: TableLocation, since_ns: int) -> bool:
    """Whether a version may have been added or removed since a time."""
    try:
        changed_ns = os.stat(f"{location.physical_uri}/{VERSIONS}").st_ctime_ns
    except OSError:
        return True
    return changed_ns + stable_after(changed_ns) > since_ns
