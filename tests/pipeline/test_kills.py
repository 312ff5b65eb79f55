"""A load that dies at any moment leaves the old graph or the new one, and nothing lying about."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.failpoints import ENVIRONMENT_VARIABLE
from omnigraph.pipeline.engine import PART_BYTES_VARIABLE
from omnigraph.testing.crash import CrashRunner
from tests.depth import depth
from tests.pipeline.conftest import SCHEMA, knows, person, unclaimed_files

pytestmark = pytest.mark.slow

WORK = "tests.pipeline.load_work"

CHILD = """
import sys, omnigraph as og
with og.open(sys.argv[1]) as graph:
    print("ready", flush=True)
    result = graph.load(sys.argv[2], mode=sys.argv[3], engine=sys.argv[4])
    print(result.tables, flush=True)
"""

POINTS = [
    "load.after_staged_part=kill@1",
    "load.after_staged_part=kill@9",
    "load.before_commit=kill",
    "commit.after_sidecar=kill",
    "commit.after_table=kill@1",
    "commit.after_table=kill@2",
    "mutation.post_finalize_pre_publisher=kill",
    "graph_publish.before_manifest_commit=kill",
    "graph_publish.after_manifest_commit=kill",
    "recovery.sidecar_delete=kill",
]


@pytest.fixture
def graph_path(tmp_path: Path) -> Path:
    path = tmp_path / "graph"
    with og.init(path, schema=SCHEMA) as graph:
        graph.load([person(f"p{n}", age=0) for n in range(5)], mode="append")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Twenty people, five of them known, and an edge for each."""
    records = [person(f"p{n}", age=1) for n in range(20)] + [
        knows("p0", f"p{n}") for n in range(20)
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def run(graph: Path, data: Path, mode: str, engine: str, **variables: str) -> subprocess.Popen[str]:
    environment = os.environ | {PART_BYTES_VARIABLE: "300"} | variables
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(graph), str(data), mode, engine],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(child: subprocess.Popen[str], seconds: float = 280) -> tuple[str, str]:
    """Wait for a child to end; one that does not is killed with all it started."""
    try:
        return child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise


def assert_whole(path: Path) -> bool:
    """The graph is the old one or the new one, and the next load cleans up; whether it is new."""
    with og.open(path) as graph:
        ages = {row["id"]: row["age"] for row in graph.nodes("Person").to_arrow().to_pylist()}
        edges = graph.edges("Knows").count_rows()
        is_new = edges == 20
        assert edges in (0, 20)
        assert ages == (
            {f"p{n}": 1 for n in range(20)} if is_new else {f"p{n}": 0 for n in range(5)}
        )
        graph.load([person("after")], mode="append")
        assert unclaimed_files(graph) == []
    return is_new


@pytest.fixture(scope="module")
def runner() -> Iterator[CrashRunner]:
    with CrashRunner([WORK, "tests.warm"]) as zygote:
        yield zygote


def load_to_death(runner: CrashRunner, graph: Path, data: Path, mode: str, point: str) -> None:
    arguments = {"path": str(graph), "data": str(data), "mode": mode, "arm": point}
    died = runner.run(f"{WORK}:load", arguments)
    assert died.was_killed, died


@pytest.mark.parametrize("point", POINTS)
def test_a_load_killed_at_any_point_is_whole(
    runner: CrashRunner, graph_path: Path, data: Path, point: str
) -> None:
    load_to_death(runner, graph_path, data, "merge", point)

    is_new = assert_whole(graph_path)
    landed = ("commit.after_table=kill@2", "mutation", "graph_publish", "recovery")
    assert is_new is point.startswith(landed)


@pytest.mark.accepts("S-067")
@pytest.mark.parametrize(
    ("point", "is_new"),
    [
        ("commit.after_sidecar=kill", False),
        ("commit.after_table=kill@1", False),
        ("commit.after_table=kill@2", True),
    ],
)
def test_an_overwrite_killed_amid_its_commits_is_rolled_forward_or_back(
    runner: CrashRunner, graph_path: Path, data: Path, point: str, is_new: bool
) -> None:
    """Its sidecar says that a load was under way, and which tables it replaces, from where."""
    with og.open(graph_path) as graph:
        graph.load([person("gone"), knows("gone", "p0")], mode="append")
        before = {key: entry.version for key, entry in graph.snapshot().entries.items()}
    load_to_death(runner, graph_path, data, "overwrite", point)

    (path,) = (graph_path / "__recovery").glob("*.json")
    sidecar = json.loads(path.read_text())
    loaded = ("edge:Knows", "node:Person")
    assert sidecar["writer_kind"] == "Load"
    replaced = {pin["table_key"]: pin["expected_version"] for pin in sidecar["tables"]}
    assert replaced == {key: before[key] for key in loaded}
    with og.open(graph_path) as graph:
        people = {row["id"] for row in graph.nodes("Person").to_arrow().to_pylist()}
        known = {f"p{n}" for n in range(20)} if is_new else {"gone", *(f"p{n}" for n in range(5))}
        assert people == known
        assert graph.edges("Knows").count_rows() == (20 if is_new else 1)
        graph.load([person("after")], mode="append")
        assert unclaimed_files(graph) == []
    assert not list((graph_path / "__recovery").glob("*.json"))


def test_a_live_load_is_not_swept_by_another(graph_path: Path, data: Path) -> None:
    """Scratch belongs to the process that holds its lock."""
    slow = {ENVIRONMENT_VARIABLE: "load.after_staged_part=sleep:0.05"}
    child = run(graph_path, data, "merge", "inline", **slow)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.4)

    with og.open(graph_path) as graph:
        graph.load([{"type": "Team", "data": {"name": "t"}}], mode="append")
    output, errors = finish(child)

    assert child.returncode == 0, output + errors
    assert assert_whole(graph_path)


@pytest.mark.parametrize("seed", range(depth(2, 15)))
def test_a_load_killed_at_a_random_moment_is_whole(graph_path: Path, data: Path, seed: int) -> None:
    slow = {ENVIRONMENT_VARIABLE: "load.after_staged_part=sleep:0.02"}
    child = run(graph_path, data, "merge", "inline", **slow)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(random.Random(seed).random())
    os.killpg(child.pid, signal.SIGKILL)
    finish(child)

    assert_whole(graph_path)
