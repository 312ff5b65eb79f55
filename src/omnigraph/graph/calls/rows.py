"""Row calls: whole types, single entities and Blobs, without a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, overload

from omnigraph.commit_note import read_note
from omnigraph.errors import BadRequestError
from omnigraph.graph.calls.part import GraphPart
from omnigraph.index import open_tables
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.graph.blob_reader import BlobReader
    from omnigraph.graph.results import MutationResult
    from omnigraph.pipeline.progress import Listener
    from omnigraph.pipeline.scan import TableScan


class RowCalls(GraphPart):
    """Read rows as they are stored, and read or write one Blob."""

    @overload
    def export(
        self,
        path: None = None,
        *,
        branch: str = ...,
        commit: str | None = ...,
        version: int | None = ...,
        types: Sequence[str] | None = ...,
        schema: str = ...,
        format: str = ...,
        engine: str = ...,
        progress: Listener | bool | None = ...,
    ) -> Iterator[dict[str, Any]]: ...

    @overload
    def export(
        self,
        path: str | Path,
        *,
        branch: str = ...,
        commit: str | None = ...,
        version: int | None = ...,
        types: Sequence[str] | None = ...,
        schema: str = ...,
        format: str = ...,
        engine: str = ...,
        progress: Listener | bool | None = ...,
    ) -> Path: ...

    def export(
        self,
        path: str | Path | None = None,
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        types: Sequence[str] | None = None,
        schema: str = "commit",
        format: str = "jsonl",  # noqa: A002 — the word of the API
        engine: str = "auto",
        progress: Listener | bool | None = None,
    ) -> Path | Iterator[dict[str, Any]]:
        """Write a snapshot as load records (or Parquet) to `path`, or yield the records.

        Loading an export with mode `overwrite` into a fresh graph of the same schema gives the
        same rows, ids too: that of the commit, or with `schema="current"` that of today.
        """
        from omnigraph.pipeline.export import select_tables
        from omnigraph.pipeline.run_export import run_export

        catalog, snapshot, _ = self._session.read_as(
            (branch, commit, version, None),
            schema,
            lambda catalog, _: select_tables(catalog, types),
        )
        return run_export(
            self._session.store.tables,
            catalog,
            snapshot,
            path=None if path is None else Path(path),
            types=types,
            file_format=format,
            engine=engine,
            progress=progress,
            spark=self._session.settings.spark,
        )

    def nodes(self, type: str, **selection: Any) -> TableScan:  # noqa: A002 — the word of the API
        """The rows of a node type at a snapshot: of a branch now, or a commit, version or time."""
        return self.scan(f"node:{type}", **selection)

    def edges(self, type: str, **selection: Any) -> TableScan:  # noqa: A002 — the word of the API
        """The rows of an edge type at a snapshot: of a branch now, or a commit, version or time."""
        return self.scan(f"edge:{type}", **selection)

    def scan(
        self,
        type: str,  # noqa: A002 — the word of the API
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
        schema: str = "commit",
        columns: Sequence[str] | None = None,
    ) -> TableScan:
        """The rows of a type, by its name or table key, at a pinned snapshot."""
        from omnigraph.pipeline.frames import table_key
        from omnigraph.pipeline.scan import scan_at

        tables, spark = self._session.store.tables, self._session.settings.spark
        _, _, scan = self._session.read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, snapshot: scan_at(
                tables, snapshot, table_key(catalog, type), columns, spark
            ),
        )
        return scan

    def entity_at(
        self,
        table_key: str,
        id: str,  # noqa: A002 — the API names it so
        version: int,
        *,
        branch: str = MAIN,
        schema: str = "commit",
    ) -> dict[str, Any] | None:
        """One node or edge as it was at a manifest version, None when it was not there."""
        from omnigraph.branch.entities import entry_of, read_entity

        _, _, entry = self._session.read_as(
            (branch, None, version, None), schema, lambda _, found: entry_of(found, table_key)
        )
        return read_entity(self._session.store.tables, entry, id)

    def read_blob(
        self,
        kind: str,
        type: str,  # noqa: A002 — the word of the API
        id: str,  # noqa: A002 — the API names it so
        property: str,  # noqa: A002 — the API names it so
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
        schema: str = "commit",
    ) -> BlobReader:
        """The bytes of one Blob of a node or edge (`kind`), at a snapshot.

        Raises:
            BadRequestError: There is no such kind, type or property, or the property is no Blob.
            NotFoundError: There is no such node or edge, or its value is null.
        """
        from omnigraph.graph.blob_reader import blob_table, read_blob

        tables = self._session.store.tables
        catalog, snapshot, key = self._session.read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, _: blob_table(catalog, kind, type, property),
        )
        handle = open_tables(snapshot, catalog, tables, self._session.cache).view(key).handle
        return read_blob(tables, handle, key, id, property)

    def write_blob(
        self,
        kind: str,
        type: str,  # noqa: A002 — the word of the API
        id: str,  # noqa: A002 — the API names it so
        property: str,  # noqa: A002 — the API names it so
        source: bytes | Path | IO[bytes],
        *,
        branch: str = MAIN,
        if_match: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MutationResult:
        """Make bytes, a file or what a stream holds the Blob of a node or edge, as one commit.

        Memory does not follow the size. With `if_match`, only while the Blob has that `etag`.

        Raises:
            BadRequestError: There is no such kind, type or property, or the property is no Blob.
            EntityNotFound: There is no such node or edge.
            EtagMismatch: The Blob has another ETag, or none. Nothing was written.
        """
        from omnigraph.graph.blob_writer import BlobCell, write_blob

        if not isinstance(source, bytes | Path) and not hasattr(source, "read"):
            found = source.__class__.__name__
            raise BadRequestError(f"source is of type {found}, expected bytes, a path or a stream")
        who = self._session.permit(Action.CHANGE, actor=actor, branch=branch)
        cell = BlobCell(kind, type, id, property, if_match)
        note = read_note(message, metadata)
        return write_blob(self._session, cell, source, canonical_branch(branch), who, note)
