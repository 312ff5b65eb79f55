"""What the wire adds: MCP to HTTP, HTTP to the library, and the memory of a server at long feeds.

CPU is that of the server process, by its own metrics, so the clients of these figures cost nothing.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

import omnigraph as og
from benchmarks.harness import Figure
from benchmarks.server import POINT, SCHEMA, cpu_seconds, serve

ROWS = 100_000
CALLS = 400
ROUNDS = 5
MERGES = 15
CHANGES = (300_000, 1_000_000)
_HEADERS = {"Accept": "application/json, text/event-stream"}
_INSERT = "query add($slug: String) { insert Person { slug: $slug } }"


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("served", "direct"):
            with og.init(root / name, schema=SCHEMA, durability="process") as graph:
                graph.load(_people(ROWS), mode="overwrite")
        with serve(root / "served") as url, httpx.Client(base_url=url, timeout=None) as client:
            yield from _tools(client, url)
            with og.open(root / "direct") as graph:
                yield from _merges(client, url, graph)
        for count in CHANGES:
            yield from _memory(root / f"long{count}", count)


def _tools(client: httpx.Client, url: str) -> Iterator[Figure]:
    """The same point query as a request and as a call of a tool, in turns."""
    asked = {"query": POINT, "params": {"slug": "p7"}}
    called = {"name": "query", "arguments": asked}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    ways: dict[str, Callable[[], httpx.Response]] = {
        "query": lambda: client.post("/query", json=asked),
        "tool": lambda: client.post("/mcp", json=message, headers=_HEADERS),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, send in ways.items():
            before = cpu_seconds(url)
            for _ in range(CALLS):
                assert send().status_code == 200
            if number:  # the first round is for imports and caches
                spent[name].append(1_000 * (cpu_seconds(url) - before) / CALLS)
    plain, tool = (statistics.median(each) for each in spent.values())
    yield Figure("a point query over HTTP, one client", plain, "cpu ms")
    yield Figure("the same as a tool of MCP", tool, "cpu ms")
    yield Figure("what MCP adds to a query", tool - plain, "cpu ms")


def _merges(client: httpx.Client, url: str, graph: og.Graph) -> Iterator[Figure]:
    """A fast-forward of one inserted row, in process and over HTTP, in turns."""
    direct: list[float] = []
    served: list[float] = []
    for number in range(MERGES + 2):
        branch, params = f"b{number}", {"slug": f"new{number}"}
        graph.create_branch(branch)
        graph.mutate(_INSERT, params=params, branch=branch)
        started = time.perf_counter()
        graph.merge(branch)
        direct.append(1_000 * (time.perf_counter() - started))
        client.post("/branches", json={"name": branch}).raise_for_status()
        sent = {"query": _INSERT, "params": params, "branch": branch}
        client.post("/mutate", json=sent).raise_for_status()
        started = time.perf_counter()
        client.post("/branches/merge", json={"source": branch}).raise_for_status()
        served.append(1_000 * (time.perf_counter() - started))
    here, there = statistics.median(direct[2:]), statistics.median(served[2:])
    yield Figure("a fast-forward merge in process", here, "wall ms")
    yield Figure("a fast-forward merge over HTTP", there, "wall ms")
    yield Figure("a fast-forward merge over HTTP over in process", there / here, "x")


def _memory(path: Path, count: int) -> Iterator[Figure]:
    """The most that a server had in memory while it sent this many changes."""
    with og.init(path, schema=SCHEMA, durability="process") as graph:
        start = graph.commits()[0].commit_id
        graph.load(_write_file(path.with_suffix(".jsonl"), count), mode="append")
    for name, read in {"diff": _read_diff, "feed": _read_feed}.items():
        with serve(path) as url, httpx.Client(base_url=url, timeout=None) as client:
            before = _resident(client)
            most = max(read(client, start, count))
            yield Figure(f"memory that a {name} of {count:,} changes takes", most - before, "MB")


def _read_diff(client: httpx.Client, start: str, count: int) -> Iterator[float]:
    with client.stream("GET", "/diff", params={"from": start, "format": "jsonl"}) as response:
        seen = 0
        for chunk in response.iter_bytes(1 << 22):
            seen += chunk.count(b"\n")
            yield _resident(client)
        assert seen == count


def _read_feed(client: httpx.Client, start: str, count: int) -> Iterator[float]:
    place: dict[str, Any] = {"start": f"after:{start}"}
    seen = 0
    while place:
        page = client.get("/changes", params={**place, "limit": 8_192}).json()
        seen += sum(len(block["changes"]) for block in page["blocks"])
        place = {"page_token": page["next_page_token"]} if "next_page_token" in page else {}
        yield _resident(client)
    assert seen == count


def _resident(client: httpx.Client) -> float:
    """What the server has in memory, in MB."""
    text = httpx.get(client.base_url.join("/metrics")).text
    found = re.search(r"^process_resident_memory_bytes (\S+)", text, re.MULTILINE)
    assert found is not None
    return float(found[1]) / 1e6


def _people(count: int) -> Iterator[dict[str, Any]]:
    return (
        {"type": "Person", "data": {"slug": f"p{n}", "name": f"N{n}", "age": n % 90}}
        for n in range(count)
    )


def _write_file(path: Path, count: int) -> Path:
    with path.open("w") as file:
        for each in _people(count):
            file.write(json.dumps(each) + "\n")
    return path
