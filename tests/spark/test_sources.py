"""Spark programs meet a graph: DataFrames in and out, the data source, streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, NotFoundError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.pipeline.engine import CHECK_ROWS_VARIABLE
from omnigraph.storage.counters import counting
from omnigraph.write.bad_rows import BadRowsError
from tests.depth import IS_TORTURE
from tests.pipeline.conftest import SCHEMA, knows, person, unclaimed_files

pytestmark = pytest.mark.xdist_group("spark")

RENAMED = (
    SCHEMA.replace("node Person {", 'node Human @rename_from("Person") { mail: String?\n')
    .replace("Person ->", "Human ->")
    .replace("-> Person", "-> Human")
    .replace("age: I32?", 'years: I32? @rename_from("age")')
    .replace("@range(age", "@range(years")
)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", schema=SCHEMA)


def test_a_spark_frame_is_loaded_in_order_by_its_executors(spark: Any, graph: og.Graph) -> None:
    frame = spark.range(1000).selectExpr(
        "concat('p', id % 900) as name", "cast(id % 90 as int) as age"
    )

    result = graph.load_dataframe(frame.repartition(3), type="Person", mode="merge")

    assert (result.engine, result.tables) == ("spark", {"node:Person": 900})
    assert graph.nodes("Person").count_rows() == 900
    assert unclaimed_files(graph) == []


def test_bad_rows_of_a_spark_frame_are_refused(spark: Any, graph: og.Graph) -> None:
    frame = spark.createDataFrame([("a", 1), ("b", 500)], "name string, age int").coalesce(1)

    with pytest.raises(BadRowsError, match=r"Person row 2: .*@range violation"):
        graph.load_dataframe(frame, type="Person", mode="append")

    assert unclaimed_files(graph) == []


def test_rows_of_a_spark_frame_are_numbered_through_its_partitions(
    spark: Any, graph: og.Graph
) -> None:
    """Four partitions of two rows; the second row of each is bad."""
    frame = spark.range(8, numPartitions=4).selectExpr(
        "concat('p', id) as name", "cast(if(id % 2 = 1, 500, 1) as int) as age"
    )

    with pytest.raises(BadRowsError) as caught:
        graph.load_dataframe(frame, type="Person", mode="append")

    named = [bad.location for bad in caught.value.bad_rows]
    assert named == [f"Person row {number}" for number in (2, 4, 6, 8)]


def test_a_node_in_half_of_all_rows_and_empty_partitions_change_no_answer(
    spark: Any, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked by exchange and asked on Spark; partitions of no row, of one, and of very many."""
    monkeypatch.setenv(CHECK_ROWS_VARIABLE, "10")
    numbers = spark.range(400, numPartitions=2)
    people = spark.range(41, numPartitions=50).selectExpr("concat('p', id) as name")
    ends = "concat('p', if(id % 2 = 0, 0, id % 41)) as src", "concat('p', id * 7 % 41) as dst"
    lonely = spark.createDataFrame([("p1", "p2")], "src string, dst string")
    edges = numbers.selectExpr(*ends).union(lonely).union(numbers.selectExpr(*ends).limit(0))

    graph.load_dataframes({"Person": people, "Knows": edges}, mode="append")
    hops = """query q() {
        match { $a: Person $a knows $b } return { $a.name, count($b) as n } order { $a.name }
    }"""
    found, expected = (graph.query(hops, engine=each).rows() for each in ("spark", "local"))

    assert graph.edges("Knows").count_rows() == 401
    assert found == expected
    assert next(row["n"] for row in found if row["a.name"] == "p0") == 41


def test_frames_of_several_types_are_one_commit(spark: Any, graph: og.Graph) -> None:
    people = spark.createDataFrame([("a",), ("b",)], "name string")
    edges = spark.createDataFrame([("a", "b")], "src string, dst string")
    before = graph.snapshot().manifest_version

    graph.load_dataframes({"Person": people, "Knows": edges}, mode="append")

    assert graph.snapshot().manifest_version == before + 1


