"""Control tables: the publish primitive has exactly one winner per key."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import (
    BranchNotFound,
    ForkExists,
    InvariantViolated,
    RowLevelCasContention,
    StorageError,
    TableExists,
)
from omnigraph.storage.control import ControlTable
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import BranchInfo
from omnigraph.storage.location import graph_root
from omnigraph.storage.predicates import Compare, CompareOp
from tests.depth import depth
from tests.processes import PROCESSES
from tests.storage.conftest import Store
from tests.storage.racers import ROWS, control, merge_each_round, row


@pytest.fixture
def manifest(store: Store) -> ControlTable:
    table = control(store.root.uri, store.storage_options)
    table.create(row("a", 0))
    return table


def keys(table: ControlTable, branch: str | None = None, version: int | None = None) -> list[str]:
    return sorted(table.read(branch, version).rows.column("object_id").to_pylist())


def test_a_control_table_is_created_once_by_the_rules(manifest: ControlTable) -> None:
    with pytest.raises(TableExists):
        manifest.create(row("b", 0))

    assert manifest.exists()
    assert manifest.primary_key() == ["object_id"]
    assert keys(manifest) == ["a"]


def test_a_damaged_version_is_an_error_of_ours(tmp_path: Path) -> None:
    """One byte of the type of a column: Lance panics when it is asked for the columns."""
    table = control(str(tmp_path), {})
    table.create(row("a", 0))
    (path,) = (Path(table.uri) / "_versions").glob("*.manifest")
    path.write_bytes(path.read_bytes().replace(b"string", b"2tring"))

    with pytest.raises(StorageError):
        control(str(tmp_path), {}).read(version=1)


def test_it_has_stable_row_ids_and_no_clean_up(tmp_path: Path) -> None:
    table = control(str(tmp_path), {})
    table.create(row("a", 0))

    dataset = lance.dataset(table.uri)
    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"
    assert dataset.config() == {}
    assert not control(str(tmp_path / "elsewhere"), {}).exists()


def test_a_merge_updates_and_inserts_in_one_version(manifest: ControlTable) -> None:
    change = pa.concat_tables([row("a", 9), row("b", 1)])

    version = manifest.merge_rows(change, read_version=1)

    found = manifest.read()
    assert (version, found.version) == (2, 2)
    assert sorted(found.rows.to_pylist(), key=lambda r: str(r["object_id"])) == change.to_pylist()


def test_a_merge_of_a_key_written_since_is_refused(manifest: ControlTable) -> None:
    """New or existing: a writer that read an older version does not overwrite it."""
    manifest.merge_rows(pa.concat_tables([row("a", 1), row("b", 1)]), read_version=1)

    for key in ("a", "b"):
        with counting() as counters, pytest.raises(RowLevelCasContention):
            manifest.merge_rows(row(key, 2), read_version=1)
        assert counters.control_merges == 0

    assert set(manifest.read().rows.column("writer").to_pylist()) == {1}


def test_a_row_is_replaced_where_it_lies_by_whichever_handle(tmp_path: Path) -> None:
    """Every handle knows where its own row is, looks for that of another, and follows both."""
    manifest, other = control(str(tmp_path), {}), control(str(tmp_path), {})
    manifest.create(row("a", 0))
    for number, table in enumerate([manifest, manifest, other, manifest, other, other], start=1):
        version = table.latest_version()
        rows = pa.concat_tables([row(f"k{number}", number), row("a", number)])
        with counting() as counters:
            made = table.merge_rows(rows, read_version=version, replaced="a")
        assert (version, made) == (number, number + 1)
        assert counters.scans <= (number not in (2, 6)), "the place of its own row is known"

    found = {each["object_id"]: each["writer"] for each in manifest.read().rows.to_pylist()}
    assert found == {"a": 6, **{f"k{number}": number for number in range(1, 7)}}
    with pytest.raises(RowLevelCasContention):
        manifest.merge_rows(row("a", 9), read_version=6, replaced="a")
    assert keys(manifest) == sorted(found)


@pytest.mark.parametrize("seed", range(depth(2, 40)))
def test_whoever_writes_a_publish_the_table_is_the_same(tmp_path: Path, seed: int) -> None:
    """Rows, row ids and stamps of every version, after publishes of several rows and compactions.

    Of `theirs` Lance writes every version: it is opened again for each.
    """
    random = np.random.default_rng(seed)
    ours = control(str(tmp_path / "ours"), {})
    for table in (ours, control(str(tmp_path / "theirs"), {})):
        table.create(row("a", 0))
    stamps = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    for number in range(1, 16):
        added = [row(f"k{number}-{each}", number) for each in range(int(random.integers(1, 4)))]
        rows, is_compacted = pa.concat_tables([*added, row("a", number)]), random.random() < 0.2
        theirs = control(str(tmp_path / "theirs"), {})
        for table in (ours, theirs):
            version = table.latest_version()
            assert table.merge_rows(rows, read_version=version, replaced="a") == version + 1
            if is_compacted:
                table.compact()
        found = [
            lance.dataset(each.uri).scanner(columns=[*ROWS.names, *stamps]).to_table()
            for each in (ours, theirs)
        ]
        assert found[0].equals(found[1])
    transactions = [
        len(list((Path(each.uri) / "_transactions").iterdir())) for each in (ours, theirs)
    ]
    assert transactions[0] < transactions[1]
    for version in range(2, ours.latest_version() + 1):
        assert lance.dataset(ours.uri).read_transaction(version) is not None


def test_a_row_that_is_not_there_is_not_replaced(manifest: ControlTable) -> None:
    rows = pa.concat_tables([row("new", 1), row("head", 1)])

    assert manifest.merge_rows(rows, read_version=1, replaced="head") == 2
    assert keys(manifest) == ["a", "head", "new"]


def test_the_latest_version_is_looked_up_again_after_a_write_of_another_handle(
    tmp_path: Path,
) -> None:
    manifest, other = control(str(tmp_path), {}), control(str(tmp_path), {})
    manifest.create(row("a", 0))
    for version in range(1, 4):
        assert manifest.latest_version() == version
        with counting() as counters:
            assert manifest.latest_version() == version
        assert counters.head_probes == 0
        other.merge_rows(row("b", version), read_version=version)


def test_a_merge_of_other_keys_lands_beside_a_foreign_one(manifest: ControlTable) -> None:
    manifest.merge_rows(row("b", 1), read_version=1)

    assert manifest.merge_rows(row("c", 2), read_version=1) == 3
    assert keys(manifest) == ["a", "b", "c"]


def test_a_stale_merge_is_refused_also_after_a_compaction(tmp_path: Path) -> None:
    table = control(str(tmp_path), {})
    table.create(row("a", 0))
    for number in range(6):
        table.merge_rows(row(f"k{number}", 1), read_version=table.latest_version())
    table.compact()

    with pytest.raises(RowLevelCasContention):
        table.merge_rows(row("k3", 2), read_version=3)
    assert table.read().rows.num_rows == 7


def test_a_merge_without_the_mark_of_the_key_is_refused(tmp_path: Path) -> None:
    """Without it two publishers would both succeed and duplicate the row."""
    lance.write_dataset(row("a", 0), str(tmp_path / "__manifest"), enable_stable_row_ids=True)
    table = control(str(tmp_path), {})

    with pytest.raises(InvariantViolated, match="duplicate"):
        table.merge_rows(row("b", 0), read_version=1)
    assert table.primary_key() == []


def test_the_mark_can_be_set_on_an_old_table(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("object_id", pa.utf8(), nullable=False), ROWS.field("writer")])
    path = str(tmp_path / "__manifest")
    lance.write_dataset(row("a", 0).cast(schema), path, enable_stable_row_ids=True)
    table = control(str(tmp_path), {})

    version = table.set_primary_key()

    assert table.primary_key() == ["object_id"]
    table.merge_rows(row("b", 1), read_version=version)
    with pytest.raises(RowLevelCasContention):
        table.merge_rows(row("b", 2), read_version=version)


def race(store: Store, kind: str, *, rounds: int, fenced: bool = True) -> list[Any]:
    writers = 4
    barrier, out = PROCESSES.Barrier(writers), PROCESSES.Queue()
    arguments = (store.root.uri, store.storage_options, fenced)
    processes = [
        PROCESSES.Process(
            target=merge_each_round, args=(*arguments, number, rounds, barrier, kind, out)
        )
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    results = [out.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    return results


@pytest.mark.slow
@pytest.mark.parametrize("durable", ["local", "s3"])
def test_of_racing_publishers_of_one_key_exactly_one_wins(
    durable: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Four processes, each round one new key, on the disk and on S3."""
    local = Store(graph_root(str(tmp_path)))
    store: Store = request.getfixturevalue("s3_store") if durable == "s3" else local
    rounds = 12 if durable == "local" else 6
    table = control(store.root.uri, store.storage_options)
    table.create(row("a", 0))

    results = race(store, "same", rounds=rounds)

    winners = Counter(number for _, wins in results for number in wins)
    assert winners == Counter(dict.fromkeys(range(rounds), 1))
    assert keys(table) == sorted(["a", *(f"k{number}" for number in range(rounds))])


