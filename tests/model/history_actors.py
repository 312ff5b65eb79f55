"""Actors of the history model: handles on one graph, in this process or in another."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Protocol

import omnigraph as og
from tests.processes import PROCESSES

OPTIONS: dict[str, Any] = {"durability": "process", "self_care": False}


class Actor(Protocol):
    """One handle. `call` runs a call of `Graph` and returns plain data."""

    def call(self, what: str, *args: Any, **options: Any) -> Any: ...

    def reopen(self) -> None: ...

    def close(self) -> None: ...


def run_call(graph: og.Graph, what: str, *args: Any, **options: Any) -> Any:
    """Run a call of `Graph`; what would read later is read at once."""
    found = getattr(graph, what)(*args, **options)
    match what:
        case "export":
            return list(found)
        case "query":
            return found.rows()
        case "diff":
            return [each.to_json() for each in found]
        case "changes":
            return [(each.commit.commit_id, [c.to_json() for c in each.changes]) for each in found]
        case "merge" if options.get("preview"):
            return found.to_json()
    return found


class Local:
    """A handle in this process."""

    def __init__(self, uri: str) -> None:
        self.graph = og.open(uri, **OPTIONS)

    def call(self, what: str, *args: Any, **options: Any) -> Any:
        return run_call(self.graph, what, *args, **options)

    def reopen(self) -> None:
        self.graph.close()
        self.graph = og.open(self.graph.uri, **OPTIONS)

    def close(self) -> None:
        self.graph.close()


class Remote:
    """A handle in a process of its own."""

    def __init__(self, uri: str) -> None:
        self._here, there = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=_serve, args=(uri, there), daemon=True)
        self._process.start()
        there.close()

    def call(self, what: str, *args: Any, **options: Any) -> Any:
        self._here.send((what, args, options))
        error, found = self._here.recv()
        if error is not None:
            raise error
        return found

    def reopen(self) -> None:
        self.call("reopen")

    def close(self) -> None:
        self._here.close()
        self._process.join(timeout=30)


def _serve(uri: str, there: Connection) -> None:
    actor = Local(uri)
    while True:
        try:
            what, args, options = there.recv()
        except EOFError:
            return
        run: Callable[..., Any] = actor.reopen if what == "reopen" else actor.call
        given = () if what == "reopen" else (what, *args)
        try:
            there.send((None, run(*given, **options)))
        except Exception as error:  # every error of a call belongs to the caller
            there.send((error, None))
