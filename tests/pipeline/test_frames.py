"""DataFrames in, scans and exports out, and the identity of the round trip."""

from __future__ import annotations

import base64
import datetime
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, StorageError
from omnigraph.write.bad_rows import BadRowsError
from tests.pipeline.conftest import SPARK, Loads, knows, person

EVERYTHING = """
node Thing {
    name: String @key
    flag: Bool?
    small: I32?
    big: I64?
    count: U32?
    huge: U64?
    half: F32?
    full: F64?
    day: Date?
    instant: DateTime?
    tags: [String]?
    marks: [I64]?
    place: Vector(3)?
    data: Blob?
}
edge Link: Thing -> Thing { weight: F64? }
"""

THINGS: list[dict[str, Any]] = [
    {
        "name": "full",
        "flag": True,
        "small": -(2**31),
        "big": 2**63 - 1,
        "count": 2**32 - 1,
        "huge": 2**64 - 1,
        "half": 0.1,
        "full": 0.1,
        "day": "1969-12-31",
        "instant": "2024-02-29T23:59:59.999Z",
        "tags": ["a", "", 'quo"te'],
        "marks": [],
        "place": [0.5, -1.0, 0.25],
        "data": "base64:" + base64.b64encode(bytes(range(256))).decode(),
    },
    {"name": "empty"},
    {"name": "Ünï \\ 'text'\n", "flag": False, "half": -0.0, "tags": [], "data": "base64:"},
]


def exported(graph: og.Graph, path: Path, **options: Any) -> list[str]:
    graph.export(path, **options)
    return path.read_text().splitlines()


@pytest.fixture
def everything(tmp_path: Path) -> og.Graph:
    """A graph with a value of every type, and nulls."""
    graph = og.init(tmp_path / "everything", schema=EVERYTHING)
    records = [{"type": "Thing", "data": data} for data in THINGS]
    records.append({"edge": "Link", "from": "full", "to": "empty", "data": {"weight": 1.5}})
    graph.load(records, mode="append")
    return graph


