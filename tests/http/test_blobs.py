"""Blobs over HTTP and by the commands: ranges, conditions, and what is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph import blob_reader
from tests.cli.running import run
from tests.http.serving import Client, Served, served, single
from tests.http.test_policy import READ_OFF_MAIN, TOKENS

pytestmark = pytest.mark.slow

SCHEMA = "node Doc { slug: String @key  file: Blob?  title: String? }"
DATA = bytes(range(256)) * 1_000
PLACE = {"entity": "node", "type": "Doc", "id": "a", "property": "file"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("blobs") / "graph"
    text = "base64:" + base64.b64encode(DATA).decode()
    with og.init(found, schema=SCHEMA, durability="process") as graph:
        rows: list[dict[str, Any]] = [{"slug": "a", "file": text}, {"slug": "n"}]
        rows += [{"slug": "e", "file": "base64:"}]
        graph.load([{"type": "Doc", "data": row} for row in rows], mode="append")
    return found


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Served]:
    with served(single(path)) as found:
        yield found


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with server.client() as found:
        yield found


def test_a_blob_is_delivered_with_its_size_and_its_etag(client: Client) -> None:
    got = client.get("/blob", **PLACE)
    head = client.http.head("/blob", params=PLACE)

    assert (got.status_code, got.content) == (200, DATA)
    assert got.headers["content-type"] == "application/octet-stream"
    for name in ("content-length", "etag", "accept-ranges", "omnigraph-snapshot-id"):
        assert head.headers[name] == got.headers[name], name
    assert (head.headers["content-length"], head.content) == (str(len(DATA)), b"")
    newest = client.get("/commits").json()["commits"][0]["graph_commit_id"]
    assert got.headers["omnigraph-snapshot-id"] == newest


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=255990-", 255_990, 256_000),
        ("bytes=-5", 255_995, 256_000),
        ("bytes=-999999", 0, 256_000),
        ("bytes=255999-999999", 255_999, 256_000),
    ],
)
def test_a_range_is_a_206_with_those_bytes(
    client: Client, wanted: str, start: int, end: int
) -> None:
    got = client.http.get("/blob", params=PLACE, headers={"Range": wanted})

    assert (got.status_code, got.content) == (206, DATA[start:end])
    assert got.headers["content-range"] == f"bytes {start}-{end - 1}/256000"


@pytest.mark.parametrize(
    "wanted", ["bytes=5-2", "bytes=a-b", "bytes=0-1,4-5", "items=0-1", "bytes=-"]
)
def test_a_range_that_makes_no_sense_is_ignored(client: Client, wanted: str) -> None:
    got = client.http.get("/blob", params=PLACE, headers={"Range": wanted})

    assert (got.status_code, len(got.content)) == (200, len(DATA))


def test_conditions_decide_by_the_etag(client: Client) -> None:
    etag = client.get("/blob", **PLACE).headers["etag"]

    def status(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.http.get("/blob", params=PLACE, headers=named).status_code

    assert status(If_None_Match=etag) == 304
    assert status(If_None_Match='"other"') == 200
    assert status(If_Match=etag) == 200
    assert status(If_Match='"other"') == 412
    assert status(Range="bytes=0-1", If_Range=etag) == 206
    assert status(Range="bytes=0-1", If_Range='"other"') == 200
    behind = client.http.get("/blob", params=PLACE, headers={"Range": "bytes=256000-"})
    assert (behind.status_code, behind.headers["content-range"]) == (416, "bytes */256000")


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"id": "n"}, 404, "is null"),
        ({"id": "zz"}, 404, "there is no row 'zz'"),
        ({"property": "title"}, 400, "not a Blob"),
        ({"property": "fil"}, 400, "did you mean `file`?"),
        ({"type": "Dok"}, 400, "Dok"),
        ({"entity": "thing"}, 400, "expected 'node' or 'edge'"),
        ({"branch": "nope"}, 404, "branch 'nope' not found"),
        ({"snapshot": "nope"}, 404, "nope"),
        ({"branch": "main", "snapshot": "x"}, 400, "branch or snapshot, not both"),
        ({"blob": "x"}, 400, "there is no parameter `blob`"),
    ],
)
def test_what_is_no_blob_is_refused(
    client: Client, change: dict[str, str], status: int, words: str
) -> None:
    answer = client.get("/blob", **{**PLACE, **change})

    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_an_etag_follows_the_row_and_nothing_else(tmp_path: Path) -> None:
    put = 'query q($t: String) { update Doc set { title: $t } where slug = "a" }'
    with og.init(tmp_path / "g", schema=SCHEMA, durability="process") as graph:
        rows = [{"slug": "a", "file": "base64:AAEC"}, {"slug": "b"}]
        graph.load([{"type": "Doc", "data": row} for row in rows], mode="append")

        def etag(branch: str = "main") -> str:
            return graph.read_blob("node", "Doc", "a", "file", branch=branch).etag

        first = etag()
        graph.mutate('query q() { update Doc set { title: "x" } where slug = "b" }')
        graph.create_branch("dev")
        assert (etag(), etag("dev")) == (first, first)
        graph.mutate(put, params={"t": "new"})
        assert etag() != first
        assert etag("dev") == first


def test_a_large_blob_is_read_in_parts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_reader, "PART_BYTES", 1_000)
    with og.open(path, mode="r") as graph:
        blob = graph.read_blob("node", "Doc", "a", "file")
        parts = list(blob.read_parts(500, 5_000))

    assert max(map(len, parts)) == 1_000
    assert b"".join(parts) == DATA[500:5_000]


def test_a_blob_is_as_readable_as_its_branch(path: Path) -> None:
    with (
        served(single(path, tokens=TOKENS, policy_text=READ_OFF_MAIN)) as server,
        server.client("bob-token") as bob,
    ):
        assert bob.get("/blob", **PLACE).status_code == 403


def test_the_commands_do_the_same_on_a_store_and_a_server(
    path: Path, server: Served, tmp_path: Path
) -> None:
    told = []
    for address in (("--store", str(path)), ("--server", server.url)):
        out = tmp_path / "out.bin"
        cell = ("node", "Doc", "a", "file")
        stat = json.loads(run("blob", "stat", *cell, "--json", *address).out)
        run("blob", "get", *cell, "--out", out, *address)
        whole = out.read_bytes()
        run("blob", "get", *cell, "--offset", "7", "--length", "9", "--out", out, *address)
        errors = [
            run("blob", "get", *cell, "--offset", "300000", *address),
            run("blob", "get", "node", "Doc", "n", "file", *address),
            run("blob", "stat", "node", "Doc", "a", "title", *address),
        ]
        told.append((stat, whole, out.read_bytes(), errors))

    assert told[0] == told[1]
    stat, whole, part, errors = told[0]
    assert (stat["size"], whole, part) == (len(DATA), DATA, DATA[7:16])
    assert [each.code for each in errors] == [1, 1, 1]
