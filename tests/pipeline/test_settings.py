"""What `open` and `init` take as `spark` and `config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, SparkError
from omnigraph.testing.inside import inside
from tests.pipeline.conftest import SCHEMA, person


@pytest.mark.xdist_group("spark")
def test_a_graph_uses_the_session_it_is_given(spark: Any, tmp_path: Path) -> None:
    """Small loads too; another handle of the same graph has its own settings."""
    with og.init(tmp_path / "graph", schema=SCHEMA, spark=spark) as graph:
        loaded = graph.load([person("a")], mode="append")
        inline = graph.load([person("b")], mode="append", engine="inline")

        assert (loaded.engine, inline.engine) == ("spark", "inline")
        assert og.open(graph.uri).load([person("c")], mode="append").engine == "inline"


@pytest.mark.parametrize("name", ["master", "spark.master"])
def test_a_master_in_the_config_is_where_loads_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("omnigraph.pipeline.session.session", asked.append)
    with og.init(tmp_path / "graph", schema=SCHEMA):
        pass

    config = {"spark": {name: "local[1]", "spark.ui.enabled": False, "spark.task.cpus": 1}}
    with og.open(tmp_path / "graph", config=config) as graph, pytest.raises(AttributeError):
        graph.load([person("a")], mode="append")

    assert asked == [{"master": "local[1]", "spark.ui.enabled": "false", "spark.task.cpus": "1"}]


def test_a_wrong_master_in_the_config_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.pipeline.session._made", None)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    config = {"spark": {"master": "nonsense"}}

    with (
        og.init(tmp_path / "graph", schema=SCHEMA, config=config) as graph,
        pytest.raises(SparkError, match=r"master 'nonsense' — the master is not one Spark knows"),
    ):
        graph.load([person("a")], mode="append")


def test_the_cache_keeps_to_the_budget_in_the_config(tmp_path: Path) -> None:
    with og.init(tmp_path / "graph", schema=SCHEMA, config={"cache_bytes": 10}) as graph:
        graph.load([person("a")], mode="append")
        rows = graph.query("query q() { match { $p: Person } return { $p.name } }").rows()

        assert rows == [{"p.name": "a"}]
        assert inside(graph).cache.budget_bytes == 10
        assert inside(graph).cache.nbytes <= 10


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sparc": {}}, "config has no setting 'sparc' — did you mean `spark`"),
        ({"zzz": 1}, "expected one of `spark`, `cache_bytes`"),
        ({"spark": "local"}, "expected a map of Spark settings"),
        ({"cache_bytes": "1g"}, "expected a positive number"),
        ({"cache_bytes": 0}, "expected a positive number"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_happens(
    config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRequestError, match=message):
        og.init(tmp_path / "graph", schema=SCHEMA, config=config)

    assert not (tmp_path / "graph").exists()
