"""Arguments: every public call refuses what it cannot take, by name and before it does anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, OmnigraphError
from tests.graph.reading import ADD, add, new_graph, reopen, standing

READ = "query q($n: I64?) { match { $p: Person } return { $p.name } }"

LOG: dict[str, Any] = {
    "type": "Person",
    "id": "ann",
    "actor": None,
    "since": None,
    "until": None,
    "message": None,
    "after": None,
    "limit": None,
}
CALLS: dict[str, dict[str, Any]] = {
    "algorithm": {
        "name": "degrees", "node": "Person", "edge": "Knows", "params": None, "engine": "local",
        "branch": "main", "commit": None, "write_to": None, "actor": None,
    },
    "branches": {},
    "changes": {"since": "", "branch": "main", "kinds": None, "types": None, "ops": None},
    "poll_changes": {
        "branch": "main",
        "cursor": None,
        "start": "now",
        "page_token": None,
        "limit": 1,
        "kinds": None,
        "types": None,
        "ops": None,
    },
    "commit_changes": {
        "commit_id": "",
        "page_token": None,
        "limit": 1,
        "kinds": None,
        "types": None,
        "ops": None,
    },
    "change_baseline": {"branch": "main", "kinds": None, "types": None, "ops": None},
    "cleanup": {"keep": 100, "older_than": None, "confirm": False},
    "close": {},
    "commit": {"commit_id": ""},
    "commits": {"branch": "main", **LOG},
    "create_branch": {"name": "main", "from_": "main", "actor": None},
    "delete_branch": {"name": "main", "actor": None},
    "reset_branch": {
        "name": "main", "to": "main", "if_commit": None, "preview": False, "actor": None,
    },
    "delete_tag": {"name": "nope", "actor": None},
    "backup": {"dst": "/dev/null/backup", "storage_options": None},
    "add_remote": {"name": "far", "uri": "/dev/null/far"},
    "remove_remote": {"name": "far"},
    "remotes": {},
    "fetch": {"src": "/dev/null/far", "name": "origin", "branch": None, "storage_options": None},
    "pull": {"src": "/dev/null/far", "branch": "main", "storage_options": None},
    "push": {"dst": "/dev/null/far", "branch": "main", "storage_options": None},
    "bisect": {"check": READ, "good": "main~1", "bad": "main"},
    "cherry_pick": {"into": "main", "actor": None, "preview": True, "resolve": None},
    "restore": {
        "rev": "main", "types": None, "ids": None, "branch": "main", "actor": None,
        "preview": True,
    },
    "revert": {"branch": "main", "actor": None, "preview": True, "resolve": None},
    "revert_session": {
        "actor": "no such", "since": None, "session": None, "branch": "main", "by": None,
        "preview": True, "resolve": None,
    },
    "write_blob": {
        "kind": "node", "type": "Person", "id": "ann", "property": "age", "source": b"",
        "branch": "main", "if_match": None, "actor": None,
    },
    "apply_checks": {"checks": [], "branch": "main", "actor": None},
    "picture": {
        "query": None, "params": None, "name": None, "types": None, "branch": "main",
        "commit": None, "limit": 5,
    },
    "to_arrays": {"types": None, "branch": "main"},
    "to_igraph": {"types": None, "branch": "main"},
    "to_networkx": {"types": None, "branch": "main"},
    "checks": {"branch": "main"},
    "run_checks": {"branch": "main"},
    "diff": {"from_": "main", "to": "main", "kinds": None, "types": None, "ops": None},
    "diff_html": {
        "from_": "main", "to": "main", "title": None, "kinds": None, "types": None, "ops": None
    },
    "open_merge_request": {
        "source": "side", "into": "main", "title": "A title", "description": None,
        "reviewers": [], "actor": None,
    },
    "merge_request": {"number": 1},
    "merge_requests": {"state": "open", "limit": 1, "before": None},
    "preview_merge_request": {"number": 1},
    "edit_merge_request": {
        "number": 1, "title": "Other", "description": None, "reviewers": None, "target": None,
        "actor": None,
    },
    "comment_on_merge_request": {
        "number": 1, "text": "Why?", "type": None, "id": None, "property": None, "actor": None,
    },
    "request_changes": {"number": 1, "text": None, "actor": None},
    "approve_merge_request": {"number": 1, "head": None, "text": None, "actor": None},
    "withdraw_approval": {"number": 1, "actor": None},
    "close_merge_request": {"number": 1, "text": None, "actor": None},
    "reopen_merge_request": {"number": 1, "text": None, "actor": None},
    "complete_merge_request": {
        "number": 1, "head": None, "resolve": None, "delete_branch": False, "actor": None,
    },
    "doctor": {},
    "edges": {"type": "Knows"},
    "embed": {
        "branch": "main", "types": None, "reembed_all": False, "actor": None, "engine": "auto",
        "progress": None,
    },
    "ensure_indices": {"branch": "main"},
    "entity_at": {"table_key": "node:Person", "id": "ann", "version": 1, "branch": "main"},
    "explain": {"source": READ, "name": "q", "params": {}, "branch": "main", "analyze": True,
                "engine": "local"},
    "export": {
        "path": None, "branch": "main", "commit": None, "version": None, "types": None,
        "format": "jsonl", "engine": "inline", "progress": None,
    },
    "ingest": {"data": [], "branch": "main", "from_branch": "main", "mode": "merge"},
    "load": {
        "data": [], "mode": "merge", "branch": "main", "base": None, "actor": None,
        "engine": "inline", "on_error": "reject", "quarantine": None, "embed": True,
        "progress": None, "storage_options": None,
    },
    "load_dataframe": {"df": None, "type": "Person", "edge": None, "mode": "merge"},
    "load_dataframes": {
        "frames": {}, "mode": "merge", "branch": "main", "base": None, "actor": None,
        "engine": "inline", "on_error": "reject", "quarantine": None, "embed": True,
        "progress": None, "properties": None, "if_commit": None,
    },
    "blame": {"type": "Person", "id": "ann", "branch": "main"},
    "history": {"type": "Person", "id": "ann", "branch": "main"},
    "log": {"branch": "main", **LOG},
    "log_patches": {"branch": "main", **LOG, "changes": 1, "merged": True},
    "merge": {
        "source": "main", "into": "main", "actor": None, "delete_branch": False, "preview": True,
        "resolve": None,
    },
    "mutate": {
        "source": ADD, "name": "gone", "params": {"name": "nobody"}, "branch": "main",
        "actor": None, "if_commit": None,
    },
    "nodes": {"type": "Person"},
    "optimize": {},
    # Not valid, and removing anything for good is refused: there is another branch.
    "apply_schema": {"text": "node", "branch": "main", "allow_data_loss": True, "actor": None},
    "plan_schema": {"text": "node A", "branch": "main", "allow_data_loss": False},
    "branch_schema": {"branch": "main"},
    "branch_catalog": {"branch": "main"},
    "query": {
        "source": READ, "name": "q", "params": {}, "branch": "main", "commit": None,
        "version": None, "at": None, "engine": "local",
    },
    "read_blob": {
        "kind": "node", "type": "Person", "id": "ann", "property": "age", "branch": "main",
        "commit": None, "version": None, "at": None,
    },
    "recoveries": {},
    "refresh": {},
    "repair": {"confirm": False, "force": False},
    "run_query_at": {"version": 2, "source": READ, "name": "q", "params": {}},
    "scan": {
        "type": "Person", "branch": "main", "commit": None, "version": None, "at": None,
        "columns": None,
    },
    "snapshot": {"branch": "main"},
    "snapshot_at_version": {"version": 1, "branch": "main"},
    "tag": {"name": "v", "at": "main", "message": None, "actor": None},
    "tags": {},
    "verify": {},
}  # fmt: skip

HOSTILE: list[Any] = [
    *(None, 7, -1, 2**63, 2**64, 10**5_000, 1.5, float("nan"), True, "", "\0", "a\0b", "\ud800"),
    *("../x", "no such", b"main", [], ["\ud800"], [1], {}, {"a": 1}, {1: 2}, object()),
    *(date(2024, 1, 1), Path("no such"), Path("\0")),
]

TYPED = {
    **dict.fromkeys(("branch", "from_branch", "into", "name", "source", "mode", "type"), 7),
    **dict.fromkeys(("commit", "base", "actor", "if_commit", "since", "commit_id", "title"), 7),
    **dict.fromkeys(("params", "frames", "storage_options", "properties", "resolve"), 7),
    **dict.fromkeys(("confirm", "force", "delete_branch", "preview", "embed", "analyze"), None),
    **dict.fromkeys(("version", "limit", "keep"), "7"),
    **dict.fromkeys(("kinds", "types", "ops", "columns"), "Person"),
    **dict.fromkeys(("at", "data", "path", "from_", "to", "text"), object()),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = new_graph(tmp_path_factory.mktemp("arguments") / "graph", self_care=False)
    add(graph, "pair", a="ann", b="bob")
    graph.create_branch("side")  # so that no schema is applied, were it "" itself
    return graph


def consume(found: Any) -> None:
    """Take what a call promised for later."""
    if inspect.isgenerator(found):
        list(found)


def test_every_public_call_is_here() -> None:
    public = {name for name, _ in inspect.getmembers(og.Graph, inspect.isfunction)}

    assert {name for name in public if not name.startswith("_")} == CALLS.keys()


@pytest.mark.parametrize("name", [name for name, given in CALLS.items() if given])
def test_whatever_an_argument_is_only_our_errors_come_out(
    graph: og.Graph, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One argument at a time is hostile; the graph stays as it is."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = standing(graph)

    for argument in CALLS[name]:
        for value in HOSTILE:
            given = CALLS[name] | {argument: value}
            try:
                consume(getattr(graph, name)(**given))
            except OmnigraphError as error:
                str(error).encode()

    assert standing(graph).heads == before.heads
    assert standing(graph).branches == before.branches


@pytest.mark.parametrize("name", [name for name, given in CALLS.items() if given])
def test_an_argument_of_another_type_is_refused_by_name(graph: og.Graph, name: str) -> None:
    for argument in CALLS[name].keys() & TYPED.keys():
        given = CALLS[name] | {argument: TYPED[argument]}

        with pytest.raises(BadRequestError, match=rf"^{argument} is .*, expected "):
            consume(getattr(graph, name)(**given))


@pytest.mark.parametrize("value", HOSTILE, ids=map(str, range(len(HOSTILE))))
def test_a_graph_is_opened_and_made_with_arguments_that_fit(
    graph: og.Graph, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    names = ("mode", "storage_options", "actor", "durability", "self_care", "config", "policy")

    acts: list[Callable[[], og.Graph]] = [
        lambda: og.open(value),
        lambda: og.init(value, schema="node A { x: String? }"),
        lambda: og.init(tmp_path / "new", schema=value),
        *(partial(reopen, graph, **{name: value}) for name in names),
    ]
    for act in acts:
        try:
            act().close()
        except OmnigraphError as error:
            str(error).encode()


def test_python_itself_refuses_what_is_missing_or_unknown(graph: og.Graph) -> None:
    with pytest.raises(TypeError, match="source"):
        graph.query()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="barnch"):
        graph.query(READ, barnch="main")  # type: ignore[call-arg]


def test_what_is_inside_an_argument_is_refused_as_well(graph: og.Graph) -> None:
    huge = 10**5_000

    for act in (
        lambda: graph.diff("main@" + "9" * 5_000, "main"),
        lambda: graph.diff("main", "main@-1"),
        lambda: graph.merge(
            "side",
            preview=True,
            resolve=[{"table_key": "node:Person", "row_id": [], "take": "ours"}],
        ),
        lambda: reopen(graph, config={"cache_bytes": -huge}),
        lambda: reopen(graph, config={"spark": huge}),
        lambda: reopen(graph, config={"read_ahead": huge}),
        lambda: graph.query(READ, params={"n": huge}),
        lambda: graph.query(READ, params={"n": 2**64}),
    ):
        with pytest.raises(OmnigraphError):
            act()


@pytest.mark.parametrize("name", ["commits", "log", "log_patches"])
def test_an_option_that_no_log_has_is_refused_by_name(graph: og.Graph, name: str) -> None:
    with pytest.raises(TypeError, match="has no argument 'author'"):
        getattr(graph, name)("main", author="ann")
