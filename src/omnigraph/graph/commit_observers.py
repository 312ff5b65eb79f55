"""Commit observers: readers that are made ready for a commit before it is published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.manifest import PublishDelta, UpdatePin

if TYPE_CHECKING:
    from omnigraph.graph.handle import Handle


class Prefetcher:
    """The observer of a handle that reads what it writes itself."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        self._handle._read_ahead(branch, pins)

    def after_publish(self, delta: PublishDelta) -> None: ...


class ReaderObserver:
    """The observer of a writer, on behalf of a handle in another process that only reads."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        states = self._handle._coordinator.states
        if states.find(branch) is not None:  # else no reader here has ever asked for it
            self._handle._read_ahead(branch, pins)
            states.expect_notification(branch)

    def after_publish(self, delta: PublishDelta) -> None:
        self._handle._coordinator.states.notify(delta)
