"""Write worker: the process in which the long writes of a server run; write_process.py starts it.

It opens the graphs like any other process, so everything that protects a graph from other writers
and from crashes applies. When the server is gone it finishes its jobs, then ends.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError, RecoveryRequired
from omnigraph.manifest import PublishDelta, UpdatePin
from omnigraph.server.graphs import Access, OpenGraph, compile_policy, open_served
from omnigraph.server.jobs import Body, Load
from omnigraph.server.logs import LEVEL_VARIABLE, log_to_stderr
from omnigraph.server.write_messages import (
    Adopt,
    Answer,
    Ask,
    BeforePublish,
    Channel,
    Done,
    MayLoad,
    Published,
    Ready,
    Run,
    Setup,
    Stop,
)

PREFETCH_WAIT_SECONDS = 5.0
NICENESS = 10

log = logging.getLogger("omnigraph.server")


class Worker:
    """Runs jobs, several at a time, on graphs that are opened on first use."""

    def __init__(self, channel: Channel, setup: Setup) -> None:
        self.channel = channel
        self._setup = setup
        self._served = {each.graph_id: each for each in setup.graphs}
        self._opened: dict[str, OpenGraph] = {}
        self._questions: dict[int, Future[None]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Run jobs until the server sends `Stop` or is gone."""
        with ThreadPoolExecutor(self._setup.threads, "omnigraph-write") as pool:
            self.channel.send(Ready())
            while True:
                try:
                    message, body = self.channel.receive()
                except (EOFError, OSError):
                    break
                match message:
                    case Run():
                        pool.submit(self._run, message, body)
                    case Answer():
                        self._take(message)
                    case Adopt():
                        self._adopt(message)
                    case Stop():
                        break
                    case _:
                        raise AssertionError(f"unexpected message to the worker: {message}")
            self._fail_pending()
        for opened in self._opened.values():
            opened.graph.close()

    def _run(self, run: Run, body: Body) -> None:
        try:
            opened = self._open(run.graph_id)
            result = run.job.run(opened, body, partial(self._permit, run.number))
            done = Done(run.number, result=result)
        except OmnigraphError as error:
            done = Done(run.number, error=error)
        except Exception as error:
            log.error("unexpected error in a long write", exc_info=error)
            done = Done(run.number)
        try:
            self.channel.send(done)
        except OSError:
            log.warning("a long write ended after the server was gone")

    def _open(self, graph_id: str) -> OpenGraph:
        with self._lock:
            if graph_id not in self._opened:
                self._opened[graph_id] = open_served(
                    self._served[graph_id],
                    is_open=self._setup.is_open,
                    read_ahead=_ServerObserver(self, graph_id),
                )
            return self._opened[graph_id]

    def _adopt(self, adopt: Adopt) -> None:
        """Take over what the server has checked already."""
        with self._lock:
            self._served = {each.graph_id: each for each in adopt.graphs}
            for graph_id, opened in self._opened.items():
                served = self._served[graph_id]
                opened.adopt(Access(served, compile_policy(served), opened.registry))

    def _permit(self, run: int, wanted: Load) -> None:
        self.ask(MayLoad(run, wanted)).result()

    def ask(self, question: MayLoad | BeforePublish) -> Future[None]:
        number = next(self._numbers)
        asked = self._questions[number] = Future[None]()
        self.channel.send(Ask(number, question))
        return asked

    def _take(self, answer: Answer) -> None:
        asked = self._questions.pop(answer.number)
        if answer.error is None:
            asked.set_result(None)
        else:
            asked.set_exception(answer.error)

    def _fail_pending(self) -> None:
        """Fail the questions that the server will not answer any more."""
        gone = RecoveryRequired("the server went away")
        for number in list(self._questions):
            self._take(Answer(number, gone))


@dataclass(frozen=True, slots=True)
class _ServerObserver:
    """Passes the publishes of one graph on to the server."""

    worker: Worker
    graph_id: str

    def before_publish(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        """Let the server prefetch. The write goes on when it does not answer in time."""
        with suppress(OmnigraphError, OSError, TimeoutError):
            question = BeforePublish(self.graph_id, branch, pins)
            self.worker.ask(question).result(PREFETCH_WAIT_SECONDS)

    def after_publish(self, delta: PublishDelta) -> None:
        """Notify the server of a publish, so that it need not read the manifest."""
        with suppress(OSError):
            self.worker.channel.send(Published(self.graph_id, delta))


def leave_room() -> None:
    """Lower the priority and leave one processor to the queries of the server."""
    os.nice(NICENESS)
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, usable[1:] or usable)


def serve(connection: Connection) -> None:
    """Be the write process of the server at the other end."""
    log_to_stderr(os.environ.get(LEVEL_VARIABLE, "info"))
    leave_room()
    channel = Channel(connection)
    setup, _ = channel.receive()
    assert isinstance(setup, Setup)
    Worker(channel, setup).serve()


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
