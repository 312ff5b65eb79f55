"""Derived files: adjacency saved beside the graph, so that a cold open maps it instead of building.

Text indexes lie beside it, see `text_files.py`.

One directory per relation, named by the physical versions of the tables it was made from, so a
file is never stale: a new version has a new name. Where the graph lies is no part of the name, so
a graph that was moved maps them too. Everything here may be deleted at any time. A read-only graph
maps what is there and writes nothing; a failure to write is no failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from omnigraph.index.adjacency import Counts, Relation
from omnigraph.index.rooms import Room
from omnigraph.index.runs import Csr, StoredRuns
from omnigraph.index.text_files import DIRECTORY as TEXTS
from omnigraph.index.text_files import TextFiles
from omnigraph.storage.checksums import checksum_file, checksum_from_json
from omnigraph.storage.location import GraphRoot

DIRECTORY = "__derived"
SEAL = "checksums.json"
ENTRIES_MAX = 64
_FORMAT = 2
_PARALLEL = "parallel"


class DerivedStore:
    """Relations on the local disk, by name, and the text indexes beside them."""

    def __init__(self, root: Path, *, is_writable: bool) -> None:
        self._root = root
        self._folder = root / DIRECTORY
        self._is_writable = is_writable
        self.texts = TextFiles(self._folder, is_writable=is_writable)

    def load(self, name: str) -> Relation | None:
        """Map a relation; None when it is not there or not whole."""
        folder = self._path(name)
        try:
            forward = _map_side(folder, "forward")
            backward = forward if (folder / "symmetric").exists() else _map_side(folder, "backward")
            pairs, numbers = np.load(folder / f"{_PARALLEL}.npy", mmap_mode="r")
        except (OSError, ValueError):
            return None
        return Relation(forward, backward, 0, Counts(pairs, numbers))

    def has(self, name: str) -> bool:
        return self._path(name).is_dir()

    def save(self, name: str, relation: Relation) -> None:
        """Write a relation, all of it or nothing."""
        if not self._is_writable or relation.dangling:
            return
        target = self._path(name)
        made = target.with_name(f"{target.name}.{os.getpid()}.{id(relation)}.tmp")
        try:
            made.mkdir(parents=True)
            _write(made, "forward", relation.forward)
            if relation.backward is relation.forward:
                (made / "symmetric").touch()
            else:
                _write(made, "backward", relation.backward)
            np.save(made / f"{_PARALLEL}.npy", [relation.parallel.pairs, relation.parallel.numbers])
            _seal(made)
            made.rename(target)
            self._remove_oldest()
        except OSError:
            # Another writer was first, or the disk is full or read-only: the next open builds it.
            shutil.rmtree(made, ignore_errors=True)

    def find_damage(self) -> dict[str, str]:
        """File → what is wrong with it, of the files that are not as they were written."""
        folders = [each for each in _relations(self._folder) if each.suffix != ".tmp"]
        found = {path: problem for each in folders for path, problem in _find_damage(each)}
        return found | self.texts.find_damage()

    def remove_unneeded(self) -> None:
        """Remove text indexes of data files that are gone."""
        if self._is_writable and self._folder.exists():
            self.texts.remove_unneeded(set(_list_data_files(self._root)))

    def _path(self, name: str) -> Path:
        relative = name.replace(f"{self._root}/", "")
        digest = hashlib.sha256(f"{_FORMAT}\0{relative}".encode()).hexdigest()[:32]
        return self._folder / digest

    def _remove_oldest(self) -> None:
        entries = sorted(_relations(self._folder), key=lambda entry: entry.stat().st_mtime)
        for entry in entries[:-ENTRIES_MAX]:
            shutil.rmtree(entry, ignore_errors=True)


def _list_data_files(root: Path) -> Iterator[str]:
    """The names of the data files of all tables and forks: no two are the same."""
    for top in ("nodes", "edges"):
        for folder, _, names in os.walk(root / top):
            if os.path.basename(folder) == "data":
                yield from names


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []  # nothing was ever saved, or another process is removing old entries


def _relations(folder: Path) -> list[Path]:
    return [each for each in _entries(folder) if each.name != TEXTS]


def _seal(folder: Path) -> None:
    """Write the checksum of each file. A mapped array is not decoded, so no reader would notice."""
    checksums = {each.name: checksum_file(str(folder), each.name) for each in _entries(folder)}
    text = json.dumps({name: each.to_json() for name, each in checksums.items()})
    (folder / SEAL).write_text(text)


def _find_damage(folder: Path) -> Iterator[tuple[str, str]]:
    if not (folder / SEAL).exists():
        return  # saved by a release that sealed nothing
    try:
        sealed = json.loads((folder / SEAL).read_text())
        expected = {name: checksum_from_json(value) for name, value in sealed.items()}
        names = {each.name for each in _entries(folder)} - {SEAL}
    except (OSError, ValueError, AttributeError):
        yield str(folder / SEAL), "is damaged: it cannot be read"
        return
    if names != expected.keys():
        yield str(folder / SEAL), f"is damaged: it does not name {sorted(names)}"
        return
    for name, checksum in expected.items():
        try:
            is_whole = checksum_file(str(folder), name) == checksum
        except OSError:
            continue  # another process is removing old entries
        if not is_whole:
            yield str(folder / name), "is damaged: its bytes are not those that were written"


def _map_side(folder: Path, side: str) -> Csr:
    """Map one side. The space behind its targets is written to in memory only."""
    offsets = np.load(folder / f"{side}.offsets.npy", mmap_mode="r")
    targets = np.load(folder / f"{side}.targets.npy", mmap_mode="c")
    if offsets.ndim != 1 or len(offsets) == 0 or int(offsets[-1]) > len(targets):
        raise ValueError(f"{folder} is not whole")
    used = int(offsets[-1])
    room = Room(np.asarray(targets), used)
    return Csr(np.asarray(offsets), room.array[:used], None, (room,))


def _write(folder: Path, side: str, runs: StoredRuns) -> None:
    csr = runs.flat
    room = Room.of(csr.targets)
    room.array[csr.count :] = 0
    np.save(folder / f"{side}.offsets.npy", csr.offsets)
    np.save(folder / f"{side}.targets.npy", room.array)


def remove_unneeded_files(root: GraphRoot) -> None:
    """Remove derived files of data files that a cleanup has removed."""
    if root.is_local:
        DerivedStore(Path(root.local_path), is_writable=True).remove_unneeded()
