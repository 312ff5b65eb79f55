"""A token that is bound to branches writes there and nowhere else, by every route there is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from omnigraph.config import StoredEntry
from omnigraph.errors import BadRequestError
from omnigraph.policy import Action
from omnigraph.server.auth import TokenEntry, Tokens
from omnigraph.server.branch_bound import BranchBound
from omnigraph.server.operations import OPERATIONS
from omnigraph.server.settings import ServedGraph, ServerSettings, tokens_from
from tests.http.serving import ADA, INSERT, SCHEMA, Client, Served, make_graph, ndjson, served

EVERYTHING = f"""
version: 1
groups: {{ all: [act-lin, act-ada] }}
rules:
  - id: all
    allow:
      actors: {{ group: all }}
      actions: [{", ".join(each for each in Action if each is not Action.GRAPH_LIST)}]
"""
OWN = "agent/lin/task"
READS = frozenset({Action.READ, Action.EXPORT, Action.GRAPH_LIST, Action.VERIFY, None})

Send: TypeAlias = Callable[[Client, str], httpx.Response]


def _mutate(path: str, **headers: str) -> Send:
    def send(client: Client, branch: str) -> httpx.Response:
        body = {"query": INSERT, "params": {"slug": "new"}, "branch": branch}
        return client.post(path, body, headers=headers)

    return send


def _load(path: str) -> Send:
    return lambda client, branch: client.post(path, {"data": ndjson([ADA]), "branch": branch})


def _invoke(path: str, **headers: str) -> Send:
    def send(client: Client, branch: str) -> httpx.Response:
        return client.post(path, {"params": {"slug": "n"}, "branch": branch}, headers=headers)

    return send


def _lines(client: Client, branch: str) -> httpx.Response:
    headers = {"Content-Type": "application/x-ndjson"}
    content = ndjson([ADA])
    return client.send("POST", f"/load/ndjson?branch={branch}", content=content, headers=headers)


def _files(client: Client, branch: str) -> httpx.Response:
    files = {"data": ("people.jsonl", ndjson([ADA]).encode())}
    return client.send("POST", f"/load/files?branch={branch}", files=files)


def _head(branch: str) -> dict[str, str]:
    return {"Omnigraph-If-Graph-Commit": branch}


def _say(path: str, *, of: str = "source", method: str = "POST", **body: Any) -> Send:
    """Act on the merge request whose source or target is the branch; on one of main without."""

    def send(client: Client, branch: str) -> httpx.Response:
        found = client.get("/merge-requests", state="all").json()["merge_requests"]
        wanted = [each for each in found if each[of] == branch]
        number = (wanted or [each for each in found if each[of] == "main"])[0]["number"]
        return client.send(method, f"/merge-requests/{number}{path}", json=body)

    return send


def _open_request(client: Client, branch: str) -> httpx.Response:
    body = {"source": branch, "target": "agent/other/x", "title": "t"}
    return client.post("/merge-requests", body)


# How each operation that can write is made to write to a branch. A new one fails the first test
# until it is here; the second then shows that it asks.
WRITES: dict[str, Send] = {
    "mutate": _mutate("/mutate"),
    "change": _mutate("/change"),
    "mutate_if_graph_commit": _mutate("/mutate/if-graph-commit", **_head("x")),
    "invoke_query": _invoke("/queries/add"),
    "invoke_query_if_graph_commit": _invoke("/queries/add/if-graph-commit", **_head("x")),
    "store_query": lambda client, _: client.send("PUT", "/queries/x", json={"query": INSERT}),
    "load": _load("/load"),
    "ingest": _load("/ingest"),
    "loadNdjson": _lines,
    "loadFiles": _files,
    "embed": lambda client, branch: client.post("/embed", {"branch": branch}),
    "putBlob": lambda client, branch: client.send(
        "PUT", f"/blob?entity=node&type=Person&id=ada&property=photo&branch={branch}", content=b"x"
    ),
    "revert": lambda client, branch: client.post(
        "/revert", {"commits": ["main"], "branch": branch}
    ),
    "cherryPick": lambda client, branch: client.post(
        "/cherry-pick", {"commits": ["main"], "into": branch}
    ),
    "restore": lambda client, branch: client.post("/restore", {"from": "main", "branch": branch}),
    "startJob": lambda client, branch: client.post(
        "/jobs", {"kind": "ensure_indices", "branch": branch}
    ),
    "applySchema": lambda client, _: client.post("/schema/apply", {"schema_source": SCHEMA}),
    "applyChecks": lambda client, branch: client.post("/checks", {"checks": [], "branch": branch}),
    "createTag": lambda client, branch: client.post("/tags", {"name": f"{branch}3", "at": branch}),
    "deleteTag": lambda client, branch: client.send(
        "DELETE", f"/tags/{branch.replace('/', '%2F')}3"
    ),
    "createBranch": lambda client, branch: client.post("/branches", {"name": f"{branch}2"}),
    "mergeBranches": lambda client, branch: client.post(
        "/branches/merge", {"source": "source", "target": branch}
    ),
    "openMergeRequest": _open_request,
    "editMergeRequest": _say("", method="PATCH", title="new"),
    "commentOnMergeRequest": _say("/comments", text="hm"),
    "closeMergeRequest": _say("/close"),
    "reopenMergeRequest": _say("/reopen"),
    "approveMergeRequest": _say("/approvals", of="target"),
    "withdrawApproval": _say("/approvals", of="target", method="DELETE"),
    "requestChanges": _say("/changes-requested", of="target"),
    "completeMergeRequest": _say("/merge", of="target"),
    "resetBranch": lambda client, branch: client.post(
        "/branches/reset", {"branch": branch, "to": branch}
    ),
    "deleteBranch": lambda client, branch: client.send(
        "DELETE", f"/branches/{branch.replace('/', '%2F')}"
    ),
}
NOT_OF_A_BRANCH = {
    "store_query",
    "applySchema",
    "createTag",
    "deleteTag",
    "startJob",
    "putBlob",
}  # no type has a Blob
CONDITIONAL = {"mutate_if_graph_commit", "invoke_query_if_graph_commit"}


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server where the policy allows everything, and one token is bound."""
    folder = tmp_path_factory.mktemp("bound")
    (folder / "add.gq").write_text(INSERT)
    graph = ServedGraph(
        "default",
        str(make_graph(folder / "graph")),
        policy_text=EVERYTHING,
        queries={"add": StoredEntry(folder / "add.gq")},
    )
    tokens = Tokens.from_entries(
        [TokenEntry("act-lin", "lin", ("agent/lin/*",)), TokenEntry("act-ada", "ada")]
    )
    with served(ServerSettings((graph,), tokens=tokens)) as server:
        with server.client("ada") as ada:
            for name in ("source", "agent/other/x", "agent/linda/x"):
                ada.post("/branches", {"name": name})
            ada.mutate(INSERT, params={"slug": "s"}, branch="source")
            pairs = [("main", "source"), ("source", "main")]
            pairs += [(f"agent/{one}/x", "source") for one in ("other", "linda")]
            for pair in [*pairs, *((target, source) for source, target in pairs[2:])]:
                made = {"source": pair[0], "target": pair[1], "title": "t"}
                assert ada.post("/merge-requests", made).status_code == 200
        yield server


