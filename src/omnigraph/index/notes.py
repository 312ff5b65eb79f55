"""Notes: what reading did, for `explain`. Without a listener they are dropped.

What is derived from a table version is shared by every query that reads it, so it cannot know
which of them it is working for: the listener belongs to the thread that runs the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """Called with what was done, and how many rows that left."""

    def __call__(self, text: str, rows: int | None = None) -> None: ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def note(text: str, rows: int | None = None) -> None:
    """Call the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(text, rows)


@contextmanager
def notes_to(listener: Listener) -> Iterator[None]:
    """Send the notes of this thread to `listener` inside the `with` block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
