"""Nonblocking: run code on a thread that must not block, such as the thread of an event loop.

    with nonblocking():    run the block, or stop it with WouldBlock
    may_block()            called by code that is about to read, build, compile or wait

On WouldBlock the caller retries in a thread. So code calls `may_block` before it changes anything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class WouldBlock(BaseException):
    """The block cannot finish without blocking.

    Control flow, not a failure: a BaseException, so that no `except Exception` in between stops it.
    """


class _Thread(threading.local):
    is_nonblocking = False


_thread = _Thread()


@contextmanager
def nonblocking() -> Iterator[None]:
    """Forbid this thread to block inside the `with` block.

    Raises:
        WouldBlock: The work has to block. It was stopped before it had any effect.
    """
    before, _thread.is_nonblocking = _thread.is_nonblocking, True
    try:
        yield
    finally:
        _thread.is_nonblocking = before


def may_block() -> None:
    """Declare that what follows may take long: it reads, builds, compiles or waits.

    Raises:
        WouldBlock: The thread is inside `nonblocking()`.
    """
    if _thread.is_nonblocking:
        raise WouldBlock
