"""Work progress: how far a call is with the rows that it compares or writes.

The work is far below the call, and few calls are listened to: the listener belongs to the thread
of the call. Without one nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

CHECKING, COMPARING, WRITING, REMOVING = "checking", "comparing", "writing", "removing"
"""Stages, as a load calls its own."""


class WorkListener(Protocol):
    """Is told of each stage, how many parts it has, and how many of them and rows are done."""

    def stage(self, name: str, total: int = 0, rows: int | None = None) -> None: ...

    def update(self, done: int, rows: int | None = None) -> None: ...


_listener: ContextVar[WorkListener | None] = ContextVar("work listener", default=None)


@contextmanager
def progress_to(listener: WorkListener) -> Iterator[None]:
    """Tell `listener` of the work that this thread does inside the `with` block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def begin_stage(name: str, parts: int) -> WorkListener | None:
    """Tell that a stage begins; the listener to go on with, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener.stage(name, parts, rows=0)
    return listener


@contextmanager
def one_part(stage: str, rows: int) -> Iterator[None]:
    """Tell of a stage whose rows are done at once, inside the `with` block."""
    listener = begin_stage(stage, 1)
    yield
    if listener is not None:
        listener.update(1, rows)
