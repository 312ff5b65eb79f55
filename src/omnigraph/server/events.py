"""Events: the change feed over one long response, each commit as it is made.

An event carries a page of the feed. Its id is where to go on after it, so a client that connects
again with `Last-Event-ID` loses nothing. A reader holds the bytes of one page, and no version of a
table. One that takes nothing for a while counts as gone: its connection ends, its place is free.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from omnigraph.branch.feed import ChangePage
from omnigraph.errors import OmnigraphError
from omnigraph.machine import give_memory_back
from omnigraph.server.admission import TooManyRequests
from omnigraph.server.envelope import error_body
from omnigraph.server.streaming import join_parts

if TYPE_CHECKING:
    from omnigraph.server.call import Call

EVENTS = "text/event-stream"
LAST_EVENT = "last-event-id"
EVENT_BYTES = 512 * 1024
"""A page as an event is small: a client that reads slowly has one kept for it."""
POLL_SECONDS = 0.25
"""How often a reader that is caught up looks for a new commit; a look costs one small read."""
QUIET_SECONDS = 15.0
"""After so long without an event a comment is sent, lest the connection is taken for dead."""
_PAGE_PREFIX = "page:"

log = logging.getLogger("omnigraph.server")


class EventReaders:
    """The streams of events that are open. Used on the event loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.open = 0
        """How many there are."""
        self.generation = 0
        """A stream ends when this is no longer what it was when the stream began."""
        self.is_closing = False

    def take(self) -> None:
        """Take a place; `release` has to follow.

        Raises:
            TooManyRequests: There is none.
        """
        if self.open >= self._most:
            raise TooManyRequests(f"{self._most} event streams are open — poll, or try again later")
        self.open += 1

    def release(self) -> None:
        self.open -= 1

    def end_streams(self) -> None:
        """End every stream within a moment: what its client may read has to be asked again."""
        self.generation += 1

    def close(self) -> None:
        """End every stream within a moment: the server is about to stop."""
        self.is_closing = True


def open_events(call: Call, poll: Callable[..., ChangePage], first: ChangePage) -> Response:
    """Send a page and all that follow it, until the client goes away or the server stops.

    Raises:
        TooManyRequests: Too many clients are being sent events.
    """
    call.serving.events.take()
    return _EventStream(_make_events(call, poll, first), call)


def read_event_id(text: str) -> dict[str, str | None]:
    """Where to go on after an event."""
    if text.startswith(_PAGE_PREFIX):
        return {"page_token": text.removeprefix(_PAGE_PREFIX)}
    return {"cursor": text}


def _write_event_id(page: ChangePage) -> str:
    if page.next_page_token is not None:
        return _PAGE_PREFIX + page.next_page_token
    return page.cursor or ""


async def _make_events(
    call: Call, poll: Callable[..., ChangePage], page: ChangePage
) -> AsyncIterator[bytes]:
    quiet, readers = 0.0, call.serving.events
    generation = readers.generation
    while not readers.is_closing and generation == readers.generation:
        event_id, is_caught_up = _write_event_id(page), page.caught_up
        event = _encode_event("changes", page.to_json(), event_id) if page.blocks else None
        del page  # as objects it is several times as large, and a client may take long to read it
        if event is not None:
            yield event
            quiet, event = 0.0, None
        if is_caught_up:
            await asyncio.sleep(POLL_SECONDS)
            quiet += POLL_SECONDS
            if quiet >= QUIET_SECONDS:
                yield b": nothing new\n\n"
                quiet = 0.0
        try:
            page = await call.run_read(poll, **read_event_id(event_id))
        except OmnigraphError as error:
            yield _encode_event("error", error_body(error))
            return


async def _cut(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Events in parts that the buffer of a connection has room for."""
    async for event in events:
        for part in join_parts([event]):
            yield part


def _encode_event(name: str, value: Any, event_id: str | None = None) -> bytes:
    head = f"event: {name}\n" if event_id is None else f"event: {name}\nid: {event_id}\n"
    return head.encode() + b"data: " + orjson.dumps(value) + b"\n\n"


class _EventStream(StreamingResponse):
    """Events, no faster than the client takes them; the place is given back when they end."""

    def __init__(self, events: AsyncIterator[bytes], call: Call) -> None:
        super().__init__(_cut(events), media_type=EVENTS, headers={"Cache-Control": "no-store"})
        self._readers = call.serving.events
        self._threads = call.serving.readers
        self._stall_seconds = call.serving.settings.limits.stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, partial(self._send_in_time, send))
        except TimeoutError:
            log.warning("ended events that their client did not read for %g s", self._stall_seconds)
        finally:
            self._readers.release()
            self._threads.submit(give_memory_back)

    async def _send_in_time(self, send: Send, message: Message) -> None:
        async with asyncio.timeout(self._stall_seconds):
            await send(message)
