"""Streaming: an export or a comparison, chunk by chunk, no faster than the client takes it.

A thread makes the next chunk while the last one is being sent, and no more than that: a slow
client holds two chunks, not the graph. When the client disconnects, the records are closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from omnigraph.errors import ResourceLimitError
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.metrics import Metrics
from omnigraph.server.settings import Limits

if TYPE_CHECKING:
    from omnigraph.server.call import Call, Serving

CHUNK_BYTES = 64 * 1024
CHUNKS_PER_STREAM = 2
SLOTS = "stream_export_slots"
TRANSPORT = "stream_export_transport_bytes"
NDJSON_UTF8 = "application/x-ndjson; charset=utf-8"

log = logging.getLogger("omnigraph.server")


class ExportSlots:
    """Limits the exports in flight, per graph and in all. Used on the event loop only."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._free = asyncio.Semaphore(limits.exports_max)

    async def take(self, opened: OpenGraph) -> None:
        """Take a slot; `release` has to follow.

        Raises:
            ResourceLimitError: There is none, also after a short wait.
        """
        limits = self._limits
        if opened.exports >= limits.exports_per_graph_max:
            raise ResourceLimitError(
                SLOTS,
                limit=limits.exports_per_graph_max,
                actual=opened.exports + 1,
                advice="try again when an export of this graph has ended",
            )
        opened.exports += 1
        try:
            async with asyncio.timeout(limits.export_wait_seconds):
                await self._free.acquire()
        except BaseException as error:
            opened.exports -= 1
            if not isinstance(error, TimeoutError):
                raise
            each = CHUNK_BYTES * CHUNKS_PER_STREAM
            raise ResourceLimitError(
                TRANSPORT,
                limit=limits.exports_max * each,
                actual=(limits.exports_max + 1) * each,
                advice="try again when another export has ended",
            ) from None
        self._metrics.exports.inc()

    def release(self, opened: OpenGraph) -> None:
        opened.exports -= 1
        self._free.release()
        self._metrics.exports.dec()


async def stream(
    call: Call, begin: Callable[[], Iterable[bytes]], media_type: str = NDJSON_UTF8
) -> Response:
    """Send parts as they are made. What fails before the first chunk is there fails before 200.

    Raises:
        ResourceLimitError: Too many streams are being sent.
    """
    serving, opened = call.serving, call.graph
    await serving.slots.take(opened)
    try:
        first, chunks = await serving.exporters.run(_make_first, begin)
    except BaseException:
        serving.slots.release(opened)
        raise
    return _Stream(first, chunks, serving, opened, media_type)


def _make_first(begin: Callable[[], Iterable[bytes]]) -> tuple[bytes | None, Iterator[bytes]]:
    chunks = join_parts(begin())
    return next(chunks, None), chunks


def join_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Parts put together, or cut, into chunks of at most `CHUNK_BYTES`."""
    pending: list[bytes] = []
    size = 0
    for part in parts:
        if size + len(part) > CHUNK_BYTES and pending:
            yield b"".join(pending)
            pending, size = [], 0
        while len(part) > CHUNK_BYTES:
            yield part[:CHUNK_BYTES]
            part = part[CHUNK_BYTES:]
        pending.append(part)
        size += len(part)
    if pending:
        yield b"".join(pending)


class _Stream(Response):
    """A response whose first chunk exists already; the others are made while it is sent."""

    def __init__(
        self,
        first: bytes | None,
        chunks: Iterator[bytes],
        serving: Serving,
        opened: OpenGraph,
        media_type: str,
    ) -> None:
        super().__init__(None, media_type=media_type)
        del self.headers["content-length"]
        self._first = first
        self._chunks = chunks
        self._serving = serving
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            leaving.cancel()
            sending.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            self._serving.slots.release(self._opened)

    async def _send(self, send: Send) -> None:
        stall_seconds = self._serving.settings.limits.stall_seconds
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        following: asyncio.Future[bytes | None] | None = None
        try:
            await send(start)
            chunk = self._first
            while chunk is not None:
                following = self._serving.exporters.run(next, self._chunks, None)
                # A client that reads nothing for so long counts as gone.
                async with asyncio.timeout(stall_seconds):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await asyncio.shield(following)  # a thread cannot be cancelled
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await self._close_records(following)

    async def _close_records(self, following: asyncio.Future[bytes | None] | None) -> None:
        """Close the records of the stream, once no thread uses them."""
        if following is not None and not following.done():
            await asyncio.wait({following})
        close = getattr(self._chunks, "close", None)
        if close is not None:
            await self._serving.exporters.run(close)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
