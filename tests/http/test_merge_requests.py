"""Merge requests over HTTP: the whole way, page by page, and who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from omnigraph.server.auth import TokenEntry, Tokens
from omnigraph.server.settings import ServedGraph, ServerSettings
from tests.http.serving import INSERT, Client, Served, make_graph, served

pytestmark = pytest.mark.slow

POLICY = """
version: 1
groups: { all: [ada, bob, bot, eve], people: [ada, bob], agents: [bot], blind: [eve] }
protected_branches: [main]
required_approvals: { main: 1 }
rules:
  - { id: read, allow: { actors: { group: people }, actions: [read] } }
  - { id: agents-read, allow: { actors: { group: agents }, actions: [read] } }
  - { id: blind, allow: { actors: { group: blind }, actions: [read], branch_scope: protected } }
  - id: write
    allow: { actors: { group: all }, actions: [change, merge_request], branch_scope: unprotected }
  - id: merge
    allow: { actors: { group: all }, actions: [branch_create, branch_merge, branch_delete] }
  - { id: approve, allow: { actors: { group: people }, actions: [merge_approve] } }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    uri = str(make_graph(tmp_path_factory.mktemp("requests") / "graph"))
    tokens = Tokens.from_entries(
        [
            *(TokenEntry(name, name) for name in ("ada", "bob", "eve")),
            TokenEntry("bot", "bot", ("agent/bot/*",)),
        ]
    )
    graph = ServedGraph("default", uri, policy_text=POLICY)
    with served(ServerSettings((graph,), tokens=tokens)) as found:
        yield found


@pytest.fixture
def clients(server: Served) -> Iterator[dict[str, Client]]:
    with ExitStack() as held:
        yield {
            name: held.enter_context(server.client(name)) for name in ("ada", "bob", "bot", "eve")
        }


def begin(client: Client, branch: str, slug: str, **said: Any) -> int:
    """Make a branch with one more person, and ask for it to be merged."""
    assert client.post("/branches", {"name": branch}).status_code == 200
    assert client.mutate(INSERT, params={"slug": slug}, branch=branch).status_code == 200
    made = client.post("/merge-requests", {"source": branch, "title": f"Add {slug}", **said})
    assert made.status_code == 200, made.text
    number: int = made.json()["number"]
    return number


def test_an_agent_asks_people_answer_and_the_merge_waits_for_an_approval(
    clients: dict[str, Client],
) -> None:
    """A token that is bound to its branches opens and comments; it neither approves nor merges."""
    ada, bob, bot = (clients[name] for name in ("ada", "bob", "bot"))
    number = begin(bot, "agent/bot/task", "n1", reviewers=["ada"])
    path = f"/merge-requests/{number}"

    said = bot.post(f"{path}/comments", {"text": "please look", "type": "Person", "id": "n1"})
    refused = [
        bot.post(f"{path}/approvals", {}),
        bot.post(f"{path}/merge", {}),
        ada.post(f"{path}/merge", {}),
        ada.post("/branches/merge", {"source": "agent/bot/task"}),
        bot.post("/merge-requests", {"source": "main", "target": "agent/bot/task", "title": "x"}),
    ]
    objected = bob.post(f"{path}/changes-requested", {"text": "why?"}).json()
    edited = bot.send("PATCH", path, json={"description": "because"}).json()
    preview = ada.get(f"{path}/preview", changes_max="0").json()
    bob.send("DELETE", f"{path}/approvals")
    approved = bob.post(f"{path}/approvals", {"head": edited["review"]["head"]}).json()
    done = ada.post(f"{path}/merge", {"delete_branch": True}).json()

    assert said.status_code == 200
    assert [each.status_code for each in refused] == [403] * len(refused)
    missing = {"branch": "main", "required": 1, "missing": 1, "objectors": []}
    assert refused[2].json()["approvals"] == {
        **missing,
        "number": number,
        "approvers": ["ada", "bob"],
    }
    assert refused[3].json()["approvals"] == {**missing, "number": None, "approvers": ["bob"]}
    assert objected["review"]["objectors"] == ["bob"]
    assert (edited["description"], edited["review"]["is_approved"]) == ("because", False)
    assert (preview["outcome"], preview["checks"]) == ("fast_forward", [])
    assert preview["changes"]["stats"]["inserts"] == 1
    assert approved["review"]["is_approved"] is True
    assert (done["number"], done["branch_deleted"], done["actor_id"]) == (number, True, "ada")
    shown = ada.get(path).json()
    assert (shown["state"], shown["commit_id"]) == ("merged", done["commit_id"])
    late = bob.post(f"{path}/close", {})
    assert (late.status_code, late.json()["merge_request"]) == (
        409,
        {"number": number, "state": "merged"},
    )


