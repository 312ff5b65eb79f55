"""At once: do something only if nobody has to wait for it, as on the thread of an event loop.

    with nonblocking():    run what follows, or give it up with WouldBlock
    may_block()       said by code that is about to read, build, compile or wait

Who has given up asks again where waiting is allowed. So what takes time has to say so before it
has changed anything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class WouldBlock(BaseException):
    """What was to be done at once takes time. Nothing is wrong, so nobody in between handles it."""


class _Thread(threading.local):
    is_nonblocking = False


_thread = _Thread()


@contextmanager
def nonblocking() -> Iterator[None]:
    """In the block, this thread does what it can do without waiting.

    Raises:
        WouldBlock: There is something that it cannot; nothing was done.
    """
    before, _thread.is_nonblocking = _thread.is_nonblocking, True
    try:
        yield
    finally:
        _thread.is_nonblocking = before


def may_block() -> None:
    """Say that what comes now may take long: it reads, builds, compiles or waits.

    Raises:
        WouldBlock: The caller wants no such thing.
    """
    if _thread.is_nonblocking:
        raise WouldBlock
