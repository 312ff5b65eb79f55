"""Crash: run a piece of work in a process of its own, which may die at a named point.

    with CrashRunner(["my.work"]) as runner:
        died = runner.run("my.work:insert", {"path": path, "arm": "commit.after_table=kill"})
        assert died.was_killed

The runner talks to a *zygote*: a process that has imported everything and never called Lance. It
forks a child for each piece of work, so a cell costs a fork instead of the second that the imports
take. Lance is not fork-safe once it has been used; that the zygote never uses it is what makes the
children sound. `run_spawned` is the control: the same work in a process started from nothing.

Work is a function named `module:function`; it takes keyword arguments and returns a value, both of
them JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self

from omnigraph.dataclass import dataclass

TIMEOUT_SECONDS = 120.0
ONCE = "--once"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a piece of work ended: with a value, with an error, or by a signal."""

    value: Any = None
    error: str | None = None
    signal: int | None = None

    @property
    def was_killed(self) -> bool:
        return self.signal == signal.SIGKILL

    def result(self) -> Any:
        """The value; anything else is an error here as well."""
        if self.error is not None or self.signal is not None:
            raise RuntimeError(self.error or f"the process died of signal {self.signal}")
        return self.value


class CrashRunner:
    """A zygote, and the way to give it work. Use as a context manager."""

    def __init__(self, modules: Sequence[str]) -> None:
        command = [sys.executable, "-m", "omnigraph.testing.crash", *modules]
        self._zygote = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, work: str, arguments: Mapping[str, Any]) -> Outcome:
        """Do the work in a child of the zygote and wait for its end."""
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        print(json.dumps({"work": work, "arguments": arguments}), file=self._zygote.stdin)
        self._zygote.stdin.flush()
        answer = self._zygote.stdout.readline()
        if not answer:
            raise RuntimeError("the zygote is gone")
        return _outcome(answer)

    def close(self) -> None:
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.close()
        self._zygote.wait()
        self._zygote.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def run_spawned(work: str, arguments: Mapping[str, Any]) -> Outcome:
    """Do the work in a process that was started from nothing and never forked."""
    done = subprocess.run(
        [sys.executable, "-m", "omnigraph.testing.crash", ONCE],
        input=json.dumps({"work": work, "arguments": arguments}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    return Outcome(signal=-done.returncode) if done.returncode < 0 else _outcome(done.stdout)


def _outcome(text: str) -> Outcome:
    return Outcome(**json.loads(text))


def _serve(requests: IO[str], answers: IO[str]) -> None:
    for line in requests:
        request = json.loads(line)
        outcome = _in_a_child(request["work"], request["arguments"])
        print(json.dumps(outcome), file=answers, flush=True)


def _in_a_child(work: str, arguments: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _do(work, arguments, writing)
    os.close(writing)
    text = _read_until_end(reading, child)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return json.loads(text) if text else {"error": f"the process ended with status {status}"}


def _do(work: str, arguments: dict[str, Any], writing: int) -> None:
    """The child: never returns, and runs nothing of what its parent had planned for its own end."""
    try:
        module, _, function = work.partition(":")
        value = getattr(importlib.import_module(module), function)(**arguments)
        answer = {"value": value}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    with os.fdopen(writing, "w") as pipe:
        json.dump(answer, pipe)
    os._exit(0)


def _read_until_end(reading: int, child: int) -> str:
    """What the child writes until it closes its end; a child that takes too long is killed."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    parts: list[bytes] = []
    with selectors.DefaultSelector() as selector, os.fdopen(reading, "rb", buffering=0) as pipe:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                os.kill(child, signal.SIGABRT)
                return ""
            part = pipe.read(65_536)
            if not part:
                return b"".join(parts).decode()
            parts.append(part)


def _main(arguments: Sequence[str]) -> None:
    if arguments[:1] == [ONCE]:
        request = json.load(sys.stdin)
        _do(request["work"], request["arguments"], os.dup(1))
    for name in arguments:
        importlib.import_module(name)
    # Lance warns of every fork. It is right about processes that have used it; this one has not.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    _serve(sys.stdin, sys.stdout)


if __name__ == "__main__":
    _main(sys.argv[1:])
