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
from omnigraph.cli.app import app
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
        ("a.csv", "", "a.csv: cannot be read"),
        ("a.csv", "x,y\n", "no rows"),
        ("a.parquet", "no parquet", "a.parquet: cannot be read"),
        ("a.jsonl", '{"a": 1}\n{"a":', "a.jsonl: cannot be read"),
        ("a.xlsx", "x", "format is not known"),
        ("a.csv", "a b,a_b\n1,2\n", "would be the property `a_b`"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(BadRequestError, match=reason):
        og.infer_schema(tmp_path / name)


def test_missing_and_clashing_files_are_named(tmp_path: Path) -> None:
    for name in ("paper.csv", "papers.csv"):
        (tmp_path / name).write_text("a\n1\n")

    with pytest.raises(BadRequestError, match="no such file"):
        og.infer_schema(tmp_path / "none.csv")
    with pytest.raises(BadRequestError, match="there are no files"):
        og.infer_schema(str(tmp_path / "*.parquet"))
    with pytest.raises(BadRequestError, match="would both be of type Paper"):
        og.infer_schema(tmp_path)


def test_the_command_writes_what_it_prints_and_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_files(tmp_path / "in")
    out, mapping = tmp_path / "s.pg", tmp_path / "load.yaml"
    run = CliRunner()

    printed = run.invoke(app, ["schema", "infer", str(tmp_path / "in")])
    command = [
        "schema",
        "infer",
        str(tmp_path / "in"),
        "--out",
        str(out),
        "--mapping",
        str(mapping),
    ]
    written = run.invoke(app, command)
    again = run.invoke(app, command)

    assert printed.stdout == out.read_text()
    assert written.stdout == f"wrote {out}\nwrote {mapping}\n"
    assert "type: Author" in mapping.read_text()
    assert again.exit_code != 0
    assert run.invoke(app, ["schema", "check", str(out)]).exit_code == 0
