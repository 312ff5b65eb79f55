"""Write messages: what a server and the process of its long writes say to each other.

server → worker   Setup once, then Run with a body, and Stop
worker → server   Ready once, then Done for every Run
worker → server   Ask, in the middle of a run, and Answer the other way
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from omnigraph.errors import OmnigraphError
from omnigraph.manifest import PublishDelta, UpdatePin
from omnigraph.server.jobs import Body, Job, Load
from omnigraph.server.settings import ServedGraph


@dataclass(frozen=True, slots=True)
class Setup:
    """What the worker has to know of the server. Tokens are not among it."""

    graphs: tuple[ServedGraph, ...]
    is_open: bool
    threads: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has imported everything and waits for work."""


@dataclass(frozen=True, slots=True)
class Run:
    """Do a job. The body of its request is sent behind it, as it is."""

    number: int
    graph_id: str
    job: Job


@dataclass(frozen=True, slots=True)
class Done:
    """A job has ended; with neither result nor error it failed in a way that only the log tells."""

    number: int
    result: dict[str, Any] | None = None
    error: OmnigraphError | None = None


@dataclass(frozen=True, slots=True)
class MayLoad:
    """May the caller of a run load that?"""

    run: int
    wanted: Load


@dataclass(frozen=True, slots=True)
class Foresee:
    """A branch is about to show these versions: decode what queries will want of them."""

    graph_id: str
    branch: str
    pins: Sequence[UpdatePin]


@dataclass(frozen=True, slots=True)
class Ask:
    number: int
    question: MayLoad | Foresee


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes, or why not."""

    number: int
    error: OmnigraphError | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A branch of a graph was changed so."""

    graph_id: str
    step: PublishDelta


@dataclass(frozen=True, slots=True)
class Stop:
    """End what is under way, then end."""


Message: TypeAlias = Setup | Ready | Run | Done | Ask | Answer | Shown | Stop


class Channel:
    """One end of the pipe between the two. Any thread may send, one receives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: Message, body: Body = b"") -> None:
        """Send a message.

        Raises:
            OSError: The other end is gone.
        """
        with self._lock:
            self._connection.send(message)
            if isinstance(message, Run):
                self._connection.send_bytes(body)

    def receive(self) -> tuple[Message, Body]:
        """Wait for a message, and the body of a run.

        Raises:
            EOFError: The other end is gone.
        """
        message: Message = self._connection.recv()
        body = self._connection.recv_bytes() if isinstance(message, Run) else b""
        return message, body
