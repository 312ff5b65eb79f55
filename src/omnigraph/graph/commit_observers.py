"""Readers: who reads what a handle writes, when that is another handle, in another process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from omnigraph.manifest import PublishDelta, UpdatePin

if TYPE_CHECKING:
    from omnigraph.graph.handle import Handle


class CommitObserver(Protocol):
    """Readers that want to be ready for what is written."""

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        """A branch is about to show these versions. Returns when the readers are ready."""

    def after_publish(self, step: PublishDelta) -> None:
        """A branch was changed so."""


class ReaderObserver:
    """Those who read through one handle."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        coordinator = self._handle._coordinator
        if coordinator.is_known(branch):  # else nobody here has ever asked for it
            self._handle._read_ahead(branch, pins)
            coordinator.expect(branch)

    def after_publish(self, step: PublishDelta) -> None:
        self._handle._coordinator.follow(step)
