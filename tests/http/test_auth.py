"""Tokens: who is calling, what they may do without a policy, and when a server refuses to start."""

from __future__ import annotations

import hmac
import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import BadRequestError
from omnigraph.server.auth import Tokens, Unauthorized
from omnigraph.server.openapi import SECURITY_SCHEME
from omnigraph.server.settings import ServedGraph, ServerSettings, limits_from, tokens_from
from tests.http.serving import ADA, INSERT, make_graph, ndjson, served, single

TOKENS = {"act-ada": "ada-token-1", "act-bob": "bob-token-2"}
POLICY = """
version: 1
groups: { writers: [act-ada], readers: [act-ada, act-bob] }
rules:
  - id: readers-read
    allow: { actors: { group: readers }, actions: [read, export] }
  - id: writers-write
    allow: { actors: { group: writers }, actions: [change] }
"""


def test_a_request_without_a_known_token_is_a_401(graph_path: Path) -> None:
    with served(single(graph_path, tokens=TOKENS)) as server:
        wrong = ["Basic YTpi", "Bearer", "Bearer nope", "Bearer ada-token-1x", "bearer", ""]
        with server.client() as client:
            answers = [client.get("/snapshot")]
            answers += [
                client.send("GET", "/snapshot", headers={"Authorization": value}) for value in wrong
            ]
            texts = [answer.json()["error"] for answer in answers]

            assert {answer.status_code for answer in answers} == {401}
            assert {answer.json()["code"] for answer in answers} == {"unauthorized"}
            assert texts[0] == "missing bearer token"
            assert texts[3] == texts[4] == "invalid bearer token"
            assert client.get("/healthz").status_code == 200
            assert client.get("/metrics").status_code == 200
            assert client.http.get("/openapi.json").status_code == 200


def test_the_actor_is_the_one_of_the_token_whatever_the_client_says(graph_path: Path) -> None:
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=POLICY)) as server,
        server.client("ada-token-1") as client,
    ):
        done = client.send(
            "POST",
            "/mutate?actor=act-bob",
            json={"query": INSERT, "params": {"slug": "x"}},
            headers={"X-Actor-Id": "act-bob", "X-Omnigraph-Actor": "act-bob"},
        )
        loaded = client.load([{"type": "Person", "data": {"slug": "new", "name": "New"}}])
        commits = client.get("/commits").json()["commits"]

        named = client.mutate(INSERT, params={"slug": "y"}, actor_id="act-bob")

    assert done.json()["actor_id"] == "act-ada"
    assert named.status_code == 400, "a body that can write has no actor"
    assert loaded.json()["actor_id"] == "act-ada"
    assert [commit["actor_id"] for commit in commits[:2]] == ["act-ada", "act-ada"]


def test_without_a_policy_a_token_may_only_read(graph_path: Path) -> None:
    with (
        served(single(graph_path, tokens=TOKENS)) as server,
        server.client("bob-token-2") as client,
    ):
        body = {"query": INSERT, "params": {"slug": "x"}}
        denied = [
            client.post("/mutate", body),
            client.post("/load", {"data": ndjson([ADA])}),
            client.post("/export", {}),
            client.post("/branches", {"name": "x"}),
            client.send("DELETE", "/branches/x"),
            client.post("/branches/merge", {"source": "x"}),
            client.post("/schema/apply", {"schema_source": ""}),
        ]

        assert [answer.status_code for answer in denied] == [403] * len(denied)
        assert {answer.json()["code"] for answer in denied} == {"forbidden"}
        assert len(client.rows()) == 2
        assert client.get("/schema").status_code == 200


def test_an_unauthenticated_caller_does_not_learn_which_graphs_exist(graph_path: Path) -> None:
    with served(single(graph_path, tokens=TOKENS)) as server, server.client() as stranger:
        for path in ("/healthz", "/snapshot"):
            known = stranger.get(f"/graphs/default{path}")
            unknown = stranger.get(f"/graphs/other{path}")

            assert (known.status_code, known.text) == (unknown.status_code, unknown.text)


