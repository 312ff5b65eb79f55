"""Readers of events that stop reading: what a server holds for them is bounded, for a while."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.branch import feed
from omnigraph.branch.row_batches import BATCH_BYTES
from omnigraph.server.events import EVENT_BYTES
from omnigraph.server.settings import Limits
from tests.depth import IS_TORTURE
from tests.http.serving import INSERT, make_graph, served, single
from tests.http.test_exports import until
from tests.http.test_process import started

pytestmark = pytest.mark.slow

ROW_BYTES = 4_000
PAGE_CHANGES = 250


def make_large_graph(path: Path, rows: int) -> Path:
    """A graph whose feed has about 4 kB per row."""
    text = "x" * ROW_BYTES
    with og.open(make_graph(path)) as graph:
        people = ({"type": "Person", "data": {"slug": f"p{n}", "name": text}} for n in range(rows))
        graph.load(people, mode="append")
    return path


def stop_reading(port: int, limit: int) -> socket.socket:
    """A client that asks for events and takes none, with little room for them on the way."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect(("127.0.0.1", port))
    path = f"/changes?start=beginning&limit={limit}".encode()
    connection.sendall(b"GET %b HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n" % path)
    return connection


def read_memory(pid: int) -> int:
    """What a process has in memory, in kB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_a_reader_that_takes_no_events_holds_one_page_and_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits, then it counts as gone. Pages are not read ahead, versions go as they would."""
    polls = 0
    poll = feed.ChangeFeed.poll

    def count(self: feed.ChangeFeed, *given: Any, **options: Any) -> feed.ChangePage:
        nonlocal polls
        polls += 1
        return poll(self, *given, **options)

    path = make_large_graph(tmp_path / "graph", 4_000)
    monkeypatch.setattr(feed.ChangeFeed, "poll", count)
    limits = Limits(event_streams_max=1, stall_seconds=1.0)
    with served(single(path, limits=limits)) as server:
        readers = server.serving.events
        with stop_reading(server.port, PAGE_CHANGES) as connection:
            until(lambda: readers.open == 1)
            with og.open(path) as graph:
                graph.mutate(INSERT, params={"slug": "late"})
                removed = graph.cleanup(keep=1, confirm=True)
            assert sum(each.old_versions_removed for each in removed.tables) > 0
            until(lambda: readers.open == 0)
            received = sum(len(part) for part in iter(lambda: connection.recv(65_536), b""))

    pages = 4_000 // PAGE_CHANGES
    assert polls < pages / 2, "pages beyond those that the system has buffers for"
    assert received < 4_000 * ROW_BYTES / 2, "the connection ended before all of it was sent"


def test_an_event_is_small_however_large_a_page_may_be(tmp_path: Path) -> None:
    path = make_large_graph(tmp_path / "graph", 400)
    with served(single(path)) as server, stop_reading(server.port, 8_192) as connection:
        received = b""
        while b"\n\n" not in received.partition(b"data: ")[2]:
            received += connection.recv(65_536)
    assert EVENT_BYTES / 2 < len(received) < EVENT_BYTES * 1.2


@pytest.mark.skipif(not IS_TORTURE, reason="`make torture` runs it")
def test_readers_that_take_no_events_leave_the_memory_of_a_server_flat(tmp_path: Path) -> None:
    count = 32
    make_large_graph(tmp_path / "graph", 20_000)
    with started(tmp_path, "graph", "--unauthenticated") as (process, url):
        port = int(url.rpartition(":")[2])
        with stop_reading(port, 8_192):
            time.sleep(5)
            first = read_memory(process.pid)  # one reader, and all that reading a page takes
            readers = [stop_reading(port, 8_192) for _ in range(count)]
            seen = []
            for _ in range(10):
                time.sleep(2)
                seen.append(read_memory(process.pid))
            for each in readers:
                each.close()

    # What readers hold, and what the threads that read for them decode at once when all begin.
    decoded = Limits().read_threads * 2 * BATCH_BYTES
    assert max(seen) - first < (count * 2 * EVENT_BYTES + decoded) // 1024, (first, seen)
    assert max(seen[5:]) <= min(seen[5:]) * 1.05, "it goes on growing for readers that wait"
