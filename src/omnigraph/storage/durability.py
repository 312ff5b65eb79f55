"""Durability: acknowledged means on disk.

Lance renames and links files but never syncs them, so a power cut may lose what it wrote. In mode
`power` (the default) we sync the files and then their directories ourselves; `process` skips it
and survives only the death of the process. Object stores are durable when a put returns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Literal, TypeAlias

from omnigraph.storage.counters import record

Durability: TypeAlias = Literal["power", "process"]


SYNCS_AT_ONCE = 8
"""The system writes what several of them wait for in one go."""


def sync_paths(paths: Iterable[str]) -> None:
    """Flush files and directories to the disk, side by side; returns when all of them are.

    Until then any of them may be there without the others: what has to be on the disk before
    something else is a call of its own.
    """
    unique = list(dict.fromkeys(paths))
    if not unique:
        return
    others = list[Future[None]]()
    try:
        others += [_pool().submit(sync_path, path) for path in unique[1:]]
    except RuntimeError:  # the interpreter is about to end, and its pools take no more work
        for path in unique[1:]:
            sync_path(path)
    try:
        sync_path(unique[0])
    finally:
        wait(others)
    for other in others:
        other.result()
    record(fsyncs=len(unique))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(SYNCS_AT_ONCE, "omnigraph-sync")


def sync_tree(top: str) -> None:
    """Flush a directory, everything below it, and its entry in the parent."""
    found: list[str] = []
    for directory, _, files in os.walk(top, topdown=False):
        found.extend(os.path.join(directory, name) for name in files)
        found.append(directory)
    sync_paths([*found, os.path.dirname(top)])


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
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
