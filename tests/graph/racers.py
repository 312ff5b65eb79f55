"""What the processes of a race do. Each opens the graph itself and reports back."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

import omnigraph as og
from omnigraph.errors import ConstraintError, ExpectedVersionMismatch
from tests.graph.reading import add
from tests.processes import PROCESSES

TIMEOUT_SECONDS = 280


def race(racers: list[tuple[Callable[..., Any], tuple[Any, ...]]], uri: str) -> list[Any]:
    """Run every racer in a process of its own, started together; returns what each returns."""
    together = PROCESSES.Barrier(len(racers))
    answers = PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_run, args=(number, racer, uri, together, arguments, answers))
        for number, (racer, arguments) in enumerate(racers)
    ]
    for process in processes:
        process.start()
    try:
        found = dict(answers.get(timeout=TIMEOUT_SECONDS) for _ in processes)
    finally:
        for process in processes:
            process.join(10)
            process.kill()
    for answer in found.values():
        if isinstance(answer, BaseException):
            raise answer
    return [found[number] for number in range(len(racers))]


def _run(
    number: int,
    racer: Callable[..., Any],
    uri: str,
    together: Barrier,
    arguments: tuple[Any, ...],
    answers: Any,
) -> None:
    try:
        graph = og.open(uri, durability="process")
        answers.put((number, racer(graph, together, *arguments)))
    except BaseException as error:
        together.abort()
        answers.put((number, RuntimeError(f"{type(error).__name__}: {error}")))


def upsert_keys(
    graph: og.Graph, together: Barrier, number: int, keys: int, count: int
) -> list[tuple[str, int, str]]:
    """Upsert the same few keys again and again; returns what was acknowledged."""
    together.wait(TIMEOUT_SECONDS)
    acknowledged = []
    for step in range(count):
        name, age = f"k{step % keys}", number * 30 + step % 30
        result = add(graph, "person", name=name, age=age)
        acknowledged.append((name, age, str(result.commit_id)))
    return acknowledged


def insert_edges(graph: og.Graph, together: Barrier, rounds: int) -> list[str]:
    """Insert an edge to the node of each round, at the moment it is deleted."""
    outcomes = []
    for number in range(rounds):
        together.wait(TIMEOUT_SECONDS)
        try:
            add(graph, "knows", a="hub", b=f"n{number}")
            outcomes.append("inserted")
        except ConstraintError as refused:
            if f"'n{number}' not found in Person" not in str(refused):
                raise
            outcomes.append("refused")
    return outcomes


def delete_nodes(graph: og.Graph, together: Barrier, rounds: int) -> list[str]:
    """Delete the node of each round; a lost race names the table that moved."""
    outcomes = []
    for number in range(rounds):
        together.wait(TIMEOUT_SECONDS)
        try:
            result = add(graph, "gone", name=f"n{number}")
            outcomes.append(f"deleted {result.affected_nodes}")
        except ExpectedVersionMismatch as lost:
            if lost.table_key not in ("edge:Knows", "node:Person") or lost.actual <= lost.expected:
                raise
            outcomes.append("lost")
    return outcomes


def update_one_row(
    graph: og.Graph, together: Barrier, number: int, rounds: int
) -> list[tuple[str, int, int] | None]:
    """Update one row in each round from the same view; None where this process won."""
    outcomes: list[tuple[str, int, int] | None] = []
    for _ in range(rounds):
        graph.refresh()
        together.wait(TIMEOUT_SECONDS)
        try:
            add(graph, "age", name="hub", age=number)
            outcomes.append(None)
        except ExpectedVersionMismatch as lost:
            outcomes.append((lost.table_key, lost.expected, lost.actual))
        together.wait(TIMEOUT_SECONDS)
    return outcomes


def insert_one_key(graph: og.Graph, together: Barrier, rounds: int) -> list[bool]:
    """Append the record of each round strictly; whether this process was the one."""
    outcomes = []
    for number in range(rounds):
        together.wait(TIMEOUT_SECONDS)
        try:
            graph.load([{"type": "Firm", "data": {"code": f"f{number}"}}], mode="append")
            outcomes.append(True)
        except og.errors.KeyConflict as taken:
            if taken.entity_id != f"f{number}":
                raise
            outcomes.append(False)
    return outcomes


def open_again(graph: og.Graph, together: Barrier, rounds: int) -> int:
    """Open the graph read-write over and over while others write: recovery must steal nothing."""
    together.wait(TIMEOUT_SECONDS)
    for _ in range(rounds):
        og.open(graph.uri, durability="process").close()
    return rounds
