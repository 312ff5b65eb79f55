"""Reading a graph: queries, scans, exports, and what was when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from time import perf_counter, time_ns
from typing import Any, overload

from omnigraph.branch.diff import (
    entity_at,
)
from omnigraph.catalog import Catalog
from omnigraph.compiler import (
    bind_params,
    require_read,
)
from omnigraph.errors import BadRequestError, VersionNotFound
from omnigraph.executor import Explanation, QueryResult, execute, explain
from omnigraph.graph.blob_reader import BlobReader, read_blob
from omnigraph.graph.handle import Handle
from omnigraph.graph.query_source import compile_source
from omnigraph.graph.store import MANIFEST_TABLE
from omnigraph.graph.unmoved import Unmoved
from omnigraph.index import open_tables
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.manifest import (
    MAIN,
    GraphCommit,
    Snapshot,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.history import ancestry
from omnigraph.pipeline.frames import table_key
from omnigraph.pipeline.progress import Listener
from omnigraph.pipeline.run_export import run_export
from omnigraph.pipeline.scan import TableScan, scan_at
from omnigraph.write.audit import RecoveryRecord, list_recoveries

_VERSIONS_END = 2**63


class Reading(Handle):
    """The calls that change nothing."""

    @cached_property
    def _unmoved(self) -> Unmoved[tuple[Catalog, Snapshot]]:
        return Unmoved(self._store.root, MANIFEST_TABLE)

    def _reading(
        self,
        branch: str,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
    ) -> tuple[Catalog, Snapshot]:
        """As it is; a branch whose files have not moved since the last look is not looked at."""
        _require_version(version, branch)
        if (commit, version, at) != (None, None, None) or self._is_closed:
            return super()._reading(branch, commit, version, at)
        name = branch if branch == MAIN else canonical_branch(branch)
        look = self._unmoved.look(name)
        found = self._unmoved.find(name, look)
        if found is None:
            found = super()._reading(name)
            self._unmoved.keep(name, look, found, found[1].manifest_version)
        return found

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
        engine: str = "local",
    ) -> QueryResult:
        """Run a read over one snapshot: of a branch now, or of a commit, version or time.

        The engine is `local`: this process. `spark` is refused until queries can run there.
        """
        started = perf_counter()
        _require_local(engine)
        catalog, snapshot = self._reading(branch, commit, version, at)
        ir = require_read(compile_source(source, catalog, name))
        bound = bind_params(ir.params, params) | {NOW_PARAMETER: time_ns() // 1_000_000}
        table = execute(
            ir, bound, snapshot, catalog, self._store.tables, self._cache, self._embedder
        )
        return QueryResult(
            table,
            ir.name,
            snapshot.branch,
            snapshot.head.commit_id,
            snapshot.manifest_version,
            elapsed_ms=1_000 * (perf_counter() - started),
        )

    def run_query_at(
        self,
        version: int,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> QueryResult:
        """Run a read over `main` as it stood at a manifest version."""
        return self.query(source, name, params, version=version)

    def explain(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        analyze: bool = False,
    ) -> Explanation:
        """Show every stage of a read: IR and plan, and with `analyze` what running it did."""
        catalog, snapshot = self._reading(branch)
        ir = require_read(compile_source(source, catalog, name))
        bound: dict[str, Any] = {}
        if analyze:
            bound = bind_params(ir.params, params) | {NOW_PARAMETER: time_ns() // 1_000_000}
        return explain(
            ir,
            snapshot,
            catalog,
            self._store.tables,
            self._cache,
            params=bound,
            embedder=self._embedder,
            analyze=analyze,
        )

    @overload
    def export(
        self,
        path: None = None,
        *,
        branch: str = ...,
        commit: str | None = ...,
        version: int | None = ...,
        types: Sequence[str] | None = ...,
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
        format: str = "jsonl",  # noqa: A002 — the word of the API
        engine: str = "auto",
        progress: Listener | bool | None = None,
    ) -> Path | Iterator[dict[str, Any]]:
        """Write a snapshot as load records (or Parquet) to `path`, or yield the records.

        Loading an export with mode `overwrite` into a fresh graph gives the same rows, ids too.
        """
        catalog, snapshot = self._reading(branch, commit, version)
        return run_export(
            self._store.tables,
            catalog,
            snapshot,
            path=None if path is None else Path(path),
            types=types,
            file_format=format,
            engine=engine,
            progress=progress,
            spark=self._settings.spark,
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
        columns: Sequence[str] | None = None,
    ) -> TableScan:
        """The rows of a type, by its name or table key, at a pinned snapshot."""
        catalog, snapshot = self._reading(branch, commit, version, at)
        key = table_key(catalog, type)
        from omnigraph.graph.graph import open as open_graph  # it knows this class

        return scan_at(self._store.tables, snapshot, key, columns, open_graph, self._settings.spark)

    def entity_at(
        self,
        table_key: str,
        id: str,  # noqa: A002 — the API names it so
        version: int,
        *,
        branch: str = MAIN,
    ) -> dict[str, Any] | None:
        """One node or edge as it was at a manifest version, None when it was not there."""
        snapshot = self.snapshot_at_version(version, branch=branch)
        return entity_at(self._store.tables, snapshot, table_key, id)

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
    ) -> BlobReader:
        """The bytes of one Blob of a node or edge (`kind`), at a snapshot.

        Raises:
            BadRequestError: There is no such kind, type or property, or the property is no Blob.
            NotFoundError: There is no such node or edge, or its value is null.
        """
        catalog, snapshot = self._reading(branch, commit, version, at)
        tables = self._store.tables
        opened = open_tables(snapshot, catalog, tables, self._cache)
        return read_blob(tables, opened, catalog, (kind, type, id, property))

    def commits(
        self, branch: str = MAIN, *, actor: str | None = None, limit: int | None = None
    ) -> list[GraphCommit]:
        """The commits visible on a branch, newest first."""
        self._checked_contract()
        found = self._coordinator.commits(canonical_branch(branch))
        wanted = [commit for commit in found if actor is None or commit.actor == actor]
        return wanted[:limit]

    def log(self, branch: str = MAIN, *, limit: int | None = None) -> list[GraphCommit]:
        """Every commit that led to a branch, those of merged branches too, newest first."""
        self._checked_contract()
        name = canonical_branch(branch)
        return ancestry(self._coordinator, self._store.history, name)[:limit]

    def recoveries(self) -> list[RecoveryRecord]:
        """Every write that recovery had to finish or undo, oldest first."""
        self._checked_contract()
        return list_recoveries(self._store.audit)

    def commit(self, commit_id: str) -> GraphCommit:
        """One commit, on whichever branch it is."""
        self._checked_contract()
        return self._coordinator.commit(commit_id)

    def snapshot(self, branch: str = MAIN) -> Snapshot:
        """What a branch shows now: a pin per table."""
        self._checked_contract()
        return self._coordinator.fresh(canonical_branch(branch)).snapshot()

    def snapshot_at_version(self, version: int, *, branch: str = MAIN) -> Snapshot:
        """What a branch showed at a manifest version."""
        self._checked_contract()
        _require_version(version, branch)
        return self._coordinator.at_version(canonical_branch(branch), version).snapshot()


def _require_version(version: int | None, branch: str) -> None:
    """Refuse a number that no version can have before anything tries to store it."""
    if version is not None and not 0 < version < _VERSIONS_END:
        raise VersionNotFound(version, branch)


def _require_local(engine: str) -> None:
    if engine == "spark":
        raise BadRequestError(
            "queries do not run on Spark yet — leave out `engine`, or read the types you need "
            "with `graph.nodes(type).to_spark()` and `graph.edges(type).to_spark()`"
        )
    if engine != "local":
        raise BadRequestError(f"engine is {engine!r}, expected 'local'")
