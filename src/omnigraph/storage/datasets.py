"""Datasets: opening Lance datasets, and where the store keeps their manifests.

Everything is opened at an exact (location, version) through one process-wide session, so that
decoded metadata is shared and nothing can drift to a newer version by accident.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import lance
import pyarrow as pa
from lance import LanceDataset

from omnigraph.dataclass import dataclass
from omnigraph.errors import StorageError, TableNotFound
from omnigraph.storage.base_paths import relocate_bases
from omnigraph.storage.counters import record
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import manifest_bytes, rename_in_manifest
from omnigraph.storage.location import TableLocation, version_file
from omnigraph.storage.torn import last_whole_version

METADATA_BYTES_MAX = 8 * 1024 * 1024
"""Lance caches every version that was opened; its default of 1 GiB fills within a day of writes."""
INDEX_BYTES_MAX = 256 * 1024 * 1024
DATA_STORAGE_VERSION: Final = "2.2"


@cache
def session() -> Any:
    """The one Lance session of this process: its caches are shared by every open."""
    return lance.Session(  # type: ignore[attr-defined]
        metadata_cache_size_bytes=METADATA_BYTES_MAX, index_cache_size_bytes=INDEX_BYTES_MAX
    )


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens datasets with the options of one store."""

    storage_options: Mapping[str, str]

    def at(self, location: TableLocation, version: int) -> LanceDataset:
        """Open exactly this version."""
        with lance_errors("opening a table", location):
            dataset = self._open(location, version)
        if dataset.version != version:
            raise _zero_file_error(location, version)
        record(opens=1)
        return dataset

    def create(self, uri: str, rows: pa.Table | pa.RecordBatchReader) -> LanceDataset:
        """Create a dataset with its first rows. The caller translates the errors of Lance."""
        # Inline commit: there is no version yet that a staged one could follow.
        return lance.write_dataset(
            rows,
            uri,
            mode="create",
            enable_stable_row_ids=True,
            data_storage_version=DATA_STORAGE_VERSION,
            **self._options,
        )

    def rename_columns(
        self, dataset: LanceDataset, location: TableLocation, names: Mapping[str, str]
    ) -> LanceDataset:
        """The same version with columns under other names (stored → shown)."""
        with lance_errors("opening a table", location):
            return LanceDataset(
                location.physical_uri,
                version=dataset.version,
                **self._options,
                serialized_manifest=rename_in_manifest(manifest_bytes(dataset), names),
            )

    def head(self, location: TableLocation) -> LanceDataset:
        """Open whatever is latest. Only for refs, HEAD probes and the control tables.

        A version that a power cut has torn was never acknowledged: the one before it is latest.
        """
        try:
            with lance_errors("finding the latest version of a table", location):
                dataset = self._open(location, None)
            if dataset.version == 0:
                raise _zero_file_error(location, None)
        except StorageError as error:
            whole = last_whole_version(location) if type(error) is StorageError else None
            if whole is None:
                raise
            if whole == 0:
                raise TableNotFound(str(location)) from None
            return self.at(location, whole)
        record(head_probes=1)
        return dataset

    def is_latest(self, location: TableLocation, version: int) -> bool:
        """Whether the names of its files prove that a version is the latest one.

        For a version that is pinned: of those after it no cleanup removes any, so the next one is
        there if any is. Nothing is proved in an object store.
        """
        if not location.is_local:
            return False
        top = location.physical_uri
        has_next = os.path.lexists(f"{top}/{version_file(version + 1)}")
        return not has_next and os.path.exists(f"{top}/{version_file(version)}")

    def _open(self, location: TableLocation, version: int | None) -> LanceDataset:
        dataset = lance.dataset(location.physical_uri, version=version, **self._options)
        if location.branch is None:
            return dataset
        return relocate_bases(dataset, location, self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {"storage_options": dict(self.storage_options) or None, "session": session()}


def _zero_file_error(location: TableLocation, version: int | None) -> StorageError:
    """Lance reads a version file of nothing but zeros as a table without columns, at version 0."""
    what = "the latest version" if version is None else f"version {version}"
    return StorageError(
        f"{what} of the table at '{location}' is damaged: its file is empty of data — restore it "
        "from a backup"
    )


def write_in_memory(schema: pa.Schema, batches: Iterable[pa.RecordBatch] = ()) -> LanceDataset:
    """A dataset in the memory of this process only."""
    # Inline commit: in memory, where only this handle can see it.
    return lance.write_dataset(
        pa.RecordBatchReader.from_batches(schema, batches),
        f"memory://{uuid4()}",
        enable_stable_row_ids=True,
        data_storage_version=DATA_STORAGE_VERSION,
    )


def manifest_path(location: TableLocation, version: int) -> str:
    """Where the store keeps the Lance manifest of a version: a path in it, not a URI."""
    physical = location.physical_uri
    path = urlsplit(physical).path if "://" in physical else physical
    return f"{path.lstrip('/')}/{version_file(version)}"
