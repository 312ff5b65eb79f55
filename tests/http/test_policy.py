"""The policy gate: over HTTP and in the engine below it, by one bundle; several graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import PolicyError
from omnigraph.policy import load_policy
from omnigraph.server.auth import Tokens
from omnigraph.server.settings import ServedGraph, ServerSettings
from tests.http.serving import ADA, INSERT, PEOPLE, make_graph, ndjson, served, single

TOKENS = {"act-ada": "ada-token", "act-bob": "bob-token", "act-eve": "eve-token"}
POLICY = """
version: 1
groups: { admins: [act-ada], writers: [act-bob] }
protected_branches: [main]
rules:
  - id: admins
    allow:
      actors: { group: admins }
      actions: [read, export, change]
  - id: admins-branches
    allow:
      actors: { group: admins }
      actions: [branch_create, branch_merge, schema_apply]
  - id: writers-read
    allow: { actors: { group: writers }, actions: [read] }
  - id: writers-off-main
    allow: { actors: { group: writers }, actions: [change], branch_scope: unprotected }
  - id: writers-branch
    allow:
      actors: { group: writers }
      actions: [branch_create]
      target_branch_scope: unprotected
"""
READ_OFF_MAIN = """
version: 1
groups: { all: [act-bob] }
protected_branches: [main]
rules:
  - id: off-main
    allow: { actors: { group: all }, actions: [read], branch_scope: unprotected }
"""
SERVER_POLICY = """
version: 1
groups: { admins: [act-ada] }
rules:
  - id: admins-list
    allow: { actors: { group: admins }, actions: [graph_list] }
"""


def test_a_writer_off_main_is_refused_on_main_and_served_on_a_branch(graph_path: Path) -> None:
    """The same bundle decides over HTTP and for a direct write in somebody's name."""
    body = {"query": INSERT, "params": {"slug": "x"}}
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=POLICY)) as server,
        server.client("bob-token") as bob,
    ):
        on_main = bob.post("/mutate", body)
        blanks = bob.post("/mutate", {**body, "branch": "  main "})
        made = bob.post("/load", {"data": ndjson([ADA]), "branch": "mine", "from": "main"})
        on_branch = bob.post("/mutate", {**body, "branch": "mine"})

        assert on_main.status_code == 403
        assert on_main.json()["error"] == (
            "policy denied action 'change' on branch 'main' for actor 'act-bob'"
        )
        assert blanks.status_code == 403
        assert made.status_code == 200
        assert on_branch.status_code == 200
        assert len(bob.rows()) == 2

    policy = load_policy(POLICY, name="bundle", resource="default")
    with og.open(graph_path, policy=policy, actor="act-bob") as graph:
        with pytest.raises(PolicyError, match="policy denied action 'change' on branch 'main'"):
            graph.mutate(INSERT, params={"slug": "y"})
        graph.mutate(INSERT, params={"slug": "y"}, branch="mine")


def test_a_change_gives_back_rows_only_to_those_who_may_read(graph_path: Path) -> None:
    """A match decides by rows and a return shows them: both read the branch."""
    write_only = """
version: 1
groups: { admins: [act-ada], writers: [act-bob] }
rules:
  - id: admins
    allow: { actors: { group: admins }, actions: [read, change] }
  - id: writers
    allow: { actors: { group: writers }, actions: [change] }
"""
    put = 'query q() { upsert Person { slug: "x", name: "X" } }'
    shown = 'query q() { upsert Person { slug: "x", name: "X" } as $p return { $p.name } }'
    moved = "query q() { match { $p: Person } update $p set { name: $p.slug } }"
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=write_only)) as server,
        server.client("bob-token") as bob,
        server.client("ada-token") as ada,
    ):
        refused = [bob.mutate(shown), bob.mutate(moved)]
        plain, full = bob.mutate(put), ada.mutate(shown)

        assert [each.status_code for each in refused] == [403, 403]
        assert "policy denied action 'read'" in refused[0].json()["error"]
        assert plain.status_code == 200
        assert plain.json().keys() == {
            "branch",
            "query_name",
            "affected_nodes",
            "affected_edges",
            "actor_id",
            "commit",
        }
        assert full.json()["columns"] == ["p.name"]
        assert full.json()["rows"] == [{"p.name": "X"}]


def test_a_load_that_creates_a_branch_needs_permission_for_that_too(graph_path: Path) -> None:
    only_change = POLICY.replace("[branch_create]\n      target", "[branch_delete]\n      target")
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=only_change)) as server,
        server.client("bob-token") as bob,
    ):
        refused = bob.load([ADA], branch="mine", **{"from": "main"})

        assert refused.status_code == 403
        assert "branch_create" in refused.json()["error"]
        assert bob.get("/branches").json()["branches"] == ["main"]