@pytest.fixture
def lin(bound: Served) -> Iterator[Client]:
    with bound.client("lin") as client:
        yield client


def read_heads(client: Client) -> dict[str, Any]:
    return {
        branch: client.get("/snapshot", branch=branch).json()
        for branch in client.get("/branches").json()["branches"]
    }


def test_every_operation_that_writes_is_tried_below() -> None:
    assert {each.operation_id for each in OPERATIONS if each.action not in READS} == set(WRITES)


@pytest.mark.parametrize("branch", ["main", "agent/other/x", "agent/linda/x", "agent/lin"])
def test_no_route_writes_to_a_branch_outside_the_bound(lin: Client, branch: str) -> None:
    before = read_heads(lin)
    answers = {name: send(lin, branch) for name, send in WRITES.items()}

    refused = "the token of actor 'act-lin' may write only to agent/lin/*"
    for name, answer in answers.items():
        assert answer.status_code == 403, (name, answer.text)
        assert refused in answer.json()["error"]
    assert read_heads(lin) == before


def test_every_route_writes_to_a_branch_inside_it(bound: Served, lin: Client) -> None:
    lin.post("/branches", {"name": OWN})
    with bound.client("ada") as ada:
        ada.post("/merge-requests", {"source": "source", "target": OWN, "title": "t"})
    answers = {name: send(lin, OWN) for name, send in WRITES.items() if name not in NOT_OF_A_BRANCH}

    statuses = {name: answer.status_code for name, answer in answers.items()}
    assert statuses == {name: 412 if name in CONDITIONAL else 200 for name in answers}
    assert OWN not in lin.get("/branches").json()["branches"], "the last one deletes it"


