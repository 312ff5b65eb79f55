"""Exports over HTTP: streamed, whole, loadable again, and let go when the client is."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from omnigraph.pipeline import export as export_module
from omnigraph.pipeline.export import to_line
from omnigraph.server.settings import Limits
from omnigraph.server.streaming import CHUNK_BYTES, join_parts
from tests.http.serving import INSERT, SCHEMA, Client, Served, make_graph, new_graph, served, single

PEOPLE_MANY = 40_000
LEAVING_SECONDS = 0.3
"""In which a server has noticed that a client is gone; later would only make a test less strict."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a graph whose export is many chunks long."""
    records = (
        {"type": "Person", "data": {"slug": f"p{number:06}", "name": "x" * 100}}
        for number in range(PEOPLE_MANY)
    )
    path = new_graph(tmp_path_factory.mktemp("large") / "graph", SCHEMA, records)
    with served(single(path)) as server:
        yield server


def until(condition: Callable[[], bool]) -> None:
    """Wait for something another thread brings about; the suite's timeout ends a hang."""
    while not condition():
        time.sleep(0.005)


def hold_exports(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Stop exports some chunks from their beginning: events that one is, and that it may go on."""
    held, may_go_on = threading.Event(), threading.Event()
    original = export_module.slice_rows

    def slow(*arguments: object) -> Iterator[object]:
        for number, rows in enumerate(original(*arguments)):  # type: ignore[arg-type]
            if number == 2:
                held.set()
                may_go_on.wait()
            yield rows

    monkeypatch.setattr(export_module, "slice_rows", slow)
    return held, may_go_on


def exports_of(server: Served) -> int:
    return next(iter(server.serving.graphs)).exports


def test_an_export_is_in_table_order_and_loads_back_to_the_same_graph(
    own: Served, tmp_path: Path
) -> None:
    empty = new_graph(tmp_path / "copy", SCHEMA, [])
    with served(single(empty)) as other, own.client() as client, other.client() as copy:
        text = client.export()
        loaded = copy.post("/load", {"data": text, "mode": "overwrite"})

        records = [json.loads(line) for line in text.splitlines()]
        kinds = [record.get("edge") or record["type"] for record in records]
        assert kinds == ["Knows", "Company", "Person", "Person"]
        assert records[0]["from"] == "ada"
        assert records[2]["data"]["id"] == "ada"
        assert loaded.status_code == 200
        assert copy.export() == text


def test_an_export_may_be_of_some_types(client: Client) -> None:
    by_name = client.export(type_names=["Company"])
    by_key = client.export(table_keys=["node:Company"])

    assert by_name == by_key
    assert json.loads(by_name)["type"] == "Company"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"type_names": ["Nope"]}, 400),
        ({"types": ["Person"]}, 400),
        ({"branch": "nope"}, 404),
        ({"branch": 5}, 400),
    ],
)
def test_a_bad_export_is_refused_before_it_begins(
    client: Client, body: dict[str, object], status: int
) -> None:
    answer = client.post("/export", body)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"


def test_an_export_is_streamed_before_its_last_record_is_read(
    large: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records after the first chunk are held back until the client has read some of it."""
    held, may_go_on = hold_exports(monkeypatch)
    with large.client() as client, client.http.stream("POST", "/export", json={}) as answer:
        parts = answer.iter_raw()
        first = next(parts)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
        assert first.startswith(b'{"type":"Person"')
        held.wait()
        may_go_on.set()
        rest = b"".join(parts)

    assert (first + rest).count(b"\n") == PEOPLE_MANY


def test_a_disconnected_client_frees_its_export_slot_once_its_thread_ends(
    large: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, may_go_on = hold_exports(monkeypatch)
    with large.client() as client:
        with client.http.stream("POST", "/export", json={}):
            held.wait()
        time.sleep(LEAVING_SECONDS)
        assert exports_of(large) == 1
        may_go_on.set()
        until(lambda: exports_of(large) == 0)

        assert "omnigraph_exports_in_flight 0.0" in client.get("/metrics").text


def test_a_client_that_does_not_read_makes_the_producer_wait(
    large: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of the graph stays on disk while nobody takes it."""
    made = 0
    original = export_module.records_of

    def counting(*arguments: object) -> Iterator[object]:
        nonlocal made
        for record in original(*arguments):  # type: ignore[arg-type]
            made += 1
            yield record

    monkeypatch.setattr(export_module, "records_of", counting)
    import socket

    # A small window, so that the operating system cannot take the whole export in.
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", large.port))
        connection.sendall(
            b"POST /export HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 2\r\n\r\n{}"
        )
        before = -1
        while before != made or made == 0:
            before = made
            time.sleep(0.3)
        assert 0 < made < PEOPLE_MANY
        assert exports_of(large) == 1
    until(lambda: exports_of(large) == 0)


def test_an_export_reads_one_snapshot_despite_concurrent_writes(
    large: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with large.client() as client, large.client() as writer:
        with client.http.stream("POST", "/export", json={}) as answer:
            parts = answer.iter_raw()
            first = next(parts)
            done = writer.mutate(INSERT, params={"slug": "zzz"})
            text = first + b"".join(parts)

        assert done.status_code == 200
        assert b"zzz" not in text
        assert "zzz" in writer.export()


def test_exports_beyond_the_slots_of_a_graph_are_refused(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    limits = Limits(exports_per_graph_max=1)
    with served(single(path, limits=limits)) as server, server.client() as client:
        next(iter(server.serving.graphs)).exports = 1

        answer = client.post("/export", {})

        assert answer.status_code == 413
        assert answer.json()["resource_limit"] == {
            "resource": "stream_export_slots",
            "limit": 1,
            "actual": 2,
        }


def test_exports_beyond_the_slots_of_the_server_are_refused(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    limits = Limits(exports_max=1, export_wait_seconds=0.01)
    with served(single(path, limits=limits)) as server, server.client() as client:
        server.serving.slots._free._value = 0

        answer = client.post("/export", {})

        assert answer.status_code == 413
        assert answer.json()["resource_limit"]["resource"] == "stream_export_transport_bytes"
        assert exports_of(server) == 0


def test_an_export_that_fails_midway_is_not_a_complete_response(
    large: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = export_module.slice_rows

    def breaking(*arguments: object) -> Iterator[object]:
        for number, rows in enumerate(original(*arguments)):  # type: ignore[arg-type]
            if number == 3:
                raise OSError("the disk is gone")
            yield rows

    monkeypatch.setattr(export_module, "slice_rows", breaking)
    with large.client() as client, pytest.raises(httpx.RemoteProtocolError):
        client.http.post("/export", json={})
    until(lambda: exports_of(large) == 0)


def test_chunks_are_small_whatever_the_records_are() -> None:
    records = [{"type": "T", "data": {"text": "x" * size}} for size in (10, 200_000, 5, 70_000)]

    chunks = list(join_parts(map(to_line, records)))

    assert max(map(len, chunks)) <= CHUNK_BYTES
    assert [json.loads(line) for line in b"".join(chunks).splitlines()] == records
