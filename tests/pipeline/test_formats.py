"""Files of rows: CSV, Parquet, Arrow and JSON rows give the same graph, whatever cuts them."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import BadRequestError
from omnigraph.pipeline.engine import PART_BYTES_VARIABLE
from omnigraph.pipeline.formats.csv_records import cut_blocks, find_records
from omnigraph.write.bad_rows import BadRowsError
from tests.depth import depth
from tests.pipeline.conftest import Loads

PEOPLE: dict[str, list[Any]] = {
    "name": ["ada", 'l"in', "a,b", "two\nlines", "zoë", " blank ", "p6", "p7", "p8"],
    "age": [36, None, 0, 1, 2, 3, 4, 5, 6],
    "email": ["a@x", "", None, "c", "d", "e", "f", "g", "h"],
    "born": ["1990-01-02", None, *["0001-01-01", "9999-12-31"] * 3, None],
    "tags": [["x", 'y"'], [], None, ["a\nb"], *[["z"]] * 5],
}
KNOWS = {"from": ["ada"] * 9, "to": PEOPLE["name"], "since": ["2020-01-01", *[None] * 8]}


def csv_text(columns: dict[str, list[Any]], delimiter: str = ",", end: str = "\n") -> str:
    def cell(value: Any) -> str:
        if value is None:
            return ""
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)
        needs = text == "" or any(mark in text for mark in f'{delimiter}"\r\n')
        return '"' + text.replace('"', '""') + '"' if needs else text

    rows = [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]
    return "".join(delimiter.join(map(cell, row)) + end for row in rows)


def json_rows(columns: dict[str, list[Any]]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def write(loads: Loads, form: str, name: str, columns: dict[str, list[Any]]) -> Path:
    path = loads.directory / f"{name}.{form}"
    match form:
        case "csv":
            path.write_text(csv_text(columns))
        case "csv.gz":
            path.write_bytes(gzip.compress(csv_text(columns, end="\r\n").encode()))
        case "tsv.bz2":
            path.write_bytes(bz2.compress(csv_text(columns, "\t").encode()))
        case "csv.zst":
            path.write_bytes(pa.compress(csv_text(columns, ";").encode(), "zstd", asbytes=True))
        case "parquet":
            pq.write_table(pa.table(columns), path, row_group_size=2)
        case "feather":
            pf.write_feather(pa.table(columns), path, chunksize=2)
        case "jsonl":
            path.write_text(json_rows(columns))
        case "arrows":
            with pa.ipc.new_stream(path, pa.table(columns).schema) as stream:
                stream.write_table(pa.table(columns), max_chunksize=2)
    return path


FORMS = ["csv", "csv.gz", "tsv.bz2", "csv.zst", "parquet", "feather", "arrows", "jsonl"]


def test_every_format_gives_the_same_rows(loads: Loads) -> None:
    """Nulls, empty texts, quotes, line breaks and lists survive; one load is one commit."""
    seen = []
    before = loads.graph.snapshot().manifest_version
    # Spark runs the same functions: one format per kind of range shows that it can.
    for form in ("csv", "parquet", "jsonl") if loads.engine == "spark" else FORMS:
        files = {
            "Person": write(loads, form, "people", PEOPLE),
            "Knows": [write(loads, form, "knows", KNOWS)],
        }
        result = loads.load(files, mode="overwrite")
        assert result.tables == {"edge:Knows": 9, "node:Person": 9}, form
        edges = [(row["src"], row["dst"], row["since"]) for row in loads.rows("Knows")]
        seen.append((loads.rows("Person"), sorted(edges, key=str)))

    assert loads.graph.snapshot().manifest_version <= before + len(FORMS)
    assert all(each == seen[0] for each in seen)
    by_name = {row["name"]: row for row in seen[0][0]}
    assert {row["name"]: row["tags"] for row in seen[0][0]} == dict(
        zip(PEOPLE["name"], PEOPLE["tags"], strict=True)
    )
    assert by_name['l"in']["email"] == ""
    assert by_name["a,b"]["email"] is None


BAD_CSV = (
    "name,age,email\n"
    "ada,thirty,\n"
    "lin,200,\n"
    '"two\nlines",1,\n'
    "\n"
    "kim,NA,\n"
    "short\n"
    "long,1,2,3\n"
    "big,99999999999,\n"
    "nan,NaN,\n"
)


def test_bad_rows_of_a_csv_are_all_named_by_line(loads: Loads) -> None:
    """Line breaks in values and blank lines count; a word for null in a number column is null."""
    path = loads.file("people.csv", BAD_CSV)

    with pytest.raises(BadRowsError) as caught:
        loads.load({"Person": path})

    assert [str(bad).removeprefix(str(path)) for bad in caught.value.bad_rows] == [
        ':2: Person.age: expects I32, got a string (value "thirty")',
        ":3: @range violation on Person.age (value 200)",
        ":8: Person: has 1 value, expected 3",
        ":9: Person: has 4 values, expected 3",
        ":10: Person.age: 99999999999 exceeds Int32 range (value 99999999999)",
        ":11: Person.age: expects I32, got nan, which is not an integer (value nan)",
    ]
    assert loads.rows("Person") == []


def test_a_number_or_date_of_another_form_names_the_setting_that_reads_it(tmp_path: Path) -> None:
    schema = "node Row { key: String @key  size: F64?  day: Date?  at: DateTime? }"
    path = tmp_path / "rows.csv"
    path.write_text(
        'key,size,day,at\na,"2,5",03.02.2021,\nb,1;5,3/2/2021,2021-13-01\nc,,,1-2-2021 10:00\n'
    )

    with (
        og.init(tmp_path / "graph", schema=schema, durability="process") as graph,
        pytest.raises(BadRowsError) as caught,
    ):
        graph.load({"Row": path}, mode="append")

    hints = [each.reason.partition(" — ")[2].partition("`")[2] for each in caught.value.bad_rows]
    assert [hint.partition("`")[0] for hint in hints] == [
        'dates: "%d.%m.%Y"',
        'decimal: ","',
        "",
        'dates: "%d/%m/%Y"',
        "",
        'dates: "%d-%m-%Y"',
    ]


def test_quarantine_keeps_the_raw_record_of_a_file_of_rows(loads: Loads) -> None:
    csv = loads.file("people.csv", BAD_CSV)
    table = pa.table({"name": ["p", "q", "r"], "age": [1, 200, 3]})
    pq.write_table(table, loads.directory / "more.parquet", row_group_size=1)
    files = [csv, loads.directory / "more.parquet"]
    kept = loads.directory / "rejected.jsonl"

    result = loads.load({"Person": files}, on_error="quarantine", quarantine=kept)

    assert result.rows_rejected == 7
    assert loads.ids("Person") == ["kim", "p", "r", "two\nlines"]
    records = {
        Path(line["place"]).name: line["record"]
        for line in map(json.loads, kept.read_text().splitlines())
    }
    assert records["people.csv:9"] == "long,1,2,3"
    assert records["people.csv:2"] == "ada,thirty,"
    assert {"name": "q", "age": 200} in records.values()


def test_tasks_read_slices_of_one_row_group(alone: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row once, in order, and a bad one by its place in the file; slices cut batches too."""
    monkeypatch.setenv(PART_BYTES_VARIABLE, "4000")
    monkeypatch.setattr("omnigraph.pipeline.formats.parquet.count_cores", lambda: 2)
    names = [f"p{number:04}" for number in range(2_500)]
    ages = [number % 90 for number in range(2_500)]
    good, bad = alone.directory / "good.parquet", alone.directory / "bad.parquet"
    pq.write_table(pa.table({"name": names, "age": ages}), good)
    ages[2_320], ages[7] = 999, 998
    pq.write_table(pa.table({"name": names, "age": ages}), bad)

    with pytest.raises(BadRowsError) as caught:
        alone.load({"Person": bad})
    loaded = alone.load({"Person": good})

    places = [each.location for each in caught.value.bad_rows]
    assert places == [f"{bad} row {row} (row group 0)" for row in (8, 2_321)]
    assert loaded.tables == {"node:Person": 2_500}
    rows = [record["data"] for record in alone.graph.export()]
    assert [(row["name"], row["age"]) for row in rows] == [
        (name, number % 90) for number, name in enumerate(names)
    ]


