"""Scratch: where a load keeps what it has written and not committed, so that no file is left over.

    __load/<load id>/lock           held by the driver while it lives; only on a local disk
    __load/<load id>/moved.json     files on their way into tables, written before they move
    __load/<load id>/...            unattached fragments, by table
    __load/<load id>.new, .gone     the same, until it has its lock, and while it is being removed

The next load removes the scratch of loads that died. A file that already moved into a
table is removed only when no version of that table names it: a load may have died after its
commit.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, NotFoundError
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.listing import Files
from omnigraph.storage.location import GraphRoot, TableLocation
from omnigraph.storage.objects import remove_files
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text import TextStore, open_text_store
from omnigraph.ulids import new_ulid, ulid_seconds

DIRECTORY = "__load"
FRAMES_PREFIX = "frames-"
ABANDONED_SECONDS = 24 * 3600
"""An object store has no locks: there a load counts as dead after a day."""

WRITE_IN_FLIGHT_SECONDS = 0.3
_NEW, _GONE = ".new", ".gone"
_NEW_SECONDS = 60.0

_live: set[str] = set()


@dataclass(frozen=True, slots=True)
class MovedFiles:
    """Data files that are about to be in a lineage of a table, whose HEAD was `version` then."""

    uri: str
    branch: str | None
    version: int
    names: tuple[str, ...]


@dataclass(slots=True)
class Scratch:
    """The scratch of one live load. Make it with `open_scratch`, end it with `close`."""

    load_id: str
    uri: str
    _texts: TextStore
    _lock: int | None
    _moved: list[MovedFiles] = field(default_factory=list)

    def announce(self, moved: MovedFiles) -> None:
        """Record that files will be in a table from now on."""
        if moved not in self._moved:
            self._moved.append(moved)
            root = self.uri.removesuffix(f"/{DIRECTORY}/{self.load_id}")
            text = json.dumps([_to_json(each, root) for each in self._moved])
            self._texts.write_text(f"{self.uri}/moved.json", text)

    def close(self) -> None:
        """Remove the scratch of a load that has committed."""
        try:
            self._texts.delete_prefix(_move_to_gone(self.uri))
        finally:
            self.leave()

    def leave(self) -> None:
        """Release the scratch as it is; the next load removes it."""
        _live.discard(self.load_id)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def abandon(self, tables: TableStorage) -> None:
        """Remove everything a load that failed has written."""
        try:
            _remove(self.uri, self._texts, tables)
            if self._lock is not None:
                # A worker that was writing at that moment has created its folder again.
                time.sleep(WRITE_IN_FLIGHT_SECONDS)
                self._texts.delete_prefix(self.uri)
        finally:
            self.leave()


def open_scratch(tables: TableStorage, storage_options: Mapping[str, str]) -> Scratch:
    """Make the scratch of a new load."""
    load_id = new_ulid()
    uri = f"{tables.root.child(DIRECTORY)}/{load_id}"
    lock = None
    if tables.root.is_local:
        with lance_errors("making room for a load", uri):
            os.makedirs(f"{uri}{_NEW}")
            lock = os.open(f"{uri}{_NEW}/lock", os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(f"{uri}{_NEW}", uri)
    _live.add(load_id)
    # Losing the scratch in a power cut loses nothing, so nothing here is synced.
    return Scratch(load_id, uri, open_text_store(tables.root, storage_options, "process"), lock)


def refuse_gone(uri: str) -> None:
    """Stop a worker whose load was cancelled: what it wrote now would never be removed.

    Raises:
        ConflictError: The scratch is gone. On an object store that cannot be seen cheaply.
    """
    if "://" not in uri and not os.path.exists(f"{uri}/lock"):
        raise ConflictError("this load was cancelled — nothing was written")


def write_scratch(
    scratch_uri: str, uri: str, data: bytes, storage_options: Mapping[str, str]
) -> None:
    """Write a file that is named once and below the scratch of a load.

    Raises:
        ConflictError: The scratch is gone.
    """
    refuse_gone(scratch_uri)
    top, _, name = uri.rpartition("/")
    with lance_errors("writing keys of a load", uri):
        if "://" in uri:
            Files(top, storage_options).write(name, data)
            return
        os.makedirs(top, exist_ok=True)
        with open(uri, "xb") as file:
            file.write(data)


def sweep(tables: TableStorage, storage_options: Mapping[str, str]) -> int:
    """Remove what dead loads have left; returns how many there were."""
    texts = open_text_store(tables.root, storage_options, "process")
    swept = 0
    for load_id in sorted(texts.list_folders(tables.root.child(DIRECTORY))):
        uri = f"{tables.root.child(DIRECTORY)}/{load_id}"
        if load_id not in _live and _is_dead(tables.root, uri, load_id):
            _remove(uri, texts, tables)
            swept += 1
    return swept


def _move_to_gone(uri: str) -> str:
    """Where scratch is while it is being removed: what is left there counts as dead."""
    if "://" in uri or uri.endswith(_GONE):
        return uri
    try:
        os.rename(uri, f"{uri}{_GONE}")
    except FileNotFoundError:
        pass
    except OSError:
        return uri  # moved before, and created again by a worker that was writing
    return f"{uri}{_GONE}"


def _is_dead(root: GraphRoot, uri: str, load_id: str) -> bool:
    if load_id.endswith(_GONE):
        return True
    if root.is_local and load_id.startswith(FRAMES_PREFIX):
        return time.time() - os.stat(uri).st_mtime > ABANDONED_SECONDS
    if not root.is_local:
        with suppress(ValueError):
            made_at = ulid_seconds(load_id.removeprefix(FRAMES_PREFIX))
            return time.time() - made_at > ABANDONED_SECONDS
        return False
    try:
        if load_id.endswith(_NEW):
            return time.time() - os.stat(uri).st_mtime > _NEW_SECONDS
        descriptor = os.open(f"{uri}/lock", os.O_RDWR)
    except FileNotFoundError:
        return True  # a worker created it again after its load had ended
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(uri: str, texts: TextStore, tables: TableStorage) -> None:
    text = texts.read_text_if_exists(f"{uri}/moved.json")
    for value in json.loads(text) if text else []:
        moved = _from_json(value, tables.root)
        if moved is not None:
            _remove_moved(moved, tables)
    texts.delete_prefix(_move_to_gone(uri))


def _remove_moved(moved: MovedFiles, tables: TableStorage) -> None:
    """Remove files from a table unless one of its versions since then consists of them."""
    location = TableLocation(moved.uri, moved.branch)
    unnamed = set(moved.names)
    try:
        head = tables.head_version(location)
    except NotFoundError:
        head = moved.version
    for version in range(moved.version + 1, head + 1):
        # A version that cleanup has taken away took its files with it.
        with suppress(NotFoundError):
            fragments = tables.reads.fragments(tables.open_at(location, version))
            unnamed -= {name for each in fragments for name in each.files}
    remove_files(f"{location.physical_uri}/data", sorted(unnamed), tables.storage_options)


def _to_json(moved: MovedFiles, root: str) -> dict[str, object]:
    return {
        "table": moved.uri.removeprefix(f"{root}/"),
        "branch": moved.branch,
        "version": moved.version,
        "names": list(moved.names),
    }


def _from_json(value: dict[str, Any], root: GraphRoot) -> MovedFiles | None:
    """What was moved, in this graph; None when it was moved where this graph was before.

    Earlier loads wrote whole URIs: in a copy these name tables of the original.
    """
    uri = root.child(str(value["table"])) if "table" in value else str(value["uri"])
    if not uri.startswith(f"{root.uri}/"):
        return None
    return MovedFiles(uri, value["branch"], value["version"], tuple(value["names"]))
