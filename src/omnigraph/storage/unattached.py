"""Unattached fragments: rows written to data files that no table knows yet.

A load writes them from many processes into its own scratch directory and needs only a schema for
that: no table is opened, no HEAD moves, and a load that dies leaves one directory to remove. The
process that commits adopts them: it moves the files into the table and gives their columns the
field ids that the table uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.dataset import LanceOperation
from lance.file import LanceFileReader
from lance.fragment import FragmentMetadata, write_fragments
from lance.schema import LanceSchema

from omnigraph.dataclass import dataclass
from omnigraph.errors import StorageError
from omnigraph.storage.blobs import to_stored, to_stored_schema
from omnigraph.storage.checksums import Checksums, checksum_files
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import DATA_STORAGE_VERSION
from omnigraph.storage.handles import StagedTransaction, StageKind, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.objects import move_files
from omnigraph.storage.operation_files import existing_files
from omnigraph.storage.staging import write_deletions
from omnigraph.storage.transactions import Stager, commit_scratch

ROWS_PER_FRAGMENT_MAX = 1 << 20
_ROWS_WITH_BLOBS = 128
_BYTES_WITH_BLOBS = 32 << 20


@dataclass(frozen=True, slots=True)
class UnattachedFragment:
    """One fragment: where its `data` directory is, and Lance's metadata of it, as JSON.

    `checksums` are by path from there; on an object store they are taken after the commit.
    """

    uri: str
    rows: int
    metadata: str
    checksums: Checksums = field(default_factory=dict)

    @property
    def file_names(self) -> list[str]:
        """The data files, relative to the `data` directory."""
        return [file["path"] for file in json.loads(self.metadata)["files"]]


def write_unattached(
    uri: str,
    rows: pa.Table,
    schema: pa.Schema,
    storage_options: Mapping[str, str] | None = None,
) -> list[UnattachedFragment]:
    """Write rows of a logical schema below `uri`; several fragments when there are very many."""
    stored = to_stored_schema(schema)
    with lance_errors("writing rows of a load", uri):
        written = write_fragments(
            to_stored(rows, stored),
            uri,
            schema=stored,
            mode="create",
            max_rows_per_file=ROWS_PER_FRAGMENT_MAX,
            data_storage_version=DATA_STORAGE_VERSION,
            enable_stable_row_ids=True,
            storage_options=dict(storage_options or {}) or None,
        )
        return [_describe(uri, fragment) for fragment in written]


def _describe(uri: str, fragment: FragmentMetadata) -> UnattachedFragment:
    # Checksums are taken where files are written, so that the tasks of a load do it in parallel.
    files = [] if "://" in uri else existing_files(LanceOperation.Append([fragment]), uri)
    metadata = json.dumps(fragment.to_json())
    return UnattachedFragment(uri, fragment.physical_rows, metadata, checksum_files(files, uri))


def read_unattached(
    fragment: UnattachedFragment,
    columns: Sequence[str],
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Read some columns, not Blobs, of an unattached fragment."""
    (name,) = fragment.file_names
    with lance_errors("reading rows of a load", fragment.uri):
        reader = LanceFileReader(
            f"{fragment.uri}/data/{name}",
            storage_options=dict(storage_options or {}) or None,
            columns=list(columns),
        )
        rows = reader.read_all(batch_size=1 << 16).to_table()
    return rows.select(list(columns))


