"""Write process: run long writes beside the server instead of in it.

Threads of one process share its interpreter, and a step of a load holds it for many milliseconds,
in which no query is answered. So large loads and merges of many rows run in a second process. The
first of them starts it; until it is ready they run in the server, unless they are so large that
they would start Spark. When it dies, recovery finishes or undoes its writes, as for any process,
and the next long write starts another one.

On an object store only one process may write to a graph, so there all writes run in the server.
"""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Protocol

from omnigraph.errors import OmnigraphError, RecoveryRequired
from omnigraph.pipeline.loader import part_bytes
from omnigraph.server.graphs import Graphs, OpenGraph
from omnigraph.server.jobs import Body, Job, Permit
from omnigraph.server.metrics import Metrics
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.write_messages import (
    Adopt,
    Answer,
    Ask,
    BeforePublish,
    Channel,
    Done,
    MayLoad,
    Message,
    Published,
    Ready,
    Run,
    Setup,
    Stop,
)

START_SECONDS = 60.0
STOP_SECONDS = 10.0
ANSWERS_AT_ONCE = 4

log = logging.getLogger("omnigraph.server")


class WriteProcess:
    """The second process of a server: at most one at a time, started on demand. Thread-safe."""

    def __init__(self, settings: ServerSettings, graphs: Graphs, metrics: Metrics) -> None:
        self._metrics = metrics
        self._setup = Setup(settings.graphs, settings.is_open, settings.write_threads)
        self._graphs = graphs
        self._worker: _Worker | None = None
        self._lock = threading.Lock()

    def run(self, opened: OpenGraph, job: Job, body: Body, permit: Permit) -> dict[str, Any]:
        """Run a job, in the server or in the process; the result is the same.

        Raises:
            OmnigraphError: What the job raised.
            RecoveryRequired: The process died; the write may have taken effect.
        """
        if not job.is_long(opened, body):
            return job.run(opened, body, permit)
        worker = self._worker_for(opened, job.weigh(body))
        self._metrics.long_write(is_in_write_process=worker is not None)
        if worker is None:
            return job.run(opened, body, permit)
        return worker.run(opened.graph_id, job, body, permit)

    def _worker_for(self, opened: OpenGraph, size: int) -> _Worker | None:
        if not opened.is_local:
            return None
        try:
            worker = self._get_worker()
        except OSError as error:  # the system allows no other process
            log.error("the write process could not be started", exc_info=error)
            return None
        worker.wait(START_SECONDS if size > part_bytes() else 0)
        return worker if worker.is_ready else None

    def adopt(self, graphs: tuple[ServedGraph, ...]) -> None:
        """Let every later run be decided by the policies of these graphs."""
        with self._lock:
            self._setup = replace(self._setup, graphs=graphs)
            if self._worker is not None and not self._worker.is_dead:
                self._worker.adopt(self._setup)

    def wait(self) -> None:
        """Start the process if there is none, and wait until it is ready."""
        self._get_worker().wait(START_SECONDS)

    def close(self) -> None:
        """End the process. Its jobs have ended already."""
        with self._lock:
            if self._worker is not None:
                self._worker.stop()

    def _get_worker(self) -> _Worker:
        with self._lock:
            if self._worker is None or self._worker.is_dead:
                self._worker = _Worker(self._setup, self._graphs)
            return self._worker


class Process(Protocol):
    """A process that was started: what is needed of a `Popen`."""

    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


def start_process(channel: Connection) -> Process:
    """Start a process that serves what comes through a channel."""
    command = [sys.executable, "-P", "-m", "omnigraph.server.write_worker"]
    return subprocess.Popen(
        [*command, str(channel.fileno())],
        pass_fds=[channel.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # the server handles signals from the keyboard
    )


class _Worker:
    """One process and its jobs."""

    def __init__(self, setup: Setup, graphs: Graphs) -> None:
        self._graphs = graphs
        self._runs: dict[int, tuple[Future[Done], Permit]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._is_up = threading.Event()
        self._setup = setup
        self._is_setup_sent = False
        self.is_dead = False
        ours, theirs = multiprocessing.Pipe()
        self._channel = Channel(ours)
        with theirs:
            self._process = start_process(theirs)
        self._answer_pool = ThreadPoolExecutor(ANSWERS_AT_ONCE, "omnigraph-answer")
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_ready(self) -> bool:
        return self._is_up.is_set() and not self.is_dead

    def wait(self, seconds: float) -> None:
        """Wait until the process is ready, or dead."""
        self._is_up.wait(seconds)

    def run(self, graph_id: str, job: Job, body: Body, permit: Permit) -> dict[str, Any]:
        number = next(self._numbers)
        ended = Future[Done]()
        with self._lock:
            if self.is_dead:
                raise _death_error()
            self._runs[number] = ended, permit
        with suppress(OSError):  # `_listen` notices as well, and fails all runs
            self._channel.send(Run(number, graph_id, job), body)
        done = ended.result()
        if done.error is not None:
            raise done.error
        if done.result is None:
            raise RuntimeError("a long write failed; see the log of its process")
        return done.result

    def adopt(self, setup: Setup) -> None:
        """Send what changed; before the process has its setup, that is what changes."""
        with self._lock:
            self._setup = setup
            if self._is_setup_sent:
                with suppress(OSError):  # the next process gets it from the start
                    self._channel.send(Adopt(setup.graphs))

    def stop(self) -> None:
        """End the process after its jobs; at once while it is still starting."""
        if self.is_ready:
            with suppress(OSError):
                self._channel.send(Stop())
        else:
            self._process.kill()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        try:
            with self._lock:
                self._channel.send(self._setup)
                self._is_setup_sent = True
            while True:
                self._take(self._channel.receive()[0])
        except (EOFError, OSError):
            self._end()

    def _take(self, message: Message) -> None:
        match message:
            case Ready():
                self._is_up.set()
            case Done():
                ended, _ = self._runs.pop(message.number)
                ended.set_result(message)
            case Ask():
                self._answer_pool.submit(self._answer, message)
            case Published(graph_id, delta):
                self._graphs.find(graph_id).readers.after_publish(delta)
            case _:
                raise AssertionError(f"unexpected message to the server: {message}")

    def _answer(self, ask: Ask) -> None:
        error = None
        try:
            match ask.question:
                case MayLoad(run, wanted):
                    self._runs[run][1](wanted)
                case BeforePublish(graph_id, branch, pins):
                    self._graphs.find(graph_id).readers.before_publish(branch, pins)
        except OmnigraphError as refused:
            error = refused
        with suppress(OSError):
            self._channel.send(Answer(ask.number, error))

    def _end(self) -> None:
        """The process is gone: fail its runs, which may have taken effect."""
        code = self._process.wait()
        with self._lock:
            self.is_dead = True
            left, self._runs = self._runs, {}
        self._is_up.set()
        self._answer_pool.shutdown(wait=False)
        if left or code:
            log.error("the write process ended with %s, %s runs in flight", code, len(left))
        for ended, _ in left.values():
            ended.set_exception(_death_error())


def _death_error() -> RecoveryRequired:
    return RecoveryRequired(
        "the write process died. The write may have taken effect: look at the commits of the "
        "branch before you repeat it"
    )
