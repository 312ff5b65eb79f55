"""Write processes that are forked from a server of forks: their imports are done once.

Importing this has every server in this process start them so. `make torture` starts each of them
from nothing, and so do the tests of `test_write_process.py` and every server that is a process.
"""

from __future__ import annotations

import os
import subprocess
from multiprocessing.connection import Connection, wait
from threading import Lock
from typing import Any

from omnigraph import failpoints
from omnigraph.server import write_process
from omnigraph.server.write_worker import serve
from tests.depth import IS_TORTURE
from tests.processes import PROCESSES

start_from_nothing = write_process.start_process


def fork_process(channel: Connection) -> Forked:
    process = PROCESSES.Process(target=_be, args=(channel, dict(os.environ)), daemon=True)
    process.start()
    return Forked(process)


class Forked:
    """A forked process that is waited for like one of `subprocess`."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._lock = Lock()

    def wait(self, timeout: float | None = None) -> int:
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired("a write process", timeout or 0)
        with self._lock:  # its exit code can be read once
            self._process.join()
            return int(self._process.exitcode)

    def kill(self) -> None:
        self._process.kill()


def _be(channel: Connection, environment: dict[str, str]) -> None:
    """What a process started from nothing would do."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    failpoints.arm_from_environment(os.environ.get(failpoints.ENVIRONMENT_VARIABLE, ""))
    serve(channel)


if not IS_TORTURE:
    write_process.start_process = fork_process
