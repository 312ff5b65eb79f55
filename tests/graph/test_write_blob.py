"""Writing one Blob: one commit, the rest of the row untouched, and memory that stays flat."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, EntityNotFound, EtagMismatch
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints

SCHEMA = """
node Doc { slug: String @key  file: Blob?  other: Blob?  title: String? @index }
edge Cites: Doc -> Doc { scan: Blob? }
"""
CELL = ("node", "Doc", "a", "file")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def graph(path: Path) -> Iterator[og.Graph]:
    with og.init(path, schema=SCHEMA, durability="process") as found:
        rows: list[dict[str, Any]] = [
            {"type": "Doc", "data": {"slug": "a", "title": "A", "other": "base64:eHl6"}},
            {"type": "Doc", "data": {"slug": "b"}},
            {"edge": "Cites", "from": "a", "to": "b", "data": {"id": "c"}},
        ]
        found.load(rows, mode="append")
        yield found


def bytes_of(graph: og.Graph, *cell: str, **at: str) -> bytes:
    return bytes(graph.read_blob(*(cell or CELL), **at))  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 700], ids=len)
def test_bytes_a_file_and_a_stream_are_written_alike(
    graph: og.Graph, tmp_path: Path, data: bytes
) -> None:
    """Small and empty ones lie in the data file, large ones beside it."""
    file = tmp_path / "data"
    file.write_bytes(data)
    for source in (data, file, io.BytesIO(data)):
        before = len(graph.commits())
        result = graph.write_blob(*CELL, source, message="why")

        assert bytes_of(graph) == data
        assert (result.affected_nodes, result.affected_edges) == (1, 0)
        assert len(graph.commits()) == before + 1
        assert graph.commits()[0].message == "why"
    assert graph.verify(True).is_clean


def test_the_rest_of_the_row_stays(graph: og.Graph) -> None:
    graph.write_blob(*CELL, b"one")
    graph.write_blob(*CELL, b"two")
    graph.write_blob("edge", "Cites", "c", "scan", b"three")

    assert bytes_of(graph, "node", "Doc", "a", "other") == b"xyz"
    assert bytes_of(graph, "edge", "Cites", "c", "scan") == b"three"
    rows = "query q() { match { $d: Doc  $d cites $e } return { $d.slug, $d.title, $e.slug } }"
    assert graph.query(rows).rows() == [{"d.slug": "a", "d.title": "A", "e.slug": "b"}]
    named = 'query q() { match { $d: Doc { title: "A" } } return { $d.slug } }'
    assert graph.query(named).rows() == [{"d.slug": "a"}]
    assert [each.op for each in graph.history("Doc", "a")] == ["update", "update", "insert"]


def test_a_branch_is_written_alone_and_merged(graph: og.Graph) -> None:
    graph.write_blob(*CELL, b"old")
    graph.create_branch("side")
    graph.write_blob(*CELL, b"new", branch="side")

    assert (bytes_of(graph), bytes_of(graph, branch="side")) == (b"old", b"new")
    graph.merge("side")
    assert bytes_of(graph) == b"new"


def test_an_etag_protects_what_was_not_seen(graph: og.Graph) -> None:
    graph.write_blob(*CELL, b"one")
    etag = graph.read_blob(*CELL).etag
    graph.write_blob(*CELL, b"two", if_match=etag)
    before = graph.snapshot().manifest_version

    with pytest.raises(EtagMismatch, match="nothing was written"):
        graph.write_blob(*CELL, b"three", if_match=etag)
    with pytest.raises(EtagMismatch, match="it has no bytes"):
        graph.write_blob("node", "Doc", "b", "file", b"three", if_match=etag)

    assert bytes_of(graph) == b"two"
    assert graph.snapshot().manifest_version == before


@pytest.mark.parametrize(
    ("cell", "source", "error", "text"),
    [
        (("node", "Doc", "z", "file"), b"x", EntityNotFound, "'z'"),
        (("node", "Dok", "a", "file"), b"x", BadRequestError, "Dok"),
        (("node", "Doc", "a", "title"), b"x", BadRequestError, "not a Blob"),
        (("nod", "Doc", "a", "file"), b"x", BadRequestError, "expected 'node' or 'edge'"),
        (CELL, Path("/absent/file"), BadRequestError, "cannot read '/absent/file'"),
        (CELL, "text", BadRequestError, "expected bytes, a path or a stream"),
    ],
)
def test_what_cannot_be_written_is_refused(
    graph: og.Graph, cell: tuple[str, ...], source: Any, error: type[Exception], text: str
) -> None:
    before = graph.snapshot().manifest_version

    with pytest.raises(error, match=text):
        graph.write_blob(*cell, source)  # type: ignore[call-arg,arg-type]

    assert graph.snapshot().manifest_version == before


@pytest.mark.parametrize("point", [Failpoint.COMMIT_AFTER_SIDECAR, Failpoint.COMMIT_AFTER_TABLE])
def test_a_write_that_dies_leaves_old_bytes_or_new(
    graph: og.Graph, path: Path, point: Failpoint
) -> None:
    graph.write_blob(*CELL, b"old")
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        graph.write_blob(*CELL, b"new")
    graph.close()

    with og.open(path) as again:
        assert bytes_of(again) in (b"old", b"new")
        assert again.verify(True).is_clean
        again.write_blob(*CELL, b"after")
        assert bytes_of(again) == b"after"


@pytest.mark.slow
def test_memory_does_not_follow_the_size(tmp_path: Path) -> None:
    """What the process itself holds: pages of mapped files belong to the system."""
    size = 96 << 20
    with (tmp_path / "data").open("wb") as file:
        for _ in range(96):
            file.write(b"\xa5\x5a" * (1 << 19))
    code = f"""
import threading, time, omnigraph as og
from pathlib import Path
def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith("RssAnon"))
graph = og.init("graph", schema={SCHEMA!r}, durability="process")
graph.load([{{"type": "Doc", "data": {{"slug": "a"}}}}], mode="append")
graph.write_blob("node", "Doc", "a", "file", b"warm")
before, most, is_done = held(), 0, threading.Event()
def watch():
    global most
    while not is_done.wait(0.002):
        most = max(most, held())
watcher = threading.Thread(target=watch); watcher.start()
graph.write_blob("node", "Doc", "a", "file", Path("data"))
with open("data", "rb") as file:
    graph.write_blob("node", "Doc", "a", "other", file)  # the first one is carried over
is_done.set(); watcher.join()
print(graph.read_blob("node", "Doc", "a", "file").size, most - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    written, grown = map(int, done.stdout.split())
    assert written == size
    assert grown < size // 3, f"{grown >> 20} MiB more for {size >> 20} MiB"