def test_lists_and_events_come_in_pages(clients: dict[str, Client]) -> None:
    ada = clients["ada"]
    numbers = [begin(ada, f"page{each}", f"p{each}") for each in range(3)]
    ada.post(f"/merge-requests/{numbers[0]}/close", {"text": "no"})

    first = ada.get("/merge-requests", limit="1").json()
    second = ada.get("/merge-requests", limit="1", before=str(first["next_before"])).json()
    closed = ada.get("/merge-requests", state="closed").json()
    assert [each["number"] for each in first["merge_requests"]] == [numbers[2]]
    assert [each["number"] for each in second["merge_requests"]] == [numbers[1]]
    assert second["next_before"] is None
    assert [each["number"] for each in closed["merge_requests"]] == [numbers[0]]

    path = f"/merge-requests/{numbers[1]}"
    for text in ("one", "two", "three"):
        ada.post(f"{path}/comments", {"text": text})
    page = ada.get(path, limit="2").json()
    rest = ada.get(path, after=str(page["next_after"])).json()
    assert [each["text"] for each in page["comments"]] == ["one"]
    assert [each["text"] for each in rest["comments"]] == ["two", "three"]
    assert (page["event_count"], rest["next_after"]) == (4, None)
    for number in numbers[1:]:
        ada.post(f"/merge-requests/{number}/close", {})


def test_who_may_not_read_a_branch_sees_no_request_from_it(clients: dict[str, Client]) -> None:
    number = begin(clients["ada"], "secret", "s1")
    eve, path = clients["eve"], f"/merge-requests/{number}"

    assert eve.get("/merge-requests", state="all").json()["merge_requests"] == []
    answers = [
        eve.get(path),
        eve.get(f"{path}/preview"),
        eve.post(f"{path}/comments", {"text": "x"}),
        eve.post("/merge-requests", {"source": "secret", "title": "x"}),
        eve.send("PATCH", path, json={"title": "x"}),
    ]
    assert [each.status_code for each in answers] == [403] * len(answers)
    assert not any("Add s1" in each.text for each in answers)
    clients["ada"].post(f"{path}/close", {})


def test_what_is_wrong_with_a_request_is_said(clients: dict[str, Client]) -> None:
    ada = clients["ada"]
    number = begin(ada, "wrong", "w1")
    path = f"/merge-requests/{number}"
    bodies: list[tuple[str, str, dict[str, Any], int]] = [
        ("POST", "/merge-requests", {"source": "wrong", "title": "t", "into": "main"}, 400),
        ("POST", "/merge-requests", {"source": "wrong"}, 400),
        ("POST", "/merge-requests", {"source": "nope", "title": "t"}, 404),
        ("PATCH", path, {"tilte": "x"}, 400),
        ("PATCH", path, {"target": "nope"}, 404),
        ("POST", f"{path}/comments", {"txet": "x"}, 400),
        ("POST", f"{path}/comments", {"text": "x", "type": "Nope"}, 400),
        ("POST", f"{path}/comments", {"text": "x" * 20_001}, 413),
        ("POST", f"{path}/approvals", {"head": "01X"}, 409),
        ("POST", f"{path}/merge", {"deletebranch": True}, 400),
        ("POST", "/merge-requests/99/comments", {"text": "x"}, 404),
        ("POST", "/merge-requests/x/comments", {"text": "x"}, 404),
        ("POST", f"/merge-requests/{'9' * 40}/close", {}, 404),
    ]

    for method, where, body, status in bodies:
        answer = ada.send(method, where, json=body)
        assert answer.status_code == status, (where, body, answer.text)
    assert "no merge request 'x'" in ada.get("/merge-requests/x").json()["error"]
    assert ada.get("/merge-requests", state="opened").status_code == 400
    assert ada.get("/merge-requests", stat="open").status_code == 400
    moved = ada.post(f"{path}/approvals", {"head": "01X"}).json()["source_moved"]
    assert moved["expected"] == "01X"
    assert ada.get(path).json()["event_count"] == 1
    ada.post(f"{path}/close", {})
