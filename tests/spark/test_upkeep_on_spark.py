"""Upkeep of large graphs by tasks: the same answers as in the calling process."""

from __future__ import annotations

import _thread
import base64
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.storage import compaction, content, indexes, table_tasks
from omnigraph.testing.inside import inside
from omnigraph.write import rewrite
from omnigraph.write.fork import open_pin
from tests.spark.test_faults import wait_for
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


LARGE = """node Paper { doi: String @key  title: String @index  year: I32 @index }
edge Cites: Paper -> Paper"""
NEAR = """query q($text: String) {
    match { $p: Paper { year: 3 } search($p.title, $text) }
    return { $p.doi } order { $p.doi }
}"""


@pytest.fixture
def scattered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph of many small fragments, of which some rows are gone; every table counts as large."""
    monkeypatch.setattr(table_tasks, "TASKS_ROWS", 1)
    monkeypatch.setattr(indexes, "SEGMENT_ROWS", 10)
    with og.init(tmp_path / "g.omni", schema=LARGE, durability="process", self_care=False) as made:
        for part in range(6):
            papers: list[dict[str, Any]] = [
                {"type": "Paper", "data": {"doi": f"{part}-{n}", "title": f"on {n}", "year": part}}
                for n in range(10)
            ]
            cites = [{"edge": "Cites", "from": f"{part}-{n}", "to": f"{part}-0"} for n in range(10)]
            made.load([*papers, *cites], mode="append")
        made.mutate("query d() { delete Paper where year = 0 }")
    return tmp_path / "g.omni"


def answers(graph: og.Graph) -> list[Any]:
    rows = [graph.query(NEAR, params={"text": str(n)}).rows() for n in range(3)]
    papers = graph.nodes("Paper").to_arrow().sort_by("id").to_pylist()
    return [rows, papers, graph.edges("Cites").count_rows()]


def test_large_tables_are_compacted_and_indexed_by_tasks_where_spark_is_chosen(
    spark: Any, scattered: Path, tmp_path: Path
) -> None:
    """The same rows and fragments as in this process, and indexes that cover every row."""
    shutil.copytree(scattered, tmp_path / "copy.omni")
    with og.open(tmp_path / "copy.omni", self_care=False) as copy:
        expected = copy.optimize()
    told: list[Any] = []

    with og.open(scattered, spark=spark, self_care=False) as graph:
        before = answers(graph)
        found: list[Any] = []
        jobs = count_jobs(spark, lambda: found.append(graph.optimize(on_progress=told.append)))
        again = graph.optimize()

        assert jobs >= 4  # compaction and indexes of both tables
        assert answers(graph) == before
        assert [each.step for each in told] == ["edge:Cites", "node:Paper", "publish"]
        assert not any(each.committed for each in again.tables)
        assert graph.verify(content=True).is_clean
        health = graph.doctor().tables
    counts = [
        [(each.table_key, each.fragments_removed, each.fragments_added) for each in report.tables]
        for report in (expected, found[0])
    ]
    assert counts[0] == counts[1]
    with og.open(tmp_path / "copy.omni", mode="r") as copy:
        assert health == copy.doctor().tables


def test_missing_indexes_of_large_tables_are_built_by_tasks_in_segments(
    spark: Any, scattered: Path
) -> None:
    with og.open(scattered, spark=spark, self_care=False) as graph:
        before = answers(graph)
        found: list[Any] = []
        jobs = count_jobs(spark, lambda: found.append(graph.ensure_indices()))
        tables = inside(graph).store.tables
        handle = open_pin(tables, graph.snapshot().entries["node:Paper"])
        known = {info.column: info for info in tables.indexes.describe(handle)}

        assert jobs > 0
        assert answers(graph) == before
        assert graph.ensure_indices().built == {}
    assert known["id"].segments == indexes.SEGMENTS_BUILT
    assert {column: info.rows_unindexed for column, info in known.items()} == dict.fromkeys(
        known, 0
    )


def test_upkeep_that_is_interrupted_on_spark_changes_nothing(
    spark: Any, scattered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks are cancelled, and what they wrote is removed by the next cleanup."""

    def rewrite_slowly(*given: Any) -> Any:
        time.sleep(60)
        raise AssertionError("it was not cancelled")

    with og.open(scattered, spark=spark, self_care=False) as graph:
        before = graph.snapshot().manifest_version
        monkeypatch.setattr(compaction, "rewrite_by_task", rewrite_slowly)
        threading.Timer(2.0, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt):
            graph.optimize()
        monkeypatch.undo()

        tracker = spark.sparkContext.statusTracker()
        wait_for(lambda: tracker.getActiveJobsIds() == [])
        assert tracker.getActiveJobsIds() == []
        assert graph.snapshot().manifest_version == before
        assert graph.verify().is_clean
        assert any(each.committed for each in graph.optimize().tables)


