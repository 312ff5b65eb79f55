"""A comparison of any size is sent while it is read: over a socket, with what was read counted."""

from __future__ import annotations

import socket
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.branch import html, surroundings, windows
from omnigraph.machine import keep_few_heaps
from omnigraph.server import freed_memory
from omnigraph.storage.counters import PROCESS
from tests.branch.bulk import appending, write_bulk
from tests.http.serving import SCHEMA, Served, new_graph, served, single

pytestmark = pytest.mark.slow

ROWS = 4_000
ROW_BYTES = 4_000


def ask(server: Served, path: str) -> socket.socket:
    """A client that has sent its request, with little room for the answer on the way."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return connection


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_the_first_bytes_of_a_diff_arrive_before_its_last_row_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(windows, "WINDOW_ROWS", 512)
    monkeypatch.setattr(windows, "COMPARED_ROWS", 64)
    path = new_graph(tmp_path / "graph", "node Doc { slug: String @key  text: String? }", [])
    ids = [f"d{number:05d}" for number in range(ROWS)]
    batch = pa.record_batch({"id": ids, "slug": ids, "text": ["x" * ROW_BYTES] * ROWS})
    with og.open(path) as graph:
        write_bulk(graph, "node:Doc", appending([batch]))
        before = graph.commits()[-1].commit_id

    with served(single(path)) as server:
        at_first = PROCESS.rows_taken
        with ask(server, f"/diff?from={before}&format={form}") as connection:
            received = connection.recv(4_096)
            while b"d00000" not in received:
                received += connection.recv(4_096)
            read = PROCESS.rows_taken - at_first
            for part in iter(lambda: connection.recv(1 << 20), b""):
                received = received[-8_192:] + part

    assert 0 < read <= ROWS / 2, "the rest waits until the client takes it"
    assert PROCESS.rows_taken - at_first == ROWS
    assert b"d03999" in received


def test_a_page_of_a_diff_begins_before_the_changes_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it draws and lists is read first, and nothing else is read but ids, for the counts."""
    monkeypatch.setattr(windows, "WINDOW_ROWS", 64)
    monkeypatch.setattr(windows, "COMPARED_ROWS", 32)
    monkeypatch.setattr(html, "CHANGES_MAX", 150)
    monkeypatch.setattr(surroundings, "LOOKED_AT_MAX", 100)
    count = 1_000
    people = [
        {"type": "Person", "data": {"slug": f"p{n:04}", "name": "x" * 999}} for n in range(count)
    ]
    path = new_graph(tmp_path / "graph", SCHEMA, [])
    with og.open(path) as graph:
        graph.load(people, mode="append")
        before = graph.commits()[-1].commit_id

    with served(single(path)) as server:
        taken, scanned = PROCESS.rows_taken, PROCESS.rows_scanned
        with ask(server, f"/diff?from={before}&format=html") as connection:
            received = connection.recv(4_096)
            at_first = PROCESS.rows_scanned - scanned
            for part in iter(lambda: connection.recv(1 << 20), b""):
                received += part

    assert at_first <= (PROCESS.rows_scanned - scanned) / 4
    assert PROCESS.rows_taken - taken <= 2 * (100 + 150)
    page = received.decode()
    assert page.index("<svg") < page.index("p0149</bdi>") < page.index(f"{count} changes")
    assert f"{count - 150} more changes are not listed" in page
    assert f"{count - 80} more changes are not drawn" in page
    assert "p0150" not in page


def test_what_was_freed_is_given_back_while_an_answer_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[int] = []
    monkeypatch.setattr(freed_memory, "EVERY_BYTES", 64 * 1024)
    monkeypatch.setattr(freed_memory, "give_memory_back", lambda: given_back.append(1))
    people = [{"type": "Person", "data": {"slug": f"p{n}", "name": "x" * 999}} for n in range(400)]
    path = new_graph(tmp_path / "graph", SCHEMA, people)
    with served(single(path)) as server, server.client().http as client:
        sent = len(client.post("/export", json={}).content)
    assert 3 <= len(given_back) <= sent / (64 * 1024)


def test_a_server_has_one_pool_for_all_threads() -> None:
    before = pa.default_memory_pool()
    try:
        keep_few_heaps()
        assert pa.default_memory_pool().backend_name == "system"
    finally:
        pa.set_memory_pool(before)
