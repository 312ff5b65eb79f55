"""A schema out of files: types, keys, enums, dates and edges, as a proposal that loads them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import omnigraph as og
from omnigraph.cli.app import build_app
from omnigraph.errors import BadRequestError

AUTHORS = "slug,name,born,country,h index\n" + "".join(
    f"a{n},Name {n},19{50 + n}-02-03,{'FR' if n % 2 else 'UK'},{n or ''}\n" for n in range(20)
)
PAPERS = "".join(
    json.dumps(
        {"doi": f"10/{n}", "title": f"T {n}", "score": n / 2, "open": n % 2 == 0, "tags": ["x"]}
    )
    + "\n"
    for n in range(20)
)
WROTE = "author;paper;position\n" + "".join(f"a{n % 20};10/{n % 7};{n % 3}\n" for n in range(30))


def write_files(folder: Path) -> None:
    (folder / "authors.csv").write_text(AUTHORS)
    (folder / "papers.jsonl").write_text(PAPERS)
    (folder / "wrote.csv").write_text(WROTE)


def test_types_keys_enums_and_edges_are_found(tmp_path: Path) -> None:
    write_files(tmp_path)

    found = og.infer_schema(tmp_path)

    assert found.schema.split("\n", 2)[2] == (
        "// authors.csv: 20 rows\n"
        "node Author {\n"
        "    slug: String @key\n"
        "    name: String // all different\n"
        "    born: Date\n"
        "    country: enum(FR, UK)\n"
        "    h_index: I64? // the column `h index`\n"
        "}\n\n"
        "// papers.jsonl: 20 rows\n"
        "node Paper {\n"
        "    doi: String @key\n"
        "    title: String // all different\n"
        "    score: F64\n"
        "    open: Bool\n"
        "    tags: [String]\n"
        "}\n\n"
        "// wrote.csv: 30 rows\n"
        "edge Wrote: Author -> Paper {\n"
        "    position: I64\n"
        "    @key(src, dst)\n"
        "}\n"
    )
    assert found.mapping.splitlines()[1:] == [
        "files:",
        '  - file: "authors.csv"',
        "    type: Author",
        '    columns: {"h index": "h_index"}',
        '  - file: "papers.jsonl"',
        "    type: Paper",
        '  - file: "wrote.csv"',
        "    type: Wrote",
        '    from: "author"',
        '    to: "paper"',
    ]


def test_files_load_by_what_is_inferred_from_them(tmp_path: Path) -> None:
    write_files(tmp_path)
    found = og.infer_schema(tmp_path)
    (tmp_path / "load.yaml").write_text(found.mapping)
    graph = og.init(tmp_path / "graph", schema=found.schema, durability="process")

    for _ in range(2):
        graph.load(mapping=tmp_path / "load.yaml", mode="merge")

    counts = {key: entry.row_count for key, entry in graph.snapshot().entries.items()}
    assert counts == {"node:Author": 20, "node:Paper": 20, "edge:Wrote": 30}


def test_columnar_files_keep_their_types(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "when": pa.array([1, 2, None], pa.timestamp("us")),
            "vec": pa.array([[1.0] * 8] * 3, pa.list_(pa.float32(), 8)),
            "raw": pa.array([b"a", b"b", b"c"]),
            "nested": [{"a": 1}] * 3,
            "_rowid": [1.0, 2.0, 3.0],
        }
    )
    pq.write_table(rows, tmp_path / "Thing.parquet")
    with ipc.new_file(tmp_path / "Other.arrow", rows.schema) as file:
        file.write_table(rows)

    found = og.infer_schema(str(tmp_path / "*.parquet"))

    assert "    // the column `id` is the id of the row, and no property\n" in found.schema
    assert "    when: DateTime?\n    vec: Vector(8)\n    raw: Blob\n" in found.schema
    assert "    // left out: `nested` holds struct<a: int64>\n" in found.schema
    assert "    rowid: F64 // the column `_rowid`\n" in found.schema
    assert '    ignore: ["nested"]\n' in found.mapping
    # Numbers that are ids of both files make neither an edge.
    assert og.infer_schema(tmp_path).schema.count("node ") == 2


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", b"", "cannot read '.*a.csv': it is empty"),
        ("a.csv", b"x,y\n", "no rows"),
        ("a.csv", b"x,y\n1,2\nb\xe9,3\n", "line 3 is not UTF-8"),
        ("a.csv", b"x,\0\n1,2\n", "it is not text"),
        ("a.csv.gz", b"\x1f\x8b\x08", "damaged or cut off"),
        ("a.csv.xz", b"x", ".xz is not read here"),
        ("a.parquet", b"no parquet", "no Parquet file, or damaged or cut off"),
        ("a.arrow", b"no arrow", "no Arrow file, or damaged or cut off"),
        ("a.jsonl", b'{"a": 1}\n{"a":', r"a.jsonl:2: not a JSON object: unexpected end of data"),
        ("a.jsonl", b'{"a": 1}\n\n{"a": "x"}', "a.jsonl:3: the member 'a' is a string here and a"),
        ("a.xlsx", b"PK", "a spreadsheet; save each sheet as CSV"),
        ("a", b"\x7fELF\0", "it is not text, and no Parquet"),
        ("a.csv", b"a b,a_b\n1,2\n", "would be the property `a_b`"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, text: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(text)

    with pytest.raises(BadRequestError, match=reason):
        og.infer_schema(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("thing.csv", 'name,n\nann,1\nbob\n"c\nd",3\ndee,4,5\n'.encode("utf-16")),
        ("thing.tab", b'name\tn\nann\t1\nbob,x\n"c\nd"\t3\ndee\t4\t5\n'),
        ("thing.json", b'[{"name": "ann",\n "n": 1}, {"name": "c", "n": 3}]'),
        ("thing", b"name,n\nann,1\n"),
    ],
)
def test_odd_files_are_read_as_a_load_reads_them(tmp_path: Path, name: str, text: bytes) -> None:
    """In another encoding, with ragged rows, as an array, or without an ending."""
    (tmp_path / name).write_bytes(text)

    schema = og.infer_schema(tmp_path / name).schema

    assert "node Thing {\n    name: String @key\n    n: I64" in schema
    assert ("2 of another length left out" in schema) == (b"d" in text.replace(b"\0", b""))


@pytest.mark.parametrize(
    ("day", "pattern"),
    [("31.12.1999", "%d.%m.%Y"), ("12/31/1999", "%m/%d/%Y"), ("1999/12/31", "%Y/%m/%d")],
)
def test_dates_and_decimals_as_they_are_written_elsewhere_load_by_the_mapping(
    tmp_path: Path, day: str, pattern: str
) -> None:
    text = f"slug;born;height\na;{day};1,82\nb;;2\n"
    (tmp_path / "people.csv").write_text(text)

    found = og.infer_schema(tmp_path / "people.csv")
    (tmp_path / "load.yaml").write_text(found.mapping)
    graph = og.init(tmp_path / "g.omni", schema=found.schema, durability="process")
    graph.load(mapping=tmp_path / "load.yaml", mode="merge")

    assert "    born: Date?\n    height: F64\n" in found.schema
    assert f'    dates: "{pattern}"\n    decimal: ","\n' in found.mapping
    rows = graph.nodes("People").select(["born", "height"]).to_arrow().to_pylist()
    assert [(str(row["born"]), row["height"]) for row in rows] == [
        ("1999-12-31", 1.82),
        ("None", 2),
    ]


@pytest.mark.parametrize("day", ["01/02/2020", "1.2.20", "31.02.2020", "2020-1", "12.30"])
def test_dates_that_could_be_read_in_two_ways_or_none_stay_texts(tmp_path: Path, day: str) -> None:
    (tmp_path / "people.csv").write_text(f"slug,born,seen\na,{day},1\nb,{day},2\n")

    found = og.infer_schema(tmp_path / "people.csv")

    assert "Date" not in found.schema
    assert "dates" not in found.mapping


def test_a_file_with_two_ways_to_write_dates_keeps_its_texts(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("slug,born,seen\na,31.12.1999,2020-01-02\n")

    schema = og.infer_schema(tmp_path / "people.csv").schema

    assert "born: String" in schema
    assert "seen: Date" in schema


def test_a_mapping_names_files_of_several_directories(tmp_path: Path) -> None:
    for name in ("x/author.csv", "y/paper.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("name\na\n")

    found = og.infer_schema([tmp_path / "x" / "author.csv", tmp_path / "y"])

    assert [line for line in found.mapping.splitlines() if "file:" in line] == [
        '  - file: "x/author.csv"',
        '  - file: "y/paper.csv"',
    ]


def test_missing_and_clashing_files_are_named(tmp_path: Path) -> None:
    for name in ("paper.csv", "papers.csv"):
        (tmp_path / name).write_text("a\n1\n")

    with pytest.raises(BadRequestError, match="no such file"):
        og.infer_schema(tmp_path / "none.csv")
    with pytest.raises(BadRequestError, match="no file matches"):
        og.infer_schema(str(tmp_path / "*.parquet"))
    with pytest.raises(BadRequestError, match="would both be of type Paper"):
        og.infer_schema(tmp_path)


def test_the_command_writes_what_it_prints_and_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_files(tmp_path / "in")
    out, mapping = tmp_path / "s.pg", tmp_path / "load.yaml"
    run = CliRunner()

    printed = run.invoke(build_app("schema"), ["schema", "infer", str(tmp_path / "in")])
    command = [
        "schema",
        "infer",
        str(tmp_path / "in"),
        "--out",
        str(out),
        "--mapping",
        str(mapping),
    ]
    written = run.invoke(build_app("schema"), command)
    again = run.invoke(build_app("schema"), command)

    assert printed.stdout == out.read_text()
    assert written.stdout == f"wrote {out}\nwrote {mapping}\n"
    assert "type: Author" in mapping.read_text()
    assert again.exit_code != 0
    assert run.invoke(build_app("schema"), ["schema", "check", str(out)]).exit_code == 0
