"""At once: do something only if nobody has to wait for it, as on the thread of an event loop.

    with at_once():    run what follows, or give it up with TakesTime
    takes_time()       said by code that is about to read, build, compile or wait

Who has given up asks again where waiting is allowed. So what takes time has to say so before it
has changed anything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TakesTime(BaseException):
    """What was to be done at once takes time. Nothing is wrong, so nobody in between handles it."""


class _Thread(threading.local):
    is_in_a_hurry = False


_thread = _Thread()


@contextmanager
def at_once() -> Iterator[None]:
    """In the block, this thread does what it can do without waiting.

    Raises:
        TakesTime: There is something that it cannot; nothing was done.
    """
    before, _thread.is_in_a_hurry = _thread.is_in_a_hurry, True
    try:
        yield
    finally:
        _thread.is_in_a_hurry = before


def takes_time() -> None:
    """Say that what comes now may take long: it reads, builds, compiles or waits.

    Raises:
        TakesTime: The caller wants no such thing.
    """
    if _thread.is_in_a_hurry:
        raise TakesTime
