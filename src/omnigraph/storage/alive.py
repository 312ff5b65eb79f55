"""Alive: a mark that a process is at work on something. The system drops it when the process dies.

On a local disk a mark is a locked file under `<root>/__locks/`. On an object store one process at a
time writes to a graph, so there a mark is known to its own process only.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from omnigraph.errors import ConflictError
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.location import GraphRoot
from omnigraph.storage.queues import LOCK_DIRECTORY

_ATTEMPTS = 6
_held_here: set[tuple[str, str]] = set()
_lock = threading.Lock()


class AliveMarks:
    """The marks of one graph, by name."""

    def __init__(self, root: GraphRoot) -> None:
        self._root = root
        self._directory = root.child(LOCK_DIRECTORY) if root.is_local else None

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Hold a mark while the block runs; its file is removed afterwards.

        Raises:
            ConflictError: It is held already.
        """
        if self._directory is None:
            with _lock:
                if (self._root.uri, name) in _held_here:
                    raise _held_error(name)
                _held_here.add((self._root.uri, name))
            try:
                yield
            finally:
                with _lock:
                    _held_here.discard((self._root.uri, name))
            return
        path = self._path(name)
        with lance_errors("marking work in progress", path):
            os.makedirs(self._directory, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock_now(descriptor, name)
            try:
                yield
            finally:
                self.remove(name)
        finally:
            os.close(descriptor)

    def is_held(self, name: str) -> bool:
        """Whether a living process holds a mark."""
        if self._directory is None:
            with _lock:
                return (self._root.uri, name) in _held_here
        try:
            descriptor = os.open(self._path(name), os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            # Shared, so that two processes that look do not take each other for the holder.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def remove(self, name: str) -> None:
        """Remove the file that a dead holder left."""
        if self._directory is not None:
            with suppress(OSError):
                os.unlink(self._path(name))

    def _path(self, name: str) -> str:
        assert self._directory is not None
        return os.path.join(self._directory, f"{name}.alive")


def _lock_now(descriptor: int, name: str) -> None:
    """Lock a file; a process that just looks at the mark is waited for, a holder is not."""
    for attempt in range(_ATTEMPTS):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.001 * 2**attempt)
    raise _held_error(name)


def _held_error(name: str) -> ConflictError:
    return ConflictError(f"'{name}' is being worked on")