def stream_unattached(
    fragment: UnattachedFragment,
    schema: pa.Schema,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[pa.Table]:
    """The rows of an unattached fragment, Blobs included, some megabytes at a time.

    Only a dataset tells where the bytes of a Blob are, so the fragment is made one, where it is.
    """
    with lance_errors("reading rows of a load", fragment.uri):
        written = FragmentMetadata.from_json(fragment.metadata)
        operation = LanceOperation.Overwrite(to_stored_schema(schema), [written])
        dataset = commit_scratch(fragment.uri, operation, storage_options)
        scanner = dataset.scanner(
            blob_handling="all_binary", batch_size=_ROWS_WITH_BLOBS, batch_readahead=1
        )
        batches: list[pa.RecordBatch] = []
        for batch in scanner.to_batches():
            batches.append(batch)
            if sum(each.nbytes for each in batches) >= _BYTES_WITH_BLOBS:
                yield pa.Table.from_batches(batches)
                batches = []
        if batches:
            yield pa.Table.from_batches(batches)


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """Rows of a table marked deleted in files that no version names yet.

    `updated` are the fragments they are in, as JSON of Lance; of those in `removed` all rows go.
    """

    updated: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()


def mark_deleted(handle: TableHandle, addresses: np.ndarray) -> MarkedRows:
    """Write deletion files for the rows at `addresses`. Tasks do so, each for its own fragments."""
    with lance_errors("marking rows deleted", handle.location):
        updated, removed = write_deletions(handle._dataset, addresses)
    return MarkedRows(tuple(json.dumps(each.to_json()) for each in updated), tuple(removed))


@dataclass(frozen=True, slots=True)
class UnattachedFragments:
    """All unattached fragments of one table, and the logical schema they were written with."""

    schema: pa.Schema
    fragments: tuple[UnattachedFragment, ...]

    @property
    def rows(self) -> int:
        return sum(fragment.rows for fragment in self.fragments)

    @property
    def checksums(self) -> Checksums:
        return {
            path: each for fragment in self.fragments for path, each in fragment.checksums.items()
        }


@dataclass(frozen=True, slots=True)
class UnattachedStaging:
    """Turns unattached fragments into the staged change of a table."""

    stager: Stager
    storage_options: Mapping[str, str]

    def stage_append(self, handle: TableHandle, new: UnattachedFragments) -> StagedTransaction:
        """Stage the fragments as new rows."""
        operation = LanceOperation.Append(self._adopt(handle, new))
        staged = self._stage(handle, StageKind.APPEND, operation, new)
        record(stage_append_calls=1, stage_append_rows=new.rows)
        return staged

    def stage_overwrite(self, handle: TableHandle, new: UnattachedFragments) -> StagedTransaction:
        """Stage the fragments as all the rows there are."""
        adopted = self._adopt(handle, new)
        operation = LanceOperation.Overwrite(handle._dataset.lance_schema, adopted)
        return self._stage(handle, StageKind.OVERWRITE, operation, new)

    def stage_replace(
        self, handle: TableHandle, new: UnattachedFragments, marked: Sequence[MarkedRows]
    ) -> StagedTransaction:
        """Stage the fragments as new rows, and the removal of the rows that are marked."""
        updated = [FragmentMetadata.from_json(text) for each in marked for text in each.updated]
        operation = LanceOperation.Update(
            removed_fragment_ids=[number for each in marked for number in each.removed],
            updated_fragments=updated,
            new_fragments=self._adopt(handle, new),
        )
        staged = self._stage(handle, StageKind.UPDATE, operation, new)
        record(stage_update_rows=new.rows)
        return staged

    def _stage(
        self,
        handle: TableHandle,
        kind: StageKind,
        operation: LanceOperation.BaseOperation,
        new: UnattachedFragments,
    ) -> StagedTransaction:
        return self.stager.stage(handle, kind, operation, rows=new.rows, checksums=new.checksums)

    def _adopt(self, handle: TableHandle, new: UnattachedFragments) -> list[FragmentMetadata]:
        """Move the files into the table; files that are there already stay."""
        move_files(
            [(f"{each.uri}/data", name) for each in new.fragments for name in each.file_names],
            f"{handle.location.physical_uri}/data",
            self.storage_options,
        )
        ids = _field_ids(handle._dataset, to_stored_schema(new.schema))
        return [_renumber(each, ids) for each in new.fragments]


def _field_ids(dataset: LanceDataset, written: pa.Schema) -> dict[int, int]:
    """Field id as `write_unattached` numbers it → the one of the table, matched by column name."""
    in_table = {field.name(): field for field in dataset.lance_schema.fields()}
    fresh = {field.name(): field for field in LanceSchema.from_pyarrow(written).fields()}
    if in_table.keys() != fresh.keys():
        raise StorageError("the columns of a table changed during a load — run the load again")
    pairs = ((fresh[name], in_table[name]) for name in fresh)
    return dict(_id_pairs(pairs))


def _id_pairs(pairs: Iterable[tuple[Any, Any]]) -> Iterator[tuple[int, int]]:
    for fresh, known in pairs:
        yield fresh.id(), known.id()
        yield from _id_pairs(zip(fresh.children(), known.children(), strict=True))


def _renumber(fragment: UnattachedFragment, ids: Mapping[int, int]) -> FragmentMetadata:
    metadata = json.loads(fragment.metadata)
    for file in metadata["files"]:
        file["fields"] = [ids.get(each, each) for each in file["fields"]]
    return FragmentMetadata.from_json(json.dumps(metadata))
