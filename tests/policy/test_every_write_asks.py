"""No way into a graph goes around the policy: a new call that writes has to ask it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType

import pytest

from omnigraph.graph import Graph

GATE = "_permit"
# Each of these is on the way of every write: the check that the handle may write, and the commit.
DOORS = frozenset({"_writable_catalog", "_write"})

READS = {
    "branches",
    "catalog",
    "changes",
    "close",
    "commit",
    "commits",
    "diff",
    "diff_html",
    "doctor",
    "edges",
    "entity_at",
    "explain",
    "export",
    "log",
    "nodes",
    "plan_schema",
    "query",
    "recoveries",
    "read_blob",
    "refresh",
    "run_query_at",
    "scan",
    "schema",
    "snapshot",
    "snapshot_at_version",
    "uri",
}
WRITES = {
    "apply_schema",
    "create_branch",
    "delete_branch",
    "ingest",
    "load",
    "load_dataframe",
    "load_dataframes",
    "merge",
    "mutate",
}
# These change no answer of any query and have no action: who can open the store may do them.
UPKEEP = {"cleanup", "ensure_indices", "optimize", "repair", "verify"}


def public_names(graph: type) -> set[str]:
    return {name for name in dir(graph) if not name.startswith("_")}


def called_in_order(function: FunctionType) -> list[str]:
    """The methods of its own handle that a function calls, in the order of the text."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [
        (node.lineno, node.col_offset, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    ]
    return [name for *_, name in sorted(calls)]


def reached_in_order(graph: type, name: str, seen: tuple[str, ...] = ()) -> Iterator[str]:
    """Every method that a call of `name` reaches, each followed by what it reaches itself."""
    function = inspect.getattr_static(graph, name, None)
    if isinstance(function, property):
        function = function.fget
    if not isinstance(function, FunctionType) or name in seen:
        return
    for called in called_in_order(function):
        yield called
        yield from reached_in_order(graph, called, (*seen, name))


def first_reached(graph: type, name: str) -> str | None:
    """What a call of `name` comes to first: the gate, a door, or neither."""
    stops = (each for each in reached_in_order(graph, name) if each in DOORS | {GATE})
    return next(stops, None)


def ungated(graph: type) -> set[str]:
    """The calls that come to a door before the gate."""
    return {name for name in public_names(graph) if first_reached(graph, name) in DOORS}


def test_every_call_is_known_to_read_to_write_or_to_keep_up() -> None:
    """A new call fails here first: say what it is, and give it a gate if it writes."""
    assert public_names(Graph) == READS | WRITES | UPKEEP
    assert not READS & WRITES


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_write_asks_before_it_comes_to_a_door(name: str) -> None:
    assert first_reached(Graph, name) == GATE


def test_nothing_but_upkeep_comes_to_a_door_unasked() -> None:
    assert ungated(Graph) == UPKEEP


def test_a_write_that_does_not_ask_is_found() -> None:
    """The same look at a graph with new calls, of which one forgets the gate, one is late."""

    class Grown(Graph):
        def forget(self) -> None:
            self._writable_catalog()

        def ask_late(self) -> None:
            self.refresh()
            self._helper()
            self.merge("work")

        def ask_first(self) -> None:
            self.create_branch("work")
            self._helper()

        def _helper(self) -> None:
            self._writable_catalog()

    assert ungated(Grown) == UPKEEP | {"forget", "ask_late"}
    assert public_names(Grown) != READS | WRITES | UPKEEP
