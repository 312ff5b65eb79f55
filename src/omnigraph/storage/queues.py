"""Queues: one writer at a time per (table, branch), in this process and on this machine.

A queue is an in-process lock and, on a local disk, a file lock under `<root>/__locks/`. The system
releases the file lock when its holder dies, so a killed writer never blocks the next one. On an
object store only the in-process lock exists; there one writer process per graph is supported.

Keys are taken in sorted order, so writers of several tables cannot deadlock. A queue is not
re-entrant: pass the held guard on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeAlias

from omnigraph.errors import ConflictError, InvariantViolated
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.location import GraphRoot

LOCK_DIRECTORY = "__locks"
SCHEMA_APPLY_KEY = ("__schema_apply__", None)
_POLL_SECONDS_MAX = 0.05

QueueKey: TypeAlias = tuple[str, str | None]


class Guard:
    """Held queues. Use as a context manager, or call `release` once."""

    def __init__(self, held: list[_Queue]) -> None:
        self._held = held

    @property
    def keys(self) -> frozenset[QueueKey]:
        return frozenset(queue.key for queue in self._held)

    def release(self) -> None:
        """Let the next writers in; safe to call again."""
        held, self._held = self._held, []
        for queue in reversed(held):
            queue.release()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class WriterQueues:
    """The queues of one graph. Get it from `writer_queues`, so that all handles share it."""

    def __init__(self, root: GraphRoot) -> None:
        self._directory = root.child(LOCK_DIRECTORY) if root.is_local else None
        self._queues: dict[QueueKey, _Queue] = {}
        self._lock = threading.Lock()

    def acquire_many(
        self, keys: Iterable[QueueKey], *, timeout_seconds: float | None = None
    ) -> Guard:
        """Wait for every queue, in sorted order, and hold them all.

        Raises:
            ConflictError: `timeout_seconds` passed first. Nothing is held.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        guard = Guard([])
        try:
            for key in sorted(set(keys), key=_order):
                queue = self._queue(key)
                queue.acquire(deadline)
                guard._held.append(queue)
        except BaseException:
            guard.release()
            raise
        return guard

    def _queue(self, key: QueueKey) -> _Queue:
        with self._lock:
            if key not in self._queues:
                self._queues[key] = _Queue(key, self._directory)
            return self._queues[key]


class _Queue:
    """One key: the thread lock is taken first, so one thread per process waits for the file."""

    def __init__(self, key: QueueKey, directory: str | None) -> None:
        self.key = key
        self._path = None if directory is None else os.path.join(directory, _file_name(key))
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._descriptor: int | None = None

    def acquire(self, deadline: float | None) -> None:
        if self._owner == threading.get_ident():
            raise InvariantViolated(
                f"this thread already holds the queue {self.key}: pass its guard"
            )
        remaining = -1 if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._lock.acquire(timeout=remaining):
            raise _timeout_error(self.key)
        try:
            if self._path is not None:
                self._descriptor = _lock_file(self._path, deadline, self.key)
            self._owner = threading.get_ident()
        except BaseException:
            self._lock.release()
            raise

    def release(self) -> None:
        self._owner = None
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # Closing drops the lock: it belongs to the open file, not to the process.
            os.close(descriptor)
        self._lock.release()


_registry: dict[str, WriterQueues] = {}
_registry_lock = threading.Lock()


def writer_queues(root: GraphRoot) -> WriterQueues:
    """The queues of the graph at `root`, shared by everything in this process."""
    with _registry_lock:
        found = _registry.get(root.uri)
        if found is None:
            found = _registry[root.uri] = WriterQueues(root)
        return found


def _order(key: QueueKey) -> tuple[str, bool, str]:
    table_key, branch = key
    return table_key, branch is not None, branch or ""


def _file_name(key: QueueKey) -> str:
    table_key, branch = key
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", f"{table_key}@{branch or 'main'}")[:80]
    return f"{readable}-{digest}.lock"


def _lock_file(path: str, deadline: float | None, key: QueueKey) -> int:
    with lance_errors("taking a writer lock", path):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if deadline is None:
            if threading.current_thread() is threading.main_thread():
                # An event loop or a library may have had calls go on after a signal: then Ctrl-C
                # would not end the wait.
                signal.siginterrupt(signal.SIGINT, True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            _poll(descriptor, deadline, key)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _poll(descriptor: int, deadline: float, key: QueueKey) -> None:
    pause = 0.001
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() >= deadline:
            raise _timeout_error(key)
        time.sleep(pause)
        pause = min(2 * pause, _POLL_SECONDS_MAX)


def _timeout_error(key: QueueKey) -> ConflictError:
    table_key, branch = key
    return ConflictError(
        f"another writer holds '{table_key}' on branch '{branch or 'main'}' — try again"
    )
