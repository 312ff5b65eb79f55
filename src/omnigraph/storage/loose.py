"""Loose fragments: rows written to data files that no table knows yet.

A load writes them from many processes into its own scratch directory, with nothing but a schema in
hand: no table is opened, no HEAD moves, and a load that dies leaves one directory to remove. The
process that commits adopts them: it moves the files into the table and gives their columns the
field ids that the table uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.dataset import LanceOperation
from lance.file import LanceFileReader
from lance.fragment import FragmentMetadata, write_fragments
from lance.schema import LanceSchema

from omnigraph.errors import StorageError
from omnigraph.storage.blobs import stored_schema, to_stored
from omnigraph.storage.checksums import Checksums, checksum_files
from omnigraph.storage.counters import record
from omnigraph.storage.filters import is_pushable, to_lance
from omnigraph.storage.handles import StagedTransaction, StageKind, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.masks import to_mask
from omnigraph.storage.objects import move_files
from omnigraph.storage.operation_files import existing_files
from omnigraph.storage.predicates import Predicate, columns_of
from omnigraph.storage.reads import fill_absent
from omnigraph.storage.staging import DATA_STORAGE_VERSION, deleted_fragments
from omnigraph.storage.transactions import Stager

ADDRESS = "_rowaddr"
ROWS_PER_FRAGMENT_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class LooseFragment:
    """One fragment: where its `data` directory is, and what Lance says about it, as JSON.

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


def write_loose(
    uri: str,
    rows: pa.Table,
    schema: pa.Schema,
    storage_options: Mapping[str, str] | None = None,
) -> list[LooseFragment]:
    """Write rows of a logical schema below `uri`; several fragments when there are very many."""
    stored = stored_schema(schema)
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
        return [
            LooseFragment(
                uri,
                fragment.physical_rows,
                json.dumps(fragment.to_json()),
                _checksums(uri, fragment),
            )
            for fragment in written
        ]


def _checksums(uri: str, fragment: FragmentMetadata) -> Checksums:
    """Taken where the files were written: tasks of a load do it beside one another."""
    if "://" in uri:
        return {}
    return checksum_files(existing_files(LanceOperation.Append([fragment]), uri), uri)


def read_loose(
    fragment: LooseFragment,
    columns: Sequence[str],
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Read some columns, not Blobs, of a loose fragment."""
    (name,) = fragment.file_names
    with lance_errors("reading rows of a load", fragment.uri):
        reader = LanceFileReader(
            f"{fragment.uri}/data/{name}",
            storage_options=dict(storage_options or {}) or None,
            columns=list(columns),
        )
        rows = reader.read_all(batch_size=1 << 16).to_table()
    return rows.select(list(columns))


@dataclass(frozen=True, slots=True)
class LooseRows:
    """All loose fragments of one table, and the logical schema they were written with."""

    schema: pa.Schema
    fragments: tuple[LooseFragment, ...]

    @property
    def rows(self) -> int:
        return sum(fragment.rows for fragment in self.fragments)

    @property
    def checksums(self) -> Checksums:
        return {
            path: each for fragment in self.fragments for path, each in fragment.checksums.items()
        }


@dataclass(frozen=True, slots=True)
class LooseStaging:
    """Turns loose fragments into the staged change of a table."""

    stager: Stager
    storage_options: Mapping[str, str]

    def append(self, handle: TableHandle, loose: LooseRows) -> StagedTransaction:
        """Stage the fragments as new rows."""
        operation = LanceOperation.Append(self._adopted(handle, loose))
        staged = self.stager.stage(
            handle, StageKind.APPEND, operation, rows=loose.rows, checksums=loose.checksums
        )
        record(stage_append_calls=1, stage_append_rows=loose.rows)
        return staged

    def overwrite(self, handle: TableHandle, loose: LooseRows) -> StagedTransaction:
        """Stage the fragments as all the rows there are."""
        adopted = self._adopted(handle, loose)
        operation = LanceOperation.Overwrite(handle._dataset.lance_schema, adopted)
        return self.stager.stage(
            handle, StageKind.OVERWRITE, operation, rows=loose.rows, checksums=loose.checksums
        )

    def replace(
        self, handle: TableHandle, loose: LooseRows, addresses: np.ndarray
    ) -> StagedTransaction:
        """Stage the fragments as new rows, and the removal of the rows at `addresses`."""
        with lance_errors("staging a merge", handle.location):
            updated, removed = deleted_fragments(handle._dataset, addresses)
        operation = LanceOperation.Update(
            removed_fragment_ids=removed,
            updated_fragments=updated,
            new_fragments=self._adopted(handle, loose),
        )
        staged = self.stager.stage(
            handle, StageKind.UPDATE, operation, rows=loose.rows, checksums=loose.checksums
        )
        record(stage_update_rows=loose.rows)
        return staged

    def _adopted(self, handle: TableHandle, loose: LooseRows) -> list[FragmentMetadata]:
        """Move the files into the table; files that are there already stay."""
        move_files(
            [(f"{each.uri}/data", name) for each in loose.fragments for name in each.file_names],
            f"{handle.location.physical_uri}/data",
            self.storage_options,
        )
        ids = _field_ids(handle._dataset, stored_schema(loose.schema))
        return [_renumbered(each, ids) for each in loose.fragments]


def scan_addresses_of(
    handle: TableHandle,
    columns: Sequence[str],
    predicate: Predicate | None = None,
    fragment_ids: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield columns of a table, with the physical address of every row, in bounded memory."""
    dataset = handle._dataset
    mask = None
    read = [name for name in columns if name not in handle.absent]
    if predicate is not None and not handle.absent.isdisjoint(columns_of(predicate)):
        mask, predicate = predicate, None
        needed = [name for name in columns_of(mask) if name not in handle.absent]
        read = list(dict.fromkeys([*read, *needed]))
    with lance_errors("reading a table", handle.location):
        options: dict[str, Any] = {
            "columns": read,
            "with_row_address": True,
            "blob_handling": "all_binary",
        }
        if predicate is not None:
            assert is_pushable(predicate, handle.schema), predicate
            options |= {"filter": to_lance(predicate, handle.schema), "prefilter": True}
        if fragment_ids is not None:
            options["fragments"] = [dataset.get_fragment(each) for each in fragment_ids]
        batches = iter(dataset.scanner(batch_size=1 << 16, **options).to_reader())
    rows = 0
    while True:
        with lance_errors("reading a table", handle.location):
            batch = next(batches, None)
        if batch is None:
            break
        if handle.absent:
            batch = fill_absent(handle, batch)
        if mask is not None:
            batch = batch.filter(to_mask(mask, batch))
        rows += batch.num_rows
        yield batch.select([*columns, ADDRESS])
    record(scans=1, rows_scanned=rows)


def referenced_files(dataset: LanceDataset) -> set[str]:
    """The names of the data files that a version consists of."""
    return {file.path for fragment in dataset.get_fragments() for file in fragment.metadata.files}


def _field_ids(dataset: LanceDataset, written: pa.Schema) -> dict[int, int]:
    """Field id as `write_loose` numbers it → the id the table uses, columns matched by name."""
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


def _renumbered(fragment: LooseFragment, ids: Mapping[int, int]) -> FragmentMetadata:
    metadata = json.loads(fragment.metadata)
    for file in metadata["files"]:
        file["fields"] = [ids.get(each, each) for each in file["fields"]]
    return FragmentMetadata.from_json(json.dumps(metadata))
