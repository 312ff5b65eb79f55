"""Reading a graph: queries, scans, exports, and what was when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from time import perf_counter, time_ns
from typing import Any, TypeAlias, TypeVar, overload

from omnigraph.branch.entities import entry_of, read_entity
from omnigraph.catalog import Catalog
from omnigraph.compiler import (
    bind_params,
    require_read,
)
from omnigraph.errors import BadRequestError, OmnigraphError, VersionNotFound
from omnigraph.executor import Explanation, QueryResult, execute, explain
from omnigraph.graph.blob_reader import BlobReader, blob_table, read_blob
from omnigraph.graph.handle import Handle
from omnigraph.graph.query_source import compile_source
from omnigraph.index import open_tables
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.manifest import (
    MAIN,
    GraphCommit,
    Snapshot,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.history import ancestry
from omnigraph.manifest.snapshot_cache import SnapshotCache
from omnigraph.pipeline.export import select_tables
from omnigraph.pipeline.frames import table_key
from omnigraph.pipeline.progress import Listener
from omnigraph.pipeline.run_export import run_export
from omnigraph.pipeline.scan import TableScan, scan_at
from omnigraph.write.audit import RecoveryRecord, list_recoveries

_VERSIONS_END = 2**63
_SCHEMAS = ("commit", "current")

_Moment: TypeAlias = tuple[str, str | None, int | None, datetime | str | None]
"""Branch, commit, version and time of a read; without the last three it is of the branch now."""
_T = TypeVar("_T")


class Reading(Handle):
    """The calls that change nothing."""

    @cached_property
    def _snapshots(self) -> SnapshotCache[tuple[Catalog, Snapshot]]:
        return SnapshotCache(self._store.root)

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
        probe = self._snapshots.probe(name)
        found = self._snapshots.get(probe)
        if found is None:
            found = super()._reading(name)
            self._snapshots.put(probe, found, found[1].manifest_version)
        return found

    def _read_as(
        self,
        target: _Moment,
        schema: str,
        ask: Callable[[Catalog, Snapshot], _T],
    ) -> tuple[Catalog, Snapshot, _T]:
        """Ask of a snapshot in its own schema; of the past with today's names where only they fit.

        `ask` raises when what is asked for does not fit the schema it is given.
        """
        if schema not in _SCHEMAS:
            known = " or ".join(f"'{each}'" for each in _SCHEMAS)
            raise BadRequestError(f"schema is {schema!r}, expected {known}")
        catalog, snapshot = self._reading(*target)
        if target[1:] == (None, None, None):
            return catalog, snapshot, ask(catalog, snapshot)
        if schema == "current":
            catalog, snapshot = self._in_current_schema(snapshot)
            return catalog, snapshot, ask(catalog, snapshot)
        try:
            return catalog, snapshot, ask(catalog, snapshot)
        except OmnigraphError as error:
            today, shown = self._in_current_schema(snapshot)
            if today is catalog:
                raise
            try:
                return today, shown, ask(today, shown)
            except OmnigraphError:
                raise error from None

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
        schema: str = "commit",
        engine: str = "local",
    ) -> QueryResult:
        """Run a read over one snapshot: of a branch now, or of a commit, version or time.

        The past is read in the schema of its commit; a query that fits only the schema of today,
        or any with `schema="current"`, is answered through stable identities. The engine is
        `local`: this process. `spark` is refused until queries can run there.
        """
        started = perf_counter()
        _require_local(engine)
        catalog, snapshot, ir = self._read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, _: require_read(compile_source(source, catalog, name)),
        )
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
        *,
        schema: str = "commit",
    ) -> QueryResult:
        """Run a read over `main` as it stood at a manifest version."""
        return self.query(source, name, params, version=version, schema=schema)

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
        catalog, snapshot, _ = self._read_as(
            (branch, commit, version, None),
            schema,
            lambda catalog, _: select_tables(catalog, types),
        )
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
        schema: str = "commit",
        columns: Sequence[str] | None = None,
    ) -> TableScan:
        """The rows of a type, by its name or table key, at a pinned snapshot."""
        from omnigraph.graph.graph import open as open_graph  # it knows this class

        tables, spark = self._store.tables, self._settings.spark
        catalog, _, scan = self._read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, snapshot: scan_at(
                tables, snapshot, table_key(catalog, type), columns, open_graph, spark
            ),
        )
        is_current = catalog is self._contract.catalog
        return replace(scan, schema_of="current" if is_current else "commit")

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
        _, _, entry = self._read_as(
            (branch, None, version, None), schema, lambda _, found: entry_of(found, table_key)
        )
        return read_entity(self._store.tables, entry, id)

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
        tables = self._store.tables
        catalog, snapshot, key = self._read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, _: blob_table(catalog, kind, type, property),
        )
        handle = open_tables(snapshot, catalog, tables, self._cache).view(key).handle
        return read_blob(tables, handle, key, id, property)

    def commits(
        self, branch: str = MAIN, *, actor: str | None = None, limit: int | None = None
    ) -> list[GraphCommit]:
        """The commits visible on a branch, newest first."""
        self._checked_contract()
        found = self._coordinator.commits(canonical_branch(branch))
        wanted = [commit for commit in found if actor is None or commit.actor == actor]
        return _first(wanted, limit)

    def log(self, branch: str = MAIN, *, limit: int | None = None) -> list[GraphCommit]:
        """Every commit that led to a branch, those of merged branches too, newest first."""
        self._checked_contract()
        name = canonical_branch(branch)
        return _first(ancestry(self._coordinator, self._store.history, name), limit)

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


def _first(commits: list[GraphCommit], limit: int | None) -> list[GraphCommit]:
    if limit is not None and limit < 0:
        raise BadRequestError(f"limit is {limit}, expected 0 or more")
    return commits[:limit]


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