def test_every_entry_is_compared_also_after_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that stops at the match would tell by its time where the match is."""
    tokens = Tokens.from_pairs([(f"actor{n}", f"token{n}") for n in range(10)])
    compared: list[bool] = []
    compare = hmac.compare_digest

    def counting(one: bytes, other: bytes) -> bool:
        compared.append(len(one) == len(other) == 32)
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counting)

    assert tokens.holder_of("Bearer token0").actor == "actor0"
    assert compared == [True] * 10
    with pytest.raises(Unauthorized):
        tokens.holder_of("Bearer other")
    assert compared == [True] * 20


def test_tokens_are_kept_as_digests_only() -> None:
    settings = ServerSettings(
        graphs=(ServedGraph("g", "x"),), tokens=Tokens.from_pairs([("ada", "very-secret")])
    )

    assert "very-secret" not in repr(settings)
    assert "very-secret" not in repr(astuple(settings.tokens))


@pytest.mark.parametrize(
    ("environment", "known"),
    [
        ({"OMNIGRAPH_SERVER_BEARER_TOKEN": " one "}, {"one": "default"}),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{" ada ": " two "}'}, {"two": "ada"}),
        (
            {
                "OMNIGRAPH_SERVER_BEARER_TOKEN": "one",
                "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": "two"}',
            },
            {"one": "default", "two": "ada"},
        ),
    ],
)
def test_tokens_come_from_the_environment(
    environment: dict[str, str], known: dict[str, str]
) -> None:
    tokens = tokens_from(environment)

    for token, actor in known.items():
        assert tokens.holder_of(f"Bearer {token}").actor == actor


def test_a_file_of_tokens_wins_over_those_given_inline(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"ada": "from-file"}))

    tokens = tokens_from(
        {
            "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(path),
            "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"bob": "inline"}',
        }
    )

    assert tokens.holder_of("Bearer from-file").actor == "ada"
    with pytest.raises(Unauthorized):
        tokens.holder_of("Bearer inline")


@pytest.mark.parametrize(
    "environment",
    [
        {"OMNIGRAPH_SERVER_BEARER_TOKEN": "  "},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"": "secret"}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": " "}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": "secret", " ada": "other"}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": "secret", "bob": "secret "}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '["secret"]'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": 5}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "secret"},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": "/nowhere/tokens.json"},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET": "arn:aws:x"},
        {
            "OMNIGRAPH_SERVER_BEARER_TOKEN": "secret",
            "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"default": "other"}',
        },
    ],
)
def test_tokens_that_cannot_be_used_are_refused_without_being_shown(
    environment: dict[str, str],
) -> None:
    with pytest.raises(BadRequestError) as refused:
        tokens_from(environment)

    assert "secret" not in str(refused.value).replace("SECRET", "").replace("AWS secrets", "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "--unauthenticated"),
        ({"graphs": ()}, "no graph to serve"),
        ({"graphs": (ServedGraph("g", "x", policy_text=POLICY),)}, "no bearer token"),
        ({"server_policy_text": "x", "unauthenticated": True}, "no bearer token"),
        ({"graphs": (ServedGraph("g", "x"), ServedGraph("g", "y"))}, "the same id"),
    ],
)
def test_a_server_open_to_no_caller_or_to_every_caller_by_oversight_does_not_start(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadRequestError, match=words):
        ServerSettings(**{"graphs": (ServedGraph("g", "x"),), **settings}).check()


def test_limits_come_from_the_environment() -> None:
    limits = limits_from({"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "3"})

    assert limits.actor_requests_max == 3
    for value in ("0", "-1", "many", "1.5"):
        with pytest.raises(BadRequestError, match="OMNIGRAPH_PER_ACTOR_BYTES_MAX"):
            limits_from({"OMNIGRAPH_PER_ACTOR_BYTES_MAX": value})


def test_the_document_asks_for_a_token_only_where_one_is_needed(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    with served(single(path, tokens=TOKENS)) as server:
        document = server.document
        secured = document["paths"]["/query"]["post"]
        assert secured["security"] == [{SECURITY_SCHEME: []}]
        assert document["components"]["securitySchemes"][SECURITY_SCHEME]["scheme"] == "bearer"
        assert "security" not in document["paths"]["/healthz"]["get"]
    with served(single(path)) as server:
        assert "securitySchemes" not in server.document["components"]
        assert "security" not in server.document["paths"]["/query"]["post"]
