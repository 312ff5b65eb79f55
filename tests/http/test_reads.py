"""Reads over HTTP: the frozen body, parameters, branches, snapshots."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.http.serving import INSERT, PEOPLE, UPDATE, Client, Served

BY_AGE = "query older($age: I32) { match { $p: Person $p.age > $age } return { $p.slug } }"
MAYBE = (
    "query maybe($age: I32?, $slug: String) "
    "{ match { $p: Person { slug: $slug } } return { $p.slug } }"
)
ONE = "query one($slug: String) { match { $p: Person { slug: $slug } } return { $p.age } }"
BIG = "query big($n: I64) { match { $p: Person $p.age < $n } return { count($p) as n } }"


def test_a_read_answers_rows_and_the_commit_they_are_from(client: Client) -> None:
    body = client.query().json()
    head = client.get("/commits").json()["commits"][0]

    assert list(body) == [
        "query_name",
        "target",
        "row_count",
        "columns",
        "rows",
        "graph_commit_id",
    ]
    assert body["query_name"] == "people"
    assert body["target"] == {"branch": "main", "snapshot": None}
    assert body["row_count"] == 2
    assert body["columns"] == ["p.slug", "p.age"]
    assert body["rows"][0] == {"p.slug": "ada", "p.age": 36}
    assert body["graph_commit_id"] == head["graph_commit_id"]


def test_the_body_of_read_is_frozen_to_the_byte(client: Client) -> None:
    answer = client.post("/read", {"query_source": PEOPLE, "query_name": "people"})

    assert answer.content == (
        b'{"query_name":"people","target":{"branch":"main","snapshot":null},"row_count":2,'
        b'"columns":["p.slug","p.age"],'
        b'"rows":[{"p.slug":"ada","p.age":36},{"p.slug":"grace","p.age":45}]}'
    )


@pytest.mark.parametrize(
    ("path", "body", "successor"),
    [
        ("/read", {"query_source": PEOPLE}, "query"),
        ("/change", {"query_source": UPDATE, "params": {"slug": "x", "age": 1}}, "mutate"),
        ("/ingest", {"data": ""}, "load"),
    ],
)
@pytest.mark.parametrize("base", ["", "/graphs/default"])
def test_the_old_names_point_to_the_new(
    client: Client, base: str, path: str, body: dict[str, Any], successor: str
) -> None:
    answer = client.post(f"{base}{path}", body)

    assert answer.status_code == 200
    assert answer.headers["deprecation"] == "true"
    assert answer.headers["link"] == f'<{successor}>; rel="successor-version"'


@pytest.mark.parametrize("path", ["/query", "/read"])
def test_every_spelling_of_the_members_is_taken(client: Client, path: str) -> None:
    for source in ("query", "query_source"):
        for name in ("name", "query_name"):
            answer = client.post(path, {source: PEOPLE, name: "people", "unknown": 1})
            assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"query": PEOPLE, "branch": "main", "snapshot": "x"}, "branch or snapshot, not both"),
        ({"query": PEOPLE + INSERT}, "declares 2 queries"),
        ({"query": PEOPLE, "name": "nobody"}, "'nobody'"),
        ({"query": INSERT, "params": {"slug": "x"}}, "POST /mutate"),
        ({"query": PEOPLE, "params": [1]}, "`params` should be an object"),
        ({"query": BY_AGE}, "age"),
        ({"query": BY_AGE, "params": {"age": None}}, "age"),
        ({"query": BY_AGE, "params": {"age": "many"}}, "age"),
        ({"query": "garbage"}, "parse error"),
        ({"query": "query x() { match { $p: Nope } return { $p } }"}, "type error"),
        ({"query": 5}, "`query` should be a string"),
        ({}, "`query` is missing"),
        ({"query": "/etc/hosts.gq"}, "parse error"),
        ({"query": PEOPLE, "branch": "../main"}, "not a branch name"),
    ],
)
def test_a_bad_read_is_a_400_that_says_why(client: Client, body: Any, words: str) -> None:
    answer = client.post("/query", body)

    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "bad_request"
    assert words in answer.json()["error"]


def test_garbage_to_the_old_read_is_a_400(client: Client) -> None:
    answer = client.post("/read", {"query_source": "garbage"})

    assert answer.status_code == 400
    assert answer.json()["code"] == "bad_request"


def test_what_may_be_null_may_be_left_out_and_wide_integers_may_be_texts(client: Client) -> None:
    assert len(client.rows(MAYBE, params={"slug": "ada"})) == 1
    assert client.rows(BIG, params={"n": "9223372036854775807"}) == [{"n": 2}]
    assert client.rows(BIG, params={"n": 40}) == [{"n": 1}]


def test_a_branch_or_commit_that_is_not_there_is_a_404(client: Client) -> None:
    for members in ({"branch": "nope"}, {"snapshot": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}):
        answer = client.query(**members)
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"
    assert client.get("/snapshot", branch="nope").status_code == 404
    assert client.get("/commits", branch="nope").status_code == 404
    assert client.get("/commits/nope").status_code == 404


def test_a_snapshot_reads_the_past(own: Served) -> None:
    with own.client() as client:
        before = client.query().json()["graph_commit_id"]
        client.mutate(UPDATE, params={"slug": "ada", "age": 99})

        past = client.query(snapshot=before).json()
        now = client.rows()

    assert past["rows"][0]["p.age"] == 36
    assert past["target"] == {"branch": None, "snapshot": before}
    assert past["graph_commit_id"] == before
    assert now[0]["p.age"] == 99


def test_a_snapshot_lists_tables_in_both_vocabularies(client: Client) -> None:
    body = client.get("/snapshot").json()

    keys = [each["table_key"] for each in body["tables"]]
    assert keys == sorted(keys) == ["edge:Knows", "edge:WorksAt", "node:Company", "node:Person"]
    assert body["tables"][3]["row_count"] == body["datasets"][3]["entity_count"] == 2
    assert body["datasets"][0]["entity_kind"] == "edge"
    assert body["datasets"][0]["type_name"] == "Knows"
    assert body["tables"][0]["table_branch"] is None
    assert body["manifest_version"] == body["graph_manifest_version"]


def test_commits_come_newest_first_in_both_vocabularies(own: Served) -> None:
    with own.client() as client:
        made = client.mutate(INSERT, params={"slug": "new"}).json()["commit"]
        commits = client.get("/commits").json()["commits"]

        assert commits[0] == made == client.get(f"/commits/{made['graph_commit_id']}").json()
        versions = [commit["manifest_version"] for commit in commits]
        assert versions == sorted(versions, reverse=True)
        assert made["manifest_branch"] is made["graph_branch"] is None
        assert made["parent_commit_id"] == commits[1]["graph_commit_id"]


@contextmanager
def all_readers_busy(server: Served) -> Iterator[None]:
    """While the block runs, no thread takes a read."""
    is_over = threading.Event()
    threads = server.serving.settings.limits.read_threads
    together = threading.Barrier(threads + 1, timeout=60)
    for _ in range(threads):
        server.serving.readers.submit(lambda: (together.wait(), is_over.wait(60)))
    together.wait()
    try:
        yield
    finally:
        is_over.set()


def test_a_cached_lookup_is_answered_while_all_read_threads_are_busy(own: Served) -> None:
    with own.client() as client, own.client() as other, ThreadPoolExecutor() as pool:
        time.sleep(0.05)  # files that have just changed are looked at each time
        for _ in range(3):
            rows = client.rows(ONE, params={"slug": "ada"})
            client.rows()

        with all_readers_busy(own):
            assert client.rows(ONE, params={"slug": "ada"}) == rows == [{"p.age": 36}]
            assert client.rows(ONE, params={"slug": "nobody"}) == []
            scan = pool.submit(other.rows)
            assert client.query(ONE, params={"slug": 7}).status_code == 400
            assert not scan.done()

        assert len(scan.result(60)) == 2


def test_a_read_that_would_block_is_answered_from_a_thread(own: Served) -> None:
    """Between a write and its read-ahead, look-ups go back and forth; each sees the last write."""
    with own.client() as client:
        for age in range(20):
            assert client.mutate(UPDATE, params={"slug": "ada", "age": age}).status_code == 200
            for _ in range(3):
                assert client.rows(ONE, params={"slug": "ada"}) == [{"p.age": age}]