def test_the_data_source_reads_one_type_at_a_pinned_snapshot(spark: Any, graph: og.Graph) -> None:
    """A frame gives the same rows however often it is used, whatever was asked of it before."""
    og.spark.register(spark)
    first = graph.load([person("a", age=1), person("b", age=20), person("c")], mode="append")
    graph.load([person("a", age=99)], mode="merge")

    now = spark.read.format("omnigraph").options(path=graph.uri, type="Person").load()
    assert now.filter("age >= 15").union(now.filter("age is null")).count() == 3
    assert {row["name"]: row["age"] for row in now.collect()} == {"a": 99, "b": 20, "c": None}
    narrow = spark.read.format("omnigraph").schema("name string")
    then = narrow.options(
        path=graph.uri,
        type="Person",
        commit=str(first.commit_id),
        filters='[["age", "<", 10]]',
    ).load()
    assert then.collect() == [("a",)]


def test_the_data_source_reads_the_past_in_its_own_schema_or_in_that_of_today(
    spark: Any, graph: og.Graph
) -> None:
    og.spark.register(spark)
    graph.load([person("a", age=1), person("b", age=2)], mode="append")
    before = graph.snapshot().head.commit_id
    graph.apply_schema(RENAMED)
    reader = spark.read.format("omnigraph").option("path", graph.uri).option("commit", before)

    own = reader.option("type", "Person").load()
    renamed = reader.option("type", "Human").option("filters", '[["years", ">=", 2]]').load()
    current = graph.nodes("Human", commit=before, schema="current").to_spark(spark)

    assert sorted(row["age"] for row in own.collect()) == [1, 2]
    assert [(row["years"], row["mail"]) for row in renamed.collect()] == [(2, None)]
    assert sorted(row["years"] for row in current.collect()) == [1, 2]
    later = reader.option("type", "Human").option("filters", '[["mail", "=", "x"]]').load()
    assert later.count() == 0


def test_rows_and_columns_that_are_not_asked_for_stay_in_the_store(graph: og.Graph) -> None:
    """The reader itself, as each executor runs it: what it is given is what leaves the store."""
    from pyspark.sql.types import StringType, StructType

    from omnigraph.pipeline.datasource import GraphSource

    graph.load([person(f"p{number}", age=number % 50) for number in range(500)], mode="append")
    source = type("Source", (GraphSource,), {"opener": staticmethod(og.open)})
    filters = '[["age", "<", 3], ["name", "starts with", "p1"]]'
    options = {"path": graph.uri, "type": "Person", "filters": filters}
    reader = source(options).reader(StructType().add("name", StringType()))
    partitions = reader.partitions()

    with counting() as counters:
        batches = [batch for each in partitions for batch in reader.read(each)]

    expected = {f"p{n}" for n in range(500) if n % 50 < 3 and str(n).startswith("1")}
    assert {name for batch in batches for name in batch.column("name").to_pylist()} == expected
    assert counters.rows_scanned == len(expected) == 7
    assert {tuple(batch.schema.names) for batch in batches} == {("name",)}


