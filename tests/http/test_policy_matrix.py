"""Every operation, with each action that it needs taken away in turn: refused, and nothing done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from omnigraph.policy import Action, load_policy
from omnigraph.server.graphs import Access
from omnigraph.server.operations import OPERATIONS
from tests.http.serving import Client, Served
from tests.http.test_branch_bound import WRITES
from tests.http.test_readable_types import ASKS
from tests.http.test_readable_types import server as server

pytestmark = pytest.mark.slow

ACTIONS = [each for each in Action if each is not Action.GRAPH_LIST]
BY_ID = {each.operation_id: each for each in OPERATIONS}
# What an operation needs besides the action of its own.
ALSO = {
    "invoke_query": (Action.READ,),
    "revert": (Action.READ,),
    "cherryPick": (Action.READ,),
    "restore": (Action.READ,),
}
PLAIN = {
    "list_queries": "/queries",
    "getSchema": "/schema",
    "getCatalog": "/catalog",
    "getPermissions": "/permissions",
    "listBranches": "/branches",
    "listTags": "/tags",
    "listChecks": "/checks",
    "listCommits": "/commits",
    "getCommit": "/commits/{head}",
    "log": "/log",
    "getSnapshot": "/snapshot",
    "listMergeRequests": "/merge-requests",
    "getMergeRequest": "/merge-requests/1",
    "listJobs": "/jobs",
    "getJob": "/jobs/x",
    "doctor": "/doctor",
}
MASKED = {"invoke_query", "invoke_query_if_graph_commit", "list_queries", "listJobs", "getJob"}
"""What a caller may not invoke or start does not exist: not found, or not listed."""
PARTS = {"mcp", "server_mcp", "listGraphs", "completeQuery", "checkQuery"}
"""Makes requests of its own; of the server; compile a text and read no rows."""


# Masked, and kinds of jobs (see test_jobs.py).
WITHOUT_OPERATION = {Action.INVOKE_QUERY, Action.CLEANUP, Action.REPAIR}


def allow(server: Served, *actions: Action) -> None:
    bundle = {
        "version": 1,
        "groups": {"all": ["act"]},
        "rules": [
            {"id": each.value, "allow": {"actors": {"group": "all"}, "actions": [each.value]}}
            for each in actions
        ],
    }
    opened = server.serving.graphs.find("default")
    policy = load_policy(json.dumps(bundle), name="bundle", resource="default")
    opened.adopt(Access(opened.served, policy, opened.registry))


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with server.client("token") as found:
        yield found


def send(client: Client, name: str, head: str) -> httpx.Response:
    """Ask for an operation, in one of the ways that other tests know."""
    if name in PLAIN:
        return client.get(PLAIN[name].format(head=head))
    if name in ASKS:
        return ASKS[name][0][0](client, head, head)
    return WRITES[name](client, "side")


def test_every_operation_is_asked_below() -> None:
    asked = set(ASKS) | set(WRITES) | set(PLAIN)
    known = {each.operation_id for each in OPERATIONS if each.action is not None}
    assert known - asked == PARTS


@pytest.mark.parametrize("taken", ACTIONS, ids=lambda each: each.value)
def test_without_an_action_every_operation_that_needs_it_is_refused(
    server: Served, client: Client, taken: Action
) -> None:
    allow(server, *ACTIONS)
    head = client.get("/commits").json()["commits"][0]["graph_commit_id"]
    before: Any = client.get("/log").json(), client.get("/branches").json()
    needed = [
        name
        for name in sorted({*ASKS, *WRITES, *PLAIN} - MASKED)
        if taken in (BY_ID[name].action, *ALSO.get(name, ()))
    ]
    allow(server, *(each for each in ACTIONS if each is not taken))
    answers = {name: send(client, name, head) for name in needed}

    allow(server, *ACTIONS)
    for name, answer in answers.items():
        assert answer.status_code == 403, (name, answer.status_code, answer.text)
    assert (client.get("/log").json(), client.get("/branches").json()) == before
    assert needed or taken in WITHOUT_OPERATION