def test_policy_comes_before_the_body_of_a_raw_load_is_read(graph_path: Path) -> None:
    """A refused writer's upload is refused for that, whatever it holds and however long it is."""
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=POLICY)) as server,
        server.client("bob-token") as bob,
    ):
        answers = [
            bob.send("POST", path, content=b"\xff", headers={})
            for path in ("/load/ndjson", "/load/files", "/load/files?dry_run=true")
        ]
        vectors = bob.post("/embed", {})

        assert [answer.status_code for answer in (*answers, vectors)] == [403] * 4


def test_an_unknown_actor_may_do_nothing(graph_path: Path) -> None:
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=POLICY)) as server,
        server.client("eve-token") as eve,
    ):
        assert eve.query().status_code == 403
        assert "unknown actor" in eve.query().json()["error"]
        assert eve.get("/schema").status_code == 403


def test_a_commit_is_as_readable_as_the_branch_it_was_made_on(graph_path: Path) -> None:
    with og.open(graph_path) as graph:
        graph.create_branch("open")
        graph.mutate(INSERT, params={"slug": "x"}, branch="open")
        on_main, on_branch = graph.commits("main")[0], graph.commits("open")[0]

    with (
        served(single(graph_path, tokens=TOKENS, policy_text=READ_OFF_MAIN)) as server,
        server.client("bob-token") as bob,
    ):
        assert bob.query(snapshot=on_main.commit_id).status_code == 403
        assert bob.query(snapshot=on_branch.commit_id).status_code == 200
        assert bob.query(branch="open").status_code == 200
        assert bob.query().status_code == 403
        assert bob.get("/snapshot").status_code == 403


def test_a_merge_that_may_not_delete_its_source_still_merges(graph_path: Path) -> None:
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=POLICY)) as server,
        server.client("ada-token") as ada,
    ):
        ada.post("/branches", {"name": "mine"})
        done = ada.post("/branches/merge", {"source": "mine", "delete_branch": True})

        assert done.status_code == 200
        assert done.json()["branch_deleted"] is False
        assert "policy denied action 'branch_delete'" in done.json()["branch_delete_error"]
        assert done.json()["actor_id"] == "act-ada"


def two_graphs(folder: Path, **settings: object) -> ServerSettings:
    graphs = (
        ServedGraph("alpha", str(make_graph(folder / "a")), policy_text=POLICY),
        ServedGraph("beta", str(make_graph(folder / "b"))),
    )
    return ServerSettings(
        graphs=graphs,
        is_single=False,
        tokens=Tokens.from_pairs(TOKENS.items()),
        **settings,  # type: ignore[arg-type]
    )


def test_several_graphs_are_served_by_id_each_by_its_own_rules(tmp_path: Path) -> None:
    with served(two_graphs(tmp_path, server_policy_text=SERVER_POLICY)) as server:
        body = {"query": INSERT, "params": {"slug": "x"}}
        with server.client("ada-token") as ada, server.client("bob-token") as bob:
            listed = ada.get("/graphs")
            assert [each["graph_id"] for each in listed.json()["graphs"]] == ["alpha", "beta"]
            assert bob.get("/graphs").status_code == 403
            assert ada.post("/graphs/alpha/mutate", body).status_code == 200
            # No bundle of its own: reads only, whoever asks.
            assert ada.post("/graphs/beta/mutate", body).status_code == 403
            assert ada.get("/graphs/beta/snapshot").status_code == 200
            assert ada.get("/graphs/gamma/snapshot").status_code == 404
            # Flat paths are about one graph, and there are two.
            assert ada.get("/snapshot").status_code == 404
            assert ada.post("/query", {"query": "x"}).status_code == 404
            assert ada.get("/healthz").status_code == 200
            assert ada.get("/graphs/alpha/healthz").status_code == 200
            assert "/snapshot" not in server.document["paths"]
            assert "/graphs" in server.document["paths"]


def test_graphs_are_not_listed_without_a_policy_that_says_so(tmp_path: Path) -> None:
    with served(two_graphs(tmp_path)) as server, server.client("ada-token") as ada:
        assert ada.get("/graphs").status_code == 403


def test_a_graph_that_cannot_be_opened_is_left_out(tmp_path: Path) -> None:
    graphs = (
        ServedGraph("good", str(make_graph(tmp_path / "a"))),
        ServedGraph("gone", str(tmp_path / "nothing")),
    )
    settings = ServerSettings(graphs=graphs, is_single=False, unauthenticated=True)
    with served(settings) as server, server.client() as client:
        assert client.get("/graphs/good/snapshot").status_code == 200
        assert client.get("/graphs/gone/snapshot").status_code == 404
        assert client.get("/graphs").status_code == 403  # also when everything else is open