def test_filters_of_the_data_source_are_conditions_of_the_store() -> None:
    from omnigraph.pipeline.datasource import read_filters
    from omnigraph.storage.filters import to_lance
    from omnigraph.storage.predicates import And

    schema = pa.schema([("name", pa.utf8()), ("age", pa.int32()), ("born", pa.date32())])
    given = [
        ["name", "starts with", "it's"],
        ["name", "in", ["a", "b"]],
        ["age", ">=", 18],
        ["age", "is not null"],
        ["born", "<", "2000-02-29"],
    ]

    text = to_lance(And(tuple(read_filters(json.dumps(given), schema))), schema)

    for part in ("`age` >= 18", "11016", "'a'", "it''s"):
        assert part in text
    assert read_filters(None, schema) == []


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("age > 3", "expected JSON as in"),
        ("[1]", "expected JSON as in"),
        ('[["agee", ">", 3]]', "there is no column 'agee'"),
        ('[["age", ">", 1.5]]', "the filter on 'age' does not fit a column of int32"),
        ('[["age", ">", null]]', "does not fit"),
        ('[["age", "like", 3]]', "does not fit"),
        ('[["age", "=", 5000000000]]', "does not fit"),
        ('[["half", "<", 0.5]]', "does not fit a column of float"),
        ('[["born", "=", "yesterday"]]', "does not fit"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(filters: str, message: str) -> None:
    from omnigraph.pipeline.datasource import read_filters

    schema = pa.schema([("age", pa.int32()), ("half", pa.float32()), ("born", pa.date32())])

    with pytest.raises(BadRequestError, match=message):
        read_filters(filters, schema)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"brnach": "main"}, "the data source has no option `brnach`.*did you mean `branch`"),
        ({"version": "last"}, "the option `version` is 'last', expected a whole number"),
        (
            {"load_mode": "upsert"},
            "the option `load_mode` is 'upsert', expected one of 'overwrite'",
        ),
    ],
)
def test_an_option_that_means_nothing_is_refused(
    spark: Any, graph: og.Graph, options: dict[str, str], message: str
) -> None:
    og.spark.register(spark)
    reader = spark.read.format("omnigraph").options(path=graph.uri, type="Person", **options)

    with pytest.raises(BadRequestError, match=f"^{message}") as refused:
        reader.load()

    assert "Traceback" not in str(refused.value)
    assert "SQLSTATE" not in str(refused.value)


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_a_save_mode_that_cannot_be_kept_is_refused(spark: Any, graph: og.Graph, mode: str) -> None:
    """Spark's default is `errorifexists`: a type of a graph is always there."""
    og.spark.register(spark)
    frame = spark.createDataFrame([("a",)], "name string")
    writer = frame.write.format("omnigraph").options(path=graph.uri, type="Person")

    with pytest.raises(BadRequestError, match=rf"^the save mode is '{mode}'.*nothing was written$"):
        writer.mode(mode).save()

    assert graph.nodes("Person").count_rows() == 0


def test_what_a_write_is_refused_for_is_said_in_our_words(spark: Any, graph: og.Graph) -> None:
    """A missing graph is of the group that says so; bad rows are listed as a load lists them."""
    og.spark.register(spark)
    frame = spark.createDataFrame([("a", 500), ("b", 700)], "name string, age int").coalesce(1)
    writer = frame.write.format("omnigraph").mode("append")

    with pytest.raises(NotFoundError, match="no graph at"):
        writer.options(path=f"{graph.uri}-gone", type="Person").save()
    with pytest.raises(BadRequestError) as refused:
        writer.options(path=graph.uri, type="Person").save()

    lines = str(refused.value).splitlines()
    assert (lines[0], lines[-1]) == ("2 problems in the rows:", "nothing was written")
    assert unclaimed_files(graph) == []


