"""Every text of Lance that we match is provoked here: an upgrade cannot change it quietly."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, MergeInsertBuilder, Transaction
from lance.fragment import write_fragments
from lance.optimize import Compaction

from omnigraph.errors import (
    CommitConflict,
    OmnigraphError,
    RowLevelCasContention,
    StorageError,
    StorageFull,
    StoragePermissionDenied,
    TableExists,
    TableNotFound,
    TableVersionNotFound,
)
from omnigraph.storage.lance_errors import lance_errors, translate
from omnigraph.storage.tables import TableStorage
from tests.storage.conftest import Store
from tests.storage.racers import row


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    key = pa.field("object_id", pa.utf8(), False, {"lance-schema:unenforced-primary-key": "true"})
    rows = pa.concat_tables([row("a", 0), row("b", 0)]).cast(
        pa.schema([key, pa.field("writer", pa.int64())])
    )
    return lance.write_dataset(rows, str(tmp_path / "t"), enable_stable_row_ids=True)


def ours(error: BaseException) -> OmnigraphError:
    return translate(error, action="testing", location="somewhere")


def merge(dataset: LanceDataset) -> MergeInsertBuilder:
    return (
        dataset.merge_insert("object_id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .conflict_retries(0)
        .use_index(False)
    )


def test_a_missing_dataset_and_a_missing_version(dataset: LanceDataset) -> None:
    with pytest.raises(ValueError, match="was not found") as no_dataset:
        lance.dataset(dataset.uri + "-not")
    with pytest.raises(ValueError, match="was not found") as no_version:
        lance.dataset(dataset.uri, version=99)

    assert isinstance(ours(no_dataset.value), TableNotFound)
    missing = ours(no_version.value)
    assert isinstance(missing, TableVersionNotFound)
    assert missing.version == 99


def test_a_dataset_that_exists(dataset: LanceDataset) -> None:
    with pytest.raises(OSError, match="already exists") as caught:
        lance.write_dataset(row("a", 0), dataset.uri, mode="create")

    assert isinstance(ours(caught.value), TableExists)


def test_contention_on_a_key(dataset: LanceDataset) -> None:
    stale = lance.dataset(dataset.uri, version=1)
    merge(dataset).execute(row("a", 1))

    with pytest.raises(OSError, match="Too many concurrent writers") as caught:
        merge(stale).execute(row("a", 2))

    assert isinstance(ours(caught.value), RowLevelCasContention)


def test_a_conflict_that_a_retry_could_solve(dataset: LanceDataset) -> None:
    """Two staged updates of one fragment."""
    first, _ = merge(dataset).execute_uncommitted(row("a", 1))
    second, _ = merge(dataset).execute_uncommitted(row("a", 2))
    LanceDataset.commit(dataset, first)

    with pytest.raises(CommitConflictError) as caught:
        LanceDataset.commit(dataset, second, max_retries=0)

    assert isinstance(ours(caught.value), CommitConflict)


def test_a_conflict_that_a_retry_cannot_solve(dataset: LanceDataset) -> None:
    """An append staged before an overwrite."""
    append = write_fragments(row("c", 1), dataset, return_transaction=True)
    LanceDataset.commit(dataset, LanceOperation.Overwrite(dataset.schema, []), read_version=1)

    with pytest.raises(CommitConflictError) as caught:
        LanceDataset.commit(dataset, append, max_retries=0)

    assert isinstance(ours(caught.value), CommitConflict)


def test_a_conflict_of_a_compaction(dataset: LanceDataset) -> None:
    """Lance raises this one as a plain OSError."""
    lance.write_dataset(row("c", 1), dataset.uri, mode="append")
    base = lance.dataset(dataset.uri)
    results = [task.execute(base) for task in Compaction.plan(base, {}).tasks]
    lance.dataset(dataset.uri).delete("object_id = 'a'")

    with pytest.raises(OSError, match="Retryable commit conflict") as caught:
        Compaction.commit(base, results)

    assert isinstance(ours(caught.value), CommitConflict)


FULL = """
import sys
import pyarrow as pa
from omnigraph.errors import StorageFull
from omnigraph.storage.location import graph_root
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text_local import LocalTextStore
import numpy as np

