"""Every call of a graph is served and has a command that works over a server, or says why not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from omnigraph.cli.app import build_app
from omnigraph.graph import Graph
from omnigraph.server.operations import OPERATIONS

# Call of a graph → the operations that serve it, and the commands that do it with `--server`.
SERVED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "query": (("query", "read", "invoke_query"), ("query",)),
    "mutate": (("mutate", "change", "mutate_if_graph_commit"), ("mutate",)),
    "load": (("load", "loadNdjson", "loadFiles"), ("load",)),
    "ingest": (("ingest",), ("ingest",)),
    "embed": (("embed",), ("embed",)),
    "export": (("export",), ("export",)),
    "explain": (("explain",), ("explain",)),
    "snapshot": (("getSnapshot",), ("snapshot",)),
    "schema": (("getSchema",), ("schema show",)),
    "branch_schema": (("getSchema",), ("schema show",)),
    "catalog": (("getCatalog",), ()),
    "branch_catalog": (("getCatalog",), ()),
    "apply_schema": (("applySchema",), ("schema apply",)),
    "branches": (("listBranches",), ("branch list",)),
    "create_branch": (("createBranch",), ("branch create",)),
    "delete_branch": (("deleteBranch",), ("branch delete",)),
    "reset_branch": (("resetBranch",), ("branch reset",)),
    "merge": (("mergeBranches", "previewMerge"), ("branch merge",)),
    "diff": (("diff",), ("branch diff",)),
    "diff_html": (("diff",), ("branch diff",)),
    "log": (("log",), ("log",)),
    "log_patches": (("log",), ("log",)),
    "commits": (("listCommits",), ("commit list",)),
    "commit": (("getCommit",), ("commit show",)),
    "commit_changes": (("getCommitChanges",), ("commit changes",)),
    "poll_changes": (("pollChanges",), ("changes poll",)),
    "changes": (("pollChanges",), ("changes poll",)),
    "change_baseline": (("captureChangeBaseline",), ("changes baseline",)),
    "history": (("history",), ("history",)),
    "bisect": (("bisect",), ("bisect",)),
    "blame": (("blame",), ("blame",)),
    "revert": (("revert", "previewRevert"), ("revert",)),
    "revert_session": (("revert", "previewRevert"), ("revert",)),
    "cherry_pick": (("cherryPick", "previewCherryPick"), ("cherry-pick",)),
    "restore": (("restore", "previewRestore"), ("restore",)),
    "tags": (("listTags",), ("tag list",)),
    "tag": (("createTag",), ("tag create",)),
    "delete_tag": (("deleteTag",), ("tag delete",)),
    "checks": (("listChecks",), ("checks list",)),
    "apply_checks": (("applyChecks",), ("checks apply",)),
    "run_checks": (("runChecks",), ("checks run",)),
    "read_blob": (("getBlob", "headBlob"), ("blob get", "blob stat")),
    "write_blob": (("putBlob",), ("blob put",)),
    "optimize": (("startJob",), ("optimize",)),
    "cleanup": (("startJob",), ("cleanup",)),
    "repair": (("startJob",), ("repair",)),
    "verify": (("startJob",), ("verify",)),
    "ensure_indices": (("startJob",), ("index ensure",)),
    "doctor": (("doctor",), ("doctor",)),
    "merge_requests": (("listMergeRequests",), ("request list",)),
    "merge_request": (("getMergeRequest",), ("request show",)),
    "preview_merge_request": (("previewMergeRequest",), ("request show",)),
    "open_merge_request": (("openMergeRequest",), ("request open",)),
    "edit_merge_request": (("editMergeRequest",), ("request edit",)),
    "comment_on_merge_request": (("commentOnMergeRequest",), ("request comment",)),
    "approve_merge_request": (("approveMergeRequest",), ("request approve",)),
    "request_changes": (("requestChanges",), ("request reject",)),
    "withdraw_approval": (("withdrawApproval",), ("request withdraw",)),
    "close_merge_request": (("closeMergeRequest",), ("request close",)),
    "reopen_merge_request": (("reopenMergeRequest",), ("request reopen",)),
    "complete_merge_request": (("completeMergeRequest",), ("request merge",)),
}
NOT_SERVED = {
    "uri": "names the store",
    "refresh": "of a handle; every request sees the newest state",
    "close": "of a handle",
    "snapshot_at_version": "`snapshot` takes a commit; versions are those of a store",
    "run_query_at": "`query` takes a snapshot",
    "entity_at": "the parts of `history`",
    "recoveries": "`doctor` shows what is pending; the records lie with the store",
    "nodes": "frames of this process; `export` streams the same rows",
    "edges": "frames of this process; `export` streams the same rows",
    "scan": "frames of this process; `export` streams the same rows",
    "to_arrays": "objects of this process",
    "to_igraph": "objects of this process",
    "to_networkx": "objects of this process",
    "picture": "objects of this process; the workbench draws",
    "load_dataframe": "frames of this process; `load` takes files",
    "load_dataframes": "frames of this process; `load` takes files",
    "plan_schema": "with the store, by the specification of the command line",
    "algorithm": "with the store: takes all memory that it needs",
    "backup": "copies files of the store",
    "add_remote": "names another store beside the files",
    "remove_remote": "names another store beside the files",
    "remotes": "names another store beside the files",
    "push": "between stores: copies files",
    "pull": "between stores: copies files",
    "fetch": "between stores: copies files",
}


def list_commands(group: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, by its words."""
    for name, each in getattr(group, "commands", {}).items():
        yield " ".join((*names, name)), each
        yield from list_commands(each, *names, name)


COMMANDS = dict(list_commands(typer.main.get_command(build_app())))


def takes_server(command: str) -> bool:
    """Whether a command shows `--server`; others know the flag, and refuse it."""
    flags = [each for each in COMMANDS[command].params if "--server" in each.opts]
    return any(not each.hidden for each in flags)


def list_calls() -> set[str]:
    return {
        name
        for name in dir(Graph)
        if not name.startswith("_") and not inspect.isclass(getattr(Graph, name))
    }


def test_every_call_of_a_graph_is_served_or_says_why_not() -> None:
    """A new call fails here until it has a route and a command, or a reason to have none."""
    assert list_calls() == SERVED.keys() | NOT_SERVED.keys()
    assert not SERVED.keys() & NOT_SERVED.keys()
    assert all(NOT_SERVED.values())


def test_every_operation_that_is_named_exists() -> None:
    known = {each.operation_id for each in OPERATIONS}
    assert {each for operations, _ in SERVED.values() for each in operations} - known == set()


@pytest.mark.parametrize(
    "command", sorted({each for _, commands in SERVED.values() for each in commands})
)
def test_every_command_that_is_named_takes_a_server(command: str) -> None:
    assert takes_server(command)
    assert not takes_server("init"), "one that does not"
