"""The server as a process: it says where it listens, logs no secrets, and stops in good order."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import omnigraph as og
from omnigraph.errors import OmnigraphError
from omnigraph.server.run import run
from tests.http.serving import INSERT, PEOPLE, make_graph, served, single

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-c", "from omnigraph.server.main import main; main()"]
SECRETS = {"act-ada": "very-secret-token-1"}
POLICY = """
version: 1
groups: { all: [act-ada] }
rules: [ { id: all, allow: { actors: { group: all }, actions: [read, change] } } ]
"""


@contextmanager
def started(
    folder: Path, *arguments: str, bind: str = "127.0.0.1:0", **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process and its address."""
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--bind", bind],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        found = re.fullmatch(r"OMNIGRAPH_LISTEN_ADDR=(127\.0\.0\.1:\d+)\n", line)
        assert found, line
        yield process, f"http://{found[1]}"
    finally:
        process.kill()
        process.communicate()


def test_the_server_says_where_it_listens_and_logs_no_secret(tmp_path: Path) -> None:
    make_graph(tmp_path / "graph")
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "omnigraph.yaml").write_text("policy: { file: ./policy.yaml }\n")
    tokens = json.dumps(SECRETS)
    with started(tmp_path, "graph", OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=tokens) as (process, url):
        headers = {"Authorization": "Bearer very-secret-token-1"}
        private = {"query": INSERT, "params": {"slug": "private-value"}}
        done = httpx.post(f"{url}/mutate", json=private, headers=headers)
        httpx.post(f"{url}/query", json={"query": PEOPLE}, headers={"Authorization": "Bearer no"})
        httpx.post(f"{url}/query", json={"query": "private garbage"}, headers=headers)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()

    assert done.status_code == 200, done.text
    assert process.returncode == 0, err
    assert out == ""  # one line, and that was read
    lines = [json.loads(line) for line in err.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    answered = [line for line in lines if line["logger"] == "omnigraph.server.requests"]
    assert [line["message"] for line in answered] == [
        "POST /mutate 200",
        "POST /query 401",
        "POST /query 400",
    ]
    assert answered[0]["actor"] == "act-ada"
    assert answered[0]["request_id"] == done.headers["x-request-id"]
    decided = [line for line in lines if line["logger"] == "omnigraph.policy"]
    assert any("'act-ada'" in line["message"] for line in decided)
    for secret in ("very-secret", "private", "insert Person"):
        assert secret not in err


def test_a_write_in_flight_finishes_before_the_server_stops(tmp_path: Path) -> None:
    """SIGTERM in the middle of a commit: the client gets its answer and the commit is there."""
    path = make_graph(tmp_path / "graph")
    gate = tmp_path / "gate"
    with started(
        tmp_path,
        "graph",
        "--unauthenticated",
        OMNIGRAPH_FAILPOINTS=f"mutation.post_finalize_pre_publisher=wait:{gate}",
    ) as (process, url):
        answers: list[httpx.Response] = []
        body = {"query": INSERT, "params": {"slug": "late"}}
        writer = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{url}/mutate", json=body, timeout=60))
        )
        writer.start()
        while not gate.with_name("gate.reached").exists():
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        _until_refused(url)
        gate.touch()
        writer.join()
        _, err = process.communicate()

    assert [answer.status_code for answer in answers] == [200]
    assert process.returncode == 0, err
    with og.open(path, mode="r") as graph:
        assert any(row["p.slug"] == "late" for row in graph.query(PEOPLE))
    assert not list((path / "__recovery").glob("*.json"))


def _until_refused(url: str) -> None:
    """Until new clients are turned away: the server is on its way out."""
    while True:
        try:
            httpx.get(f"{url}/healthz")
        except httpx.TransportError:
            return


def test_a_server_that_cannot_start_says_why_and_ends(tmp_path: Path) -> None:
    make_graph(tmp_path / "graph")

    done = subprocess.run(
        [*COMMAND, "graph"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: there are no bearer tokens")
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("logs_as_before")
def test_an_address_that_is_taken_is_an_error_of_ours(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OmnigraphError, match="cannot listen on"):
            run(single(path, bind=bind))
    for bind in ("nowhere", "127.0.0.1:http", "127.0.0.1:99999"):
        with pytest.raises(OmnigraphError, match="expected <host>:<port>"):
            run(single(path, bind=bind))


def test_a_server_that_stops_closes_its_graphs(tmp_path: Path) -> None:
    with served(single(make_graph(tmp_path / "graph"))) as server:
        graph = next(iter(server.serving.graphs)).graph

    with pytest.raises(OmnigraphError, match="is closed"):
        graph.snapshot()
