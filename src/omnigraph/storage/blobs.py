"""Blobs: between the logical schema, in which a Blob is LargeBinary, and Lance's blob columns.

A logical LargeBinary column is always a Blob: no other property type has that Arrow form. Lance
stores small blobs inside the data file and large ones beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import SEEK_CUR, SEEK_END, SEEK_SET, RawIOBase
from typing import TYPE_CHECKING

import pyarrow as pa
from lance import LanceDataset
from lance.blob import BlobFile, BlobType, blob_field

from omnigraph.storage.lance_errors import lance_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PRIMARY_KEY = "lance-schema:unenforced-primary-key"

_NO_URI = pa.scalar(None, pa.utf8())
_NO_RANGE = pa.scalar(None, pa.uint64())


def is_blob(field: pa.Field) -> bool:
    """Whether a logical field is a Blob."""
    return bool(pa.types.is_large_binary(field.type))


def blob_columns(schema: pa.Schema) -> list[str]:
    """The names of the Blob columns of a logical schema."""
    return [field.name for field in schema if is_blob(field)]


def to_stored_schema(logical: pa.Schema) -> pa.Schema:
    """The schema Lance is given for a logical one."""
    fields = [
        blob_field(field.name, nullable=field.nullable) if is_blob(field) else field
        for field in logical
    ]
    return pa.schema(fields, metadata=logical.metadata)


def to_keyed_schema(logical: pa.Schema) -> pa.Schema:
    """The schema Lance is given, with `id` as the primary key."""
    return pa.schema(
        field.with_metadata({PRIMARY_KEY: "true"}) if field.name == "id" else field
        for field in to_stored_schema(logical)
    )


def to_logical_schema(stored: pa.Schema) -> pa.Schema:
    """The logical schema of what Lance stores."""
    fields = [
        pa.field(field.name, pa.large_binary(), nullable=field.nullable)
        if isinstance(field.type, BlobType)
        else field
        for field in stored
    ]
    return pa.schema(fields, metadata=stored.metadata)


def to_stored(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """Return logical rows in the form Lance writes, columns in the order of `stored`."""
    fields = [field for field in stored if field.name in rows.column_names]
    columns = [
        _blob_chunks(rows.column(field.name))
        if isinstance(field.type, BlobType)
        else rows.column(field.name)
        for field in fields
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def to_stored_batches(
    batches: Iterable[pa.RecordBatch], stored: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Convert a stream of logical batches, one at a time."""
    for batch in batches:
        yield from to_stored(pa.Table.from_batches([batch]), stored).to_batches()


def _blob_chunks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [_blob_array(chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=BlobType())


def _blob_array(values: pa.Array) -> pa.Array:
    count = len(values)
    if isinstance(values.type, BlobType):
        return values
    children = [
        values,
        pa.repeat(_NO_URI, count),
        pa.repeat(_NO_RANGE, count),
        pa.repeat(_NO_RANGE, count),
    ]
    storage = pa.StructArray.from_arrays(
        children, fields=list(BlobType().storage_type), mask=values.is_null()
    )
    return pa.ExtensionArray.from_storage(BlobType(), storage)


class StoredBlob(RawIOBase):
    """The bytes of one Blob cell, read as they are asked for.

    `stamp` changes whenever its row is written, and is the same on every branch and in every copy.
    """

    def __init__(self, file: BlobFile, stamp: str) -> None:
        super().__init__()
        self._file = file
        self.size = int(file.size())
        self.stamp = stamp

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        starts = {SEEK_SET: 0, SEEK_CUR: self.tell(), SEEK_END: self.size}
        place = max(starts[whence] + offset, 0)
        self._file.seek(place)
        return place

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        with lance_errors("reading a blob", self.stamp):
            data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)


def open_blob(dataset: LanceDataset, column: str, row_id: int, stamp: str) -> StoredBlob | None:
    """Open the Blob of one row; None when it is null."""
    file = dataset.take_blobs(column, ids=[row_id])[0]
    return None if file is None else StoredBlob(file, stamp)


def read_blobs(
    dataset: LanceDataset, column: str, row_ids: list[int], addresses: list[int] | None
) -> list[bytes | None]:
    """Return the bytes of a Blob column for each row id, in that order."""
    if not row_ids:
        return []
    found = (
        dataset.read_blobs(column, ids=row_ids, preserve_order=True)
        if addresses is None
        else dataset.read_blobs(column, addresses=addresses, preserve_order=True)
    )
    return [data for _, data in found]
