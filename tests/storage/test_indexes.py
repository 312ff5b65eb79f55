"""Indexes and compaction: staged like every write, and without a say in what a query answers."""

from __future__ import annotations

import re

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import PhraseQuery

from omnigraph.errors import BadRequestError
from omnigraph.storage.counters import counting
from omnigraph.storage.filters import to_lance
from omnigraph.storage.handles import IndexKind, IndexSpec
from omnigraph.storage.predicates import Compare, CompareOp, IsIn, Or
from omnigraph.write.ulids import new_ulids
from tests.depth import depth
from tests.storage.conftest import SCHEMA, People, people

ALL = [
    IndexSpec("id", IndexKind.BTREE),
    IndexSpec("name", IndexKind.INVERTED),
    IndexSpec("vector", IndexKind.VECTOR),
]


def raw(table: People) -> lance.LanceDataset:
    return lance.dataset(table.location.physical_uri, version=table.head().version)


def search(table: People, words: str) -> list[str]:
    columns = ["id", "_score"]
    query = PhraseQuery(words, "name")
    rows = raw(table).to_table(columns=columns, full_text_query=query, prefilter=True)
    return sorted(rows.column("id").to_pylist())


def nearest(table: People, number: float, *, use_index: bool = True) -> str:
    search = {"column": "vector", "q": [number, 0.0, 0.0, 1.0], "k": 1, "use_index": use_index}
    rows = raw(table).to_table(columns=["id", "_distance"], nearest=search, prefilter=True)
    found: str = rows.column("id")[0].as_py()
    return found


def test_any_mix_of_indexes_is_one_transaction(any_table: People) -> None:
    any_table.append(0, 40)
    before = any_table.head()

    with counting() as counters:
        staged = any_table.storage.indexes.stage_create(before, ALL)

    assert any_table.storage.head_version(any_table.location) == before.version
    assert staged.pending == ()
    assert any_table.commit(staged.transaction).version == before.version + 1
    indexes = any_table.storage.indexes.describe(any_table.head())
    assert {(index.column, index.rows_unindexed) for index in indexes} == {
        ("id", 0),
        ("name", 0),
        ("vector", 0),
    }
    assert counters.index_builds == 3


def test_full_text_search_works_after_a_staged_index(table: People) -> None:
    """Lance accepts the commit of an unmerged segment, and every search then fails."""
    table.append(0, 40)

    table.commit(table.storage.indexes.stage_create(table.head(), ALL).transaction)

    assert search(table, "name 7") == ["p7"]
    table.append(40, 50)
    assert search(table, "name 44") == ["p44"]


def test_an_equality_on_an_indexed_key_uses_the_index(table: People) -> None:
    table.append(0, 40)
    table.commit(table.storage.indexes.stage_create(table.head(), ALL).transaction)
    with counting() as counters:
        rows = table.storage.reads.scan(
            table.head(), ["id"], IsIn("id", pa.array(["p3", "p9"])), with_row_id=True
        )

    plan = raw(table).scanner(filter="(`id` in ('p3', 'p9'))").explain_plan()
    assert "ScalarIndex" in plan
    assert rows.column("id").to_pylist() == ["p3", "p9"]
    assert counters.scans == 1


def test_an_or_of_two_indexed_columns_is_two_look_ups(table: People) -> None:
    """The index of each is asked, and no row that neither finds is compared."""
    table.append(0, 40)
    either = Or((
        Compare("id", CompareOp.EQ, pa.scalar("p3")),
        Compare("age", CompareOp.EQ, pa.scalar(9)),
    ))  # fmt: skip

    def plan() -> str:
        return str(raw(table).scanner(filter=to_lance(either, SCHEMA)).explain_plan())

    assert "ScalarIndexQuery" not in plan()
    both = [IndexSpec("id", IndexKind.BTREE), IndexSpec("age", IndexKind.BTREE)]
    table.commit(table.storage.indexes.stage_create(table.head(), both).transaction)

    with counting() as counters:
        rows = table.storage.reads.scan(table.head(), ["id"], either)

    [look_up] = re.findall(r"ScalarIndexQuery: query=(.*)", plan())
    assert "id_btree" in look_up
    assert "age_btree" in look_up
    assert "FilterExec" not in plan()
    assert rows.column("id").to_pylist() == ["p3", "p9"]
    assert counters.rows_scanned == 2


def test_an_index_of_the_same_name_is_replaced(table: People) -> None:
    table.append(0, 20)
    table.commit(table.storage.indexes.stage_create(table.head(), ALL).transaction)
    table.append(20, 40)

    table.commit(table.storage.indexes.stage_create(table.head(), ALL).transaction)

    indexes = table.storage.indexes.describe(table.head())
    assert sorted(index.name for index in indexes) == ["id_btree", "name_inverted", "vector_vector"]
    assert {index.rows_unindexed for index in indexes} == {0}
    assert search(table, "name 33") == ["p33"]
    assert nearest(table, 33.0) == "p33"