@pytest.mark.slow
@pytest.mark.parametrize("durable", ["local", "s3"])
def test_of_racing_publishers_that_replace_one_row_exactly_one_wins(
    durable: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """No key is the same but that of the row; whoever loses leaves nothing."""
    local = Store(graph_root(str(tmp_path)))
    store: Store = request.getfixturevalue("s3_store") if durable == "s3" else local
    rounds = 12 if durable == "local" else 4
    table = control(store.root.uri, store.storage_options)
    table.create(row("a", 0))

    results = race(store, "replaced", rounds=rounds)

    won = {f"k{number}-{writer}" for writer, wins in results for number in wins}
    assert len(won) == rounds
    assert keys(table) == sorted(["a", *won])


@pytest.mark.slow
def test_racing_publishers_of_other_keys_all_win(tmp_path: Path) -> None:
    store = Store(graph_root(str(tmp_path)))
    table = control(store.root.uri, {})
    table.create(row("a", 0))

    race(store, "other", rounds=6)

    assert len(keys(table)) == 1 + 4 * 6


@pytest.mark.slow
def test_without_the_mark_the_race_has_several_winners(tmp_path: Path) -> None:
    """The fence is the mark on the key: the same race on a table without it goes wrong."""
    lance.write_dataset(
        row("a", 0), str(tmp_path / "__manifest"), mode="create", enable_stable_row_ids=True
    )
    store = Store(graph_root(str(tmp_path)))

    results = race(store, "same", rounds=6, fenced=False)

    winners = Counter(number for _, wins in results for number in wins)
    assert max(winners.values()) > 1
    found = keys(control(str(tmp_path), {}))
    assert len(found) > len(set(found))


def test_rows_are_read_in_one_scan_at_any_version(manifest: ControlTable) -> None:
    manifest.merge_rows(row("b", 5), read_version=1)

    with counting() as counters:
        old = manifest.read(version=1)
        some = manifest.read(
            columns=["object_id"], predicate=Compare("writer", CompareOp.EQ, pa.scalar(5))
        )

    assert old.rows.column("object_id").to_pylist() == ["a"]
    assert some.rows.to_pylist() == [{"object_id": "b"}]
    assert (counters.control_reads, counters.scans) == (2, 2)


def test_rows_are_appended(manifest: ControlTable) -> None:
    assert manifest.append(row("b", 1)) == 2
    assert manifest.latest_version() == 2
    assert keys(manifest) == ["a", "b"]


def test_compaction_keeps_the_rows_and_reduces_the_fragments(tmp_path: Path) -> None:
    table = control(str(tmp_path), {})
    table.create(row("a", 0))
    for number in range(8):
        table.merge_rows(row(f"k{number}", 1), read_version=table.latest_version())
    before = keys(table)

    version = table.compact()

    assert version == table.latest_version()
    assert keys(table) == before
    assert len(lance.dataset(table.uri).get_fragments()) == 1
    assert table.merge_rows(row("later", 1), read_version=version) == version + 1


def test_schema_metadata_is_set_beside_what_is_there(manifest: ControlTable) -> None:
    manifest.set_metadata({"omnigraph:internal_schema_version": "3"})
    manifest.set_metadata({"other": "x"})

    assert manifest.metadata() == {"omnigraph:internal_schema_version": "3", "other": "x"}
    assert manifest.primary_key() == ["object_id"]
    assert manifest.latest_version() == 3


def find_branch(manifest: ControlTable, branch: str) -> BranchInfo:
    info = manifest.find_branch(branch)
    assert info is not None
    return info


def test_branches_are_forked_listed_and_deleted(manifest: ControlTable) -> None:
    manifest.merge_rows(row("b", 1), read_version=1)
    manifest.create_branch("feat/x", source=None, version=2)
    manifest.create_branch("child", source="feat/x", version=2)

    manifest.merge_rows(row("c", 1), read_version=2, branch="feat/x")

    assert keys(manifest) == ["a", "b"]
    assert keys(manifest, "feat/x") == ["a", "b", "c"]
    assert keys(manifest, "feat/x", 2) == ["a", "b"]
    assert find_branch(manifest, "child").parent_branch == "feat/x"
    with pytest.raises(ForkExists):
        manifest.create_branch("child", source=None, version=1)
    manifest.delete_branch("child")
    assert manifest.branch_names() == {"feat/x"}
    with pytest.raises(BranchNotFound):
        manifest.delete_branch("child")


def test_a_branch_is_fenced_by_key_as_main_is(manifest: ControlTable) -> None:
    manifest.create_branch("b", source=None, version=1)
    manifest.merge_rows(row("x", 1), read_version=1, branch="b")

    with pytest.raises(RowLevelCasContention):
        manifest.merge_rows(row("x", 2), read_version=1, branch="b")
    manifest.merge_rows(row("x", 3), read_version=1)


def test_a_branch_made_again_has_another_identifier(manifest: ControlTable) -> None:
    """The number of its latest version alone would not tell the two apart."""
    manifest.create_branch("b", source=None, version=1)
    first = find_branch(manifest, "b").identifier
    manifest.delete_branch("b")

    manifest.create_branch("b", source=None, version=1)

    assert find_branch(manifest, "b").identifier != first
