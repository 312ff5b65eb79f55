"""`omnigraph ui`: a server for one person on one machine."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from omnigraph.cli.ui import LOCAL_ACTOR, make_settings
from omnigraph.errors import BadRequestError
from omnigraph.server.settings import ServedGraph
from tests.http.serving import INSERT, make_graph, served

POLICY = """
version: 1
groups: { all: [ada] }
rules: [{ id: read, allow: { actors: { group: all }, actions: [read] } }]
"""


def test_the_holder_of_the_address_may_do_what_the_command_line_may(tmp_path: Path) -> None:
    graph = ServedGraph("default", str(make_graph(tmp_path / "graph")))
    settings = make_settings(graph, None, "secret", 0, is_read_only=False)
    with served(settings) as server, server.client("secret") as owner, server.client() as other:
        done = owner.mutate(INSERT, params={"slug": "x"})
        refused = other.query()
        allowed = owner.get("/permissions").json()["actions"]

    assert settings.bind.startswith("127.0.0.1:")
    assert done.json()["actor_id"] == LOCAL_ACTOR
    assert refused.status_code == 401
    assert {"read", "change", "branch_merge", "schema_apply", "admin"} <= set(allowed)


def test_read_only_refuses_every_write(tmp_path: Path) -> None:
    graph = ServedGraph("default", str(make_graph(tmp_path / "graph")))
    settings = make_settings(graph, "ada", "secret", 0, is_read_only=True)
    with served(settings) as server, server.client("secret") as reader:
        assert reader.query().status_code == 200
        assert reader.mutate(INSERT, params={"slug": "x"}).status_code == 403
        assert reader.get("/permissions").json() == {"actor_id": "ada", "actions": ["read"]}


def test_a_policy_decides_about_the_actor_and_needs_one(tmp_path: Path) -> None:
    graph = ServedGraph("default", str(tmp_path), policy_text=POLICY)

    with pytest.raises(BadRequestError, match="--as"):
        make_settings(graph, None, "secret", 0, is_read_only=False)
    with pytest.raises(BadRequestError, match="--read-only"):
        make_settings(graph, "ada", "secret", 0, is_read_only=True)
    settings = make_settings(graph, "ada", "secret", 0, is_read_only=False)
    assert settings.graphs[0].policy_text == POLICY


@pytest.mark.slow
def test_the_command_prints_an_address_that_works_and_stops_cleanly(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    command = [sys.executable, "-m", "omnigraph", "ui", str(path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.search(r"at (http://127\.0\.0\.1:\d+)/#token=(\S+)", line)
        assert found is not None, line
        headers = {"Authorization": f"Bearer {found[2]}"}
        answer = httpx.get(f"{found[1]}/snapshot", headers=headers, trust_env=False)
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0

    assert answer.status_code == 200