def test_a_vector_index_without_vectors_is_pending(table: People) -> None:
    table.commit(table.storage.rows.stage_append(table.head(), pa.table({"id": ["a", "b"]})))

    staged = table.storage.indexes.stage_create(table.head(), [ALL[2]])

    assert staged.transaction is None
    assert staged.built == ()
    assert "no row has a value" in staged.pending[0].reason


def test_an_empty_table_has_nothing_to_index(table: People) -> None:
    staged = table.storage.indexes.stage_create(table.head(), ALL)

    assert staged.transaction is None
    assert [one.spec for one in staged.pending] == ALL


@pytest.mark.parametrize("vectors", [1, 2, 30])
def test_a_vector_index_is_built_from_the_first_vector_on(table: People, vectors: int) -> None:
    rows = people(0, vectors).select(["id", "vector"])
    table.commit(table.storage.rows.stage_append(table.head(), rows))
    table.commit(table.storage.rows.stage_append(table.head(), pa.table({"id": ["none"]})))

    table.commit(table.storage.indexes.stage_create(table.head(), [ALL[2]]).transaction)

    assert nearest(table, vectors - 1.0) == f"p{vectors - 1}"


def test_many_vectors_are_split_into_partitions(table: People) -> None:
    generator = np.random.default_rng(7)
    vectors = generator.random((12_000, 4), dtype=np.float32)
    rows = pa.table(
        {
            "id": [f"p{number}" for number in range(len(vectors))],
            "vector": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 4),
        }
    )
    table.commit(table.storage.rows.stage_append(table.head(), rows))

    table.commit(table.storage.indexes.stage_create(table.head(), [ALL[2]]).transaction)

    statistics = raw(table).stats.index_stats("vector_vector")
    assert statistics["indices"][0]["num_partitions"] == 3


def test_a_column_that_is_not_there_cannot_be_indexed(table: People) -> None:
    with pytest.raises(BadRequestError, match="nmae"):
        table.storage.indexes.stage_create(table.head(), [IndexSpec("nmae", IndexKind.BTREE)])


# Compaction


def write_fragments(table: People) -> None:
    """Indexed, then updated and deleted, so that rows and indexes no longer lie in order."""
    for first in range(0, 40, 10):
        table.append(first, first + 10)
    table.commit(table.storage.indexes.stage_create(table.head(), ALL).transaction)
    gone = IsIn("id", pa.array([f"p{number}" for number in (*range(10), 15, 39)]))
    table.commit(table.storage.rows.stage_delete(table.head(), gone))


def test_a_compaction_is_one_version_with_the_same_rows_and_row_ids(any_table: People) -> None:
    write_fragments(any_table)
    before = any_table.storage.reads.scan(any_table.head(), with_row_id=True)

    staged = any_table.storage.compaction.stage(any_table.head())

    assert staged is not None
    committed = any_table.commit(staged)
    assert committed.version == staged.read_version + 1
    after = any_table.storage.reads.scan(any_table.head(), with_row_id=True)
    assert after.sort_by("id").equals(before.sort_by("id"))
    assert any_table.storage.table_state(any_table.head()).fragment_count == 1
    assert any_table.storage.compaction.stage(any_table.head()) is None


@pytest.mark.slow
def test_every_index_answers_right_after_a_compaction(table: People) -> None:
    """Lance drops what it cannot keep; nothing may point at a row that moved."""
    write_fragments(table)
    table.append(50, 55)

    table.commit(table.storage.compaction.stage(table.head()))

    for number in (10, 14, 16, 38, 50, 54):
        same = Compare("id", CompareOp.EQ, pa.scalar(f"p{number}"))
        assert table.storage.reads.scan(table.head(), ["id"], same).num_rows == 1
        assert search(table, f"name {number}") == [f"p{number}"]
        assert nearest(table, float(number)) == f"p{number}"
    for number in (0, 15, 39):
        assert search(table, f"name {number}") == []
        assert nearest(table, float(number)) == nearest(table, float(number), use_index=False)


def test_a_compaction_keeps_the_coverage_of_search_indexes(table: People) -> None:
    """Their entries go by row id; a BTREE's go by place, so its coverage is given up."""
    write_fragments(table)

    table.commit(table.storage.compaction.stage(table.head()))

    indexes = table.storage.indexes.describe(table.head())
    unindexed = {index.name: index.fragments_unindexed for index in indexes}
    assert unindexed == {"id_btree": 1, "name_inverted": 0, "vector_vector": 0}


