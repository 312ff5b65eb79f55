"""Blobs over HTTP and by the commands: ranges, conditions, and what is refused."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph import blob_reader
from omnigraph.server.settings import Limits
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
        ({"branch": "nope"}, 404, "revision 'nope' not found"),
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


def test_a_put_is_streamed_and_answers_with_the_new_etag(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts of no announced length; the spooled file is gone afterwards."""
    place, made, make = {**PLACE, "id": "n"}, list[str](), tempfile.mkdtemp

    def note_and_make(**options: Any) -> str:
        made.append(make(**options))
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", note_and_make)
    done = client.send(
        "PUT", "/blob", params={**place, "message": "scan"}, content=iter([DATA, b"!"])
    )
    got = client.get("/blob", **place)

    assert done.status_code == 200, done.text
    assert done.json()["size"] == len(DATA) + 1
    assert done.json()["commit"]["message"] == "scan"
    assert got.content == DATA + b"!"
    assert done.headers["etag"] == got.headers["etag"] == f'"{done.json()["etag"]}"'
    assert [Path(each).exists() for each in made if "omnigraph-input" in each] == [False]


def test_a_put_is_refused_when_the_bytes_have_changed(client: Client) -> None:
    place = {**PLACE, "id": "e"}
    seen = client.get("/blob", **place).headers["etag"]
    first = client.send("PUT", "/blob", params=place, content=b"1", headers={"If-Match": seen})
    second = client.send("PUT", "/blob", params=place, content=b"2", headers={"If-Match": seen})

    assert (first.status_code, second.status_code) == (200, 412)
    assert second.json()["code"] == "conflict"
    assert client.get("/blob", **place).content == b"1"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"id": "z"}, 404),
        ({"type": "Dok"}, 400),
        ({"property": "title"}, 400),
        ({"branch": "nope"}, 404),
        ({"snapshot": "x"}, 400),
        ({"brnach": "x"}, 400),
    ],
)
def test_a_put_that_names_nothing_is_refused(
    client: Client, change: dict[str, str], status: int
) -> None:
    head = client.get("/commits").json()["commits"][0]
    refused = client.send("PUT", "/blob", params={**PLACE, **change}, content=b"x")

    assert refused.status_code == status, refused.text
    assert client.get("/commits").json()["commits"][0] == head


def test_a_put_beyond_the_limit_writes_nothing(path: Path, tmp_path: Path) -> None:
    limits = Limits(upload_bytes_max=10)
    copied = Path(shutil.copytree(path, tmp_path / "graph"))
    with served(single(copied, limits=limits)) as server, server.client() as client:
        refused = client.send("PUT", "/blob", params=PLACE, content=b"x" * 11)

        assert refused.status_code == 413
        assert client.get("/blob", **PLACE).content == DATA


def test_the_command_puts_alike_on_a_store_and_a_server(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(DATA[:70_000])
    copies = [Path(shutil.copytree(path, tmp_path / name)) for name in ("a", "b")]
    with served(single(copies[1])) as server:
        addresses = [("--store", str(copies[0])), ("--server", server.url)]
        cell = ("node", "Doc", "a", "file")
        done = [run("blob", "put", *cell, str(file), "--json", *each) for each in addresses]
        lost = [
            run("blob", "put", *cell, str(file), "--if-match", "old", *each) for each in addresses
        ]
        gone = [run("blob", "put", *cell, str(tmp_path / "no"), *each) for each in addresses]
    answers = [json.loads(each.out) for each in done]
    for answer in answers:
        for varying in ("graph_commit_id", "created_at"):
            del answer["commit"][varying]

    assert [each.code for each in (*done, *lost, *gone)] == [0, 0, 1, 1, 1, 1]
    assert answers[0] == answers[1]
    assert all("the bytes have changed" in each.err for each in lost)
    assert len({each.err.partition("error: ")[2] for each in gone}) == 1
    with og.open(copies[1], mode="r") as graph:
        assert bytes(graph.read_blob("node", "Doc", "a", "file")) == DATA[:70_000]
