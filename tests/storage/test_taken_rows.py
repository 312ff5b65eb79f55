"""Rows that an operation has taken are those that it would take again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.storage import taken_rows
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.location import graph_root
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.taken_rows import keep_taken_rows

SCHEMA = pa.schema([pa.field("id", pa.utf8(), nullable=False), ("age", pa.int64())])
ROWS = 40


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> TableStorage:
    return TableStorage(graph_root(str(tmp_path_factory.mktemp("graph"))), durability="process")


@pytest.fixture(scope="module")
def versions(storage: TableStorage) -> list[TableHandle]:
    """A table, and the same rows with other ages: they keep their row ids."""
    location = storage.root.table("nodes/people")
    storage.create_table(location, SCHEMA)
    handle = storage.open_at(location, 1)
    for turn in (0, 1):
        staged = storage.rows.stage_merge_insert(handle, people(turn))
        handle = storage.open_at(location, storage.commit_staged(staged).version)
    return [storage.open_at(location, each) for each in (2, 3)]


def people(turn: int) -> pa.Table:
    ids, ages = [f"p{n:02d}" for n in range(ROWS)], [100 * turn + n for n in range(ROWS)]
    return pa.table({"id": ids, "age": ages}, schema=SCHEMA)


def take(
    storage: TableStorage, handle: TableHandle, rows: list[int], columns: list[str]
) -> dict[str, list[object]]:
    row_ids = np.array(rows, dtype=np.uint64)
    batches = storage.reads.take_stream(handle, row_ids, columns, batch_rows=7)
    found: dict[str, list[object]] = pa.Table.from_batches(batches).to_pydict()
    return found


Takes = list[tuple[int, list[int], list[str]]]
TAKES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=20, unique=True),
        st.sampled_from([["id"], ["age"], ["id", "age"], ["age", "id"]]),
    ),
    min_size=1,
    max_size=6,
)


@given(takes=TAKES)
def test_what_is_taken_again_is_what_is_there(
    storage: TableStorage, versions: list[TableHandle], takes: Takes
) -> None:
    """Of any version, in any order, and with any of the columns."""
    with keep_taken_rows():
        for at, rows, columns in takes:
            found = take(storage, versions[at], rows, columns)

            values = {"id": [f"p{n:02d}" for n in rows], "age": [100 * at + n for n in rows]}
            assert found == {name: values[name] for name in columns}


def count_taken(storage: TableStorage, handle: TableHandle, rows: list[int]) -> Iterator[int]:
    for columns in (["age"], ["age", "id"], ["id", "age"]):
        with counting() as counters:
            take(storage, handle, rows, columns)
        yield counters.rows_taken


def test_a_row_is_read_until_all_its_columns_are_known(
    storage: TableStorage, versions: list[TableHandle]
) -> None:
    with keep_taken_rows():
        assert list(count_taken(storage, versions[0], [3, 1, 2])) == [3, 3, 0]
        assert list(count_taken(storage, versions[1], [3, 1, 2])) == [3, 3, 0]


def test_what_was_taken_is_kept_while_the_operation_runs(
    storage: TableStorage, versions: list[TableHandle]
) -> None:
    @keep_taken_rows()
    def operation() -> list[int]:
        return list(count_taken(storage, versions[0], [5, 6]))

    assert list(count_taken(storage, versions[0], [5, 6])) == [2, 2, 2]
    assert operation() == [2, 2, 0]
    assert operation() == [2, 2, 0]


@pytest.mark.parametrize(("limit", "value"), [("ROWS_MAX", 10), ("BYTES_MAX", 150)])
def test_of_many_rows_no_more_is_kept_than_there_is_room_for(
    storage: TableStorage,
    versions: list[TableHandle],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
) -> None:
    monkeypatch.setattr(taken_rows, limit, value)
    every = list(range(ROWS))

    with keep_taken_rows(), counting() as counters:
        for _ in range(2):
            assert take(storage, versions[0], every, ["age"])["age"] == every

    assert counters.rows_taken == 2 * ROWS - 7
