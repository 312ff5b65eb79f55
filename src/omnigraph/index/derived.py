"""Derived files: adjacency saved beside the graph, for a cold open to read instead of building.

Text indexes lie beside it, see `text_files.py`.

One directory per relation, named by the physical versions of the tables it was made from, so a
file is never stale: a new version has a new name. Where the graph lies is no part of the name, so
a graph that was moved reads them too. Everything here may be deleted at any time. A read-only graph
reads what is there and writes nothing; a failure to write is no failure.

Of each relation the two versions written last stay, and one after a cleanup. Positions are written
as the smallest integers that hold them, and are widened when they are read: a relation takes a
quarter or a half of the space that it has in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from omnigraph.index.adjacency import Counts, Relation
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.rooms import Room
from omnigraph.index.runs import Csr, StoredRuns
from omnigraph.index.text_files import DIRECTORY as TEXTS
from omnigraph.index.text_files import TextFiles
from omnigraph.storage.checksums import checksum_file, checksum_from_json
from omnigraph.storage.location import GraphRoot

DIRECTORY = "__derived"
SEAL = "checksums.json"
ENTRIES_MAX = 64
VERSIONS_MAX = 2
_FORMAT = 3
_PARALLEL = "parallel"


class RelationName(NamedTuple):
    """Which tables a relation was made from, and which versions of them."""

    tables: str
    versions: str


class DerivedStore:
    """Relations on the local disk, by name, and the text indexes beside them."""

    def __init__(self, root: Path, *, is_writable: bool) -> None:
        self._root = root
        self._folder = root / DIRECTORY
        self._is_writable = is_writable
        self.texts = TextFiles(self._folder, is_writable=is_writable)

    def load(self, name: RelationName) -> Relation | None:
        """Read a relation; None when it is not there or not whole."""
        folder = self._path(name)
        try:
            forward = _read_side(folder, "forward")
            backward = (
                forward if (folder / "symmetric").exists() else _read_side(folder, "backward")
            )
            pairs, numbers = np.load(folder / f"{_PARALLEL}.npy")
        except (OSError, ValueError):
            return None
        return Relation(forward, backward, 0, Counts(pairs, numbers))

    def has(self, name: RelationName) -> bool:
        return self._path(name).is_dir()

    def save(self, name: RelationName, relation: Relation) -> None:
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
            self.remove_superseded(VERSIONS_MAX)
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
        """Remove text indexes of data files that are gone, and relations of earlier versions."""
        if self._is_writable and self._folder.exists():
            self.remove_superseded()
            self.texts.remove_unneeded(set(_list_data_files(self._root)))

    def remove_superseded(self, versions_max: int = 1) -> None:
        """Remove all but the versions of each relation that were written last."""
        by_tables: dict[str, list[Path]] = defaultdict(list)
        for entry in _newest_first(self._folder):
            tables, _, versions = entry.name.partition("-")
            # Without versions it is of a release that named and wrote relations differently.
            by_tables[tables if versions else ""].append(entry)
        removed = by_tables.pop("", [])
        for entries in by_tables.values():
            removed += [entry for entry in entries if entry.suffix != ".tmp"][versions_max:]
        for entry in removed:
            shutil.rmtree(entry, ignore_errors=True)

    def _path(self, name: RelationName) -> Path:
        return self._folder / f"{self._digest(name.tables)}-{self._digest(name.versions)}"

    def _digest(self, text: str) -> str:
        relative = text.replace(f"{self._root}/", "")
        return hashlib.sha256(f"{_FORMAT}\0{relative}".encode()).hexdigest()[:32]

    def _remove_oldest(self) -> None:
        for entry in _newest_first(self._folder)[ENTRIES_MAX:]:
            shutil.rmtree(entry, ignore_errors=True)


def _newest_first(folder: Path) -> list[Path]:
    def written_at(entry: Path) -> float:
        try:
            return entry.stat().st_mtime
        except OSError:
            return 0.0  # another process has removed it

    return sorted(_relations(folder), key=written_at, reverse=True)


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


def _read_side(folder: Path, side: str) -> Csr:
    """Read one side, with space behind its targets for those of later versions."""
    offsets = np.load(folder / f"{side}.offsets.npy").astype(np.int64)
    stored = np.load(folder / f"{side}.targets.npy", mmap_mode="r")
    if offsets.ndim != 1 or len(offsets) == 0 or int(offsets[-1]) != len(stored):
        raise ValueError(f"{folder} is not whole")
    room = Room.of(stored, dtype=np.dtype(np.int64))
    return Csr(offsets, room.array[: len(stored)], None, (room,))


def _write(folder: Path, side: str, runs: StoredRuns) -> None:
    csr = runs.flat
    np.save(folder / f"{side}.offsets.npy", _narrow(csr.offsets))
    np.save(folder / f"{side}.targets.npy", _narrow(csr.targets))


def _narrow(positions: IntArray) -> AnyArray:
    return positions.astype(np.min_scalar_type(int(positions.max(initial=0))))


def remove_unneeded_files(root: GraphRoot) -> None:
    """Remove derived files of versions and data files that are shown no more."""
    if root.is_local:
        DerivedStore(Path(root.local_path), is_writable=True).remove_unneeded()
