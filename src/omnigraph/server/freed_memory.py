"""Freed memory: what answers took is given back to the system while they are sent.

Heaps keep what was freed, in pieces that the next rows do not always fit into, so a server that
sends for long would grow. Giving back walks the heaps, a few milliseconds, in a thread.
"""

from __future__ import annotations

from omnigraph.machine import give_memory_back
from omnigraph.server.worker_pool import WorkerPool

EVERY_BYTES = 4 * 1024 * 1024


class FreedMemory:
    """Gives memory back each time so many bytes have been sent. Used on the event loop only."""

    def __init__(self, threads: WorkerPool) -> None:
        self._threads = threads
        self._sent = 0

    def count_sent(self, size: int) -> None:
        """Count bytes of an answer, of whatever request."""
        self._sent += size
        if self._sent >= EVERY_BYTES:
            self._sent = 0
            self._threads.submit(give_memory_back)
