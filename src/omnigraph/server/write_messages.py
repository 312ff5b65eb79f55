"""Write messages: the protocol between a server and its write process.

server → worker   Setup once, then Run with a body, Adopt after a reload, and Stop
worker → server   Ready once, then Done for every Run
worker → server   Ask, in the middle of a run, and Answer the other way
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.manifest import PublishDelta, UpdatePin
from omnigraph.server.jobs import Body, Job, Load
from omnigraph.server.settings import ServedGraph


@dataclass(frozen=True, slots=True)
class Setup:
    """What the worker has to know of the server; no tokens."""

    graphs: tuple[ServedGraph, ...]
    is_open: bool
    threads: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has imported everything and waits for work."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run a job. The bytes of its request body follow."""

    number: int
    graph_id: str
    job: Job


@dataclass(frozen=True, slots=True)
class Done:
    """A job has ended; without result and error it failed unexpectedly, and the log says how."""

    number: int
    result: dict[str, Any] | None = None
    error: OmnigraphError | None = None


@dataclass(frozen=True, slots=True)
class MayLoad:
    """May the caller of a run load that?"""

    run: int
    wanted: Load


@dataclass(frozen=True, slots=True)
class BeforePublish:
    """A publish is about to make these versions visible: prefetch what queries will need."""

    graph_id: str
    branch: str
    pins: Sequence[UpdatePin]


@dataclass(frozen=True, slots=True)
class Ask:
    number: int
    question: MayLoad | BeforePublish


@dataclass(frozen=True, slots=True)
class Answer:
    """No error means yes."""

    number: int
    error: OmnigraphError | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A publish changed a branch of a graph."""

    graph_id: str
    delta: PublishDelta


@dataclass(frozen=True, slots=True)
class Adopt:
    """The server has read its files again: every later run is decided by these policies."""

    graphs: tuple[ServedGraph, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish the jobs in flight, then end."""


Message: TypeAlias = Setup | Ready | Run | Done | Ask | Answer | Published | Adopt | Stop


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
