"""Blob writer: put bytes into one Blob cell, as one commit, without ever holding them in memory.

The bytes lie in a file that is mapped, so Arrow and Lance read them page by page; a stream is first
copied to such a file, and so are the other Blobs of the row. The row is replaced without a join:
a join would copy what it carries.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TypeAlias

import pyarrow as pa

from omnigraph.catalog import Catalog, EntityType, arrow_schema
from omnigraph.commit_note import CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, EntityNotFound, EtagMismatch
from omnigraph.graph.blob_reader import BlobReader, blob_table
from omnigraph.graph.results import MutationResult
from omnigraph.graph.session import Session
from omnigraph.manifest import Snapshot
from omnigraph.storage.blobs import blob_columns
from omnigraph.storage.predicates import IsIn
from omnigraph.write.check import check_change
from omnigraph.write.commit import WriteRequest
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.staging import MutationStaging, PendingMode
from omnigraph.write.touched import TouchedTables

BlobSource: TypeAlias = bytes | Path | IO[bytes]
_PREFIX = "omnigraph-blob-"
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BlobCell:
    """Which Blob is written, and the ETag that it has to have, if one is given."""

    kind: str
    type_name: str
    entity_id: str
    property_name: str
    if_match: str | None = None


def write_blob(
    session: Session,
    cell: BlobCell,
    source: BlobSource,
    branch: str,
    actor: str | None,
    note: CommitNote,
) -> MutationResult:
    """Write bytes that the actor may write.

    Raises:
        EntityNotFound: There is no such node or edge.
        EtagMismatch: The Blob is not the one of `if_match`. Nothing was written.
    """
    schema = session.require_writable(branch)
    catalog = schema.catalog
    key = blob_table(catalog, cell.kind, cell.type_name, cell.property_name)
    with ExitStack() as files:
        new = files.enter_context(_map(source))

        def prepare(snapshot: Snapshot) -> MutationStaging:
            staging = MutationStaging(session.store.tables, catalog, snapshot)
            _replace_cell(staging, catalog.entity(key), cell, new, files)
            check_change(staging)
            return staging

        touched = TouchedTables(frozenset({key}), _ends_of(catalog, key))
        request = WriteRequest(
            kind=WriterKind.MUTATION,
            branch=branch,
            actor=actor,
            touched=touched,
            prepare=prepare,
            note=note.to_json(),
        )
        commit = session.write(request, schema)
    version = commit.manifest_version if commit else session.coordinator.last_seen(branch).version
    return MutationResult(
        commit_id=commit.commit_id if commit else None,
        manifest_version=version,
        affected_nodes=int(cell.kind == "node"),
        affected_edges=int(cell.kind == "edge"),
    )


def _replace_cell(
    staging: MutationStaging, entity: EntityType, cell: BlobCell, new: pa.Array, files: ExitStack
) -> None:
    """Push the row with the new bytes; its other Blobs go through files as well."""
    handle = staging.touch(entity).handle
    schema = arrow_schema(entity)
    blobs = blob_columns(schema)
    plain = [name for name in schema.names if name not in blobs]
    row = staging.scan(entity, IsIn("id", pa.array([cell.entity_id], pa.utf8())), plain)
    if row.num_rows == 0:
        raise EntityNotFound(entity.table_key, cell.entity_id, staging.snapshot.branch)
    columns = {name: row[name] for name in plain}
    for name in blobs:
        stored = None
        if name not in handle.absent:
            stored = staging.tables.reads.open_blob(handle, name, entity_id=cell.entity_id)
        reader = None if stored is None else BlobReader(stored)
        if name == cell.property_name:
            _check_etag(cell, reader)
            columns[name] = new
        else:
            columns[name] = (
                pa.nulls(1, pa.large_binary())
                if reader is None
                else files.enter_context(_map(reader))
            )
    rows = pa.table([columns[name] for name in schema.names], schema=schema)
    staging.push(entity, PendingMode.MERGE, rows, is_strict=True)
    staging.touch(entity).is_replaced = True


def _check_etag(cell: BlobCell, reader: BlobReader | None) -> None:
    actual = None if reader is None else reader.etag
    if cell.if_match is not None and cell.if_match != actual:
        raise EtagMismatch(expected=cell.if_match, actual=actual)


def _ends_of(catalog: Catalog, key: str) -> frozenset[str]:
    """The tables that an edge is checked against."""
    kind, _, name = key.partition(":")
    if kind == "node":
        return frozenset()
    edge = catalog.edges[name]
    return frozenset({f"node:{edge.source}", f"node:{edge.target}"})


@contextmanager
def _map(source: BlobSource) -> Iterator[pa.Array]:
    """One cell of bytes, which are read from a file when they are needed."""
    if isinstance(source, bytes):
        yield pa.array([source], pa.large_binary())
        return
    with ExitStack() as stack:
        if isinstance(source, Path):
            path = source
        elif not hasattr(source, "read"):
            raise BadRequestError(
                f"source is of type {type(source).__name__}, expected bytes, a path or a stream"
            )
        else:
            file = stack.enter_context(tempfile.NamedTemporaryFile(prefix=_PREFIX))
            shutil.copyfileobj(source, file, _COPY_BYTES)
            file.flush()
            path = Path(file.name)
        try:
            size = path.stat().st_size
            # An empty file cannot be mapped.
            data = pa.py_buffer(b"") if size == 0 else pa.memory_map(str(path)).read_buffer()
        except OSError as error:
            raise BadRequestError(f"cannot read '{path}': {error.strerror or error}") from None
        offsets = pa.array([0, size], pa.int64()).buffers()[1]
        yield pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, data])