def test_what_is_outside_can_be_read_and_merged_in(lin: Client) -> None:
    lin.post("/branches", {"name": OWN})
    merged = lin.post("/branches/merge", {"source": "source", "target": OWN})
    back = lin.post("/branches/merge", {"source": OWN})
    preview = lin.post("/branches/merge/preview", {"source": OWN})

    assert len(lin.rows()) == 2
    assert lin.export(branch="source")
    assert (merged.status_code, back.status_code, preview.status_code) == (200, 403, 200)
    lin.send("DELETE", f"/branches/{OWN.replace('/', '%2F')}")


def test_a_merge_deletes_no_source_outside_the_bound(lin: Client) -> None:
    """The delete is part of another operation, which may itself be allowed."""
    lin.post("/branches", {"name": OWN})
    body = {"source": "agent/other/x", "target": OWN, "delete_branch": True}
    done = lin.post("/branches/merge", body).json()

    assert done["branch_deleted"] is False
    assert "may write only to agent/lin/*" in done["branch_delete_error"]
    assert "agent/other/x" in lin.get("/branches").json()["branches"]
    lin.send("DELETE", f"/branches/{OWN.replace('/', '%2F')}")


def test_a_bound_takes_away_and_gives_nothing(tmp_path: Path) -> None:
    """Without a policy a token may only read, on its own branches too."""
    graph = ServedGraph("default", str(make_graph(tmp_path / "graph")))
    tokens = Tokens.from_entries([TokenEntry("act-lin", "lin", ("agent/lin/*",))])
    with served(ServerSettings((graph,), tokens=tokens)) as server, server.client("lin") as lin:
        assert lin.post("/branches", {"name": OWN}).status_code == 403
        assert lin.query().status_code == 200


def test_a_bound_decides_as_a_plain_reading_of_its_patterns() -> None:
    """A second opinion by regular expressions, for every action and a grid of names."""
    names = [None, "", "main", " main ", "a", "a/", "a/b", " a/b ", "a/b/c", "ab", "A/b"]
    written = {
        Action.CHANGE: 0,
        Action.SCHEMA_APPLY: 1,
        Action.BRANCH_CREATE: 1,
        Action.BRANCH_DELETE: 1,
        Action.BRANCH_MERGE: 1,
        Action.MERGE_REQUEST: 0,
        Action.MERGE_APPROVE: 1,
    }
    for patterns in (["a/*"], ["a"], ["a*", "main"], ["a/b", "m*"]):
        bound = BranchBound.parse(patterns)
        expected = re.compile("|".join(each.replace("*", ".+") for each in patterns))
        for action in Action:
            for branch in names:
                for target in names:
                    if action in READS or action is Action.INVOKE_QUERY:
                        wanted = True
                    elif action in written:
                        name = (branch, target)[written[action]]
                        wanted = bool(expected.fullmatch((name or "").strip()))
                    else:
                        wanted = False
                    assert bound.allows(action, branch, target) is wanted, (
                        patterns,
                        action,
                        branch,
                    )


@pytest.mark.parametrize(
    "value",
    [
        '{"token": "secret"}',
        '{"branches": ["a"]}',
        '{"token": "secret", "branches": []}',
        '{"token": "secret", "branches": "a/*"}',
        '{"token": "secret", "branches": [5]}',
        '{"token": "secret", "branches": ["*"]}',
        '{"token": "secret", "branches": ["a/*/b"]}',
        '{"token": "secret", "branches": [" "]}',
        '{"token": "secret", "branches": ["a"], "branch": "b"}',
        '{"token": "secret", "token": "secret", "branches": ["a"]}',
        '["secret"]',
    ],
)
def test_a_bound_that_cannot_be_read_is_refused_without_the_token(value: str) -> None:
    """A misspelt bound must not pass for none."""
    with pytest.raises(BadRequestError) as refused:
        tokens_from({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": f'{{"act-lin": {value}}}'})

    assert "act-lin" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_an_entry_of_a_token_file_binds_a_token() -> None:
    value = '{"act-lin": {"token": "lin", "branches": ["agent/lin/*"]}, "act-ada": "ada"}'
    tokens = tokens_from({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": value})

    assert tokens.holder_of("Bearer lin").bound == BranchBound(("agent/lin/*",))
    assert tokens.holder_of("Bearer ada").bound is None
