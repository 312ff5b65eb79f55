"""Write files: rows to data files of a table, which no version names until they are committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from typing import TypeAlias

import pyarrow as pa
from lance.dataset import LanceOperation
from lance.fragment import write_fragments

from omnigraph.storage.blobs import to_stored_batches
from omnigraph.storage.datasets import DATA_STORAGE_VERSION, session
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.lance_errors import lance_errors

ROWS_PER_FILE_MAX = 1 << 20

Written: TypeAlias = LanceOperation.Append | LanceOperation.Overwrite


def write_files(
    handle: TableHandle,
    batches: Iterator[pa.RecordBatch],
    *,
    mode: str,
    stored: pa.Schema | None = None,
    rows_per_file: int = ROWS_PER_FILE_MAX,
) -> tuple[Written, int]:
    """Write the rows to files: the operation that adds them, and how many they are."""
    source = _Source(batches)
    stored = handle._dataset.schema if stored is None else stored
    reader = pa.RecordBatchReader.from_batches(stored, to_stored_batches(source, stored))
    try:
        with lance_errors(f"staging an {mode}", handle.location):
            transaction = write_fragments(
                reader,
                handle._dataset,
                mode=mode,
                max_rows_per_file=rows_per_file,
                return_transaction=True,
                data_storage_version=DATA_STORAGE_VERSION,
                session=session(),
            )
    except Exception as error:
        # What the source raised is the real reason; Lance would only quote its text.
        raise source.error or error from None
    operation = transaction.operation
    assert isinstance(operation, Written)
    return operation, sum(fragment.physical_rows for fragment in operation.fragments)


class _Source:
    """Iterates batches and remembers what their source raised.

    Lance asks for them in a thread of its own: they are made in the context of the caller, whose
    counters see what is read for them.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._context = copy_context()
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._context.run(next, self._batches, None)) is not None:
                yield batch
        except Exception as error:
            self.error = error
            raise
