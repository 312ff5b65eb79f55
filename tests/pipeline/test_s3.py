"""Input in an object store, and graphs there: the same loads over a real S3 server."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, EmbeddingModelMismatch
from omnigraph.pipeline.engine import PART_BYTES_VARIABLE
from omnigraph.pipeline.input_files import matching
from omnigraph.write.bad_rows import BadRowsError
from tests.cli.running import run
from tests.pipeline.conftest import SCHEMA, Loads, knows, person
from tests.storage.conftest import Store, s3_endpoint, s3_store

pytestmark = pytest.mark.slow

__all__ = ["s3_endpoint", "s3_store"]

PEOPLE = [person(f"p{n}", age=n) for n in range(12)]
EDGES = [knows("p0", f"p{n}") for n in range(12)]


class Bucket:
    """Objects put where a load finds them."""

    def __init__(self, store: Store) -> None:
        self.options = store.storage_options
        self.uri = str(store.root)
        self._client = store.client()
        self._bucket, _, self._prefix = self.uri.removeprefix("s3://").partition("/")

    def put(self, name: str, records: list[Any], *, indent: int | None = None) -> str:
        data = "\n".join(json.dumps(each, indent=indent) for each in records).encode()
        return self.put_bytes(name, gzip.compress(data) if name.endswith(".gz") else data)

    def put_bytes(self, name: str, body: bytes) -> str:
        self._client.put_object(Bucket=self._bucket, Key=f"{self._prefix}/{name}", Body=body)
        return f"{self.uri}/{name}"

    def names(self) -> list[str]:
        pages = self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix)
        return [item["Key"].removeprefix(f"{self._prefix}/") for item in pages.get("Contents", ())]


@pytest.fixture
def bucket(s3_store: Store) -> Bucket:
    return Bucket(s3_store)


def test_files_on_s3_are_cut_and_read_like_local_ones(loads: Loads, bucket: Bucket) -> None:
    """Plain, compressed and pretty-printed objects, by name and by pattern, on every engine."""
    bucket.put("in/a/people.jsonl", PEOPLE[:6])
    bucket.put("in/a/more.jsonl.gz", PEOPLE[6:])
    bucket.put("in/a/not.txt", [{"type": "Nope"}])
    edges = bucket.put("in/edges.json", EDGES, indent=1)

    result = loads.load([f"{bucket.uri}/in/a/*.jsonl*", edges], storage_options=bucket.options)

    assert result.tables == {"edge:Knows": 12, "node:Person": 12}
    assert {row["id"]: row["age"] for row in loads.rows("Person")} == {
        f"p{n}": n for n in range(12)
    }


def test_files_of_rows_on_s3_are_read_like_local_ones(
    loads: Loads, bucket: Bucket, tmp_path: Path
) -> None:
    """CSV, Parquet and Arrow, plain and compressed, by type, by directory and by mapping."""
    ages = pa.table({"name": [f"p{n}" for n in range(9)], "age": pa.array(range(9), pa.int64())})
    sink, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(ages.slice(0, 3), sink, row_group_size=2)
    with pa.ipc.new_file(arrow, ages.schema) as file:
        file.write_table(ages.slice(3, 3))
    bucket.put_bytes("rows/Person/a.parquet", sink.getvalue())
    bucket.put_bytes("rows/Person/_skipped.csv", b"nothing")
    bucket.put_bytes("rows/Person/b.arrow", arrow.getvalue())
    csv = b"name,age\n" + b"".join(b"p%d,%d\n" % (n, n) for n in range(6, 9))
    bucket.put_bytes("rows/Person/c.csv.zst", pa.compress(csv, "zstd", asbytes=True))
    edges = bucket.put_bytes("knows.csv", b"a;b\n" + b"".join(b"p0;p%d\n" % n for n in range(9)))
    bad = bucket.put_bytes("bad.csv.gz", gzip.compress(b"name,age\np1,1\np2,500\n"))
    mapping = tmp_path / "load.yaml"
    mapping.write_text(f"files: [{{file: '{edges}', type: Knows, from: a, to: b}}]")

    rows = loads.load(f"{bucket.uri}/rows/", storage_options=bucket.options)
    mapped = loads.load(None, mapping=mapping, storage_options=bucket.options)
    with pytest.raises(BadRowsError, match=rf"{bad}:3: .*@range violation"):
        loads.load({"Person": bad}, "merge", storage_options=bucket.options)

    assert (rows.tables, mapped.tables) == ({"node:Person": 9}, {"edge:Knows": 9})
    assert {row["id"]: row["age"] for row in loads.rows("Person")} == {f"p{n}": n for n in range(9)}
    assert mapped.notes[0].startswith(f"{edges}: columns are separated by ';'")


def test_the_command_line_reads_from_s3(
    loads: Loads, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bucket.put("people.jsonl", PEOPLE)
    for name, value in bucket.options.items():
        monkeypatch.setenv(f"AWS_{name.removeprefix('aws_')}".upper(), value)

    outcome = run("load", loads.graph.uri, "--mode", "append", "--data", path)

    assert (outcome.code, "12 entities" in outcome.out) == (0, True), outcome.err


def test_a_bad_row_on_s3_is_named_with_its_line(loads: Loads, bucket: Bucket) -> None:
    path = bucket.put("people.jsonl", [*PEOPLE, person("old", age=500)])

    with pytest.raises(BadRowsError, match=rf"{path}:13: .*@range violation"):
        loads.load(path, storage_options=bucket.options)

    assert loads.ids("Person") == []


def test_what_cannot_be_read_from_s3_is_named(bucket: Bucket, loads: Loads) -> None:
    absent = f"{bucket.uri}/absent.jsonl"
    with pytest.raises(BadRequestError, match=rf"cannot read '{absent}': no such file"):
        loads.load(absent, storage_options=bucket.options)
    with pytest.raises(BadRequestError, match="no file matches"):
        loads.load(f"{bucket.uri}/*.absent", storage_options=bucket.options)
    with pytest.raises(BadRequestError, match="unknown scheme — give a path, file:// or s3://"):
        loads.load("gs://bucket/people.jsonl")


def test_a_pattern_stays_in_its_folder_unless_it_says_otherwise(bucket: Bucket) -> None:
    for name in ("a/1.jsonl", "a/2.jsonl", "a/b/3.jsonl", "a/x[y].jsonl", "b/4.jsonl"):
        bucket.put(name, PEOPLE[:1])

    def found(pattern: str) -> list[str]:
        paths = matching(f"{bucket.uri}/{pattern}", bucket.options)
        return [path.removeprefix(f"{bucket.uri}/") for path in paths]

    assert found("a/[0-9].jsonl") == ["a/1.jsonl", "a/2.jsonl"]
    assert found("a/[!1x]*.jsonl") == ["a/2.jsonl"]
    assert found("*/?.jsonl") == ["a/1.jsonl", "a/2.jsonl", "b/4.jsonl"]
    assert found("**/3.jsonl") == ["a/b/3.jsonl"]
    assert len(found("**/*.jsonl")) == 5


@pytest.mark.xdist_group("spark")
def test_spark_frames_are_loaded_into_a_graph_on_s3(
    spark: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors write to the store, and nothing of it is left; `save` is the same load."""
    monkeypatch.setenv(PART_BYTES_VARIABLE, "1000")
    uri = f"{bucket.uri}/graph"
    with og.init(uri, schema=SCHEMA, storage_options=bucket.options) as graph:
        frame = spark.range(50).selectExpr("concat('p', id) as name").repartition(2)
        loaded = graph.load_dataframe(frame, type="Person", mode="append")
        og.spark.register(spark)
        options = {f"storage.{name}": value for name, value in bucket.options.items()}
        notes = spark.createDataFrame([("one",), ("two",)], "text string")
        notes.write.format("omnigraph").mode("append").options(
            path=uri, type="Note", **options
        ).save()
        graph.refresh()

        assert (loaded.engine, loaded.tables) == ("spark", {"node:Person": 50})
        assert graph.nodes("Person").count_rows() == 50
        assert graph.nodes("Note").count_rows() == 2
        rejected = graph.load([person("p1")], mode="append", on_error="quarantine", engine="inline")
    assert rejected.quarantine == f"{uri}/__quarantine/{str(rejected.quarantine)[-32:]}"
    assert [key for key in bucket.names() if "/__load/" in key] == []
    assert [key for key in bucket.names() if "/__quarantine/" in key] != []


def test_an_export_on_s3_brings_the_model_of_its_vectors(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory, and beside a file of records."""
    schema = 'node Doc { slug: String @key  text: String  vec: Vector(64)? @embed("text") }'
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    made = og.init(tmp_path / "made", schema=schema)
    made.load([{"type": "Doc", "data": {"slug": "a", "text": "sea"}}], mode="append")
    made.export(tmp_path / "dir", format="parquet")
    made.export(tmp_path / "file" / "all.jsonl.gz")
    for path in (each for each in tmp_path.rglob("*") if each.parent.name in ("dir", "file")):
        bucket.put_bytes(f"{path.parent.name}/{path.name}", path.read_bytes())
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")

    for name in ("dir/", "file/all.jsonl.gz"):
        graph = og.init(
            tmp_path / f"copy-{name[:3]}", schema=schema, storage_options=bucket.options
        )
        graph.load(f"{bucket.uri}/{name}", mode="append")
        with pytest.raises(EmbeddingModelMismatch, match=r"'Doc.vec'.*'mock'"):
            graph.load([{"type": "Doc", "data": {"slug": "b", "text": "sky"}}], mode="append")