HEADERS = {
    "nme,age\n": ('has no property "nme" — did you mean `name`', "required property `name`"),
    "name,aeg\n": ("did you mean `age`? its columns are name, aeg — nothing was written",),
    "name,age,age\n": ('the column "age" is there more than once',),
    "": ("it is empty",),
    '"name\n': ("has no end",),
    "\0\0": ("it is not text",),
}


@pytest.mark.parametrize(("text", "said"), HEADERS.items(), ids=range(len(HEADERS)))
def test_what_is_wrong_with_a_header_is_said_before_a_row_is_read(
    alone: Loads, text: str, said: tuple[str, ...]
) -> None:
    path = alone.file("people.csv", text)

    with pytest.raises(BadRequestError) as caught:
        alone.load({"Person": path})

    assert all(each in str(caught.value) for each in said)
    assert str(caught.value).endswith("nothing was written")


def test_damaged_files_get_one_line_that_names_them(alone: Loads) -> None:
    good = alone.directory / "good.parquet"
    pq.write_table(pa.table({"name": ["a"] * 1000}), good)
    damaged = {
        "cut.parquet": good.read_bytes()[:200],
        "cut.feather": b"ARROW1\0\0" + b"x" * 50,
        "cut.csv.gz": gzip.compress(b"name\nada\n" * 99)[:25],
        "cut.csv.zst": pa.compress(b"name\nada\n" * 99, "zstd", asbytes=True)[:20],
        "not.csv.bz2": b"name\nada\n",
        "packed.jsonl": gzip.compress(b"{}"),
        "people.csv.xz": b"",
        "program": b"\x7fELF\0\0\0",
    }
    for name, content in damaged.items():
        path = alone.file(name, content)
        with pytest.raises(BadRequestError) as caught:
            alone.load({"Person": path})
        assert str(path) in str(caught.value), name
        assert "\n" not in str(caught.value), name
        assert "nothing was written" in str(caught.value), name