OLD_NOTES = """node Note {
    slug: String @key
    size: I32
    words: [String]
    near: Vector(2)?
    body: Blob?
    day: Date
}
edge Cites: Note -> Note { weight: F32? }"""
NEW_NOTES = """node Note {
    slug: String @key
    length: I64 @rename_from("size")
    words: [String]
    near: Vector(2)?
    body: Blob?
    day: Date
    title: String @backfill("note {slug}")
}
edge Cites: Note -> Note { weight: F64? }"""
TOO_NARROW = OLD_NOTES.replace("size: I32", "size: I32\n    @range(size, 0..20)")


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Many small fragments, of which some rows are gone; every table counts as large."""
    monkeypatch.setattr(table_tasks, "TASKS_ROWS", 1)
    monkeypatch.setattr(table_tasks, "PART_ROWS", 12)
    path = tmp_path / "notes.omni"
    with og.init(path, schema=OLD_NOTES, durability="process", self_care=False) as made:
        for part in range(4):
            made.load([make_note(part * 8 + n) for n in range(8)], mode="append")
        cites = [
            {"edge": "Cites", "from": f"n{n}", "to": "n0", "data": {"id": f"c{n}"}}
            for n in range(32)
        ]
        made.load(cites, mode="append")
        made.mutate("query d() { delete Note where size = 3 }")
    shutil.copytree(path, tmp_path / "copy.omni")
    return path


def make_note(n: int, **other: Any) -> dict[str, Any]:
    data = {
        "slug": f"n{n}",
        "size": n,
        "words": [str(n)] * (n % 3),
        "near": None if n % 4 == 0 else [n, 0.5],
        "body": "base64:" + base64.b64encode(bytes([n]) * n).decode() if n % 2 else None,
        "day": "2020-01-01",
    }
    return {"type": "Note", "data": data | other}


def read_all(graph: og.Graph) -> list[Any]:
    """Every row of both tables, as they are exported."""
    return sorted(map(str, graph.export()))


def apply(path: Path, schema: str, spark: Any = None) -> Any:
    with og.open(path, spark=spark, self_care=False) as graph:
        plan = str(graph.plan_schema(schema))
        try:
            steps = graph.apply_schema(schema).to_json()["steps"]
        except og.errors.MigrationError as error:
            return plan, str(error), read_all(graph)
        assert graph.verify(content=True).is_clean
        graph.ensure_indices()
        return plan, steps, read_all(graph)


@pytest.mark.parametrize("schema", [NEW_NOTES, TOO_NARROW], ids=["rewritten", "refused"])
def test_a_schema_is_applied_by_tasks_where_spark_is_chosen(
    spark: Any, notes: Path, tmp_path: Path, schema: str
) -> None:
    """The same plan, refusal and rows as in this process; files are written by tasks."""
    expected = apply(tmp_path / "copy.omni", schema)
    found: list[Any] = []

    jobs = count_jobs(spark, lambda: found.append(apply(notes, schema, spark)))

    assert jobs > 1
    assert found == [expected]


def change_both(path: Path) -> None:
    """A branch and main that both insert, update and delete; one note is changed on both."""
    with og.open(path, self_care=False) as graph:
        graph.create_branch("work")
        for branch, first in (("work", 40), ("main", 60)):
            new = [make_note(first + n) for n in range(15)]
            known = [make_note(n, day="2021-01-01") for n in range(first % 7, 32, 7) if n != 3]
            same = [make_note(n) for n in range(first % 5 + 1, 32, 5) if n != 3]
            both = make_note(30, day="2022-02-02")
            records = {each["data"]["slug"]: each for each in [*same, *known, *new, both]}
            graph.load(list(records.values()), mode="merge", branch=branch)
        graph.mutate('query d() { delete Cites where id = "c9" }', branch="work")
        graph.mutate("query d() { delete Note where size in [8, 24] }", branch="work")


def compare_and_merge(path: Path, spark: Any = None) -> list[Any]:
    with og.open(path, spark=spark, self_care=False) as graph:
        changes = graph.diff("main", "work")
        found: list[Any] = [changes.to_json(), changes.stats]
        merged = graph.merge("work", into="main")
        assert graph.verify(content=True).is_clean
        return [*found, merged.outcome, merged.tables, read_all(graph)]


def test_branches_are_compared_and_merged_by_tasks_where_spark_is_chosen(
    spark: Any, notes: Path, tmp_path: Path
) -> None:
    for path in (notes, tmp_path / "copy.omni"):
        change_both(path)
    expected = compare_and_merge(tmp_path / "copy.omni")
    found: list[Any] = []

    jobs = count_jobs(spark, lambda: found.append(compare_and_merge(notes, spark)))

    assert jobs >= 6  # content for the diff and the plan; inserts, updates, deletes
    assert found == [expected]


def test_a_schema_change_that_is_interrupted_on_spark_changes_nothing(
    spark: Any, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_slowly(*given: Any) -> Any:
        time.sleep(60)
        raise AssertionError("it was not cancelled")

    with og.open(notes, spark=spark, self_care=False) as graph:
        before = read_all(graph)
        monkeypatch.setattr(rewrite, "rewrite_group", write_slowly)
        threading.Timer(2.0, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt):
            graph.apply_schema(NEW_NOTES)
        monkeypatch.undo()

        tracker = spark.sparkContext.statusTracker()
        wait_for(lambda: tracker.getActiveJobsIds() == [])
        assert tracker.getActiveJobsIds() == []
        assert read_all(graph) == before
        assert graph.verify().is_clean
        assert graph.apply_schema(NEW_NOTES).applied


def test_a_merge_and_a_schema_change_tell_how_far_their_tasks_are(spark: Any, notes: Path) -> None:
    """Parts done and rows of each stage, as a load does."""
    told: list[Any] = []
    with og.open(notes, spark=spark, self_care=False) as graph:
        graph.create_branch("work")
        records = [make_note(n, day="2021-01-01") for n in range(4, 60)]
        graph.load(records, mode="merge", branch="work", engine="inline")

        graph.diff("main", "work", progress=told.append)
        of_diff, told[:] = summarize(told), []
        graph.merge("work", into="main", progress=told.append)
        of_merge, told[:] = summarize(told), []
        graph.plan_schema(NEW_NOTES, progress=told.append)
        of_plan, told[:] = summarize(told), []
        graph.apply_schema(NEW_NOTES, progress=told.append)
        of_change = summarize(told)

    assert of_diff == {"comparing": (3, 3, 28)}
    assert of_merge == {"comparing": (3, 3, 28), "writing": (3, 3, 28), "removing": (4, 4, 0)}
    assert set(of_plan) == {"checking"}
    assert set(of_change) == {"checking", "writing"}
    assert of_change["writing"][2] == 59


def summarize(told: list[Any]) -> dict[str, tuple[int, int, int]]:
    """Of each stage the most parts done, the parts there are, and the most rows."""
    stages = dict.fromkeys(each.stage for each in told if each.stage != "starting")
    found = {name: [each for each in told if each.stage == name] for name in stages}
    return {
        name: (
            max(each.done for each in part),
            max(each.total for each in part),
            max(each.rows for each in part),
        )
        for name, part in found.items()
    }
