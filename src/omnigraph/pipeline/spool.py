"""Spool: partitions of a frame as Parquet files, on disk or in an object store, for tasks to read.

A file appears whole or not at all. The caller that made the spool removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import field
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.input_files import is_object
from omnigraph.storage.lance_errors import lance_errors, translate

_ROWS_PER_GROUP = 100_000


@dataclass(frozen=True, slots=True)
class Spool:
    """One directory of files. It travels to the executors that write them."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)

    def make(self) -> None:
        if not is_object(self.uri):
            os.makedirs(self.uri, exist_ok=True)

    def write(self, batches: Iterable[pa.RecordBatch], number: int) -> str | None:
        """Write the batches of one partition to one file; None, and no file, for no rows."""
        name = f"{number:06d}-{uuid4().hex}.parquet"
        with lance_errors("writing rows of a frame", self.uri):
            if is_object(self.uri):
                return self._upload(batches, name)
            path = os.path.join(self.uri, name)
            if not _write_parquet(batches, f"{path}.partial"):
                return None
            os.replace(f"{path}.partial", path)
            return path

    def remove(self) -> None:
        """Remove all files; nothing to remove is success."""
        if not is_object(self.uri):
            shutil.rmtree(self.uri, ignore_errors=True)
            return
        import obstore

        from omnigraph.storage.text_s3 import s3_bucket

        store, key = s3_bucket(self.uri, self.storage_options)
        for page in obstore.list(store, prefix=key):
            obstore.delete(store, [item["path"] for item in page])

    def _upload(self, batches: Iterable[pa.RecordBatch], name: str) -> str | None:
        import obstore
        from obstore.exceptions import BaseError

        from omnigraph.storage.text_s3 import s3_bucket

        store, key = s3_bucket(self.uri, self.storage_options)
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            if not _write_parquet(batches, file.name):
                return None
            try:
                obstore.put(store, f"{key}/{name}", file.file)
            except BaseError as error:
                raise translate(error, action="writing rows of a frame", location=name) from error
        return f"{self.uri}/{name}"


def is_parquet(schema: pa.Schema) -> bool:
    """Whether a Parquet file can hold columns of these types."""
    try:
        pq.ParquetWriter(pa.BufferOutputStream(), schema).close()
    except pa.ArrowException:
        return False
    return True


def _write_parquet(batches: Iterable[pa.RecordBatch], path: str) -> bool:
    writer: pq.ParquetWriter | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if writer is None:
            writer = pq.ParquetWriter(path, batch.schema)
        writer.write_batch(batch, row_group_size=_ROWS_PER_GROUP)
    if writer is None:
        return False
    writer.close()
    return True
