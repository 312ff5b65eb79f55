"""A policy on types: what a caller may not read comes out of no route, by no name, at no time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random
from typing import Any, TypeAlias

import httpx
import pytest

import omnigraph as og
from omnigraph.config.project import StoredEntry
from omnigraph.policy import Action, load_policy
from omnigraph.server.auth import Tokens
from omnigraph.server.graphs import Access
from omnigraph.server.operations import OPERATIONS
from omnigraph.server.settings import ServedGraph, ServerSettings
from tests.depth import sample
from tests.http.serving import Client, Served, served

pytestmark = pytest.mark.slow

BEFORE = """
node Person { slug: String @key }
node Hidden { slug: String @key  amount: I64?  scan: Blob? }
edge Keeps: Person -> Hidden
edge Knows: Person -> Person
"""
AFTER = BEFORE.replace("node Hidden {", 'node Salary @rename_from("Hidden") {').replace(
    "-> Hidden", "-> Salary"
)
NAMES = {"Person": "Person", "Salary": "Salary", "Hidden": "Salary", "Keeps": "Keeps"}
EVERY = frozenset({"Person", "Salary", "Keeps", "Knows"})
QUERIES = {
    "Person": "query q() { match { $p: Person } return { $p.slug } }",
    "Salary": "query q() { match { $s: Salary } return { $s.amount } }",
    "Keeps": "query q() { match { $p: Person  $p keeps $s } return { $s.amount } }",
    "not": "query q() { match { $p: Person  not { $p keeps $_ } } return { $p.slug } }",
}
FOUR = "query q() { match { $s: Salary  $s.amount = 4 } return { $s.slug } }"
SHOWN = "query q() { match { $s: Salary } update $s set { amount: 5 } }"
RETURNED = 'query q() { upsert Salary { slug: "s1", amount: 4 } as $s return { $s.amount } }'

Send: TypeAlias = Callable[[Client, str, str], httpx.Response]


def _post(path: str, **body: Any) -> Send:
    return lambda client, old, head: client.post(path, body)


def _get(path: str) -> Send:
    return lambda client, old, head: client.get(path.format(old=old, head=head))


BLOB = "/blob?entity=node&type=Salary&id=s1&property=scan"
# Operation → ways to ask, each with the types that it reads. Types are in the names of today.
ASKS: dict[str, list[tuple[Send, frozenset[str]]]] = {
    "query": [
        (_post("/query", query=QUERIES["Person"]), frozenset({"Person"})),
        (_post("/query", query=QUERIES["Salary"]), frozenset({"Salary"})),
        (_post("/query", query=QUERIES["Keeps"]), frozenset({"Person", "Keeps", "Salary"})),
        (_post("/query", query=QUERIES["not"]), frozenset({"Person", "Keeps", "Salary"})),
        (
            lambda client, old, head: client.query(
                QUERIES["Salary"].replace("Salary", "Hidden"), snapshot=old
            ),
            frozenset({"Salary"}),
        ),
        (
            lambda client, old, head: client.query(QUERIES["Salary"], snapshot=old),
            frozenset({"Salary"}),
        ),
    ],
    "read": [(_post("/read", query_source=QUERIES["Salary"]), frozenset({"Salary"}))],
    "explain": [(_post("/explain", query=QUERIES["Salary"]), frozenset({"Salary"}))],
    "bisect": [
        (
            lambda client, old, head: client.post(
                "/bisect", {"query": FOUR, "good": old, "bad": head}
            ),
            frozenset({"Salary"}),
        ),
    ],
    "invoke_query": [(_post("/queries/q", params={}), frozenset({"Salary"}))],
    "export": [
        (_post("/export"), EVERY),
        (_post("/export", type_names=["Person"]), frozenset({"Person"})),
        (_post("/export", table_keys=["node:Salary"]), frozenset({"Salary"})),
    ],
    "diff": [
        (_get("/diff?from=side"), EVERY),
        (_get("/diff?from=side&type=Person"), frozenset({"Person"})),
        (_get("/diff?from={old}&type=Salary"), frozenset({"Salary"})),
        (_get("/diff?from={old}&type=Hidden"), frozenset({"Salary"})),
        (_get("/diff?from=side&kind=edge&format=html"), frozenset({"Keeps", "Knows"})),
    ],
    "history": [
        (_get("/history?type=Salary&id=s1"), frozenset({"Salary"})),
        (_get("/history?type=Person&id=ada"), frozenset({"Person"})),
    ],
    "blame": [(_get("/blame?type=Salary&id=s1"), frozenset({"Salary"}))],
    "getCommitChanges": [
        (_get("/commits/{head}/changes"), EVERY),
        (_get("/commits/{head}/changes?type=Person"), frozenset({"Person"})),
    ],
    "pollChanges": [
        (_get("/changes"), EVERY),
        (_get("/changes?type=Salary"), frozenset({"Salary"})),
    ],
    "captureChangeBaseline": [
        (_post("/changes/baseline"), EVERY),
        (_post("/changes/baseline", type=["Knows"]), frozenset({"Knows"})),
    ],
    "getBlob": [(_get(BLOB), frozenset({"Salary"}))],
    "headBlob": [
        (lambda client, old, head: client.http.head(BLOB), frozenset({"Salary"})),
    ],
    "runChecks": [(lambda client, old, head: client.get("/checks/run"), EVERY)],
    "previewRevert": [
        (lambda client, old, head: client.post("/revert/preview", {"commits": [head]}), EVERY),
    ],
    "previewCherryPick": [
        (
            lambda client, old, head: client.post(
                "/cherry-pick/preview", {"commits": [head], "into": "side"}
            ),
            EVERY,
        ),
    ],
    "previewRestore": [
        (lambda client, old, head: client.post("/restore/preview", {"from": head}), EVERY),
    ],
    "previewMerge": [(_post("/branches/merge/preview", source="side"), EVERY)],
    "previewMergeRequest": [(_get("/merge-requests/1/preview"), EVERY)],
    "mutate": [
        (_post("/mutate", query=SHOWN, branch="side"), frozenset({"Salary"})),
        (_post("/mutate", query=RETURNED, branch="side"), frozenset({"Salary"})),
    ],
}
# These read rows of no type: names, commits and the schema, which callers need to write queries.
NO_ROWS = {
    "list_queries",
    "getSchema",
    "getCatalog",
    "completeQuery",  # as these two, knows the schema only
    "checkQuery",
    "getPermissions",
    "listBranches",
    "listTags",
    "listChecks",
    "listMergeRequests",
    "getMergeRequest",  # leaves out what comments say: see below
    "listCommits",
    "getCommit",
    "log",
    "getSnapshot",  # leaves out tables: see below
    "mcp",  # makes requests of its own
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("types")
    scan = "base64:" + base64.b64encode(b"secret").decode()
    rows: list[dict[str, Any]] = [
        {"type": "Person", "data": {"slug": "ada"}},
        {"type": "Hidden", "data": {"slug": "s1", "amount": 3, "scan": scan}},
        {"edge": "Keeps", "from": "ada", "to": "s1"},
    ]
    with og.init(folder / "graph", schema=BEFORE, durability="process") as graph:
        graph.load(rows, mode="append")
        graph.apply_schema(AFTER)
        graph.mutate('query q() { upsert Salary { slug: "s1", amount: 4 } }')
        graph.create_branch("side")
        graph.open_merge_request("side", title="Side")
    (folder / "q.gq").write_text(QUERIES["Salary"])
    served_graph = ServedGraph(
        "default", str(folder / "graph"), queries={"q": StoredEntry(folder / "q.gq")}
    )
    tokens = Tokens.from_pairs([("act", "token")])
    with served(ServerSettings((served_graph,), tokens=tokens)) as found:
        yield found


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with server.client("token") as found:
        yield found


def adopt(server: Served, *rules: dict[str, Any]) -> None:
    """Let this be the policy; the actor may change and call stored queries in any case."""
    actions = ["change", "invoke_query", "branch_merge", "branch_create", "merge_request"]
    everything = {"actions": actions}
    allows = [everything, *rules]
    bundle = {
        "version": 1,
        "groups": {"all": ["act"]},
        "rules": [
            {"id": f"r{n}", "allow": {"actors": {"group": "all"}, **allow}}
            for n, allow in enumerate(allows)
        ],
    }
    opened = server.serving.graphs.find("default")
    policy = load_policy(json.dumps(bundle), name="bundle", resource="default")
    opened.adopt(Access(opened.served, policy, opened.registry))


def readable(rules: list[dict[str, Any]]) -> frozenset[str]:
    """A second opinion: the types, in the names of today, that some rule lets be read."""
    found = set()
    for name in EVERY:
        # A rule that hides any name of a type hides it; one that allows it has to allow them all.
        aliases = {old for old, new in NAMES.items() if new == name} | {name}
        for alias in aliases:
            if not any(_covers(rule, alias) for rule in rules):
                break
        else:
            found.add(name)
    return frozenset(found)


def _covers(rule: dict[str, Any], name: str) -> bool:
    return name in rule["types"] if "types" in rule else name not in rule.get("except_types", [])


def random_rules(random: Random) -> list[dict[str, Any]]:
    pool = [*sorted(EVERY), "Hidden", "Unknown"]
    rules: list[dict[str, Any]] = []
    for _ in range(random.randint(1, 3)):
        key = random.choice(["types", "except_types", "except_types", None])
        rule: dict[str, Any] = {"actions": ["read", "export"]}
        if key is not None:
            rule[key] = random.sample(pool, random.randint(1, 4))
        rules.append(rule)
    return rules


def test_every_operation_that_reads_is_asked_below() -> None:
    """A new route that reads fails here until the matrix knows what types it reads."""
    reads = {Action.READ, Action.EXPORT}
    known = {op.operation_id for op in OPERATIONS if op.action in reads}

    assert known - NO_ROWS == set(ASKS) - {"mutate", "invoke_query"}


@pytest.mark.parametrize("seed", sample(range(40), 7))
def test_every_route_decides_as_the_model(server: Served, client: Client, seed: int) -> None:
    random = Random(seed)
    rules = random_rules(random)
    if seed % 2:  # half of the time nothing but one type is hidden
        rules = [{"actions": ["read", "export"], "except_types": [random.choice([*NAMES])]}]
    adopt(server, {"actions": ["read", "export"]})
    commits = client.get("/commits").json()["commits"]
    head, old = commits[0]["graph_commit_id"], commits[-2]["graph_commit_id"]
    adopt(server, *rules)
    visible = readable(rules)

    for operation, asks in ASKS.items():
        for number, (send, types) in enumerate(asks):
            answer = send(client, old, head)
            expected = 200 if types <= visible else 403
            assert answer.status_code == expected, (operation, number, rules, answer.text)
            if expected == 403 and answer.content:
                assert "secret" not in answer.text
                assert "policy denied action" in answer.json()["error"]

    tables = {each["table_key"] for each in client.get("/snapshot").json()["tables"]}
    assert {key.partition(":")[2] for key in tables} == visible
    past = client.get("/snapshot", snapshot=old).json()["tables"]
    assert {
        NAMES.get(name, name) for each in past for name in each["table_key"].split(":")[1:]
    } == (visible)


def test_conflicts_of_a_hidden_type_have_no_values(server: Served, client: Client) -> None:
    """A merge may be allowed to callers who may not read all that it merges."""
    adopt(server, {"actions": ["read", "export"]})
    for branch, amount in (("ours", 70), ("theirs", 80)):
        client.post("/branches", {"name": branch})
        text = f"query q() {{ update Salary set {{ amount: {amount} }} where slug = 's1' }}"
        changed = client.mutate(text.replace("'", '"'), branch=branch)
        assert changed.status_code == 200, changed.text
    body = {"source": "theirs", "target": "ours"}
    full = client.post("/branches/merge", body)

    adopt(server, {"actions": ["read"], "except_types": ["Salary"]})
    hidden = client.post("/branches/merge", body)

    assert (full.status_code, hidden.status_code) == (409, 409)
    assert full.json()["merge_conflicts"][0]["theirs"]["amount"] == 80
    [conflict] = hidden.json()["merge_conflicts"]
    assert {conflict.get(side) for side in ("base", "ours", "theirs", "row_id")} == {None}
    assert not {"70", "80", "s1"} & set(hidden.text.replace('"', " ").split())


def test_comments_on_a_hidden_type_say_nothing(server: Served, client: Client) -> None:
    """Neither by the name of today nor by that of then, nor can one be written."""
    adopt(server, {"actions": ["read", "export"]})
    about = {"type": "Salary", "id": "s1", "property": "amount"}
    full = client.post("/merge-requests/1/comments", {"text": "s1 gets 4", **about}).json()
    client.post("/merge-requests/1/comments", {"text": "fine", "type": "Person"})

    for name in ("Salary", "Hidden"):
        adopt(server, {"actions": ["read"], "except_types": [name]})
        hidden = client.get("/merge-requests/1")
        body = {"text": "x", "type": "Salary"}
        refused = client.post("/merge-requests/1/comments", body)

        shown = hidden.json()["comments"]
        assert [each["is_hidden"] for each in shown] == [True, False]
        assert [each["text"] for each in shown] == [None, "fine"]
        assert not {"Salary", "s1", "amount", "gets"} & set(hidden.text.replace('"', " ").split())
        assert refused.status_code == 403
    assert full["comments"][0]["property"] == "amount"


def test_a_rule_by_an_old_name_still_hides_a_type(server: Served, client: Client) -> None:
    for name in ("Salary", "Hidden"):
        adopt(server, {"actions": ["read"], "except_types": [name]})
        assert client.query(QUERIES["Salary"]).status_code == 403, name
        assert client.query(QUERIES["Person"]).status_code == 200, name


def test_a_policy_without_types_asks_about_none(server: Served, client: Client) -> None:
    adopt(server, {"actions": ["read", "export"]})

    assert not server.serving.graphs.find("default").gate.limits_types
    assert client.query(QUERIES["Keeps"]).status_code == 200


def test_any_two_types_can_be_given_by_two_rules(server: Served, client: Client) -> None:
    for pair in sample(list(combinations(sorted(EVERY), 2)), 3):
        adopt(server, *({"actions": ["read"], "types": [name]} for name in pair if name))
        allowed = readable([{"types": [name]} for name in pair])
        tables = client.get("/snapshot").json()["tables"]
        assert {each["table_key"].partition(":")[2] for each in tables} == allowed


def test_a_type_that_only_a_branch_has_is_asked_for(server: Served, client: Client) -> None:
    """What is allowed by name does not grow with a schema; a rule of exceptions does."""
    with og.open(server.serving.graphs.find("default").uri) as graph:
        graph.create_branch("grown")
        graph.apply_schema(AFTER + "node Late { slug: String @key }", branch="grown")
    rule: dict[str, Any] = {"actions": ["read", "export"]}
    adopt(server, {**rule, "types": [*EVERY, "Hidden"]})
    closed = client.post("/export", {"branch": "grown"})
    adopt(server, {**rule, "except_types": ["Unknown"]})
    open_ = client.post("/export", {"branch": "grown"})

    assert (closed.status_code, open_.status_code) == (403, 200)
    assert "of type 'Late'" in closed.json()["error"]
