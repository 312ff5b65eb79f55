"""A compaction that was staged earlier is committed where rows were only added since."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.handles import IndexKind, IndexSpec
from omnigraph.storage.predicates import Compare, CompareOp, IsIn
from tests.storage.conftest import People, people

BTREE = IndexSpec("id", IndexKind.BTREE)


def every_fact(table: People) -> pa.Table:
    """Rows with their ids, and the versions that made and last changed them."""
    stamps = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    dataset = lance.dataset(table.location.physical_uri)
    return dataset.scanner(columns=["id", "name", "age", "vector", *stamps]).to_table()


def write_small_fragments(table: People) -> None:
    for first in range(0, 40, 10):
        table.append(first, first + 10)
    table.commit(table.storage.rows.stage_merge_insert(table.head(), people(3, 4, age=7)))
    table.commit(table.storage.indexes.stage_create(table.head(), [BTREE]).transaction)


def test_rows_that_came_meanwhile_stay_behind_those_that_were_compacted(table: People) -> None:
    write_small_fragments(table)
    compaction = table.storage.compaction
    staged = compaction.stage(table.head())
    assert staged is not None
    table.append(40, 41)
    table.append(41, 43)
    before = every_fact(table)
    used = table.storage.reads.fragment_ids(table.head())

    rebased = compaction.rebase(staged, table.head())

    assert rebased is not None
    version = table.head().version
    assert table.commit(rebased).version == version + 1
    assert every_fact(table).equals(before)
    now = table.storage.reads.fragment_ids(table.head())
    assert len(now) == 3
    assert min(now) > max(used)
    for number in (0, 3, 39, 40, 42):
        same = Compare("id", CompareOp.EQ, pa.scalar(f"p{number}"))
        assert table.storage.reads.scan(table.head(), ["id"], same).num_rows == 1
    assert table.append(50, 51).row_count == 44


def test_search_indexes_that_came_meanwhile_keep_all_they_cover(table: People) -> None:
    write_small_fragments(table)
    staged = table.storage.compaction.stage(table.head())
    assert staged is not None
    table.append(40, 300)
    words = [IndexSpec("name", IndexKind.INVERTED), IndexSpec("vector", IndexKind.VECTOR)]
    table.commit(table.storage.indexes.stage_create(table.head(), words).transaction)
    before = every_fact(table)

    rebased = table.storage.compaction.rebase(staged, table.head())

    assert rebased is not None
    table.commit(rebased)
    indexes = table.storage.indexes.describe(table.head())
    unindexed = {index.name: index.fragments_unindexed for index in indexes}
    assert unindexed == {"id_btree": 2, "name_inverted": 0, "vector_vector": 0}
    assert every_fact(table).equals(before)
    latest = lance.dataset(table.location.physical_uri)
    for number in (4, 39, 40, 299):
        found = latest.to_table(columns=["id"], full_text_query=f"{number}", prefilter=True)
        assert found["id"].to_pylist() == [f"p{number}"]


def change_a_row(table: People) -> None:
    table.commit(table.storage.rows.stage_merge_insert(table.head(), people(5, 6, age=9)))


def delete_a_row(table: People) -> None:
    gone = IsIn("id", pa.array(["p6"]))
    table.commit(table.storage.rows.stage_delete(table.head(), gone))


def compact_it_before(table: People) -> None:
    table.commit(table.storage.compaction.stage(table.head()))


def drop_a_column(table: People) -> None:
    lance.dataset(table.location.physical_uri).drop_columns(["camelCase"])


@pytest.mark.parametrize(
    "meanwhile", [change_a_row, delete_a_row, compact_it_before, drop_a_column]
)
def test_a_compaction_of_rows_that_have_changed_is_given_up(
    table: People, meanwhile: Callable[[People], None]
) -> None:
    write_small_fragments(table)
    staged = table.storage.compaction.stage(table.head())
    assert staged is not None
    table.append(40, 41)
    meanwhile(table)

    assert table.storage.compaction.rebase(staged, table.head()) is None
