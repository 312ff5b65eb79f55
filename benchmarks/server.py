"""A served graph under load: point queries from eight clients, alone and beside a load and merges.

The clients are a process of their own and open-loop: each request has a time at which it is due,
whatever became of the ones before it, and its latency counts from then. So a server that stalls is
charged for everybody it keeps waiting. How many it can do at all is measured closed-loop first.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import httpx
import uvloop

import omnigraph as og
from benchmarks.harness import Figure

SCHEMA = "node Person { slug: String @key  name: String?  age: I32? }\n"
POINT = (
    "query who($slug: String) { match { $p: Person { slug: $slug } } return { $p.name, $p.age } }"
)
INSERT = "query add($slug: String) { insert Person { slug: $slug } }"
ROWS = 100_000
LOAD_ROWS = 200_000
CLIENTS = 8
SECONDS = 5.0
ROUNDS = 5
RATES = (300, 500)
"""Requests a second of the open loop: an easy pace, and the one that a server is to keep."""
CLIENT_FLAG = "--clients"


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        with og.init(path, schema=SCHEMA, durability="process") as graph:
            graph.load(_people("p", ROWS), mode="overwrite")
        with serve(path) as url:
            yield from _figures(url)


def _figures(url: str) -> Iterator[Figure]:
    _drive(url, rate=0, seconds=2.0)  # warm
    before = cpu_seconds(url)
    most = _drive(url, rate=0, seconds=SECONDS)
    spent = cpu_seconds(url) - before
    yield Figure("served point queries, 8 clients", most["count"] / most["seconds"], "1/s")
    yield Figure("a served point query", 1_000 * spent / most["count"], "cpu ms")
    yield from _latencies("served point query, 8 clients, closed loop", most)
    yield from _compared("a load", _load, url)
    yield from _compared("merges", _merge, url)
    yield from _compared("a stranger", _keep_busy, url)
    yield Figure("writes refused of 64 at once from one actor", _refused(url), "count")


def _compared(what: str, work: Any, url: str) -> Iterator[Figure]:
    """Queries alone and beside `work`, in turns: on a shared machine one pair says little."""
    with _beside(work, url):
        _drive(url, rate=RATES[0] / 3, seconds=SECONDS)  # the process of long writes starts
    for rate in RATES:
        yield from _compared_at(rate, what, work, url)


def _compared_at(rate: float, what: str, work: Any, url: str) -> Iterator[Figure]:
    alone, beside = list[dict[str, Any]](), list[dict[str, Any]]()
    for _ in range(ROUNDS):
        alone.append(_drive(url, rate=rate, seconds=SECONDS / 2))
        with _beside(work, url):
            beside.append(_drive(url, rate=rate, seconds=SECONDS))
    before, during = [_p95(each) for each in alone], [_p95(each) for each in beside]
    name = f"served point query at {rate}/s"
    yield Figure(f"{name}, alone, p95 (for {what})", statistics.median(before), "wall ms")
    yield Figure(f"{name}, beside {what}, p95", statistics.median(during), "wall ms")
    ratios = [after / alone_ms for alone_ms, after in zip(before, during, strict=True)]
    yield Figure(f"{name}, beside {what} over alone", statistics.median(ratios), "x")


def _p95(answers: dict[str, Any]) -> float:
    milliseconds: list[float] = answers["milliseconds"]
    return statistics.quantiles(milliseconds, n=100)[94]


def _latencies(name: str, answers: dict[str, Any]) -> Iterator[Figure]:
    milliseconds = answers["milliseconds"]
    quantiles = statistics.quantiles(milliseconds, n=100)
    yield Figure(f"{name}, p50", quantiles[49], "wall ms")
    yield Figure(f"{name}, p95", quantiles[94], "wall ms")


@contextmanager
def serve(path: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """A server process of its own, with everything as it is by default but the log."""
    code = "from omnigraph.server.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path), "--unauthenticated", "--bind", "127.0.0.1:0"],
        env={**os.environ, "OMNIGRAPH_LOG_LEVEL": "warning", **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield "http://" + process.stdout.readline().strip().partition("=")[2]
    finally:
        process.terminate()
        process.communicate()


def cpu_seconds(url: str) -> float:
    for line in httpx.get(f"{url}/metrics").text.splitlines():
        if line.startswith("process_cpu_seconds_total"):
            return float(line.split()[1])
    raise RuntimeError("the server does not say how much CPU it used")


@contextmanager
def _beside(work: Any, url: str) -> Iterator[None]:
    """Keep a server at `work` until the block ends."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(url, is_over))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


