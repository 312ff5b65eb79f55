"""Tables: reads by version, staged writes that leave HEAD alone, commits that prove themselves."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import fragment

from omnigraph.errors import (
    BadRequestError,
    ConstraintError,
    HeadMoved,
    InvariantViolated,
    NotFoundError,
    RecoveryRequired,
    StorageError,
    TableExists,
    TableNotFound,
    TableVersionNotFound,
)
from omnigraph.storage import write_files
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import IndexKind, IndexSpec, StagedTransaction, StageKind
from omnigraph.storage.predicates import Compare, CompareOp, IsIn, Predicate
from omnigraph.storage.tables import TableStorage
from tests.storage.blobs import read_whole
from tests.storage.conftest import SCHEMA, People, people


def older_than(age: float) -> Predicate:
    return Compare("age", CompareOp.GT, pa.scalar(age))


STAGES: dict[str, Callable[[People], StagedTransaction | None]] = {
    "append": lambda t: t.storage.rows.stage_append(t.head(), people(100, 103)),
    "append_stream": lambda t: t.storage.rows.stage_append_stream(
        t.head(), people(100, 103).to_batches(max_chunksize=1)
    ),
    "merge_insert": lambda t: t.storage.rows.stage_merge_insert(t.head(), people(8, 12, age=7)),
    "replace_rows": lambda t: t.storage.rows.stage_replace_rows(
        t.head(), people(8, 10, age=7).to_batches(), t.row_ids("p8", "p9")
    ),
    "overwrite": lambda t: t.storage.rows.stage_overwrite(t.head(), people(50, 52)),
    "delete": lambda t: t.storage.rows.stage_delete(t.head(), older_than(4.5)),
    "create_index": lambda t: (
        t.storage.indexes.stage_create(t.head(), [IndexSpec("id", IndexKind.BTREE)]).transaction
    ),
    "compaction": lambda t: t.storage.compaction.stage(t.head()),
    "restore": lambda t: t.storage.stage_restore(t.head(), 2),
}


@pytest.fixture
def full_table(any_table: People) -> People:
    """Ten rows in two fragments."""
    any_table.append(0, 5)
    any_table.append(5, 10)
    return any_table


def test_a_table_is_created_by_the_rules(table: People) -> None:
    """Stable row ids, storage 2.2, no clean-up behind our back, `id` marked as primary key."""
    dataset = lance.dataset(table.location.uri)

    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"
    assert dataset.config() == {}
    mark = {b"lance-schema:unenforced-primary-key": b"true"}
    assert dataset.schema.field("id").metadata == mark
    assert table.head().schema.field("photo").type == pa.large_binary()


def test_creation_never_replaces_a_table(any_table: People) -> None:
    any_table.append(0, 3)

    with pytest.raises(TableExists):
        any_table.storage.create_table(any_table.location, SCHEMA)

    assert any_table.ids() == ["p0", "p1", "p2"]


def test_what_is_not_there_is_typed(any_table: People) -> None:
    storage, location = any_table.storage, any_table.location
    nowhere = storage.root.table("nodes/nowhere")

    assert storage.exists(location.uri)
    assert not storage.exists(nowhere.uri)
    with pytest.raises(TableNotFound):
        storage.head_version(nowhere)
    with pytest.raises(TableVersionNotFound) as caught:
        storage.open_at(location, 99)
    assert caught.value.version == 99


def test_a_version_is_opened_as_what_its_transaction_made(any_table: People) -> None:
    """A lineage that was removed and made again counts through the same numbers."""
    any_table.append(0, 3)
    made = any_table.head()
    storage, location = any_table.storage, any_table.location

    assert storage.open_pinned(location, made.version, made.transaction_uuid).row_count == 3
    assert storage.open_pinned(location, made.version, None).row_count == 3
    with pytest.raises(TableVersionNotFound):
        storage.open_pinned(location, made.version, "another")


@pytest.mark.accepts("S-046")
@pytest.mark.parametrize("kind", STAGES)
def test_staging_never_moves_head_and_commit_moves_it_by_one(full_table: People, kind: str) -> None:
    before = full_table.head()

    staged = STAGES[kind](full_table)

    assert staged is not None
    assert full_table.storage.head_version(full_table.location) == before.version
    assert full_table.storage.reads.count_rows(before) == 10
    committed = full_table.commit(staged)
    assert (
        committed.version
        == before.version + 1
        == full_table.storage.head_version(full_table.location)
    )
    made = full_table.storage.read_transaction(full_table.location, committed.version)
    assert made is not None
    assert made.uuid == staged.uuid == committed.transaction_uuid


def test_an_upsert_replaces_known_rows_whole_and_inserts_the_others(full_table: People) -> None:
    before = full_table.storage.reads.scan(full_table.head(), ["id"], with_row_id=True)
    change = pa.table({"id": ["p3", "new"], "age": [33, 44]})

    full_table.commit(full_table.storage.rows.stage_merge_insert(full_table.head(), change))

    rows = full_table.storage.reads.scan(
        full_table.head(), ["id", "name", "age"], with_row_id=True
    ).to_pylist()
    by_id = {row["id"]: row for row in rows}
    assert len(rows) == 11
    assert (by_id["p3"]["age"], by_id["p3"]["name"]) == (33, None)
    assert by_id["new"]["age"] == 44
    kept = {row["id"]: row["_rowid"] for row in before.to_pylist()}
    assert {id_: by_id[id_]["_rowid"] for id_ in kept} == kept


def test_rows_are_replaced_by_row_id_and_the_others_stay(full_table: People) -> None:
    """Rows of both fragments, in any order, beside rows that are deleted."""
    storage = full_table.storage
    full_table.commit(storage.rows.stage_delete(full_table.head(), older_than(8.5)))
    kept = storage.reads.scan(full_table.head(), ["id"], with_row_id=True).to_pylist()
    rows = [people(number, number + 1, age=70 + number) for number in (7, 2, 6)]
    batches = [batch for each in rows for batch in each.to_batches()]

    full_table.commit(
        storage.rows.stage_replace_rows(
            full_table.head(), batches, full_table.row_ids("p6", "p2", "p7")
        )
    )

    found = storage.reads.scan(full_table.head(), ["id", "age"], with_row_id=True).to_pylist()
    ages = {row["id"]: row["age"] for row in found}
    assert len(found) == len(ages) == 9
    assert ages == {f"p{number}": number for number in range(9)} | {"p2": 72, "p6": 76, "p7": 77}
    replaced = {"p2", "p6", "p7"}
    assert [row for row in kept if row["id"] not in replaced] == [
        {"id": row["id"], "_rowid": row["_rowid"]} for row in found if row["id"] not in replaced
    ]


def test_an_upsert_of_new_rows_joins_nothing_whoever_wrote_the_others(table: People) -> None:
    """Rows it wrote itself, of another handle, of a large fragment, and deleted ones."""
    storage, other = table.storage, TableStorage(table.storage.root, table.storage.storage_options)

    def upsert(tables: TableStorage, first: int, last: int) -> str | None:
        committed = table.commit(
            tables.rows.stage_merge_insert(table.head(), people(first, last, age=7))
        )
        made = storage.read_transaction(table.location, committed.version)
        return None if made is None else made.operation_name

    table.append(1_000, 3_000)
    assert upsert(storage, 0, 3) == "Append"
    assert upsert(other, 3, 6) == "Append"
    assert upsert(storage, 6, 9) == "Append"
    assert [upsert(storage, at, at + 1) for at in (0, 4, 8, 2_500)] == ["Update"] * 4
    gone = Compare("id", CompareOp.EQ, pa.scalar("p1"))
    table.commit(storage.rows.stage_delete(table.head(), gone))
    assert upsert(storage, 1, 2) in ("Append", "Update")

    ids = [*range(9), *range(1_000, 3_000)]
    assert table.ids() == sorted(f"p{number}" for number in ids)


def test_an_upsert_finds_rows_that_an_index_does_not_cover(table: People) -> None:
    """A BTREE on the key that lags behind must not turn an update into a second row."""
    table.append(0, 50)
    index = table.storage.indexes.stage_create(table.head(), [IndexSpec("id", IndexKind.BTREE)])
    table.commit(index.transaction)
    table.append(50, 60)

    table.commit(table.storage.rows.stage_merge_insert(table.head(), people(45, 65, age=1)))

    assert table.ids() == sorted(f"p{number}" for number in range(65))
    ones = Compare("age", CompareOp.EQ, pa.scalar(1))
    # p1 has the age 1 as well.
    assert table.storage.reads.count_rows(table.head(), ones) == 21


@pytest.mark.accepts("S-054")
@pytest.mark.parametrize("ids", [["new", "new"], ["p1", "p1"]])
def test_a_merge_with_a_key_twice_is_refused(table: People, ids: list[str]) -> None:
    table.append(0, 3)

    with pytest.raises(ConstraintError, match="more than once"):
        table.storage.rows.stage_merge_insert(table.head(), pa.table({"id": ids, "age": [1, 2]}))


def test_lance_itself_inserts_a_new_key_twice(table: People) -> None:
    """Why the refusal exists. When this fails, Lance has changed for the better."""
    dataset = lance.dataset(table.location.uri)
    rows = pa.table({"id": ["new", "new"]})

    transaction: Any = (
        dataset.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute_uncommitted(rows)[0]
    )

    assert sum(f.physical_rows for f in transaction.operation.new_fragments) == 2


@pytest.mark.parametrize("stage", ["stage_append", "stage_merge_insert"])
def test_no_rows_are_refused(table: People, stage: str) -> None:
    with pytest.raises(BadRequestError, match="no rows"):
        getattr(table.storage.rows, stage)(table.head(), people(0, 0))


def test_an_empty_stream_is_refused(table: People) -> None:
    with pytest.raises(BadRequestError, match="no rows"):
        table.storage.rows.stage_append_stream(table.head(), iter([]))


def test_what_a_source_of_rows_raises_comes_through(table: People) -> None:
    class SourceFailed(Exception):
        pass

    def batches() -> Iterator[pa.RecordBatch]:
        yield from people(0, 5).to_batches()
        raise SourceFailed

    with pytest.raises(SourceFailed):
        table.storage.rows.stage_append_stream(table.head(), batches())
    assert table.head().version == 1


def test_rows_that_do_not_fit_are_refused_in_our_words(table: People) -> None:
    storage, head = table.storage, table.head()

    with pytest.raises(BadRequestError, match="there is no column"):
        storage.rows.stage_append(head, pa.table({"id": ["x"], "nmae": ["y"]}))
    with pytest.raises(BadRequestError, match="'age' does not fit int64"):
        storage.rows.stage_append(head, pa.table({"id": ["x"], "age": ["old"]}))
    with pytest.raises(ConstraintError, match="'id' is required"):
        storage.rows.stage_append(head, pa.table({"id": pa.array([None], pa.utf8())}))
    with pytest.raises(ConstraintError, match="'id' is required"):
        storage.rows.stage_append(head, pa.table({"age": [1]}))


@pytest.mark.accepts("S-070")
def test_an_overwrite_with_no_rows_empties_the_table_in_one_version(full_table: People) -> None:
    before = full_table.head()

    committed = full_table.commit(
        full_table.storage.rows.stage_overwrite(before, SCHEMA.empty_table())
    )

    assert committed.version == before.version + 1
    assert committed.row_count == 0
    assert full_table.ids() == []
    assert full_table.storage.table_state(full_table.head()).fragment_count == 0
    full_table.append(0, 2)
    assert full_table.ids() == ["p0", "p1"]


def test_an_overwrite_keeps_the_nature_of_the_table(table: People) -> None:
    table.append(0, 3)

    table.commit(table.storage.rows.stage_overwrite(table.head(), people(7, 9)))

    dataset = lance.dataset(table.location.uri)
    assert table.ids() == ["p7", "p8"]
    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"
    assert b"lance-schema:unenforced-primary-key" in dataset.schema.field("id").metadata
    assert (
        read_whole(table.storage.reads.open_blob(table.head(), "photo", entity_id="p8")) == b"x" * 8
    )


def test_row_ids_after_an_overwrite_name_the_new_rows(any_table: People) -> None:
    """Lance numbers fragments anew here; what it cached of the old ones must not show."""
    any_table.append(0, 5)
    before = any_table.storage.reads.scan(any_table.head(), ["id"], with_row_id=True)
    any_table.storage.reads.take_rows(any_table.head(), before["_rowid"].to_pylist(), ["id"])

    any_table.commit(any_table.storage.rows.stage_overwrite(any_table.head(), people(7, 10)))

    rows = any_table.storage.reads.scan(any_table.head(), ["id"], with_row_id=True)
    taken = any_table.storage.reads.take_rows(any_table.head(), rows["_rowid"].to_pylist(), ["id"])
    assert taken["id"].to_pylist() == rows["id"].to_pylist() == ["p7", "p8", "p9"]
    assert set(before["_rowid"].to_pylist()).isdisjoint(rows["_rowid"].to_pylist())


def test_a_delete_removes_exactly_the_matching_rows(full_table: People) -> None:
    """Also when part of a fragment is gone already, and when a whole fragment goes."""
    some = IsIn("id", pa.array(["p1", "p6"]))
    full_table.commit(full_table.storage.rows.stage_delete(full_table.head(), some))

    staged = full_table.storage.rows.stage_delete(
        full_table.head(), Compare("age", CompareOp.LT, pa.scalar(6))
    )

    assert staged is not None
    assert staged.rows == 5
    assert full_table.commit(staged).row_count == 3
    assert full_table.ids() == ["p7", "p8", "p9"]


def test_a_delete_of_nothing_stages_nothing(full_table: People) -> None:
    assert full_table.storage.rows.stage_delete(full_table.head(), older_than(1e9)) is None


def test_a_handle_shows_the_same_rows_for_ever(full_table: People) -> None:
    before = full_table.head()

    full_table.commit(full_table.storage.rows.stage_overwrite(before, people(90, 91)))

    assert full_table.ids(before) == [f"p{number}" for number in range(10)]
    assert full_table.ids() == ["p90"]


def test_a_commit_on_a_moved_head_changes_nothing(full_table: People) -> None:
    """Lance alone would rebase the stale write and say nothing."""
    stale = full_table.storage.rows.stage_append(full_table.head(), people(100, 101))
    full_table.append(200, 201)

    with pytest.raises(HeadMoved) as caught:
        full_table.storage.commit_staged(stale)

    assert (caught.value.expected, caught.value.actual) == (3, 4)
    assert "p100" not in full_table.ids()


def test_a_foreign_commit_in_between_is_detected(
    table: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer without our lock commits after the check of HEAD: the rows land one too high."""
    table.append(0, 3)
    table = People(TableStorage(table.storage.root), table.location)  # its commits are Lance's
    staged = table.storage.rows.stage_append(table.head(), people(10, 12))
    commit = lance.LanceDataset.commit

    def with_a_foreigner_first(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(lance.LanceDataset, "commit", commit)
        lance.write_dataset(pa.table({"id": ["foreign"]}), table.location.uri, mode="append")
        return commit(*args, **kwargs)

    monkeypatch.setattr(lance.LanceDataset, "commit", with_a_foreigner_first)

    with counting() as counters, pytest.raises(RecoveryRequired, match="another writer"):
        table.storage.commit_staged(staged)

    assert counters.commits == 0


def test_a_foreign_commit_in_between_keeps_a_version_of_ours_from_its_name(
    table: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(0, 3)
    staged = table.storage.rows.stage_append(table.head(), people(10, 12))
    link = os.link

    def with_a_foreigner_first(*args: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        lance.write_dataset(pa.table({"id": ["foreign"]}), table.location.uri, mode="append")
        link(*args)

    monkeypatch.setattr(os, "link", with_a_foreigner_first)

    with counting() as counters, pytest.raises(HeadMoved):
        table.storage.commit_staged(staged)

    assert counters.commits == 0
    assert table.ids() == ["foreign", "p0", "p1", "p2"]


@pytest.mark.parametrize("call", ["unlink", "replace"])
def test_a_version_of_ours_is_committed_once_it_has_its_name(
    table: People, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """What is done after that, to a temporary name or a hint, may fail."""
    with monkeypatch.context() as patch:
        patch.setattr(os, call, raise_io_error)
        for number in range(18):
            table.append(number, number + 1)

    assert table.head().version == 19
    assert len(table.ids()) == 18


def test_a_commit_that_failed_after_taking_effect_is_found_by_its_uuid(
    table: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error after the manifest was linked is not a reason to commit the rows twice."""
    table.append(0, 3)
    table = People(TableStorage(table.storage.root), table.location)  # its commits are Lance's
    staged = table.storage.rows.stage_append(table.head(), people(10, 12))
    commit = lance.LanceDataset.commit

    def fails_too_late(*args: Any, **kwargs: Any) -> Any:
        commit(*args, **kwargs)
        raise OSError("Input/output error (os error 5)")

    monkeypatch.setattr(lance.LanceDataset, "commit", fails_too_late)

    committed = table.storage.commit_staged(staged)

    assert committed.transaction_uuid == staged.uuid
    assert table.ids() == ["p0", "p1", "p10", "p11", "p2"]


def test_a_transaction_is_committed_once(table: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lance would apply it again and duplicate the rows; also after a failure it is used up."""
    done = table.storage.rows.stage_append(table.head(), people(0, 2))
    table.commit(done)
    with pytest.raises(HeadMoved):
        table.storage.commit_staged(done)
    failed = table.storage.rows.stage_append(table.head(), people(2, 4))

    with monkeypatch.context() as patch:
        patch.setattr(lance.LanceDataset, "commit", raise_io_error)
        patch.setattr(os, "link", raise_io_error)  # by which a version of ours gets its name
        with pytest.raises(StorageError):
            table.storage.commit_staged(failed)
    with pytest.raises(InvariantViolated, match="stage the write again"):
        table.storage.commit_staged(failed)

    assert table.ids() == ["p0", "p1"]


def raise_io_error(*args: Any, **kwargs: Any) -> None:
    raise OSError("Input/output error (os error 5)")


def test_a_commit_carries_its_operation(full_table: People) -> None:
    staged = full_table.storage.rows.stage_append(full_table.head(), people(100, 101))

    committed = full_table.storage.commit_staged(staged, operation_id="01OPERATION")

    made = full_table.storage.read_transaction(full_table.location, committed.version)
    assert made is not None
    assert made.operation_name == "Append"
    assert made.properties == {"omnigraph.operation_id": "01OPERATION"}


def test_a_commit_says_where_its_manifest_is(table: People) -> None:
    committed = table.append(0, 3)

    with open("/" + committed.manifest_path, "rb") as manifest:
        assert manifest.read().endswith(b"LANC")
    assert table.head().transaction_uuid == committed.transaction_uuid


def test_restore_brings_old_rows_back_as_a_new_version(full_table: People) -> None:
    full_table.commit(full_table.storage.rows.stage_overwrite(full_table.head(), people(50, 51)))

    version = full_table.storage.restore(full_table.location, 2)

    assert version == 5
    assert full_table.ids() == ["p0", "p1", "p2", "p3", "p4"]


def test_the_transaction_of_a_foreign_compaction_is_read(table: People) -> None:
    """Lance's own compaction may rewrite an index, which its Python binding cannot read back."""
    for first in range(0, 40, 10):
        table.append(first, first + 10)
    index = table.storage.indexes.stage_create(table.head(), [IndexSpec("id", IndexKind.BTREE)])
    table.commit(index.transaction)
    lance.dataset(table.location.uri).optimize.compact_files()

    made = table.storage.read_transaction(
        table.location, table.storage.head_version(table.location)
    )

    assert made is not None
    assert len(made.uuid) == 36


def test_table_state_counts_fragments_and_deleted_rows(full_table: People) -> None:
    full_table.commit(full_table.storage.rows.stage_delete(full_table.head(), older_than(8.5)))

    state = full_table.storage.table_state(full_table.head())

    assert full_table.head().row_count == 9
    assert (state.fragment_count, state.small_fragments) == (2, 2)
    assert state.deleted_rows == 1


# Reading


@pytest.mark.accepts("S-053")
def test_reads_go_by_location_and_version(full_table: People) -> None:
    second = full_table.storage.open_at(full_table.location, 2)

    assert full_table.ids(second) == ["p0", "p1", "p2", "p3", "p4"]
    assert second.row_count == 5


def test_a_scan_projects_filters_and_limits(full_table: People) -> None:
    rows = full_table.storage.reads.scan(
        full_table.head(), ["camelCase", "id"], older_than(2), with_row_id=True, limit=3
    )

    assert rows.column_names == ["camelCase", "id", "_rowid"]
    assert rows.column("id").to_pylist() == ["p3", "p4", "p5"]
    assert full_table.storage.reads.scan(full_table.head(), ["id"], limit=0).num_rows == 0


def test_a_scan_leaves_blobs_out_unless_asked(full_table: People) -> None:
    storage, head = full_table.storage, full_table.head()

    assert "photo" not in storage.reads.scan(head).column_names
    with pytest.raises(BadRequestError, match="blobs"):
        storage.reads.scan(head, ["photo"])
    photos = storage.reads.scan(head, ["id", "photo"], include_blobs=True)
    assert photos.schema.field("photo").type == pa.large_binary()
    assert photos.to_pylist() == people(0, 10).select(["id", "photo"]).to_pylist()


def test_a_scan_of_nothing_has_the_schema_of_the_table(full_table: People) -> None:
    rows = full_table.storage.reads.scan(full_table.head(), ["id", "vector"], older_than(1e9))

    assert rows.num_rows == 0
    assert rows.schema.field("vector").type == SCHEMA.field("vector").type


def test_a_stream_holds_a_batch_at_a_time(full_table: People) -> None:
    batches = full_table.storage.reads.scan_stream(
        full_table.head(), ["id"], older_than(1), batch_rows=2
    )

    first = next(batches)

    assert first.num_rows <= 2
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 8


def test_an_unknown_column_is_refused(full_table: People) -> None:
    with pytest.raises(BadRequestError, match="nmae"):
        full_table.storage.reads.scan(full_table.head(), ["nmae"])


def test_rows_are_taken_by_row_id_in_the_order_given(full_table: People) -> None:
    ids = full_table.storage.reads.scan(full_table.head(), ["id"], with_row_id=True)
    row_ids = dict(zip(ids["id"].to_pylist(), ids["_rowid"].to_pylist(), strict=True))
    wanted = ["p7", "p1", "p7", "p0"]

    rows = full_table.storage.reads.take_rows(
        full_table.head(), [row_ids[one] for one in wanted], ["id", "age"]
    )

    assert rows.column("id").to_pylist() == wanted
    assert full_table.storage.reads.take_rows(full_table.head(), [], ["id"]).num_rows == 0


def test_a_row_id_that_is_not_there_is_refused(full_table: People) -> None:
    with pytest.raises(BadRequestError, match="1 of 2 row ids"):
        full_table.storage.reads.take_rows(full_table.head(), [0, 999], ["id"])


def test_a_blob_is_read_by_entity_and_by_row_id(full_table: People) -> None:
    storage, head = full_table.storage, full_table.head()

    assert read_whole(storage.reads.open_blob(head, "photo", entity_id="p7")) == b"x" * 7
    assert read_whole(storage.reads.open_blob(head, "photo", entity_id="p3")) is None
    assert storage.reads.read_blobs(head, "photo", [8, 3]) == [b"x" * 8, None]
    with pytest.raises(NotFoundError, match="nobody"):
        read_whole(storage.reads.open_blob(head, "photo", entity_id="nobody"))
    with pytest.raises(BadRequestError, match="not a Blob"):
        read_whole(storage.reads.open_blob(head, "name", entity_id="p7"))


@pytest.mark.parametrize("size", [0, 10, 200_000, 5_000_000])
def test_a_blob_of_any_size_survives_upsert_and_compaction(table: People, size: int) -> None:
    """Null and empty stay apart; large blobs lie beside the data file."""
    data = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    rows = pa.table({"id": ["a", "b"], "photo": pa.array([data, None], pa.large_binary())})
    table.append(0, 3)
    table.commit(table.storage.rows.stage_merge_insert(table.head(), rows))

    table.commit(table.storage.compaction.stage(table.head()))

    assert read_whole(table.storage.reads.open_blob(table.head(), "photo", entity_id="a")) == data
    assert read_whole(table.storage.reads.open_blob(table.head(), "photo", entity_id="b")) is None
    assert read_whole(table.storage.reads.open_blob(table.head(), "photo", entity_id="p2")) == b"xx"


def test_a_handle_does_not_leave_its_process(full_table: People) -> None:
    """Lance would bring a pickled fork back as the main lineage."""
    with pytest.raises(TypeError, match="location and version"):
        pickle.dumps(full_table.head())
    with pytest.raises(TypeError, match="process that staged it"):
        pickle.dumps(full_table.storage.rows.stage_append(full_table.head(), people(100, 101)))


def test_opening_the_same_version_again_opens_nothing(table: People) -> None:
    table.append(0, 3)
    table.head()

    with counting() as counters:
        for _ in range(5):
            table.storage.open_at(table.location, 2)

    assert counters.opens == 0


def test_the_handle_cache_is_bounded_and_forgets(table: People) -> None:
    for number in range(70):
        table.storage.open_at(table.location, 1, incarnation=str(number))

    with counting() as counters:
        table.storage.open_at(table.location, 1, incarnation="69")
        table.storage.open_at(table.location, 1, incarnation="0")
        table.storage.forget()
        table.storage.open_at(table.location, 1, incarnation="69")

    assert counters.opens == 2


def test_two_storages_share_one_lance_session(table: People) -> None:
    other = TableStorage(table.storage.root)
    first: Any = table.storage.open_at(table.location, 1)._dataset
    second: Any = other.open_at(table.location, 1)._dataset

    assert first.session().is_same_as(second.session())


def test_a_staged_kind_is_named(full_table: People) -> None:
    kinds = {name: STAGES[name](full_table) for name in ("append", "append_stream", "delete")}

    assert {name: staged.kind for name, staged in kinds.items() if staged} == {
        "append": StageKind.APPEND,
        "append_stream": StageKind.APPEND,
        "delete": StageKind.DELETE,
    }


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 3, 3), (1, 2, 1)])
def test_parts_of_a_group_are_versions_of_their_own(
    any_table: People, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of as many rows are written by one call, each to a file of its own, in order."""
    calls: list[object] = []
    write = fragment.write_fragments

    def count(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        return write(*args, **kwargs)

    monkeypatch.setattr(write_files, "write_fragments", count)
    tables, handle = any_table.storage, any_table.head()
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    parts = [people(start, start + size) for start, size in zip(starts, sizes, strict=True)]

    staged = tables.rows.stage_appends(handle, parts)

    assert len(calls) == (1 if len(set(sizes)) == 1 else len(sizes))
    for number, each in enumerate(staged):
        any_table.commit(tables.rebase(each, any_table.head()))
        rows = tables.reads.scan(any_table.head(), ["id", "age"]).to_pylist()
        assert rows == pa.concat_tables(parts[: number + 1]).select(["id", "age"]).to_pylist()


@pytest.mark.parametrize("kind", STAGES)
def test_the_handle_that_a_commit_leaves_is_the_one_that_an_open_makes(
    table: People, kind: str
) -> None:
    """A commit of rows keeps the columns that it was staged with, and asks Lance for none."""
    table.append(0, 5)
    table.append(5, 10)
    committed = table.commit(STAGES[kind](table))
    made_by = committed.transaction_uuid

    left = table.storage.open_at(table.location, committed.version, incarnation=made_by)
    fresh = TableStorage(table.storage.root).open_at(table.location, committed.version)

    assert left.schema.equals(fresh.schema, check_metadata=True)
    assert left == fresh
    assert left.row_count == fresh.row_count == committed.row_count