@pytest.mark.parametrize(
    "engine", ["inline", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
)
def test_an_export_loads_into_the_same_graph(
    everything: og.Graph, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Load, export, load, export: the two exports are the same byte for byte."""
    if engine == "spark":
        request.getfixturevalue("spark")
    first = exported(everything, tmp_path / "first.jsonl", engine=engine)

    with og.init(tmp_path / "again", schema=EVERYTHING) as again:
        again.load(tmp_path / "first.jsonl", mode="overwrite", engine=engine)
        second = exported(again, tmp_path / "second.jsonl", engine=engine)

    assert first == second
    assert [json.loads(line).get("edge", "Thing") for line in first] == ["Link", *["Thing"] * 3]
    assert [json.loads(line)["data"]["id"] for line in first[1:]] == sorted(
        data["name"] for data in THINGS
    )
    assert list(tmp_path.glob("*.part*")) == []


@pytest.mark.parametrize("engine", ["inline", SPARK])
def test_an_export_is_compressed_as_its_name_says(
    everything: og.Graph, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    plain, packed = tmp_path / "plain.jsonl", tmp_path / "packed.jsonl.gz"
    everything.export(plain, engine=engine)

    everything.export(packed, engine=engine)

    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    with og.init(tmp_path / "again", schema=everything.schema, durability="process") as again:
        again.load(packed, mode="overwrite", engine=engine)
        assert list(again.export()) == list(everything.export())


def test_an_export_of_nothing_is_a_whole_compressed_file(tmp_path: Path) -> None:
    with og.init(tmp_path / "graph", schema="node A { x: String }") as graph:
        graph.export(tmp_path / "none.jsonl.gz")

        assert gzip.decompress((tmp_path / "none.jsonl.gz").read_bytes()) == b""
        assert graph.load(tmp_path / "none.jsonl.gz", mode="merge").commit_id is None


@pytest.mark.parametrize("name", ["x.jsonl.lz4", "x.xz", "x.zip"])
def test_an_export_refuses_an_unsupported_compression_suffix(
    everything: og.Graph, tmp_path: Path, name: str
) -> None:
    with pytest.raises(BadRequestError, match=r"\.gz"):
        everything.export(tmp_path / name)

    assert not (tmp_path / name).exists()


def test_an_export_that_cannot_be_written_says_so(everything: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="cannot write"):
        everything.export(tmp_path)
    for form in ("jsonl", "parquet"):
        with pytest.raises(StorageError, match="cannot write"):
            everything.export(tmp_path / "file" / "x", format=form)
        with pytest.raises(BadRequestError, match="NUL"):
            everything.export("a\0b", format=form)


def test_an_export_without_a_path_yields_the_records(everything: og.Graph) -> None:
    records = list(everything.export(types=["Thing"]))

    by_name = {record["data"]["name"]: record["data"] for record in records}
    assert by_name["full"] == {"id": "full", **THINGS[0]} | {
        "half": pytest.approx(0.1),
    }
    assert set(by_name["empty"].values()) == {"empty", None}


def test_an_export_to_parquet_has_one_file_per_table(everything: og.Graph, tmp_path: Path) -> None:
    everything.export(tmp_path / "out", format="parquet")

    things = pq.read_table(tmp_path / "out" / "node.Thing.parquet")
    links = pq.read_table(tmp_path / "out" / "edge.Link.parquet")
    assert things["id"].to_pylist() == sorted(data["name"] for data in THINGS)
    assert links.select(["src", "dst", "weight"]).to_pylist() == [
        {"src": "full", "dst": "empty", "weight": 1.5}
    ]
    assert things["data"].to_pylist()[1] == bytes(range(256))


@pytest.mark.parametrize("form", ["parquet", "csv", "csv.gz", "csv.bz2", "csv.zst"])
def test_what_tables_are_exported_to_loads_back_equal(
    everything: og.Graph, tmp_path: Path, form: str
) -> None:
    """Every type, null, list, vector and blob; the directory is the input of the load."""
    everything.export(tmp_path / "out", format=form)

    with og.init(tmp_path / "again", schema=everything.schema, durability="process") as again:
        again.load(tmp_path / "out", mode="overwrite")
        assert list(again.export()) == list(everything.export())
        assert again.load(tmp_path / "out", mode="merge").commit_id is None


@pytest.mark.parametrize("ending", [".bz2", ".zst"])
def test_records_are_compressed_as_their_file_is_named(
    everything: og.Graph, tmp_path: Path, ending: str
) -> None:
    path = everything.export(tmp_path / f"out.jsonl{ending}")
    everything.export(tmp_path / f"none.jsonl{ending}", types=["Thing"], commit=None)

    with og.init(tmp_path / "again", schema=everything.schema, durability="process") as again:
        again.load(path, mode="overwrite")
        assert list(again.export()) == list(everything.export())


def test_an_export_shows_an_older_snapshot_and_some_types(loads: Loads) -> None:
    first = loads.load([person("a")])
    loads.load([person("b"), knows("a", "b")])

    old = list(loads.graph.export(commit=first.commit_id))
    people = list(loads.graph.export(types=["node:Person"]))

    assert [record["data"]["id"] for record in old] == ["a"]
    assert [record["data"]["id"] for record in people] == ["a", "b"]
    with pytest.raises(BadRequestError, match="did you mean `Person`"):
        loads.graph.export(types=["Persn"])


def test_a_read_only_handle_can_export(everything: og.Graph) -> None:
    with og.open(everything.uri, mode="r") as reader:
        assert len(list(reader.export())) == 4


def test_a_scan_is_pinned(loads: Loads) -> None:
    loads.load([person("a", age=1)])
    scan = loads.graph.nodes("Person", columns=["id", "age"])
    loads.load([person("a", age=2)], mode="merge")

    assert scan.to_arrow().to_pylist() == [{"id": "a", "age": 1}]
    assert scan.count_rows() == 1
    assert loads.graph.nodes("Person").select(["age"]).to_arrow().to_pylist() == [{"age": 2}]


def test_an_arrow_frame_is_loaded_under_the_same_rules(loads: Loads) -> None:
    people = pa.table({"name": ["a", "b"], "age": pa.array([1, None], pa.int64())})
    edges = pa.table({"src": ["a"], "dst": ["b"], "since": ["2020-01-01"]})

    result = loads.graph.load_dataframes(
        {"Person": people, "Knows": edges}, mode="append", engine=loads.engine
    )

    assert result.tables == {"edge:Knows": 1, "node:Person": 2}
    with pytest.raises(BadRowsError, match=r"Person row 2: .*exceeds Int32 range"):
        loads.graph.load_dataframe(
            pa.table({"name": ["c", "d"], "age": [1, 2**40]}),
            type="Person",
            mode="append",
            engine=loads.engine,
        )
    with pytest.raises(BadRowsError, match=r"Knows row 1: .*dst 'x' not found"):
        loads.graph.load_dataframe(
            pa.table({"from": ["a"], "to": ["x"]}), edge="knows", mode="append", engine=loads.engine
        )


def test_a_frame_needs_a_type_and_has_to_be_a_frame(loads: Loads) -> None:
    with pytest.raises(BadRequestError, match="give one of `type` and `edge`"):
        loads.graph.load_dataframe(pa.table({}), mode="append")
    with pytest.raises(BadRequestError, match="is not a DataFrame"):
        loads.graph.load_dataframe({"name": ["a"]}, type="Person", mode="append")
    with pytest.raises(BadRequestError, match="did you mean `Person`"):
        loads.graph.load_dataframe(pa.table({}), type="Persn", mode="append")


FRAME_ROWS: list[dict[str, Any]] = [
    {
        "name": "full",
        "flag": True,
        "small": -7,
        "big": 2**40,
        "count": 7,
        "half": 0.25,
        "full": -0.5,
        "day": datetime.date(1969, 12, 31),
        "instant": datetime.datetime(2024, 2, 29, 23, 59, 59, 999000),
        "tags": ["a", ""],
        "marks": [1, -2],
        "place": [0.5, -1.0, 0.25],
        "data": b"\x00\xff",
    },
    {"name": "empty"},
    {"name": "half", "small": 1, "tags": [], "data": b""},
]
FRAME_TABLE = pa.Table.from_pylist(
    [{name: row.get(name) for name in FRAME_ROWS[0]} for row in FRAME_ROWS]
)


def as_spark(request: pytest.FixtureRequest) -> Any:
    spark = request.getfixturevalue("spark")
    # Spark reads an instant without a zone as one of its own zone.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark.createDataFrame(FRAME_TABLE)


def as_polars(_: pytest.FixtureRequest) -> Any:
    import polars as pl

    return pl.from_arrow(FRAME_TABLE)


def with_categories(request: pytest.FixtureRequest) -> Any:
    import polars as pl

    return as_polars(request).with_columns(pl.col("name").cast(pl.Categorical))


KINDS = {
    "record batch": lambda _: FRAME_TABLE.combine_chunks().to_batches()[0],
    "pandas": lambda _: FRAME_TABLE.to_pandas(),
    "pandas, nullable": lambda _: FRAME_TABLE.to_pandas().convert_dtypes(),
    "pandas, categories": lambda _: FRAME_TABLE.to_pandas().astype({"name": "category"}),
    "polars": as_polars,
    "polars, lazy": lambda request: as_polars(request).lazy(),
    "polars, categories": with_categories,
    "spark": as_spark,
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.xdist_group("spark")) if kind == "spark" else kind
        for kind in KINDS
    ],
)
def test_every_kind_of_frame_gives_the_same_rows(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Types, missing values, empty lists and bytes are what they are in an Arrow table."""
    frame = KINDS[kind](request)

    exports = []
    for name, each in (("arrow", FRAME_TABLE), ("other", frame)):
        with og.init(tmp_path / name, schema=EVERYTHING) as graph:
            graph.load_dataframe(each, type="Thing", mode="append")
            exports.append(list(graph.export()))

    assert exports[0] == exports[1]
    assert exports[0][1]["data"]["marks"] == [1, -2]
    assert exports[0][2]["data"] | {"tags": None} == exports[0][0]["data"] | {
        "id": "half",
        "name": "half",
        "small": 1,
        "data": "base64:",
    }


def test_a_fraction_is_no_integer_in_pandas_either(tmp_path: Path) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    frame = pd.DataFrame({"name": ["a", "b", "c"], "small": [1.0, None, 2.5]})

    with (
        og.init(tmp_path / "graph", schema=EVERYTHING) as graph,
        pytest.raises(BadRowsError, match=r"Thing row 3: .*2.5, which is not an integer"),
    ):
        graph.load_dataframe(frame, type="Thing", mode="append")
