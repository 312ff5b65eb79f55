"""Text files: text indexes beside the graph, mapped by the next open and by other processes.

    __derived/text/<table>-<column>-<language>/<digest of the data files>.seal

An index is named by the data files it was made of, which never change, so a file is never stale:
it is right for every version and branch that has those data files. All of it may be deleted at
any time. A read-only graph maps what is there and writes nothing; a failure to write is no failure.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.index.addressed import Files
from omnigraph.index.sealed_file import Damaged, SealedFile, read_facts, write_sealed
from omnigraph.index.text_index import SECTIONS, TextIndex
from omnigraph.index.text_words import Words
from omnigraph.lru import Lru

DIRECTORY = "text"
BYTES_MAX = 8 << 30
"""What all files of a graph may take; the ones used least recently make room."""
SMALL_ROWS = 1 << 16
"""Documents up to which an index is removed when a larger one has them too."""
_FORMAT = 1
_MERGES_KNOWN = 64
_WORDS = ("ids", "stems", "surfaces")
_SUFFIX = ".seal"
_ABANDONED_SECONDS = 3_600

log = logging.getLogger("omnigraph.index")


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A text column in one language. A column that is dropped and made again has another number."""

    table: str
    number: int
    language: str

    @property
    def folder(self) -> str:
        return f"{self.table.replace('/', '-')}-{self.number}-{self.language}"