def test_a_compaction_never_uses_a_fragment_id_again(table: People) -> None:
    """The last fragment is gone, but indexes and caches still know its id."""
    write_fragments(table)
    last = IsIn("id", pa.array([f"p{number}" for number in range(30, 40)]))
    table.commit(table.storage.rows.stage_delete(table.head(), last))
    seen = {0, 1, 2, 3}

    table.commit(table.storage.compaction.stage(table.head()))

    assert seen.isdisjoint(fragment.fragment_id for fragment in raw(table).get_fragments())
    table.append(60, 61)
    assert len({fragment.fragment_id for fragment in raw(table).get_fragments()}) == 2
    same = Compare("id", CompareOp.EQ, pa.scalar("p16"))
    assert table.storage.reads.count_rows(table.head(), same) == 1


def test_reindexing_after_a_compaction_restores_coverage(table: People) -> None:
    write_fragments(table)
    table.commit(table.storage.compaction.stage(table.head()))

    table.commit(table.storage.indexes.stage_create(table.head(), ALL).transaction)

    indexes = table.storage.indexes.describe(table.head())
    assert {index.rows_unindexed for index in indexes} == {0}
    assert {index.fragments_unindexed for index in indexes} == {0}


def test_the_schema_of_the_fixture_has_every_kind_of_column() -> None:
    """The compaction tests stand for blobs, vectors, text and numbers."""
    assert {str(field.type) for field in SCHEMA} >= {"string", "int64", "large_binary"}


# Zone maps

ZONES = IndexSpec("id", IndexKind.ZONEMAP)


def test_a_zone_map_replaces_the_btree_of_an_earlier_release(table: People) -> None:
    table.append(0, 20)
    table.commit(table.storage.indexes.stage_create(table.head(), [ALL[0]]).transaction)

    table.commit(table.storage.indexes.stage_create(table.head(), [ZONES]).transaction)

    assert [each.name for each in table.storage.indexes.describe(table.head())] == ["id_zonemap"]


def test_a_zone_map_asks_only_the_rows_that_can_hold_a_key(table: People) -> None:
    """Of rows with rising ids it is as good as a B-tree, and next to nothing in size."""
    ids = new_ulids(30_000)
    table.commit(table.storage.rows.stage_append(table.head(), pa.table({"id": ids})))

    table.commit(table.storage.indexes.stage_create(table.head(), [ZONES]).transaction)

    one = f"(`id` = '{ids[12_345].as_py()}')"
    plan = raw(table).scanner(filter=one, columns=["id"]).analyze_plan()
    assert "ScalarIndexQuery" in plan
    read = re.search(r"LanceRead.*?rows_scanned=(\d+|[\d.]+ ?K)", plan)
    assert read is not None, plan
    assert float(read.group(1).replace("K", "")) * (1_000 if "K" in read.group(1) else 1) <= 8_192


@pytest.mark.parametrize("seed", range(depth(2, 40)))
def test_a_zone_map_finds_what_a_scan_finds(table: People, seed: int) -> None:
    """Whatever was appended, replaced, deleted, compacted or caught up, in whatever order."""
    random = np.random.default_rng(seed)
    storage, next_id = table.storage, 40
    table.append(0, next_id)
    table.commit(storage.indexes.stage_create(table.head(), [ZONES]).transaction)
    for _ in range(8):
        some = random.choice(next_id, 5, replace=False).tolist()
        match int(random.integers(5)):
            case 0:
                table.append(next_id, next_id + 10)
                next_id += 10
            case 1:
                rows = pa.concat_tables([people(number, number + 1, age=7) for number in some])
                table.commit(storage.rows.stage_merge_insert(table.head(), rows))
            case 2:
                gone = IsIn("id", pa.array([f"p{number}" for number in some]))
                staged = storage.rows.stage_delete(table.head(), gone)
                if staged is not None:
                    table.commit(staged)
            case 3:
                staged = storage.compaction.stage(table.head())
                if staged is not None:
                    table.commit(staged)
            case _:
                staged = storage.indexes.stage_create(table.head(), (), [ZONES]).transaction
                if staged is not None and storage.indexes.describe(table.head())[0].rows_unindexed:
                    table.commit(staged)
        present = set(table.ids())
        for number in (*some, next_id - 1):
            key = f"p{number}"
            same = Compare("id", CompareOp.EQ, pa.scalar(key))
            found = storage.reads.scan(table.head(), ["id"], same).column("id").to_pylist()
            assert found == ([key] if key in present else [])
        wanted = [f"p{number}" for number in some]
        found = storage.reads.scan(table.head(), ["id"], IsIn("id", pa.array(wanted)))
        assert sorted(found.column("id").to_pylist()) == sorted(present & set(wanted))
