"""Notes: what reading did, told to whoever asked. Nobody listens unless a query is explained.

What is derived from a table version is shared by every query that reads it, so it cannot know
which of them it is working for: the listener belongs to the thread that runs the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """Told what was done, and how many rows that left."""

    def __call__(self, text: str, rows: int | None = None) -> None: ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def note(text: str, rows: int | None = None) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(text, rows)


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """While this lasts, everything that is noted is told to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
