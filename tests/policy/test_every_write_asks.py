"""No way into a graph goes around the policy: a new call that writes has to ask it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType

import pytest

from omnigraph.graph import Graph, loads, merge_requests, merges, mutations, undo_requests
from omnigraph.graph.session import Session

GATE = "permit"
HELPERS = vars(mutations) | vars(loads) | vars(undo_requests) | vars(merges) | vars(merge_requests)
# Each of these is on the way of every write: the check that the handle may write, and the commit.
DOORS = frozenset({"require_writable", "write"})

READS = {
    "backup",
    "bisect",
    "blame",
    "branches",
    "catalog",
    "changes",
    "checks",
    "change_baseline",
    "commit_changes",
    "poll_changes",
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
    "history",
    "log",
    "log_patches",
    "merge_request",
    "merge_requests",
    "preview_merge_request",
    "nodes",
    "picture",
    "branch_catalog",
    "branch_schema",
    "plan_schema",
    "push",
    "query",
    "recoveries",
    "read_blob",
    "refresh",
    "remotes",
    "run_checks",
    "run_query_at",
    "scan",
    "schema",
    "snapshot",
    "snapshot_at_version",
    "tags",
    "to_arrays",
    "to_igraph",
    "to_networkx",
    "uri",
}
WRITES = {
    "add_remote",
    "remove_remote",
    "approve_merge_request",
    "close_merge_request",
    "comment_on_merge_request",
    "complete_merge_request",
    "edit_merge_request",
    "open_merge_request",
    "reopen_merge_request",
    "request_changes",
    "withdraw_approval",
    "cherry_pick",
    "restore",
    "revert",
    "revert_session",
    "algorithm",
    "apply_schema",
    "cleanup",
    "create_branch",
    "delete_branch",
    "reset_branch",
    "apply_checks",
    "delete_tag",
    "embed",
    "ensure_indices",
    "fetch",
    "ingest",
    "load",
    "load_dataframe",
    "load_dataframes",
    "merge",
    "mutate",
    "optimize",
    "pull",
    "repair",
    "tag",
    "verify",
    "write_blob",
}


def public_names(graph: type) -> set[str]:
    return {name for name in dir(graph) if not name.startswith("_")}


def list_calls(function: FunctionType, graph: type) -> list[tuple[str, object]]:
    """What a function calls of the graph, its session and `HELPERS`, in the order of the text."""
    owner = Session if function.__qualname__.startswith("Session.") else graph
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("self"), attr=name)):
                calls.append((node.lineno, node.col_offset, name, find(owner, name)))
            case ast.Call(func=ast.Attribute(value=ast.Name("session"), attr=name)):
                calls.append((node.lineno, node.col_offset, name, find(Session, name)))
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="_session"), attr=name)):
                calls.append((node.lineno, node.col_offset, name, find(Session, name)))
            case ast.Name(name) if name in HELPERS:
                calls.append((node.lineno, node.col_offset, name, HELPERS[name]))
    return [(name, called) for *_, name, called in sorted(calls, key=lambda call: call[:2])]


def find(kind: type, name: str) -> object:
    found = inspect.getattr_static(kind, name, None)
    return found.fget if isinstance(found, property) else found


def list_reached(graph: type, function: object, seen: tuple[object, ...] = ()) -> Iterator[str]:
    """Every function that a call reaches, each followed by what it reaches itself."""
    if not isinstance(function, FunctionType) or function in seen:
        return
    for name, called in list_calls(function, graph):
        yield name
        yield from list_reached(graph, called, (*seen, function))


def first_reached(graph: type, name: str) -> str | None:
    """What a call of `name` comes to first: the gate, a door, or neither."""
    reached = list_reached(graph, find(graph, name))
    stops = (each for each in reached if each in DOORS | {GATE})
    return next(stops, None)


def list_ungated(graph: type) -> set[str]:
    """The calls that come to a door before the gate."""
    return {name for name in public_names(graph) if first_reached(graph, name) in DOORS}


def test_every_call_is_known_to_read_or_to_write() -> None:
    """A new call fails here first: say what it is, and give it a gate if it writes."""
    assert public_names(Graph) == READS | WRITES
    assert not READS & WRITES


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_write_checks_the_policy_before_it_touches_storage(name: str) -> None:
    assert first_reached(Graph, name) == GATE


def test_no_call_touches_storage_without_a_policy_check() -> None:
    assert list_ungated(Graph) == set()


def test_a_write_without_a_policy_check_is_found() -> None:
    """The same look at a graph with new calls, of which one forgets the gate, one is late."""

    class Grown(Graph):
        def forget(self) -> None:
            self._session.require_writable()

        def ask_late(self) -> None:
            self.refresh()
            self._helper()
            self.merge("work")

        def ask_first(self) -> None:
            self.create_branch("work")
            self._helper()

        def _helper(self) -> None:
            self._session.require_writable()

    assert list_ungated(Grown) == {"forget", "ask_late"}
    assert public_names(Grown) != READS | WRITES
