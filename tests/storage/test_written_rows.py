"""Rows that were just written are known without a scan, and are what a scan reads."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage import written_rows
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import StagedTransaction
from omnigraph.storage.predicates import Compare, CompareOp
from omnigraph.storage.tables import TableStorage
from tests.storage.conftest import SCHEMA, People, people

DAY = datetime.date(1969, 12, 31)
EVERY_TYPE = pa.table(
    {
        "id": pa.array(["a", "b", "c"]),
        "text": pa.array(["", None, "\u00e9\u65e5"]),
        "whole": pa.array([2**63 - 1, None, -1], pa.int64()),
        "unsigned": pa.array([2**64 - 1, None, 0], pa.uint64()),
        "small": pa.array([-(2**31), None, 7], pa.int32()),
        "float": pa.array([math.nan, None, -0.0], pa.float32()),
        "double": pa.array([math.inf, None, 5e-324], pa.float64()),
        "truth": pa.array([True, None, False]),
        "day": pa.array([DAY, None, DAY], pa.date32()),
        "instant": pa.array([DAY, None, DAY], pa.date64()),
        "texts": pa.array([[], None, ["x", None]], pa.list_(pa.utf8())),
        "numbers": pa.array([[1.5], None, []], pa.list_(pa.float64())),
        "vector": pa.array([[1.0, -0.0], None, [0.0, 2.0]], pa.list_(pa.float32(), 2)),
    }
)


def read(people: People, columns: list[str], *, anew: bool = False) -> tuple[pa.Table, int]:
    """The rows of the last fragment, and how many scans that took; `anew` by another process."""
    storage = TableStorage(people.storage.root) if anew else people.storage
    handle = storage.open_at(people.location, people.head().version)
    last = storage.reads.fragments(handle)[-1:]
    with counting() as counters:
        rows = storage.reads.scan_fragments(handle, columns, last)
    return rows, counters.scans


def bits(rows: pa.Table) -> list[list[str]]:
    """Values in a form in which -0.0 is not 0.0, and NaN is itself."""
    return [[repr(value) for value in column.to_pylist()] for column in rows.columns]


def test_rows_of_every_type_are_those_that_a_scan_reads(tmp_path: Path, table: People) -> None:
    location = table.storage.root.table("nodes/every")
    schema = EVERY_TYPE.schema.set(0, pa.field("id", pa.utf8(), nullable=False))
    table.storage.create_table(location, schema)
    every = People(table.storage, location)
    every.commit(table.storage.rows.stage_append(every.head(), EVERY_TYPE))

    known, scans = read(every, EVERY_TYPE.column_names)

    from_file, _ = read(every, EVERY_TYPE.column_names, anew=True)
    assert scans == 0
    assert known.schema.types == from_file.schema.types
    assert bits(known) == bits(from_file)


def upsert(table: People, first: int, last: int) -> StagedTransaction:
    return table.storage.rows.stage_merge_insert(table.head(), people(first, last, age=-1))


@pytest.mark.parametrize("count", [1, 3])
def test_an_upsert_of_new_or_known_rows_reads_as_its_file_does(table: People, count: int) -> None:
    """Stored rows lie before new ones in the file that has the new images of both."""
    names = [name for name in SCHEMA.names if name != "photo"]
    table.append(0, 5)
    for first in (7, 1, 4):
        table.commit(upsert(table, first, first + count))

        known, scans = read(table, names)

        assert scans == 0
        assert bits(known) == bits(read(table, names, anew=True)[0])


def test_a_deleted_row_is_not_given(table: People) -> None:
    table.append(0, 5)
    table.append(5, 8)
    gone = Compare("id", CompareOp.EQ, pa.scalar("p6"))
    table.commit(table.storage.rows.stage_delete(table.head(), gone))

    rows, _ = read(table, ["id"])

    assert rows.column("id").to_pylist() == ["p5", "p7"]
    assert bits(rows) == bits(read(table, ["id"], anew=True)[0])


def test_every_row_of_the_file_is_given_to_what_masks_deleted_ones_itself(table: People) -> None:
    table.append(0, 3)
    gone = Compare("id", CompareOp.EQ, pa.scalar("p1"))
    table.commit(table.storage.rows.stage_delete(table.head(), gone))
    handle = table.head()

    with counting() as counters:
        fragments = table.storage.reads.fragments(handle)
        rows = table.storage.reads.scan_physical(handle, ["name"], fragments)

    assert rows.column("name").to_pylist() == ["name 0", "name 1", "name 2"]
    assert counters.scans == 0


def test_large_rows_are_read_again(table: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_rows, "BYTES_MAX", 64)
    table.append(0, 3)

    rows, scans = read(table, ["id"])

    assert scans == 1
    assert rows.num_rows == 3


def test_the_facts_of_fragments_are_those_of_a_process_that_has_seen_no_version(
    table: People,
) -> None:
    """Most fragments of a version are known from the one before; a deletion makes another one."""
    for first in (0, 4, 8):
        table.append(first, first + 4)
        table.storage.reads.fragments(table.head())
    for gone in ("p1", "p5", "p2"):
        same = Compare("id", CompareOp.EQ, pa.scalar(gone))
        table.commit(table.storage.rows.stage_delete(table.head(), same))
        anew = TableStorage(table.storage.root)

        found = table.storage.reads.fragments(table.head())

        handle = anew.open_at(table.location, table.head().version)
        assert found == anew.reads.fragments(handle)
        assert [anew.reads.read_deleted(handle, each).tolist() for each in found] == [
            table.storage.reads.read_deleted(table.head(), each).tolist() for each in found
        ]
    assert [each.rows for each in found] == [2, 3, 4]