class TextFiles:
    """The text indexes of a graph on the local disk. Thread-safe, and safe with other processes."""

    def __init__(self, root: Path, *, is_writable: bool) -> None:
        self._root = root / DIRECTORY
        self._is_writable = is_writable
        self._pending: set[Future[None]] = set()
        self._merged: dict[TextColumn, TextIndex | None] = {}
        self._merging: Lru[object, bool] = Lru(_MERGES_KNOWN)
        self._lock = Lock()

    def find(self, column: TextColumn) -> dict[Path, tuple[Files, ...]]:
        """The files of a column, and the fragments each one covers."""
        found = {}
        for path in _list_sealed(self._root / column.folder):
            facts = read_facts(path, _FORMAT)
            if facts is not None:
                found[path] = tuple(map(tuple, facts["fragments"]))
        return found

    def load(self, path: Path) -> TextIndex | None:
        """Map an index; None when the file is gone, or damaged as far as can be seen by now."""
        try:
            index = _to_index(SealedFile(path))
            if self._is_writable:
                with suppress(OSError):
                    os.utime(path)  # the files used least recently make room
            return index
        except Damaged as error:
            self.remove(error)
        except OSError:
            pass  # another process made room
        return None

    def remove(self, error: Damaged) -> None:
        """Remove a damaged file, so that it is made anew."""
        log.warning("%s — it is derived anew", error)
        if self._is_writable:
            with suppress(OSError):
                os.unlink(error.path)

    # Writing

    def save_later(
        self, column: TextColumn, index: TextIndex, replaced: Collection[TextIndex] = ()
    ) -> None:
        """Write an index in the background; then remove the small ones that it replaces."""

        def work() -> None:
            if self._save(column, index):
                self._remove_small(column, replaced)

        self._run_later(work)

    def merge_later(
        self, column: TextColumn, merge: Callable[[], TextIndex], replaced: Collection[TextIndex]
    ) -> None:
        """Merge indexes in the background, unless that is being done, and write the result."""
        name = (column, *(each.fragments for each in replaced))

        def work() -> None:
            index = merge()
            if self._save(column, index):
                mapped = self.load(self._path(column, index.fragments))
                with self._lock:
                    self._merged[column] = mapped
                self._remove_small(column, replaced)

        if self._merging.get(name) is None:
            self._merging.put(name, True)
            self._run_later(work)

    def list_merged(self, column: TextColumn) -> list[TextIndex]:
        """What was merged in the background of late."""
        with self._lock:
            found = self._merged.get(column)
        return [] if found is None else [found]

    def _remove_small(self, column: TextColumn, replaced: Collection[TextIndex]) -> None:
        """Remove indexes that another one has in it; versions that lack the rest count anew."""
        for each in replaced:
            if len(each) < SMALL_ROWS:
                with suppress(OSError):
                    self._path(column, each.fragments).unlink(missing_ok=True)

    def _run_later(self, work: Callable[[], object]) -> None:
        if not self._is_writable:
            return

        def run() -> None:
            try:
                work()
            except (OSError, Damaged) as error:
                log.info("a text index was not saved: %s", error)
            except Exception as error:
                log.error("a text index was not saved", exc_info=error)

        with self._lock, suppress(RuntimeError):  # a pool takes no more work at the end
            self._pending = {each for each in self._pending if not each.done()}
            self._pending.add(_pool().submit(run))

    def wait(self) -> None:
        """Wait for what is to be written now."""
        with self._lock:
            pending = list(self._pending)
        wait(pending)

    def _save(self, column: TextColumn, index: TextIndex) -> bool:
        path = self._path(column, index.fragments)
        if not self._root.parent.parent.is_dir():
            return False  # the graph was moved or removed
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = {"format": _FORMAT, "fragments": index.fragments, "length": index.total_length}
        arrays = {name: each.all() for name, each in index.sections.items()}
        for name in _WORDS:
            words: Words = getattr(index, name)
            arrays |= {f"{name}.ends": words.ends.all(), f"{name}.data": words.data.all()}
        write_sealed(path, facts, arrays)
        self._make_room()
        return True

    def _path(self, column: TextColumn, fragments: Collection[Files]) -> Path:
        digest = hashlib.sha256(repr(sorted(fragments)).encode()).hexdigest()[:32]
        return self._root / column.folder / f"{digest}{_SUFFIX}"

    # Upkeep

    def find_damage(self) -> dict[str, str]:
        """File → what is wrong with it, of the files that are not as they were written."""
        damaged = {}
        for path in self._list_all():
            try:
                SealedFile(path).check()
            except Damaged:
                damaged[str(path)] = "is damaged: its bytes are not those that were written"
            except OSError:
                continue  # another process made room
        return damaged

    def remove_unneeded(self, data_files: Collection[str]) -> None:
        """Remove the files of which some data file is gone: no version needs them whole."""
        self._remove_abandoned()
        for path in self._list_all():
            facts = read_facts(path, _FORMAT)
            named = [] if facts is None else [name for each in facts["fragments"] for name in each]
            if facts is None or not all(name in data_files for name in named):
                with suppress(OSError):
                    path.unlink()
        for folder in _list(self._root):
            with suppress(OSError):
                folder.rmdir()  # only if it is empty

    def _remove_abandoned(self) -> None:
        """Remove what a process that died was writing."""
        before = time.time() - _ABANDONED_SECONDS
        for folder in _list(self._root):
            for path in _list(folder):
                with suppress(OSError):
                    if path.suffix != _SUFFIX and path.stat().st_mtime < before:
                        path.unlink()

    def _make_room(self) -> None:
        files = []
        for path in self._list_all():
            with suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        size = sum(each for _, each, _ in files)
        for _, bytes_, path in sorted(files):
            if size <= BYTES_MAX:
                break
            with suppress(OSError):
                path.unlink()
            size -= bytes_

    def _list_all(self) -> Iterator[Path]:
        for folder in _list(self._root):
            yield from _list_sealed(folder)


def _list(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []  # nothing was ever saved, or it was removed


def _list_sealed(folder: Path) -> list[Path]:
    """The whole files of a folder: a file that is being written has another name."""
    return [each for each in _list(folder) if each.suffix == _SUFFIX]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "omnigraph-derived")


def _to_index(file: SealedFile) -> TextIndex:
    try:
        fields: dict[str, Any] = {name: file.sections[name] for name in SECTIONS}
        for name in _WORDS:
            fields[name] = Words(file.sections[f"{name}.ends"], file.sections[f"{name}.data"])
        fragments = tuple(map(tuple, file.facts["fragments"]))
        return TextIndex(fragments, **fields, total_length=file.facts["length"])
    except (KeyError, TypeError) as error:
        raise Damaged(str(file.path)) from error
