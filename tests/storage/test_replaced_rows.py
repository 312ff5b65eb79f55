"""An upsert of stored rows: what it looks at, and that it is what a merge of Lance's would be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from omnigraph.storage import known_keys, staging
from omnigraph.storage.blobs import to_stored
from omnigraph.storage.counters import Counters, counting
from omnigraph.storage.handles import IndexKind, IndexSpec
from omnigraph.storage.location import graph_root
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.reads import CREATED, UPDATED
from omnigraph.storage.tables import TableStorage
from tests.depth import depth
from tests.storage.conftest import People, Store, new_table, people


def upsert(table: People, *numbers: int, age: int) -> Counters:
    rows = pa.concat_tables([people(each, each + 1, age=age) for each in numbers])
    with counting() as counters:
        table.commit(table.storage.rows.stage_merge_insert(table.head(), rows))
    return counters


def delete(table: People, *numbers: int) -> None:
    gone = IsIn("id", pa.array([f"p{each}" for each in numbers]))
    table.commit(table.storage.rows.stage_delete(table.head(), gone))


def read_all(table: People) -> list[dict[str, Any]]:
    """Every row with its row id and stamps, as plain Lance reads them."""
    dataset = lance.dataset(table.location.uri)
    dataset.validate()  # type: ignore[no-untyped-call]
    rows = dataset.scanner(
        columns=["id", "name", "age", "vector", CREATED, UPDATED], with_row_id=True
    ).to_table()
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("fragments", [1, 24])
def test_an_upsert_of_a_stored_row_joins_nothing_and_looks_at_no_more(
    table: People, fragments: int
) -> None:
    """As many scans for any number of fragments, and one row of them."""
    table.append(1_000, 3_000)
    for number in range(fragments):
        table.append(10 * number, 10 * number + 10)
    index = table.storage.indexes.stage_create(table.head(), [IndexSpec("id", IndexKind.BTREE)])
    table.commit(index.transaction)
    upsert(table, 5, age=1)

    costs = [upsert(table, number, age=2) for number in (3, 2_500, 5)]

    assert [each.joins for each in costs] == [0, 0, 0]
    assert [each.scans for each in costs] == [1, 1, 1]
    assert [each.rows_scanned for each in costs] == [0, 1, 0]


def test_stored_and_new_rows_of_one_upsert_need_no_join(table: People) -> None:
    table.append(0, 10)

    counters = upsert(table, 12, 3, 11, 4, age=77)

    assert counters.joins == 0
    rows = {row["id"]: row for row in read_all(table)}
    assert [rows[f"p{each}"]["age"] for each in (3, 4, 5, 11, 12)] == [77, 77, 5, 77, 77]
    assert [rows[f"p{each}"][CREATED] for each in (3, 4, 11, 12)] == [2, 2, 3, 3]
    assert {rows[f"p{each}"][UPDATED] for each in (3, 4, 11, 12)} == {3}
    assert [rows[f"p{each}"]["_rowid"] for each in (3, 4, 9)] == [3, 4, 9]
    assert len({row["_rowid"] for row in rows.values()}) == len(rows) == 12


def test_a_row_that_was_deleted_is_new(table: People) -> None:
    """Its key is in a data file still; the row that comes back is another one."""
    table.append(0, 5)
    delete(table, 2)

    counters = upsert(table, 2, age=9)

    assert counters.joins == 0
    assert counters.stages == {"merge_insert": 1}
    row = read_all(table)[2]
    assert (row["id"], row["_rowid"], row[CREATED], row["age"]) == ("p2", 5, 4, 9)


def test_rows_are_found_in_fragments_whose_keys_were_forgotten(
    table: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small fragments whose keys are known lie among others, in any order."""
    monkeypatch.setattr(known_keys, "FRAGMENTS_MAX", 2)
    table = People(TableStorage(table.storage.root), table.location)
    for number in range(5):
        upsert(table, 2 * number, 2 * number + 1, age=number)
    upsert(table, 6, age=50)

    assert upsert(table, 7, 2, 5, 8, age=99).joins == 0

    ages = [row["age"] for row in read_all(table)]
    assert ages == [0, 0, 99, 1, 2, 99, 50, 99, 99, 4]


def test_a_key_that_two_rows_have_is_left_to_lance(table: People) -> None:
    """Damage is not made worse: a table with a row twice is not written to without a look."""
    table.append(0, 3)
    table.append(1, 2)

    assert upsert(table, 1, age=9).joins == 1


