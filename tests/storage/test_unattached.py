"""Unattached fragments: written without a table, and adopted by one whatever its columns are."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from omnigraph.storage.unattached import (
    UnattachedFragments,
    mark_deleted,
    read_unattached,
    write_unattached,
)
from tests.storage.conftest import SCHEMA, People, people


def write_rows(table: People, rows: pa.Table, schema: pa.Schema = SCHEMA) -> UnattachedFragments:
    uri = f"{table.storage.root}/__load/x/nodes/p"
    options = table.storage.storage_options
    return UnattachedFragments(schema, tuple(write_unattached(uri, rows, schema, options)))


def test_unattached_rows_can_be_read_before_any_table_knows_them(any_table: People) -> None:
    written = write_rows(any_table, people(0, 5))

    (fragment,) = written.fragments
    options = any_table.storage.storage_options
    assert read_unattached(fragment, ["age", "id"], options).to_pydict() == {
        "age": [0, 1, 2, 3, 4],
        "id": ["p0", "p1", "p2", "p3", "p4"],
    }
    assert any_table.ids() == []


def test_an_append_adopts_unattached_rows_blobs_and_all(any_table: People) -> None:
    storage = any_table.storage
    written = write_rows(any_table, people(0, 4))

    any_table.commit(storage.unattached.stage_append(any_table.head(), written))

    rows = storage.reads.scan(any_table.head(), include_blobs=True)
    assert rows.to_pylist() == people(0, 4).to_pylist()


def test_a_merge_replaces_rows_and_adds_the_others_in_one_version(any_table: People) -> None:
    any_table.append(0, 2)
    any_table.append(2, 4)
    storage = any_table.storage
    handle = any_table.head()
    batches = storage.reads.scan_addresses(handle, ["id"])
    found = pa.Table.from_batches(batches).filter(pa.array([False, True, False, True]))
    addresses = np.asarray(found["_rowaddr"].to_numpy(), dtype=np.uint64)
    rows = pa.concat_tables([people(1, 2, age=70), people(3, 4, age=70), people(9, 10, age=70)])

    marked = [mark_deleted(handle, addresses[:1]), mark_deleted(handle, addresses[1:])]
    committed = any_table.commit(
        storage.unattached.stage_replace(handle, write_rows(any_table, rows), marked)
    )

    ages = storage.reads.scan(any_table.head(), ["id", "age"]).to_pylist()
    assert {row["id"]: row["age"] for row in ages} == {
        "p0": 0,
        "p1": 70,
        "p2": 2,
        "p3": 70,
        "p9": 70,
    }
    assert (committed.version, committed.row_count) == (handle.version + 1, 5)


def test_an_overwrite_adopts_unattached_rows_as_all_there_is(any_table: People) -> None:
    any_table.append(0, 4)

    written = write_rows(any_table, people(7, 9))
    any_table.commit(any_table.storage.unattached.stage_overwrite(any_table.head(), written))

    assert any_table.ids() == ["p7", "p8"]


def test_columns_are_matched_by_name_in_a_table_that_changed(table: People, tmp_path: Path) -> None:
    """A dropped and an added column leave other field ids than a fresh table would have."""
    table.append(0, 2)
    dataset = lance.dataset(table.location.uri)
    dataset.drop_columns(["name"])
    dataset.add_columns({"nick": "cast('none' as string)"})
    table.storage.forget()
    fields = [field for field in SCHEMA if field.name != "name"]
    schema = pa.schema([*fields[:2], pa.field("nick", pa.utf8()), *fields[2:]])
    rows = people(5, 7).drop_columns(["name"]).append_column("nick", pa.array(["x", "y"]))

    unattached = table.storage.unattached
    for stage in (unattached.stage_append, unattached.stage_overwrite):
        written = write_rows(table, rows.select(schema.names).cast(schema), schema)
        table.commit(stage(table.head(), written))
        found = table.storage.reads.scan(table.head(), ["id", "nick", "age", "camelCase"])
        assert (
            found.slice(found.num_rows - 2).to_pylist()
            == rows.select(["id", "nick", "age", "camelCase"]).to_pylist()
        )
