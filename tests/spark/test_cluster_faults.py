"""Executors that die on a cluster of two workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.pipeline.engine import CHECK_ROWS_VARIABLE, MASTER_VARIABLE, PART_BYTES_VARIABLE
from tests.depth import IS_TORTURE
from tests.pipeline.conftest import SCHEMA, unclaimed_files
from tests.spark.cluster_work import make_records
from tests.spark.test_processes import Cluster, cluster

__all__ = ["cluster"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark processes")]

TOP = Path(__file__).parents[2]
LOADED = "{'edge:Knows': 40, 'node:Person': 40}"
WALKED = "[{'n': 80}]"
WAIT_SECONDS = 2_700
"""Seven Java processes start one after the other: on a busy machine each takes minutes."""


@pytest.fixture
def graph_path(tmp_path: Path) -> Path:
    with og.init(tmp_path / "graph", schema=SCHEMA, self_care=False) as graph:
        graph.load(make_records(1), mode="merge", engine="inline")
    return tmp_path / "graph"


def work(graph: Path, marks: Path, master: str) -> list[str]:
    """What a driver in a process of its own says."""
    variables = {
        MASTER_VARIABLE: master,
        PART_BYTES_VARIABLE: "1500",
        CHECK_ROWS_VARIABLE: "10",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(TOP),
    }
    command = [sys.executable, "-m", "tests.spark.cluster_work", str(graph), str(marks)]
    ran = subprocess.run(
        command,
        cwd=TOP,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def assert_ages(path: Path, age: int) -> None:
    with og.open(path) as graph:
        rows = graph.nodes("Person").to_arrow().to_pylist()
        assert {row["id"]: row["age"] for row in rows} == {f"p{n}": age for n in range(40)}
        assert graph.edges("Knows").count_rows() == 40
        assert unclaimed_files(graph) == []
        assert graph.verify().is_clean


@pytest.mark.timeout(WAIT_SECONDS + 200)
@pytest.mark.skipif(not IS_TORTURE, reason="it starts many executors: `make torture`")
def test_executors_killed_amid_a_check_and_a_read_change_no_answer(
    graph_path: Path, tmp_path: Path, cluster: Cluster
) -> None:
    """With an executor go the blocks of a shuffle that it holds: they are made once more."""
    marks = tmp_path / "marks"
    marks.mkdir()

    said = work(graph_path, marks, cluster.variables[MASTER_VARIABLE])

    assert sorted(path.name for path in marks.iterdir()) == ["emit", "read", "reduce"]
    assert said == [LOADED, WALKED, "jobs left: 0"]
    assert_ages(graph_path, 2)
