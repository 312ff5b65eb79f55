"""Upkeep of large graphs by tasks: the same answers as in the calling process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.storage import content
from tests.spark.test_surfaces_on_spark import count_jobs

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

SCHEMA = """node Person { name: String @key  age: I32? }
edge Knows: Person -> Person"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with og.init(tmp_path / "g.omni", schema=SCHEMA, durability="process", self_care=False) as made:
        records: list[dict[str, Any]] = [
            {"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(3)
        ]
        made.load([*records, {"edge": "Knows", "from": "p0", "to": "p1"}], mode="append")
    return tmp_path / "g.omni"


def test_bytes_are_verified_by_tasks_where_spark_is_chosen(
    spark: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks read the files of the one large table; what is wrong there is reported as ever."""
    (damaged,) = (path / "nodes").rglob("data/*.lance")
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    sizes = sorted(each.stat().st_size for each in (path / "edges").rglob("*") if each.is_file())
    monkeypatch.setattr(content, "SPREAD_BYTES", sum(sizes))
    with og.open(path, mode="r") as graph:
        expected = graph.verify(content=True)
    found: list[Any] = []

    with og.open(path, mode="r", spark=spark) as graph:
        jobs = count_jobs(spark, lambda: found.append(graph.verify(content=True)))

    assert jobs > 0
    assert found == [expected]
    assert [each.file for each in expected.errors] == [str(damaged)]


def test_tables_are_exported_by_tasks_where_spark_is_chosen(
    spark: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[Any] = []
    with og.open(path, mode="r") as graph:
        graph.export("here", format="parquet")
        graph.export("there", format="parquet", engine="spark", progress=told.append)

    names = ["edge.Knows.parquet", "node.Person.parquet"]
    for folder in ("here", "there"):
        assert sorted(each.name for each in Path(folder).iterdir()) == names
    for name in names:
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes()
    assert (told[-1].stage, told[-1].done) == ("exporting", 2)