def test_a_damaged_page_is_named_by_the_name_that_was_given(
    alone: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The footer of the file is whole, so only a task that reads its rows meets the damage."""
    good = alone.directory / "good.parquet"
    pq.write_table(pa.table({"name": [f"p{n}" for n in range(1000)]}), good)
    data = bytearray(good.read_bytes())
    data[4:60] = bytes(56)
    alone.file("bad.parquet", bytes(data))
    monkeypatch.chdir(alone.directory)

    with pytest.raises(BadRequestError, match=r"^cannot read 'bad.parquet': it is no Parquet"):
        alone.load({"Person": "bad.parquet"})


def test_a_column_of_another_type_is_refused_by_its_schema(alone: Loads) -> None:
    path = alone.directory / "people.parquet"
    pq.write_table(pa.table({"name": ["a"], "age": ["1"], "tags": [[1]]}), path)

    with pytest.raises(BadRequestError, match="column 'age' is string, expected I32") as caught:
        alone.load({"Person": path})

    assert "column 'tags' is list" in str(caught.value)


def test_other_encodings_are_read_and_wrong_ones_named(alone: Loads) -> None:
    wide = alone.file("wide.csv", "name,age\nzoë,1\n".encode("utf-16"))
    marked = alone.file("marked.csv", "\ufeffname;age\nåsa;2\n".encode())
    latin = alone.file("latin.csv", "name\nzoé\nok\n".encode("latin-1"))

    result = alone.load({"Person": [wide, marked]})

    assert alone.ids("Person") == ["zoë", "åsa"]
    assert result.notes == (f"{marked}: columns are separated by ';', by its first line",)
    with pytest.raises(BadRowsError, match=r"latin\.csv:2: Person: is not UTF-8"):
        alone.load({"Person": latin})


def test_rows_get_their_type_from_the_name_of_the_file_or_folder(alone: Loads) -> None:
    folder = alone.directory / "in"
    (folder / "Team").mkdir(parents=True)
    (folder / "Person.csv").write_text("name\nada\n")
    (folder / "edge.Knows.csv").write_text("from,to\nada,ada\n")
    (folder / "Team" / "part-0.csv").write_text("name\nred\n")
    (folder / "_SUCCESS").write_text("")

    assert alone.load(folder).tables == {"edge:Knows": 1, "node:Person": 1, "node:Team": 1}
    people = alone.file("persons.csv", "name\nlin\n")
    with pytest.raises(BadRequestError, match="no type is named 'persons' — did you mean `Person`"):
        alone.load(people)


def test_integer_ends_and_keys_of_a_column_meet(tmp_path: Path) -> None:
    """A key that is a number is written `7` in an edge file, or held as an integer."""
    graph = og.init(tmp_path / "g", schema="node N { key: I64 @key }\nedge E: N -> N")
    (tmp_path / "n.csv").write_text("key\n7\n8\n")
    (tmp_path / "e.csv").write_text("from,to\n7,8\n")
    pq.write_table(pa.table({"src": [7], "dst": [8]}), tmp_path / "e.parquet")

    result = graph.load(
        {"N": tmp_path / "n.csv", "E": [tmp_path / "e.csv", tmp_path / "e.parquet"]}, mode="append"
    )

    assert result.tables == {"edge:E": 2, "node:N": 2}


CELLS = st.text(alphabet='ab,"\n\r ;', max_size=6)


@settings(max_examples=depth(60, 2000), deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), st.booleans(), st.integers(1, 40))
def test_records_are_found_where_arrow_finds_them(
    rows: list[tuple[str, str]], is_raw: bool, part_bytes: int
) -> None:
    """Also in texts with quotes in the wrong places; and blocks cut anywhere lose nothing."""
    import pyarrow.csv as pv

    if is_raw:
        text = "\n".join(",".join(row) for row in rows)
    else:
        text = csv_text({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    data = text.encode()
    records = find_records(data, b",")
    ragged: list[Any] = []

    def skip(row: Any) -> str:
        ragged.append(row)
        return "skip"

    if len(records.starts) and not records.is_open:
        table = pv.read_csv(
            pa.BufferReader(data),
            read_options=pv.ReadOptions(
                use_threads=False, column_names=["a", "b"], block_size=len(data) + 1
            ),
            parse_options=pv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        )
        assert table.num_rows + len(ragged) == len(records.starts)
    texts = [data[a:b] for a, b in zip(records.starts, records.ends, strict=True)]
    file = iter([data[n : n + part_bytes] for n in range(0, len(data), part_bytes)])
    cut = list(cut_blocks(lambda _: next(file, b""), "x", b",", part_bytes))
    assert b"".join(cut) == data
    found = [(block, find_records(block, b",")) for block in cut]
    again = [
        block[a:b] for block, part in found for a, b in zip(part.starts, part.ends, strict=True)
    ]
    assert again == texts
