"""Durable one-row inserts over HTTP into one branch, from 1, 4, 16 and 32 clients.

The clients are a process of their own, each sends its next insert when it has the answer to the
last one. Commits per second mean something only on a machine that does nothing else; the CPU of the
server for each insert also on one that does.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

import omnigraph as og
from benchmarks.harness import Figure, is_quick
from benchmarks.server import cpu_seconds, post, serve

SCHEMA = "node Person { slug: String @key  name: String?  age: I32? }\n"
INSERT = "query add($slug: String) { insert Person { slug: $slug, age: 1 } }"
CLIENTS = (1, 4, 16, 32)
CLIENT_FLAG = "--clients"
LIMIT = {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": str(max(CLIENTS))}


def run() -> Iterator[Figure]:
    """One server and one graph for all: each step goes on where the one before has stopped."""
    seconds = 0.3 if is_quick() else 10.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        og.init(path, schema=SCHEMA).close()
        with serve(path, LIMIT) as url:
            _drive(url, 4, seconds / 4)  # warm
            for clients in CLIENTS:
                yield from _figures(url, clients, seconds)


def _figures(url: str, clients: int, seconds: float) -> Iterator[Figure]:
    before = cpu_seconds(url)
    found = _drive(url, clients, seconds)
    spent = cpu_seconds(url) - before
    count, milliseconds = found["count"], found["milliseconds"]
    quantiles = statistics.quantiles(milliseconds, n=100) if count > 1 else milliseconds * 100
    name = f"durable inserts over HTTP, {clients} clients"
    yield Figure(name, count / found["seconds"], "1/s")
    yield Figure(f"{name}, each", 1_000 * spent / count, "cpu ms")
    yield Figure(f"{name}, p50", quantiles[49], "wall ms")
    yield Figure(f"{name}, p95", quantiles[94], "wall ms")
    yield Figure(f"{name}, in one publish", count / found["publishes"], "count")


def _drive(url: str, clients: int, seconds: float) -> dict[str, Any]:
    """Inserts from a process of its own, until the time is over."""
    command = [sys.executable, "-m", "benchmarks.inserts", CLIENT_FLAG, url]
    command += [str(clients), str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


async def _clients(url: str, clients: int, seconds: float) -> dict[str, Any]:
    host, _, port = url.removeprefix("http://").partition(":")
    milliseconds, versions = list[float](), set[int]()
    start = time.perf_counter()
    await asyncio.gather(
        *(
            _client(host, int(port), number, start + seconds, milliseconds, versions)
            for number in range(clients)
        )
    )
    spent = time.perf_counter() - start
    return {
        "count": len(milliseconds),
        "seconds": spent,
        "milliseconds": milliseconds,
        "publishes": len(versions),
    }


async def _client(
    host: str, port: int, number: int, end: float, milliseconds: list[float], versions: set[int]
) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    sent = 0
    while (start := time.perf_counter()) < end:
        slug = f"{os.getpid()}-{number}-{sent}"
        body = json.dumps({"query": INSERT, "params": {"slug": slug}}).encode()
        answer = json.loads(await post(reader, writer, b"/mutate", body))
        milliseconds.append(1_000 * (time.perf_counter() - start))
        versions.add(answer["commit"]["manifest_version"])
        sent += 1
    writer.close()


if __name__ == "__main__" and CLIENT_FLAG in sys.argv:
    _, _, address, how_many, how_long = sys.argv
    print(json.dumps(uvloop.run(_clients(address, int(how_many), float(how_long)))))