def test_a_review_is_as_readable_as_the_branches_it_compares(graph_path: Path) -> None:
    with og.open(graph_path) as graph:
        graph.create_branch("open")
        graph.create_branch("other")
        on_main = graph.commits("main")[0].commit_id

    with (
        served(single(graph_path, tokens=TOKENS, policy_text=READ_OFF_MAIN)) as server,
        server.client("bob-token") as bob,
        server.client("eve-token") as eve,
    ):
        assert bob.get("/diff?from=open&to=other").status_code == 200
        for hidden in ("main", on_main, "main@2", "@2026-01-01"):
            assert bob.get(f"/diff?from=open&to={hidden}").status_code == 403, hidden
        preview = {"source": "open", "target": "main"}
        assert bob.post("/branches/merge/preview", preview).status_code == 403
        assert bob.post("/branches/merge", {**preview, "preview": True}).status_code == 403
        assert (
            bob.post("/branches/merge/preview", {**preview, "target": "other"}).status_code == 200
        )
        assert bob.get("/log").status_code == 403
        assert bob.get("/log?branch=open").status_code == 200
        for ask in ("history", "blame"):
            assert bob.get(f"/{ask}?type=Person&id=ada").status_code == 403
            assert bob.get(f"/{ask}?type=Person&id=ada&branch=open").status_code == 200
        # What was done on main is not told, though it led to the branch.
        hidden = bob.get("/history?type=Person&id=ada&branch=open").json()
        assert hidden["changes"] == []
        assert hidden["notes"] == ["changes on branches that the caller may not read are left out"]
        logged = bob.get("/log?type=Person&branch=open").json()
        assert logged["commits"] == []
        assert logged["notes"] == ["commits of branches that the caller may not read are left out"]
        patches = bob.get("/log?detail=patch&branch=open").json()["commits"]
        assert patches[0]["graph_commit_id"] == on_main
        assert {len(each["stat"]) + len(each.get("changes", [])) for each in patches} == {0}
        assert bob.get("/commits?detail=stat").status_code == 403
        on_the_way = {"query": PEOPLE, "good": "open~1", "bad": "open"}
        assert bob.post("/bisect", on_the_way).status_code == 403, "those commits are of main"
        assert bob.post("/explain", {"query": PEOPLE}).status_code == 403
        # Who may read nothing does not learn which branches there are.
        assert eve.get("/diff?from=nope&to=open").status_code == 403


def test_a_bisect_needs_to_read_every_branch_on_the_way(graph_path: Path) -> None:
    """Both ends are of branches that bob may read; a commit between them is not."""
    with og.open(graph_path) as graph:
        for name, source in (("open", "main"), ("secret", "open"), ("later", "secret")):
            graph.create_branch(name, source)
            graph.mutate(INSERT, params={"slug": name}, branch=name)
    asked = {"query": PEOPLE, "good": "open", "bad": "later"}
    hides = READ_OFF_MAIN.replace("[main]", "[secret]")
    opens = READ_OFF_MAIN.replace("[main]", "[other]")

    for policy, status in ((hides, 403), (opens, 400)):
        served_by = single(graph_path, tokens=TOKENS, policy_text=policy)
        with served(served_by) as server, server.client("bob-token") as bob:
            assert bob.get("/snapshot?branch=later").status_code == 200
            assert bob.post("/bisect", asked).status_code == status


def test_an_undo_needs_to_change_the_branch_and_to_read_where_commits_were_made(
    graph_path: Path,
) -> None:
    policy = """
version: 1
groups: { all: [act-bob] }
protected_branches: [main]
rules:
  - id: off-main
    allow: { actors: { group: all }, actions: [read, change], branch_scope: unprotected }
"""
    with og.open(graph_path) as graph:
        graph.create_branch("dev")
        on_main = graph.mutate(INSERT, params={"slug": "x"}).commit_id
        on_dev = graph.mutate(INSERT, params={"slug": "y"}, branch="dev").commit_id
        before = graph.commits()
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=policy)) as server,
        server.client("bob-token") as client,
    ):
        statuses = {
            "main": client.post("/revert", {"commits": [on_main]}).status_code,
            "preview": client.post("/revert/preview", {"commits": [on_main]}).status_code,
            "picked": client.post(
                "/cherry-pick", {"commits": [on_main], "into": "dev"}
            ).status_code,
            "restored": client.post("/restore", {"from": "main", "branch": "dev"}).status_code,
            "own": client.post("/revert", {"commits": [on_dev], "branch": "dev"}).status_code,
        }

    assert statuses == {"main": 403, "preview": 403, "picked": 403, "restored": 403, "own": 200}
    with og.open(graph_path, mode="r") as graph:
        assert graph.commits() == before
