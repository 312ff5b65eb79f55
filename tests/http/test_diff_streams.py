"""A comparison of any size is sent while it is read: over a socket, with what was read counted."""

from __future__ import annotations

import socket
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.branch import windows
from omnigraph.storage.counters import PROCESS
from tests.branch.bulk import appending, write_bulk
from tests.http.serving import Served, new_graph, served, single

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
