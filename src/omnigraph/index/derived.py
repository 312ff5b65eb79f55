"""Derived files: adjacency saved beside the graph, for a cold open to map instead of building.

Text indexes lie beside it, see `text_files.py`.

One sealed file per relation, named by the physical versions of the tables it was made from, so a
file is never stale: a new version has a new name. Where the graph lies is no part of the name, so
a graph that was moved maps them too. A file says which versions those are, for a later one to go
on from. Everything here may be deleted at any time. A read-only graph maps what is there and writes
nothing; a failure to write is no failure.

Of each relation the two versions written last stay, and one after a cleanup. Positions are written
as the smallest integers that hold them: a relation takes a quarter or a half of the space that it
has in memory.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from omnigraph.index.adjacency import Counts, Relation
from omnigraph.index.runs import Csr
from omnigraph.index.saved_runs import SavedRuns, list_arrays
from omnigraph.index.sealed_file import Damaged, SealedFile, read_facts, write_sealed
from omnigraph.index.text_files import DIRECTORY as TEXTS
from omnigraph.index.text_files import TextFiles
from omnigraph.storage.location import GraphRoot

log = logging.getLogger(__name__)

DIRECTORY = "__derived"
ENTRIES_MAX = 64
VERSIONS_MAX = 2
SUFFIX = ".runs"
_FORMAT = 4
_ABANDONED_SECONDS = 3_600

Versions: TypeAlias = tuple[tuple[int, str | None], ...]
"""Version and transaction of each table that a relation was made from."""


class RelationName(NamedTuple):
    """Which tables a relation was made from, and which versions of them."""

    tables: str
    versions: Versions


class DerivedStore:
    """Relations on the local disk, by name, and the text indexes beside them."""

    def __init__(self, root: Path, *, is_writable: bool) -> None:
        self._root = root
        self._folder = root / DIRECTORY
        self._is_writable = is_writable
        self.texts = TextFiles(self._folder, is_writable=is_writable)

    def load(self, name: RelationName, build: Callable[[], Relation]) -> Relation | None:
        """Map a relation; None when it is not there or not whole as far as can be seen by now.

        What turns out to be damaged later is removed, and taken from what `build` makes.
        """
        path = self._path(name)
        built = cache(build)

        def mend(error: Damaged, *, source: bool) -> Csr:
            self._remove(error)
            return built().side(source=source).flat

        try:
            file = SealedFile(path)
            forward = SavedRuns(file, "forward", lambda error: mend(error, source=True))
            backward = forward
            if not file.facts["is_symmetric"]:
                backward = SavedRuns(file, "backward", lambda error: mend(error, source=False))
            counts = Counts(*(file.sections[each].all().copy() for each in ("pairs", "numbers")))
            return Relation(forward, backward, 0, counts)
        except (Damaged, KeyError) as error:
            self._remove(Damaged(str(path)) if isinstance(error, KeyError) else error)
        except OSError:
            pass  # it was never saved, or another process made room
        return None

    def has(self, name: RelationName) -> bool:
        return self._path(name).exists()

    def list_versions(self, tables: str) -> list[Versions]:
        """The versions of which a relation of these tables is saved, the last written first."""
        start = f"{self._digest(tables)}-"
        found = []
        for path in _newest_first(self._folder):
            facts = read_facts(path, _FORMAT) if path.name.startswith(start) else None
            if facts is not None:
                found.append(tuple((version, text) for version, text in facts["versions"]))
        return found

    def save(self, name: RelationName, relation: Relation) -> None:
        """Write a relation, all of it or nothing."""
        if not self._is_writable or relation.dangling:
            return
        forward, backward = relation.forward.flat, relation.backward.flat
        is_symmetric = relation.backward is relation.forward
        facts = {
            "format": _FORMAT,
            "versions": name.versions,
            "is_symmetric": is_symmetric,
            "forward.degree_max": forward.degree_max,
            "backward.degree_max": backward.degree_max,
        }
        arrays = list_arrays("forward", forward)
        arrays |= {} if is_symmetric else list_arrays("backward", backward)
        arrays |= {"pairs": relation.parallel.pairs, "numbers": relation.parallel.numbers}
        # The disk may be full or read-only: then the next open builds it.
        with suppress(OSError):
            if not self._root.is_dir():
                return  # the graph was moved or removed
            self._folder.mkdir(exist_ok=True)
            write_sealed(self._path(name), facts, arrays)
            self.remove_superseded(VERSIONS_MAX)
            for entry in _newest_first(self._folder)[ENTRIES_MAX:]:
                entry.unlink(missing_ok=True)

    def find_damage(self) -> dict[str, str]:
        """File → what is wrong with it, of the files that are not as they were written."""
        found = {}
        for path in _newest_first(self._folder):
            try:
                SealedFile(path).check()
            except Damaged:
                found[str(path)] = "is damaged: its bytes are not those that were written"
            except OSError:
                continue  # another process made room
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
            by_tables[entry.name.partition("-")[0]].append(entry)
        for entries in by_tables.values():
            for entry in entries[versions_max:]:
                entry.unlink(missing_ok=True)
        for entry in _entries(self._folder):
            if _is_left_over(entry):
                _remove_left_over(entry)

    def _path(self, name: RelationName) -> Path:
        return self._folder / f"{self._digest(name.tables)}-{self._digest(name.versions)}{SUFFIX}"

    def _digest(self, value: object) -> str:
        relative = f"{value!r}".replace(f"{self._root}/", "")
        return hashlib.sha256(f"{_FORMAT}\0{relative}".encode()).hexdigest()[:32]

    def _remove(self, error: Damaged) -> None:
        log.warning("%s — it is derived anew", error)
        if self._is_writable:
            with suppress(OSError):
                os.unlink(error.path)


def _newest_first(folder: Path) -> list[Path]:
    """The saved relations."""

    def written_at(entry: Path) -> float:
        try:
            return entry.stat().st_mtime
        except OSError:
            return 0.0  # another process has removed it

    saved = [each for each in _entries(folder) if each.suffix == SUFFIX]
    return sorted(saved, key=written_at, reverse=True)


def _is_left_over(entry: Path) -> bool:
    """Whether it is of an earlier release, or of a process that died while it wrote it."""
    if entry.name == TEXTS or entry.suffix == SUFFIX:
        return False
    try:
        age = time.time() - entry.stat().st_mtime
        return entry.is_dir() or age > _ABANDONED_SECONDS
    except OSError:
        return False


def _remove_left_over(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        with suppress(OSError):
            entry.unlink()


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


def remove_unneeded_files(root: GraphRoot) -> None:
    """Remove derived files of versions and data files that are shown no more."""
    if root.is_local:
        DerivedStore(Path(root.local_path), is_writable=True).remove_unneeded()