# Bodies are made once: clients have machines of their own, and here they would take the processors
# that the server is measured on.


def _load(url: str, is_over: threading.Event) -> None:
    body = _load_body()
    while not is_over.is_set():
        _post(f"{url}/load", body)


@cache
def _load_body() -> bytes:
    return json.dumps({"data": _lines("p", LOAD_ROWS), "mode": "merge"}).encode()


def _keep_busy(_: str, is_over: threading.Event) -> None:
    """For comparison: a process that has nothing to do with the server, and its manners.

    It keeps to the processor and the priority of long writes, so what queries suffer from it they
    would suffer from any work beside them on this machine.
    """
    code = (
        "from omnigraph.server.write_worker import leave_room; import numpy as np; leave_room()\n"
        "values = np.random.rand(1_000_000)\n"
        "while True: np.sort(values)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        is_over.wait()
        process.kill()


def _merge(url: str, is_over: threading.Event) -> None:
    number, count = "<number>", 0
    made = {"data": _lines(f"m{number}-", 2_000), "branch": f"side{number}", "from": "main"}
    merged = {"source": f"side{number}", "delete_branch": True}
    load, merge = json.dumps(made), json.dumps(merged)
    while not is_over.is_set():
        count += 1
        _post(f"{url}/load", load.replace(number, str(count)).encode())
        _post(f"{url}/branches/merge", merge.replace(number, str(count)).encode())


@cache
def _lines(prefix: str, count: int) -> str:
    return "".join(json.dumps(each) + "\n" for each in _people(prefix, count))


def _post(url: str, body: bytes) -> None:
    request = Request(url, body, {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        answer.read()


def _refused(url: str) -> int:
    async def send() -> int:
        async with httpx.AsyncClient(timeout=None) as client:
            bodies = [{"query": INSERT, "params": {"slug": f"x{n}"}} for n in range(64)]
            sent = [client.post(f"{url}/mutate", json=body) for body in bodies]
            answers = await asyncio.gather(*sent)
        return sum(answer.status_code == 429 for answer in answers)

    return asyncio.run(send())


def _people(prefix: str, count: int) -> Iterator[dict[str, Any]]:
    return (
        {"type": "Person", "data": {"slug": f"{prefix}{n}", "name": f"N{n}", "age": n % 90}}
        for n in range(count)
    )


def _drive(url: str, *, rate: float, seconds: float) -> dict[str, Any]:
    """Point queries from a process of its own: at a rate, or with 0 as fast as they come back."""
    command = [sys.executable, "-m", "benchmarks.server", CLIENT_FLAG, url, str(rate), str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


async def _clients(url: str, rate: float, seconds: float) -> dict[str, Any]:
    host, _, port = url.removeprefix("http://").partition(":")
    milliseconds: list[float] = []
    start = time.perf_counter()
    await asyncio.gather(
        *(
            _client(host, int(port), number, rate / CLIENTS, start, start + seconds, milliseconds)
            for number in range(CLIENTS)
        )
    )
    spent = time.perf_counter() - start
    return {"count": len(milliseconds), "seconds": spent, "milliseconds": milliseconds}


async def _client(
    host: str,
    port: int,
    number: int,
    rate: float,
    start: float,
    end: float,
    milliseconds: list[float],
) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    sent = 0
    while True:
        due = start + (sent + number / CLIENTS) / rate if rate else time.perf_counter()
        if due >= end:
            break
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        slug = f"p{(number + CLIENTS * sent) % ROWS}"
        body = json.dumps({"query": POINT, "params": {"slug": slug}}).encode()
        await post(reader, writer, b"/query", body)
        milliseconds.append(1_000 * (time.perf_counter() - due))
        sent += 1
    writer.close()


async def post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: bytes, body: bytes
) -> bytes:
    """One request over a connection that stays open; a client library would cost more than it."""
    writer.write(
        b"POST %b HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % (path, len(body)) + body
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = next(
        line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    )
    return await reader.readexactly(int(length.split(b":")[1]))


if __name__ == "__main__" and CLIENT_FLAG in sys.argv:
    _, _, address, wanted_rate, how_long = sys.argv
    print(json.dumps(uvloop.run(_clients(address, float(wanted_rate), float(how_long)))))
