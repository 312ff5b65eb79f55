"""Writes over HTTP: one commit or nothing, one winner of a race, conditions on the head."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from tests.http.serving import ACME, ADA, DELETE, INSERT, PEOPLE, UPDATE, Client, Served, ndjson

RACERS = 8
CONDITION = "Omnigraph-If-Graph-Commit"


@contextmanager
def held_writers(server: Served) -> Iterator[list[threading.Event]]:
    """Keep every thread that writes busy, each until its event is set."""
    doors = [threading.Event() for _ in range(server.serving.settings.write_threads)]
    for door in doors:
        server.serving.writers.submit(door.wait)
    try:
        yield doors
    finally:
        for door in doors:
            door.set()


def wait_for_writes(server: Served, count: int) -> None:
    """Until so many writes have arrived and wait for a thread."""
    while server.serving.writers._work.qsize() < count:
        time.sleep(0.005)


def race(server: Served, path: str, bodies: list[dict[str, Any]]) -> list[httpx.Response]:
    """Answers to requests that are all under way before the first of them is carried out."""
    with ExitStack() as stack, ThreadPoolExecutor(len(bodies)) as pool:
        clients = [stack.enter_context(server.client()) for _ in bodies]
        with held_writers(server):
            sent = [
                pool.submit(client.post, path, body)
                for client, body in zip(clients, bodies, strict=True)
            ]
            wait_for_writes(server, len(bodies))
        return [each.result() for each in sent]


@pytest.mark.accepts("S-147")
@pytest.mark.parametrize("attempt", range(3))
def test_of_eight_updates_of_one_entity_exactly_one_wins(
    own: Served, graph_path: Path, attempt: int
) -> None:
    """The others are told which table moved, from where to where, and nothing of them is seen."""
    bodies: list[dict[str, Any]] = [
        {"query": UPDATE, "params": {"slug": "ada", "age": age}} for age in range(RACERS)
    ]
    with og.open(graph_path, mode="r") as graph:
        before = graph.snapshot()

    answers = race(own, "/mutate", bodies)

    won = [answer for answer in answers if answer.status_code == 200]
    lost = [answer for answer in answers if answer.status_code == 409]
    assert (len(won), len(lost)) == (1, RACERS - 1), [answer.text for answer in answers]
    with og.open(graph_path, mode="r") as graph:
        after = graph.snapshot()
    seen, now = (each.version_of("node:Person") for each in (before, after))
    assert seen < now
    for answer in lost:
        body = answer.json()
        assert body["code"] == "conflict"
        assert body["error"].startswith(
            f"stale view of 'node:Person': expected manifest table version {seen} "
            f"but current is {now} "
        )
        assert body["manifest_conflict"] == {
            "table_key": "node:Person",
            "expected": seen,
            "actual": now,
        }
        newer = body["published_dataset_version_conflict"]
        assert newer["type_name"] == "Person"
        assert newer["expected_published_dataset_version"] == seen
        assert newer["actual_published_dataset_version"] == now
        assert body["read_set_conflict"] == {
            "member": "graph_head:main",
            "expected": before.head.commit_id,
            "actual": after.head.commit_id,
        }
    with own.client() as client:
        winner = bodies[answers.index(won[0])]["params"]
        assert client.rows()[0]["p.age"] == winner["age"]
        assert len(client.get("/commits").json()["commits"]) == 3


def test_an_update_whose_table_changed_while_it_waited_is_refused(own: Served) -> None:
    """What counts is what a request could see when it arrived, not when its turn came."""
    with (
        ThreadPoolExecutor(2) as pool,
        own.client() as one,
        own.client() as other,
        held_writers(own) as doors,
    ):
        waiting = [
            pool.submit(client.mutate, UPDATE, params={"slug": slug, "age": 1})
            for client, slug in ((one, "ada"), (other, "grace"))
        ]
        wait_for_writes(own, 2)
        doors[0].set()  # one thread, which takes them one after the other
        answers = sorted((each.result() for each in waiting), key=lambda each: each.status_code)

    assert [answer.status_code for answer in answers] == [200, 409]
    assert answers[1].json()["manifest_conflict"]["table_key"] == "node:Person"


def test_an_update_is_not_disturbed_by_writes_of_other_tables(own: Served) -> None:
    """The head of the branch moves under it, but not what it was decided on."""
    with (
        ThreadPoolExecutor(2) as pool,
        own.client() as one,
        own.client() as other,
        held_writers(own) as doors,
    ):
        waiting = [
            pool.submit(one.load, [ACME], mode="merge"),
            pool.submit(other.mutate, UPDATE, params={"slug": "ada", "age": 1}),
        ]
        wait_for_writes(own, 2)
        doors[0].set()
        answers = [each.result() for each in waiting]

    assert [answer.status_code for answer in answers] == [200, 200]


def test_concurrent_inserts_of_different_keys_all_succeed(own: Served) -> None:
    bodies: list[dict[str, Any]] = [
        {"query": INSERT, "params": {"slug": f"new{number}"}} for number in range(RACERS)
    ]

    answers = race(own, "/mutate", bodies)

    assert [answer.status_code for answer in answers] == [200] * RACERS
    with own.client() as client:
        assert {f"new{number}" for number in range(RACERS)} <= {
            row["p.slug"] for row in client.rows()
        }


def test_appending_a_key_that_is_there_is_a_key_conflict(own: Served) -> None:
    with own.client() as client:
        answer = client.load([ADA], mode="append")
        commits = client.get("/commits").json()["commits"]

    assert answer.status_code == 409
    assert answer.json()["key_conflict"] == {
        "table_key": "node:Person",
        "key": "ada",
        "entity_kind": "node",
        "type_name": "Person",
        "entity_id": "ada",
    }
    assert len(commits) == 2


def test_a_mutation_answers_its_commit_and_what_it_did(own: Served) -> None:
    with own.client() as client:
        body = client.mutate(INSERT, params={"slug": "x", "age": 5}).json()
        removed = client.mutate(DELETE, params={"slug": "ada"}).json()
        nothing = client.mutate(UPDATE, params={"slug": "nobody", "age": 1}).json()

    assert (body["branch"], body["query_name"], body["affected_nodes"]) == ("main", "add", 1)
    assert body["actor_id"] is None
    assert body["commit"]["graph_commit_id"]
    assert (removed["affected_nodes"], removed["affected_edges"]) == (1, 1)
    assert nothing["commit"] is None
    assert nothing["affected_nodes"] == 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            'query both() { insert Person { slug: "z" } delete Person where slug = "ada" }',
            "mixes inserts/updates and deletes",
        ),
        (PEOPLE, "POST /query"),
        ("/tmp/secret.gq", "parse error"),
    ],
)
def test_an_invalid_mutation_is_refused_before_any_write(
    client: Client, query: str, words: str
) -> None:
    before = client.get("/snapshot").json()

    answer = client.mutate(query)

    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert client.get("/snapshot").json() == before


def test_a_mutation_of_a_branch_that_is_not_there_is_a_404(client: Client) -> None:
    answer = client.mutate(INSERT, params={"slug": "x"}, branch="nope")

    assert answer.status_code == 404


def test_a_conditional_write_happens_only_on_the_head_it_names(own: Served) -> None:
    with own.client() as client:
        head = client.query().json()["graph_commit_id"]
        body = {"query": INSERT, "params": {"slug": "x"}}

        done = client.post("/mutate/if-graph-commit", body, headers={CONDITION: head})
        late = client.post("/mutate/if-graph-commit", body, headers={CONDITION: head})

        assert done.status_code == 200
        now = done.json()["commit"]["graph_commit_id"]
        assert late.status_code == 412
        assert late.json()["precondition_failure"] == {"expected": head, "actual": now}
        assert "code" not in late.json()
        assert client.get("/commits").json()["commits"][0]["graph_commit_id"] == now


@pytest.mark.parametrize("value", ["*", '"01ABC"', "W/01ABC", "01ABC, 01DEF", "", "a b"])
def test_a_condition_is_one_plain_commit_id(client: Client, value: str) -> None:
    body = {"query": INSERT, "params": {"slug": "x"}}

    answer = client.post("/mutate/if-graph-commit", body, headers={CONDITION: value})

    assert answer.status_code == 400


def test_a_condition_is_required_there_and_refused_elsewhere(client: Client) -> None:
    body = {"query": INSERT, "params": {"slug": "x"}}

    assert client.post("/mutate/if-graph-commit", body).status_code == 400
    for path in ("/mutate", "/change", "/queries/any"):
        answer = client.post(path, body, headers={CONDITION: "01ABC"})
        assert answer.status_code == 400, path


def test_two_conditions_are_refused(client: Client) -> None:
    headers = [(CONDITION, "01ABC"), (CONDITION, "01DEF"), ("Content-Type", "application/json")]

    answer = client.send(
        "POST", "/mutate/if-graph-commit", content=b'{"query":"x"}', headers=headers
    )

    assert answer.status_code == 400


def test_an_overwrite_that_loses_a_race_is_a_conflict(own: Served) -> None:
    """Overwrites are never replayed for the caller."""
    data = ndjson([ACME])
    answers = race(own, "/load", [{"data": data, "mode": "overwrite"}] * 4)

    codes = sorted(answer.status_code for answer in answers)
    assert set(codes) <= {200, 409}
    assert 200 in codes
    for answer in answers:
        if answer.status_code == 409:
            assert "manifest_conflict" in answer.json()