root = graph_root(sys.argv[1])
storage, location = TableStorage(root), root.table("nodes/t")
schema = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("n", pa.float64())])
storage.create_table(location, schema)
noise = np.random.default_rng(0)
written = 0
try:
    for number in range(40):
        rows = pa.table({"id": [f"{number}-{i}" for i in range(4000)], "n": noise.random(4000)})
        staged = storage.rows.stage_append(storage.open_at(location, number + 1), rows)
        storage.commit_staged(staged)
        written += 4000
except StorageFull:
    pass
else:
    sys.exit("the disk did not fill up")
head = storage.head_version(location)
assert storage.open_at(location, head).row_count == written, "a failed write left rows behind"
try:
    LocalTextStore().write_text(root.child("x"), "y" * 2_000_000)
except StorageFull:
    pass
else:
    sys.exit("the disk did not fill up for a text")
"""


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    """On a real file system of one megabyte: typed, and what was acknowledged stands."""
    mounted = (
        f'mount -t tmpfs -o size=1m tmpfs {tmp_path} && exec {sys.executable} -c "$0" {tmp_path}'
    )

    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mounted, FULL], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


CLOSED = """
import os, sys
import pyarrow as pa
from omnigraph.errors import StoragePermissionDenied
from omnigraph.storage.location import graph_root
from omnigraph.storage.tables import TableStorage

root = graph_root(sys.argv[1])
TableStorage(root)
if os.geteuid() == 0:
    os.setuid(65534)
storage, location = TableStorage(root), root.table("nodes/t")
schema = pa.schema([pa.field("id", pa.utf8(), nullable=False)])
for attempt in (
    lambda: storage.create_table(location, schema),
    lambda: storage.exists(location.uri),
    lambda: storage.head_version(location),
):
    try:
        attempt()
    except StoragePermissionDenied:
        continue
    sys.exit("no request was denied")
"""


@pytest.mark.slow
def test_a_directory_that_may_not_be_entered(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    for parent in [tmp_path, *tmp_path.parents[:2]]:
        parent.chmod(0o755)

    done = subprocess.run(
        [sys.executable, "-c", CLOSED, str(closed)], capture_output=True, text=True, check=False
    )
    closed.chmod(0o755)

    assert done.returncode == 0, done.stderr


def test_a_store_that_denies_access(denying_s3: Store) -> None:
    storage = TableStorage(denying_s3.root, denying_s3.storage_options)

    with pytest.raises(StoragePermissionDenied):
        storage.exists(denying_s3.root.child("nodes/t"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EACCES, StoragePermissionDenied),
        (errno.EROFS, StoragePermissionDenied),
        (errno.EIO, StorageError),
    ],
)
def test_errors_of_our_own_files_go_by_their_number(code: int, expected: type[Exception]) -> None:
    assert type(ours(OSError(code, "text"))) is expected


def test_what_is_unknown_becomes_a_storage_error_in_our_words() -> None:
    with pytest.raises(StorageError) as caught, lance_errors("compacting", "/data/g"):
        raise OSError("LanceError(Internal): unreachable, /home/runner/x.rs:1")

    assert str(caught.value).startswith("the store failed while compacting at '/data/g'")
    assert "LanceError" not in str(caught.value)
    assert "LanceError" in str(caught.value.__cause__)


def test_a_panic_inside_lance_becomes_a_storage_error() -> None:
    class PanicException(BaseException):
        pass

    with pytest.raises(StorageError), lance_errors("scanning", "/data/g"):
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), lance_errors("scanning", "/data/g"):
        raise KeyboardInterrupt


def test_our_own_errors_pass_through() -> None:
    with pytest.raises(TableNotFound), lance_errors("scanning", "/data/g"):
        raise TableNotFound("/data/g")


def test_a_transaction_twice_applies_twice(dataset: LanceDataset) -> None:
    """Why a staged transaction is committed once. When this fails, Lance has changed."""
    staged = write_fragments(row("c", 1), dataset, return_transaction=True)
    transaction = Transaction(1, staged.operation)

    LanceDataset.commit(dataset, transaction)
    LanceDataset.commit(dataset, transaction)

    assert lance.dataset(dataset.uri).count_rows() == 4
