"""Where a caller can choose Spark for reads: the command line, a server, frames for libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError
from omnigraph.server.settings import QUERY_ENGINE, query_engine_from
from tests.cli.running import run
from tests.http.serving import make_graph, served, single

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

COUNT = "query q() { match { $p: Person } return { count($p) as n } }"


def count_jobs(spark: Any, work: Callable[[], object]) -> int:
    """How many jobs Spark has run for something."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    work()
    return int(scheduler.numTotalJobs() - before)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_graph(tmp_path_factory.mktemp("surfaces") / "graph")


def test_the_command_line_reads_on_spark_when_it_is_told_to(spark: Any, path: Path) -> None:
    def ask(*engine: str) -> None:
        outcome = run("query", "-e", COUNT, "--store", path, "--format", "csv", *engine)
        assert (outcome.code, outcome.out) == (0, "n\n2\n"), outcome.err

    assert count_jobs(spark, lambda: ask("--engine", "spark")) > 0
    assert count_jobs(spark, ask) == 0


def test_a_server_reads_with_the_engine_of_its_settings(spark: Any, path: Path) -> None:
    engine = query_engine_from({QUERY_ENGINE: "spark"})

    with served(single(path, query_engine=engine)) as server, server.client() as client:
        answers: list[Any] = []
        jobs = count_jobs(spark, lambda: answers.append(client.rows(COUNT)))
        refused = client.query("query q() { match { $p: Nobody } return { $p } }")

    assert jobs > 0
    assert answers == [[{"n": 2}]]
    assert refused.status_code == 400


def test_a_server_refuses_an_engine_that_there_is_not() -> None:
    assert query_engine_from({}) == "local"
    with pytest.raises(BadRequestError, match=r"OMNIGRAPH_QUERY_ENGINE is 'sparc', expected one"):
        query_engine_from({QUERY_ENGINE: "sparc"})


def test_frames_for_graph_libraries_have_the_columns_they_expect(spark: Any, path: Path) -> None:
    """GraphFrames joins `src` and `dst` of the edges with `id` of the vertices."""
    with og.open(path, mode="r") as graph:
        vertices, edges = og.spark.graphframe(graph, node="Person", edge="Knows")

    ends = edges.join(vertices, edges["dst"] == vertices["id"]).select("src", "dst", "name")
    assert {"id", "slug", "age"} <= set(vertices.columns)
    assert [tuple(row) for row in ends.collect()] == [("ada", "grace", "Grace")]
