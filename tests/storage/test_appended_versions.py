"""Versions that we write after one of Lance's: byte by byte those that Lance would have written."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance.dataset import LanceOperation, Transaction
from lance.fragment import write_fragments

from omnigraph.errors import HeadMoved
from omnigraph.storage import appended_versions
from omnigraph.storage.appended_versions import Append, Chain, Chains
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import StagedTransaction
from omnigraph.storage.lance_manifest import manifest_in
from omnigraph.storage.location import TableLocation, graph_root, version_file
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.protobuf import encode, read_fields
from omnigraph.storage.tables import TableStorage
from tests.depth import depth
from tests.storage.conftest import People, Store, new_table, people

_PROPERTIES = {"omnigraph.operation_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
Prepare: TypeAlias = Callable[[LanceDataset], object]
_KEY = {"lance-schema:unenforced-primary-key": "true"}


def rows(count: int) -> pa.Table:
    point = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.utf8()))])
    schema = pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False, metadata=_KEY),
            pa.field("age", pa.int32()),
            pa.field("tags", pa.list_(pa.utf8())),
            pa.field("place", point),
            pa.field("vector", pa.list_(pa.float32(), 4)),
        ]
    )
    each = {"age": 1, "tags": ["a"], "place": {"x": 1, "y": ["b"]}, "vector": [0.0] * 4}
    return pa.Table.from_pylist([{"id": f"r{n}", **each} for n in range(count)], schema)


BEFORE: dict[str, Prepare] = {
    "nothing": lambda _: None,
    "an index": lambda made: made.create_scalar_index("id", "BTREE"),
    "deleted rows": lambda made: made.delete("id = 'r1'"),
    "an update": lambda made: made.update({"age": "7"}, where="id = 'r1'"),
    "a compaction": lambda made: made.optimize.compact_files(),
    "a new column": lambda made: made.add_columns({"more": "age + 1"}),
    "a dropped column": lambda made: made.drop_columns(["age"]),
    "metadata": lambda made: made.update_schema_metadata({"a": "b"}),
    "settings": lambda made: made.update_config({"a": "b"}),
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("fork", [None, "side/branch"])
def test_each_version_has_the_bytes_that_lance_gives_it(
    tmp_path: Path, before: str, fork: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "t"  # forks name absolute paths, so both ways have their turn here
    made = lance.write_dataset(
        rows(3), str(home), enable_stable_row_ids=True, data_storage_version="2.2"
    )
    BEFORE[before](made)
    location = TableLocation(str(home), fork)
    if fork is not None:
        made.create_branch(fork, (None, made.version))
    base = lance.dataset(location.physical_uri)
    given = rows(4).select([name for name in base.schema.names if name in rows(1).column_names])
    operations = [
        write_fragments(given.slice(0, count), base, return_transaction=True).operation
        for count in (1, 3, 2)
    ]
    uuids = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(3)]
    shutil.copytree(home, tmp_path / "unchanged")
    commit_by_lance(base, operations, uuids)
    versions = [base.version + 1 + number for number in range(3)]
    expected = read_files(location, versions)
    shown = lance.dataset(location.physical_uri).to_table(with_row_id=True)

    shutil.rmtree(home)
    (tmp_path / "unchanged").rename(home)
    base = lance.dataset(location.physical_uri)
    commit_by_lance(base, operations[:1], uuids[:1])
    chain = Chain.begin(location, versions[0], append_of(operations[0], uuids[0]))
    assert chain is not None
    for version, operation, uuid in zip(versions[1:], operations[1:], uuids[1:], strict=True):
        monkeypatch.setattr(time, "time_ns", lambda at=version: time_of(expected[at]))
        assert chain.append(append_of(operation, uuid)).version == version

    found = read_files(location, versions)
    assert {at: found[at] for at in found if at != versions[0]} == {
        at: expected[at] for at in expected if at != versions[0]
    }
    latest = lance.dataset(location.physical_uri)
    assert latest.version == versions[-1]
    assert latest.to_table(with_row_id=True).equals(shown)
    latest.validate()  # type: ignore[no-untyped-call]
    assert_transactions(latest, versions, uuids)


def test_lance_goes_on_from_versions_without_a_transaction_file(tmp_path: Path) -> None:
    """Conflicts are found, stale appends follow, branches, tags, clean-up and restoring work."""
    made = lance.write_dataset(
        rows(3), str(tmp_path), enable_stable_row_ids=True, data_storage_version="2.2"
    )
    base = lance.dataset(str(tmp_path), version=made.version)
    given = rows(9)
    first, second, stale = (
        write_fragments(given.slice(at, 1), made, return_transaction=True).operation
        for at in (4, 5, 6)
    )
    commit_by_lance(made, [first], ["u"])
    chain = Chain.begin(TableLocation(str(tmp_path)), 2, append_of(first, "u"))
    assert chain is not None
    chain.append(append_of(second, "v"))

    follows = LanceDataset.commit(base, Transaction(1, stale, "w"), max_retries=0)

    assert follows.version == 4
    assert sorted(follows.to_table()["id"].to_pylist()) == ["r0", "r1", "r2", "r4", "r5", "r6"]
    same = base.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(OSError, match="concurrent writers"):
        same.conflict_retries(0).use_index(False).execute(given.slice(5, 1))
    inserted = follows.delta(compared_against=2).get_inserted_rows().read_all()
    assert sorted(inserted["id"].to_pylist()) == ["r5", "r6"]
    assert follows.create_branch("side", (None, 3)).count_rows() == 5
    follows.tags.create("kept", 3)
    follows.optimize.compact_files()
    lance.dataset(str(tmp_path), version=3).restore()  # type: ignore[no-untyped-call]
    latest = lance.dataset(str(tmp_path))
    latest.cleanup_old_versions(
        older_than=timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert 3 in [each["version"] for each in latest.versions()]
    assert lance.dataset(str(tmp_path)).count_rows() == 5


def commit_by_lance(base: LanceDataset, operations: list[Any], uuids: list[str]) -> None:
    for operation, uuid in zip(operations, uuids, strict=True):
        transaction = Transaction(base.version, operation, uuid, _PROPERTIES)
        base = LanceDataset.commit(base, transaction, max_retries=0)


def append_of(operation: LanceOperation.BaseOperation, uuid: str) -> Append:
    found = Append.of(uuid, _PROPERTIES, operation)
    assert found is not None
    return found


def assert_transactions(latest: LanceDataset, versions: list[int], uuids: list[str]) -> None:
    """Lance finds the transaction of each version; only that of the first has a file of its own."""
    for version, uuid in zip(versions, uuids, strict=True):
        made_by = latest.read_transaction(version)
        assert made_by is not None
        assert (made_by.uuid, made_by.read_version) == (uuid, version - 1)
        assert made_by.transaction_properties == _PROPERTIES
    names = {path.name for path in (Path(latest.uri) / "_transactions").iterdir()}
    assert [f"{at - 1}-{uuid}.txn" in names for at, uuid in zip(versions, uuids, strict=True)] == [
        at == versions[0] for at in versions
    ]


def read_files(location: TableLocation, versions: list[int]) -> dict[Any, bytes]:
    top = Path(location.physical_uri)
    found: dict[Any, bytes] = {at: (top / version_file(at)).read_bytes() for at in versions}
    return found


def time_of(version: bytes) -> int:
    made = {number: value for number, _, value in read_fields(manifest_in(version))}[7]
    parts = {number: value for number, _, value in read_fields(made)}
    return int(parts[1]) * 1_000_000_000 + int(parts.get(2, 0))


def test_a_table_that_lance_writes_in_another_way_is_left_to_lance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an update of Lance: here it is we who spell a field in another way."""
    made = lance.write_dataset(
        rows(1), str(tmp_path), enable_stable_row_ids=True, data_storage_version="2.2"
    )
    made.update_config({"z": "1", "y": "2", "x": "3"})  # in any order, and they keep it
    operation = write_fragments(rows(1), made, return_transaction=True).operation
    commit_by_lance(made, [operation], ["u"])
    location = TableLocation(str(tmp_path))
    assert Chain.begin(location, 3, append_of(operation, "u")) is not None
    assert Chain.begin(location, 3, append_of(operation, "v")) is None

    def spell(number: int, kind: int, value: Any) -> bytes:
        return encode(number, kind, value + 1 if number == 11 else value)

    monkeypatch.setattr(appended_versions, "encode", spell)
    assert Chain.begin(location, 3, append_of(operation, "u")) is None