def test_an_index_does_not_answer_for_rows_that_were_replaced(table: People) -> None:
    """The values changed, and the row ids that the index names did not."""
    table.append(0, 40)
    specs = [IndexSpec("id", IndexKind.BTREE), IndexSpec("age", IndexKind.BTREE)]
    table.commit(table.storage.indexes.stage_create(table.head(), specs).transaction)

    rows = people(7, 9, age=1_000)
    lances = stage_by_lance(table, rows).operation
    table.commit(table.storage.rows.stage_merge_insert(table.head(), rows))

    dataset = lance.dataset(table.location.uri)
    made = dataset.read_transaction(dataset.version)
    assert made is not None
    told = ("update_mode", "fields_modified", "fields_for_preserving_frag_bitmap")
    ours = [sorted(getattr(made.operation, each)) for each in told]
    assert ours == [sorted(getattr(lances, each)) for each in told]
    assert dataset.count_rows(filter="age = 1000") == 2
    assert dataset.count_rows(filter="age in (7, 8)") == 0
    assert dataset.count_rows(filter="id in ('p7', 'p8')") == 2


def stage_by_lance(table: People, rows: pa.Table) -> Any:
    """The same change, as Lance stages it."""
    dataset = lance.dataset(table.location.uri)
    transaction, _ = (
        dataset.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute_uncommitted(to_stored(rows, dataset.schema))
    )
    return transaction


def merge_by_lance(table: People, rows: pa.Table) -> None:
    lance.LanceDataset.commit(lance.dataset(table.location.uri), stage_by_lance(table, rows))


def random_change(random: np.random.Generator, live: Sequence[int]) -> list[int]:
    """Some numbers that are there, and some that are not."""
    count = int(random.integers(1, 6))
    known = random.choice(np.array(live), min(count, len(live)), replace=False).tolist()
    new = random.integers(100, 160, int(random.integers(0, 3))).tolist() if count > 2 else []
    chosen = list(dict.fromkeys([*known, *new]))
    random.shuffle(chosen)
    return chosen


@pytest.mark.parametrize("seed", range(depth(3, 60)))
def test_rows_are_those_that_lance_would_leave(tmp_path: Path, seed: int) -> None:
    """Values, stamps and the row ids of stored rows, after upserts, deletes and compactions."""
    random = np.random.default_rng(seed)
    ours, lances = (new_table(Store(graph_root(str(tmp_path / name)))) for name in ("a", "b"))
    for each in (ours, lances):
        each.append(0, 12)
        each.append(12, 20)
    live = set(range(20))
    for step in range(10):
        verb = random.choice(["upsert", "upsert", "upsert", "delete", "compact", "reopen"])
        if verb == "delete" and len(live) > 8:
            gone = [int(each) for each in random.choice(sorted(live), 2, replace=False)]
            live -= set(gone)
            for each in (ours, lances):
                delete(each, *gone)
        elif verb == "compact":
            for each in (ours, lances):
                plan = each.storage.compaction.stage(each.head())
                if plan is not None:
                    each.commit(plan)
        elif verb == "reopen":
            ours = People(TableStorage(ours.storage.root), ours.location)
        else:
            chosen = random_change(random, sorted(live))
            live |= set(chosen)
            rows = pa.concat_tables([people(each, each + 1, age=step) for each in chosen])
            assert upsert(ours, *chosen, age=step).joins == 0
            merge_by_lance(lances, rows)
        found, expected = read_all(ours), read_all(lances)
        new = {row["id"] for row in expected if row["id"] not in {f"p{n}" for n in range(20)}}
        for row in (*found, *expected):
            if row["id"] in new:  # Lance numbers new rows in the order of its join
                row.pop("_rowid")
        assert found == expected
        assert len(ours.row_ids(*(row["id"] for row in found))) == len(live)


def test_blobs_of_a_replaced_row_are_kept(table: People) -> None:
    table.append(0, 8)

    assert upsert(table, 7, 6, age=1).joins == 0

    handle = table.head()
    found = table.storage.reads.read_blobs(
        handle, "photo", table.row_ids("p7", "p6", "p5").tolist()
    )
    assert found == [b"x" * 7, None, b"x" * 5]


def test_what_lance_would_merge_is_not_merged_by_us(
    table: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows than are looked up go through the join."""
    monkeypatch.setattr(staging, "LOCATED_ROWS_MAX", 2)
    table.append(0, 5)

    assert upsert(table, 1, 2, age=4).joins == 0
    assert upsert(table, 1, 2, 3, age=4).joins == 1
