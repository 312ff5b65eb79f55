"""Admission: limits of the requests in flight per actor. Used on the event loop only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError
from omnigraph.server.settings import Limits

ANONYMOUS = "anonymous"
RETRY_AFTER_SECONDS = 60
BRANCH_WORK_BYTES = 256
"""What a branch operation counts for: it has no body to speak of, and is not free."""


class TooManyRequests(OmnigraphError):
    """The actor has too many requests in flight. Nothing was done."""

    kind = "too_many_requests"
    http_status = 429


class Admission:
    """Counts requests and bytes of each actor. Reads are not counted.

    Check and count happen without an await in between, so they are atomic.
    """

    def __init__(self, limits: Limits, on_reject: Callable[[], object] = lambda: None) -> None:
        self._limits = limits
        self._on_reject = on_reject
        self._in_flight: dict[str, tuple[int, int]] = {}

    def in_flight(self, actor: str | None) -> int:
        """How many requests of an actor are in flight."""
        return self._in_flight.get(_key(actor), (0, 0))[0]

    @contextmanager
    def admit(self, actor: str | None, size: int) -> Iterator[None]:
        """Count a request while the block runs.

        Raises:
            TooManyRequests: A limit is reached.
        """
        key = _key(actor)
        count, used = self._in_flight.get(key, (0, 0))
        limits = self._limits
        if count >= limits.actor_requests_max:
            self._on_reject()
            raise TooManyRequests(f"actor in-flight count cap {limits.actor_requests_max} exceeded")
        if used + size > limits.actor_bytes_max:
            self._on_reject()
            raise TooManyRequests(
                f"actor byte budget exceeded: would use {used + size} bytes "
                f"against cap {limits.actor_bytes_max}"
            )
        self._in_flight[key] = (count + 1, used + size)
        try:
            yield
        finally:
            self._release(key, size)

    def _release(self, key: str, size: int) -> None:
        count, used = self._in_flight[key]
        if count == 1:
            del self._in_flight[key]
        else:
            self._in_flight[key] = (count - 1, used - size)


def _key(actor: str | None) -> str:
    return actor if actor is not None else ANONYMOUS
