"""Background: what queries will want is made in a thread of its own, and none waits for it.

Work is done one piece after the other. It gives up at the next `may_give_up` when the graph is
closed or the program ends: a program is not kept from ending by what it will not use.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable

log = logging.getLogger(__name__)

_THREAD = threading.local()


class GivenUp(Exception):
    """No query will use this work any more. Raised and caught in the background only."""


def may_give_up() -> None:
    """Long work calls this between its steps.

    Raises:
        GivenUp: It is done in the background, and no query will use it any more.
    """
    owner: Background | None = getattr(_THREAD, "owner", None)
    if owner is not None and owner.is_over:
        raise GivenUp


class Background:
    """Pieces of work by name. Thread-safe; the thread is there while there is work."""

    def __init__(self) -> None:
        self._work: dict[Hashable, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._changed = threading.Condition()

    @property
    def is_over(self) -> bool:
        return self._is_stopped or not threading.main_thread().is_alive()

    def start(self, name: Hashable, work: Callable[[], object]) -> None:
        """Do this after what is there, unless work of that name is waiting or being done."""
        with self._changed:
            if self.is_over or name in self._work:
                return
            self._work[name] = work
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="omnigraph-background")
                self._thread.start()

    def wait(self) -> None:
        """Wait until there is no work."""
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None)

    def stop(self) -> None:
        """Take no more work, and give up what is being done at its next step."""
        self._is_stopped = True

    def _run(self) -> None:
        _THREAD.owner = self
        while True:
            with self._changed:
                name = next(iter(self._work), None)
                if name is None or self.is_over:
                    self._work.clear()
                    self._thread = None
                    self._changed.notify_all()
                    return
                work = self._work[name]
            try:
                work()
            except GivenUp:
                pass
            except Exception as error:
                # A query that needs it makes it itself, and reports what is wrong.
                log.info("%s was not made in the background", name, exc_info=error)
            finally:
                with self._changed:
                    self._work.pop(name, None)
