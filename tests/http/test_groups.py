"""Inserts that arrive together over HTTP: each client has its own commit, error and condition."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph.server.worker_pool import WorkerPool
from omnigraph.testing.inside import inside
from tests.http.serving import INSERT, Client, Served, make_graph, served, single

ACTORS = [f"actor{number}" for number in range(6)]
POLICY = f"""
version: 1
groups: {{ all: [{", ".join(ACTORS)}] }}
rules:
  - id: all
    allow: {{ actors: {{ group: all }}, actions: [read, change] }}
"""
CONDITION = "Omnigraph-If-Graph-Commit"
LINK = "query link($a: String, $b: String) { insert Knows { from: $a, to: $b } }"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with tokens: each test adds to its graph."""
    path = make_graph(tmp_path_factory.mktemp("groups") / "graph")
    tokens = {each: f"token-{each}" for each in ACTORS}
    with served(single(path, tokens=tokens, policy_text=POLICY)) as server:
        yield server


def graph_of(server: Served) -> og.Graph:
    return server.serving.graphs.find("default").graph


def wait_until_waiting(server: Served, count: int) -> None:
    queue, deadline = inside(graph_of(server)).groups.queue, time.monotonic() + 30
    while queue.count_waiting("main") < count:
        assert time.monotonic() < deadline, "a request did not come to its group"
        time.sleep(0.001)


def send_together(
    server: Served, sent: Sequence[tuple[str, dict[str, Any], dict[str, str]]]
) -> list[httpx.Response]:
    """Requests (path, body, headers), one per actor, that all wait in the order of the actors."""
    with ExitStack() as stack, ThreadPoolExecutor(len(sent)) as pool:
        clients = [stack.enter_context(server.client(f"token-{each}")) for each in ACTORS]
        with inside(graph_of(server)).groups.queue.hold("main"):
            answers = []
            for number, (client, (path, body, headers)) in enumerate(
                zip(clients, sent, strict=False), 1
            ):
                answers.append(pool.submit(client.post, path, body, headers=headers))
                wait_until_waiting(server, number)
        return [each.result() for each in answers]


def insert(slug: str) -> dict[str, Any]:
    return {"query": INSERT, "params": {"slug": slug}}


def reader(server: Served) -> Client:
    return server.client(f"token-{ACTORS[0]}")


def test_each_client_has_its_own_commit_error_and_condition(server: Served) -> None:
    with reader(server) as client:
        head = client.get("/commits").json()["commits"][0]["graph_commit_id"]
    is_head = {CONDITION: head}
    sent = [
        ("/mutate", insert("one"), {}),
        ("/mutate", {"query": LINK, "params": {"a": "one", "b": "nobody"}}, {}),
        ("/mutate/if-graph-commit", insert("two"), is_head),
        ("/mutate/if-graph-commit", insert("three"), is_head),
        ("/mutate", {"query": LINK, "params": {"a": "one", "b": "ada"}}, {}),
    ]

    answers = send_together(server, sent)

    assert [each.status_code for each in answers] == [200, 400, 200, 412, 200]
    assert "nobody" in answers[1].json()["error"]
    one, two, link = (answers[number].json() for number in (0, 2, 4))
    assert [each["actor_id"] for each in (one, two, link)] == ["actor0", "actor2", "actor4"]
    with reader(server) as client:
        line = client.get("/commits").json()["commits"]
        newest = [(each["graph_commit_id"], each["actor_id"]) for each in line[:3]]
        assert newest == [
            (each["commit"]["graph_commit_id"], each["actor_id"]) for each in (link, one, two)
        ]
        assert len({each["manifest_version"] for each in line[:3]}) == 1
        slugs = {row["p.slug"] for row in client.rows()}
    assert {"one", "two"} <= slugs
    assert "three" not in slugs


def test_a_client_that_goes_away_blocks_none_and_leaves_nothing_half(server: Served) -> None:
    """Its insert was accepted: it is committed with the others, once."""
    body = json.dumps(insert("gone")).encode()
    head = f"POST /mutate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-{ACTORS[0]}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with ThreadPoolExecutor(1) as pool, server.client(f"token-{ACTORS[1]}") as client:
        with inside(graph_of(server)).groups.queue.hold("main"):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(head.encode() + body)
                wait_until_waiting(server, 1)
            stays = pool.submit(client.post, "/mutate", insert("stays"))
            wait_until_waiting(server, 2)
        assert stays.result().status_code == 200

        assert client.post("/mutate", insert("next")).status_code == 200
        slugs = [row["p.slug"] for row in client.rows()]
    assert [slugs.count(each) for each in ("gone", "stays", "next")] == [1, 1, 1]
    graph = graph_of(server)
    assert len(graph.commits()) == len({each.commit_id for each in graph.commits()})
    assert server.serving.admission.in_flight(ACTORS[0]) == 0
    assert list(Path(graph.uri, "__recovery").glob("*.json")) == []


def test_an_insert_is_handed_to_a_thread_once(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is, and where its branch stands, is in memory: the event loop finds that out."""
    handed, serving = list[str](), server.serving
    real, names = WorkerPool.submit, {serving.readers: "read", serving.writers: "write"}

    def submit(pool: WorkerPool, work: Any) -> None:
        handed.append(names.get(pool, "other"))
        real(pool, work)

    with reader(server) as client:
        assert client.post("/mutate", insert("warm")).status_code == 200
        time.sleep(0.05)  # what changed a moment ago is looked at again
        monkeypatch.setattr(WorkerPool, "submit", submit)
        answer = client.post("/mutate", insert("counted")).json()
        monkeypatch.undo()
        told = client.get(f"/commits/{answer['commit']['graph_commit_id']}").json()

    assert handed == ["write"]
    assert answer["commit"] == told
