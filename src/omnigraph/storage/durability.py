"""Durability: acknowledged means on disk.

Lance renames and links files but never syncs them, so a power cut may lose what it wrote. In mode
`power` (the default) we sync the files and then their directories ourselves; `process` skips it
and survives only the death of the process. Object stores are durable when a put returns.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from typing import Literal, TypeAlias

from omnigraph.lru import Lru
from omnigraph.storage.counters import record
from omnigraph.storage.file_times import Attributes, read_attributes, stable_after

Durability: TypeAlias = Literal["power", "process"]


SYNCS_AT_ONCE = 8
"""The system writes what several of them wait for in one go."""
_DIRECTORIES_MAX = 256
_synced = Lru[str, Attributes](_DIRECTORIES_MAX)
"""Directories that had these attributes when they were last synced, and for a while before."""


class _Thread(threading.local):
    put_off: list[str] | None = None


_thread = _Thread()


def sync_paths(paths: Iterable[str]) -> None:
    """Flush files and directories to the disk, side by side; returns when all of them are.

    Until then any of them may be there without the others: what has to be on the disk before
    something else is a call of its own. A directory in which nothing came or went since it was
    last synced is left out: most writes add files, and no directories.
    """
    put_off = _thread.put_off
    if put_off is not None:
        put_off.extend(paths)
        return
    wanted = [path for path in dict.fromkeys(paths) if not _is_settled(path)]
    if not wanted:
        return
    # A thread that takes two finds the second one written with the first, more often than not.
    runners = min(SYNCS_AT_ONCE, (len(wanted) + 1) // 2)
    mine, *parts = (wanted[number::runners] for number in range(runners))
    others = list[Future[None]]()
    try:
        others += [_pool().submit(_sync_each, part) for part in parts]
    except RuntimeError:  # the interpreter is about to end, and its pools take no more work
        mine = wanted
    try:
        _sync_each(mine)
    finally:
        wait(others)
    for other in others:
        other.result()
    record(fsyncs=len(wanted), sync_waits=1)


@contextmanager
def put_off_syncs() -> Iterator[list[str]]:
    """Gather what this thread would sync, for a caller that soon syncs it together with more."""
    before, gathered = _thread.put_off, list[str]()
    _thread.put_off = gathered
    try:
        yield gathered
    finally:
        _thread.put_off = before


def sync_soon(path: str) -> None:
    """Flush a directory whose change does no harm if it is lost, without waiting for it."""
    try:
        _pool().submit(_sync_if_there, path)
    except RuntimeError:  # as above
        _sync_if_there(path)
    record(fsyncs=1)


def _sync_if_there(path: str) -> None:
    with suppress(OSError):
        sync_path(path)


def _is_settled(path: str) -> bool:
    """Whether this is a directory that is on the disk as it is."""
    known = _synced.get(path)
    return known is not None and known == read_attributes(path)


def _sync_each(paths: Sequence[str]) -> None:
    for path in paths:
        sync_path(path)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(SYNCS_AT_ONCE, "omnigraph-sync")


def sync_tree(top: str, more: Iterable[str] = ()) -> None:
    """Flush a directory, everything below it, its entry in the parent, and more side by side."""
    found: list[str] = []
    for directory, _, files in os.walk(top, topdown=False):
        found.extend(os.path.join(directory, name) for name in files)
        found.append(directory)
    sync_paths([*found, os.path.dirname(top), *more])


def with_parents(paths: Iterable[str], top: str) -> list[str]:
    """Return the paths and every directory above them up to and including `top`."""
    result: dict[str, None] = {}
    for path in paths:
        result[path] = None
        directory = os.path.dirname(path)
        while len(directory) > len(top):
            result[directory] = None
            directory = os.path.dirname(directory)
        result[top] = None
    return list(result)


def sync_path(path: str) -> None:
    """Flush a file or a directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        before = os.fstat(descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    changed_ns = before.st_ctime_ns
    # What came or went in the same tick of the clock as the last change would not show later.
    if stat.S_ISDIR(before.st_mode) and time.time_ns() - changed_ns > stable_after(changed_ns):
        _synced.put(path, (before.st_ino, changed_ns, before.st_size))