def test_errors_of_other_formats_stay_as_spark_says_them(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    og.spark.register(spark)

    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"):
        spark.read.format("json").load(str(tmp_path / "gone.json"))


def test_a_scan_becomes_a_spark_frame_of_the_same_rows(spark: Any, graph: og.Graph) -> None:
    graph.load([person("a", age=1, tags=["x", "y"], born="2000-01-02")], mode="append")

    (row,) = graph.nodes("Person", columns=["id", "tags", "born"]).to_spark(spark).collect()

    assert (row["id"], row["tags"], str(row["born"])) == ("a", ["x", "y"], "2000-01-02")


def test_writing_to_the_data_source_is_a_load(spark: Any, graph: og.Graph) -> None:
    """Spark's `append` is the load mode that is named, `overwrite` is ours; each is one commit."""
    og.spark.register(spark)
    graph.load([person("old"), person("n1")], mode="append")
    frame = spark.createDataFrame([(f"n{n}", n) for n in range(10)], "name string, age int")
    before = graph.snapshot().manifest_version
    found: list[set[str]] = []

    for mode in ("append", "overwrite"):
        options = {"load_mode": "merge"} if mode == "append" else {}
        frame.repartition(2).write.format("omnigraph").mode(mode).options(
            path=graph.uri, type="Person", **options
        ).save()
        found.append({row["id"] for row in graph.nodes("Person").to_arrow().to_pylist()})

    new = {f"n{n}" for n in range(10)}
    assert found == [new | {"old"}, new]
    assert graph.snapshot().manifest_version == before + 2
    assert unclaimed_files(graph) == []


def test_each_batch_of_a_stream_is_committed_once(
    spark: Any, graph: og.Graph, tmp_path: Path
) -> None:
    """A batch whose commit landed but whose end Spark did not see is not written again."""
    source = tmp_path / "in"
    source.mkdir()

    def feed(batch: int) -> None:
        rows = [json.dumps({"text": f"{batch}-{n}"}) for n in range(3)]
        (source / f"{batch}.json").write_text("\n".join(rows))

    def run() -> None:
        stream = spark.readStream.schema("text string").option("maxFilesPerTrigger", 1)
        query = (
            stream.json(str(source))
            .writeStream.foreachBatch(failing)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    write = og.spark.sink(graph, stream="notes", type="Note", mode="append")
    crashes = [1]

    def failing(frame: Any, batch_id: int) -> None:
        write(frame, batch_id)
        if batch_id in crashes:
            crashes.remove(batch_id)
            raise RuntimeError("the driver died after the commit")

    for batch in range(3):
        feed(batch)
    with pytest.raises(Exception, match="the driver died"):
        run()
    run()

    texts = sorted(row["text"] for row in graph.nodes("Note").to_arrow().to_pylist())
    assert texts == sorted(f"{batch}-{n}" for batch in range(3) for n in range(3))
    assert og.spark.last_batch(graph, "notes") == 2


@pytest.mark.skipif(not IS_TORTURE, reason="it starts many processes: `make torture`")
def test_a_stream_written_to_the_data_source_is_committed_once(
    spark: Any, graph: og.Graph, tmp_path: Path
) -> None:
    """Spark forgets that the last batch was committed, and writes it again."""
    og.spark.register(spark)
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    for batch in range(2):
        (source / f"{batch}.json").write_text(json.dumps({"text": f"note {batch}"}))

    def run() -> None:
        stream = spark.readStream.schema("text string").option("maxFilesPerTrigger", 1)
        written = stream.json(str(source)).writeStream.format("omnigraph")
        written = written.options(path=graph.uri, type="Note", stream="notes")
        started = written.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        started.start().awaitTermination()

    run()
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    run()

    texts = sorted(row["text"] for row in graph.nodes("Note").to_arrow().to_pylist())
    assert texts == ["note 0", "note 1"]
    assert og.spark.last_batch(graph, "notes") == 1
    assert unclaimed_files(graph) == []


def open_source(graph: og.Graph, **options: str) -> Any:
    """The data source as Spark's processes make it."""
    from omnigraph.pipeline.datasource import GraphSource

    source = type("Source", (GraphSource,), {"opener": staticmethod(og.open)})
    return source({"path": graph.uri, **options})


def test_a_repeated_batch_of_a_written_stream_is_left_out(graph: og.Graph) -> None:
    """As Spark does it: one writer writes, and another one commits or aborts."""

    def open_writer() -> Any:
        return open_source(graph, type="Note", stream="s").streamWriter(None, False)

    for batch, text in ((0, "a"), (0, "a"), (1, "b"), (1, "b"), (2, "c")):
        part = open_writer().write(iter([pa.record_batch({"text": [text]})]))
        finish = open_writer().commit if batch < 2 else open_writer().abort
        finish([part, None], batch)

    assert sorted(row["text"] for row in graph.nodes("Note").to_arrow().to_pylist()) == ["a", "b"]
    assert og.spark.last_batch(graph, "s") == 1
    assert unclaimed_files(graph) == []


def test_the_data_source_says_which_option_is_missing(graph: og.Graph) -> None:
    with pytest.raises(BadRequestError, match="the graph has Note, Person, Team, Knows"):
        open_source(graph).schema()
    with pytest.raises(BadRequestError, match="needs the option `stream`, a name that it has for"):
        open_source(graph, type="Note").streamWriter(None, False)


def test_every_type_is_a_view_at_one_snapshot(spark: Any, graph: og.Graph) -> None:
    graph.load([person("a", age=1), person("b", age=2), knows("a", "b")], mode="append")

    names = og.spark.register(spark, graph, prefix="og_")
    graph.load([person("b", age=99)], mode="merge")
    ages = spark.sql("select age from og_Person where name = 'b'").collect()
    ends = spark.sql("select src, dst from og_Knows").collect()

    assert names == [f"og_{each}" for each in ("Knows", "Likes", "MemberOf", "Rates")] + [
        f"og_{each}" for each in ("Note", "Person", "Team")
    ]
    assert ([tuple(row) for row in ages], [tuple(row) for row in ends]) == ([(2,)], [("a", "b")])


def test_views_that_spark_would_confuse_are_refused(spark: Any, tmp_path: Path) -> None:
    schema = "node Person { name: String @key }\nnode PERSON { name: String @key }"
    graph = og.init(tmp_path / "g.omni", schema=schema, durability="process")

    with pytest.raises(BadRequestError, match="'node:PERSON' and 'node:Person' would both be"):
        og.spark.register(spark, graph)


def test_a_batch_that_recovery_finished_counts_as_written(graph: og.Graph, tmp_path: Path) -> None:
    """The batch id survives a crash between the table commits and the publish."""
    write = og.spark.sink(graph, stream="s", type="Note", mode="append", engine="inline")
    frame = pa.table({"text": ["one"]})

    with (
        arm_failpoints({Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER: "raise"}),
        pytest.raises(FailpointError),
    ):
        write(frame, 0)
    with og.open(graph.uri) as again:
        og.spark.sink(again, stream="s", type="Note", mode="append", engine="inline")(frame, 0)
        assert again.nodes("Note").count_rows() == 1
        assert og.spark.last_batch(again, "s") == 0


def test_a_crashing_worker_is_a_typed_error(
    spark: Any, graph: og.Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from omnigraph.pipeline.progress import Reporter
    from omnigraph.pipeline.spark_runner import SparkRunner

    def die(_: int) -> int:
        import os

        os._exit(1)

    def refuse(_: int) -> int:
        raise BadRequestError("cannot read 'x': no such file")

    runner = SparkRunner(spark)
    with pytest.raises(og.errors.SparkError, match="a worker process died repeatedly"):
        runner.map(die, [1], Reporter(None))
    with pytest.raises(BadRequestError, match="no such file"):
        runner.map(refuse, [1, 2], Reporter(None))
    assert runner.map(abs, [-1, -2], Reporter(None)) == [1, 2]


def test_progress_is_reported_as_ranges_and_rows(
    spark: Any, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LOAD_PART_BYTES", "2000")
    told: list[Any] = []
    records = [person(f"p{n}") for n in range(300)] + [knows("p0", "p1")]
    text = "\n".join(map(json.dumps, records))

    graph.load(text, mode="append", engine="spark", progress=told.append)

    loading = [each for each in told if each.stage == "loading"]
    assert loading[0].total > 5
    assert max(each.done for each in loading) == loading[0].total
    assert told[-1].rows == 301
    assert [each.stage for each in told][-1] == "writing"
