"""Run: the process of a server. Binds, says where, serves, and stops without losing a write."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from omnigraph.errors import BadRequestError
from omnigraph.machine import keep_few_heaps
from omnigraph.server.app import Application, create_app
from omnigraph.server.logs import LEVEL_VARIABLE, log_to_stderr
from omnigraph.server.reload import Source
from omnigraph.server.settings import ServerSettings
from omnigraph.server.traces import traces_from

LISTEN_LINE = "OMNIGRAPH_LISTEN_ADDR"


def print_address(address: str) -> None:
    """Say on stdout where the server listens."""
    print(f"{LISTEN_LINE}={address}", flush=True)


class AnnouncingServer(uvicorn.Server):
    """A server that announces where it listens, and ends with success when told to stop."""

    def __init__(
        self, app: Application, config: uvicorn.Config, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._app = app
        self._announce = announce

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop: no new requests, and no more events to clients that wait for them."""
        self._app.serving.events.close()
        super().handle_exit(sig, frame)

    def handle_reload(self, sig: int, frame: FrameType | None) -> None:
        """Read tokens, policies and stored queries again."""
        if self._app.reloader is not None:
            self._app.reloader.request()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop or reload at a signal. Unlike the base, do not die of it once all is in order."""
        stops = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in stops}
        if self._app.reloader is not None:
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self.handle_reload)
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is here now stays. A full collection would go through it for a tenth of a second.
        gc.collect()
        gc.freeze()
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            self._announce(f"{shown}:{port}")


def run(
    settings: ServerSettings,
    source: Source | None = None,
    *,
    announce: Callable[[str], None] = print_address,
    log_level: str = "info",
) -> None:
    """Serve until SIGINT or SIGTERM, then answer what is under way and close the graphs.

    With a `source` the settings are read again on SIGHUP, and when their files change. `announce`
    gets the address when the server listens.

    Raises:
        OmnigraphError: The settings are refused, a graph cannot be served, or the address is taken.
    """
    keep_few_heaps()
    log_to_stderr(os.environ.get(LEVEL_VARIABLE, log_level))
    settings.check()
    listening = _bind(settings.bind)
    with listening:
        app = create_app(settings, source, traces_from(os.environ))
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=settings.limits.shutdown_seconds,
        )
        AnnouncingServer(app, config, announce).run(sockets=[listening])


def _bind(bind: str) -> socket.socket:
    host, _, port = bind.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise BadRequestError(f"--bind is '{bind}', expected <host>:<port>")
    bare = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((bare, int(port)))
    except OSError as error:
        found.close()
        raise BadRequestError(f"cannot listen on '{bind}': {error.strerror}") from None
    found.set_inheritable(True)
    return found
