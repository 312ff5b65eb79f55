"""Commit observers: readers that are made ready for a commit before it is published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.manifest import PublishDelta, UpdatePin
from omnigraph.manifest.freshness import NoObserver

if TYPE_CHECKING:
    from omnigraph.graph.session import Session


class Prefetcher(NoObserver):
    """The observer of a session whose own queries read what it writes."""

    def __init__(self, session: Session, *, all_of_it: bool) -> None:
        self._session = session
        self._all_of_it = all_of_it

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        self._session.prefetch(branch, pins, all_of_it=self._all_of_it)


class ReaderObserver:
    """The observer of a writer, for the queries of another session, often in another process."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        states = self._session.coordinator.states
        if states.find(branch) is not None:  # else no query here has ever read it
            self._session.prefetch(branch, pins)
            states.expect_notification(branch)

    def after_publish(self, delta: PublishDelta) -> None:
        self._session.coordinator.states.notify(delta)