def test_a_version_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    made = lance.write_dataset(
        rows(1), str(tmp_path), enable_stable_row_ids=True, data_storage_version="2.2"
    )
    first, second, foreign = (
        write_fragments(rows(1), made, return_transaction=True).operation for _ in range(3)
    )
    commit_by_lance(made, [first], ["u"])
    chain = Chain.begin(TableLocation(str(tmp_path)), 2, append_of(first, "u"))
    assert chain is not None
    commit_by_lance(lance.dataset(str(tmp_path)), [foreign], ["w"])
    before = (tmp_path / version_file(3)).read_bytes()

    with pytest.raises(FileExistsError):
        chain.append(append_of(second, "v"))

    assert (tmp_path / version_file(3)).read_bytes() == before
    assert not list((tmp_path / "_versions").glob("*#*"))


@pytest.mark.parametrize("by_lance", [False, True])
def test_several_appends_are_committed_as_one_by_one(
    table: People, by_lance: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(0, 3)
    storage, head = table.storage, table.head()
    if by_lance:
        monkeypatch.setattr(Chain, "begin", lambda *_: None)
        monkeypatch.setattr(Chains, "take", lambda *_: None)
    parts = [people(100 + number, 101 + number) for number in range(5)]
    staged = storage.rows.stage_appends(head, parts)
    moved = list[int]()

    with counting() as counted:
        made = storage.commit_appends(staged, operation_id="o", on_moved=lambda: moved.append(1))

    assert counted.commits == len(moved) == 5
    assert counted.opens == (0 if by_lance else 1)
    assert [each.version for each in made] == [head.version + 1 + n for n in range(5)]
    assert [each.transaction_uuid for each in made] == [each.uuid for each in staged]
    assert [each.row_count for each in made] == [head.row_count + 1 + n for n in range(5)]
    cold = TableStorage(storage.root, storage.storage_options)
    for number, each in enumerate(made):
        found = cold.open_at(each.location, each.version)
        assert found.transaction_uuid == each.transaction_uuid
        assert found.row_count == each.row_count
        ids = storage.reads.scan(found, ["id"])["id"].to_pylist()
        assert ids[head.row_count :] == [f"p{100 + at}" for at in range(number + 1)]
        info = cold.read_transaction(each.location, each.version)
        assert info is not None
        assert info.properties["omnigraph.operation_id"] == "o"
    assert cold.head_version(table.location) == made[-1].version


@pytest.fixture
def by_lance(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables to which Lance has committed, by their directories."""
    real, tables = LanceDataset.commit, list[str]()

    def commit(base: Any, *args: Any, **options: Any) -> Any:
        tables.append(base.uri if isinstance(base, LanceDataset) else str(base))
        return real(base, *args, **options)

    monkeypatch.setattr(LanceDataset, "commit", commit)
    return tables


def facts(table: People) -> pa.Table:
    stamps = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    latest = lance.dataset(table.location.physical_uri)
    assert latest.version == table.head().version
    return latest.scanner(columns=["id", "age", *stamps]).to_table()


def test_an_append_goes_on_from_the_one_before_it(table: People, by_lance: list[str]) -> None:
    """Also beyond what the hint of the latest version says, from which Lance then goes on."""
    for number in range(20):
        table.append(number, number + 1)
    assert len(by_lance) == 1

    gone = IsIn("id", pa.array(["p3"]))
    table.commit(table.storage.rows.stage_delete(table.head(), gone))

    assert len(by_lance) == 2
    assert table.head().version == 22
    assert table.append(30, 31).row_count == 20
    assert len(by_lance) == 3


@pytest.mark.parametrize("seed", range(depth(3, 60)))
def test_whoever_writes_the_versions_the_rows_are_the_same(tmp_path: Path, seed: int) -> None:
    """Of appends of any size, and whatever comes between them, and of a table opened again."""
    random = np.random.default_rng(seed)
    ours, theirs = (
        new_table(Store(graph_root(str(tmp_path / each)))) for each in ("ours", "theirs")
    )
    next_id = 0
    for _ in range(14):
        some = sorted(random.choice(max(next_id, 1), 2).tolist())
        verb, size = random.choice(["append"] * 5 + ["upsert", "delete", "compact"]), 0
        for table in (ours, theirs):
            storage, head = table.storage, table.head()
            staged: StagedTransaction | None
            match str(verb):
                case "append":
                    size = size or int(random.integers(1, 5))
                    staged = storage.rows.stage_append(head, people(next_id, next_id + size))
                case "upsert":
                    rows = pa.concat_tables([people(at, at + 1, age=7) for at in set(some)])
                    staged = storage.rows.stage_merge_insert(head, rows)
                case "delete":
                    gone = IsIn("id", pa.array([f"p{at}" for at in some]))
                    staged = storage.rows.stage_delete(head, gone)
                case _:
                    staged = storage.compaction.stage(head)
            if staged is not None:
                table.commit(staged)
        next_id += size
        theirs = People(TableStorage(theirs.storage.root), theirs.location)  # knows of no version

        assert facts(ours).equals(facts(theirs))


def test_a_version_of_another_writer_is_never_gone_on_from(
    table: People, by_lance: list[str]
) -> None:
    table.append(0, 1)
    other = People(TableStorage(table.storage.root), table.location)
    staged = table.storage.rows.stage_append(table.head(), people(1, 2))
    other.append(5, 6)
    by_lance.clear()

    with pytest.raises(HeadMoved):
        table.commit(staged)

    table.append(2, 3)
    assert len(by_lance) == 1
    assert table.ids() == ["p0", "p2", "p5"]


def test_a_version_of_a_branch_that_was_made_again_is_never_gone_on_from(
    table: People, by_lance: list[str]
) -> None:
    """It has the number, and the place, of one that was written here."""
    table.append(0, 1)
    base = table.head().version

    def make_side() -> People:
        storage = TableStorage(table.storage.root)
        storage.fork_branch(table.location, base, "side")
        return People(storage, TableLocation(table.location.uri, "side"))

    side = make_side()
    side.append(10, 11)
    side.append(11, 12)
    table.storage.forks.delete(table.location.uri, "side")
    again = make_side()
    again.append(20, 21)
    again.append(21, 22)
    by_lance.clear()

    side.storage.forget()
    side.append(30, 31)

    assert len(by_lance) == 1
    assert side.ids() == ["p0", "p20", "p21", "p30"]
