"""`Graph`: open, mutate, branch, look back. It alone knows every part."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter, time_ns
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, overload

from omnigraph.branch.changes import ChangeSet
from omnigraph.branch.create import create_branch
from omnigraph.branch.delete import delete_branch
from omnigraph.branch.diff import (
    ChangeFilter,
    CommitChanges,
    Target,
    changes_since,
    diff_snapshots,
    entity_at,
    find_snapshot,
)
from omnigraph.branch.html import diff_to_html
from omnigraph.branch.merge import MergePreview, MergeResult, delete_merged, preview_merge
from omnigraph.branch.merge import merge as merge_branches
from omnigraph.branch.resolve import Resolution
from omnigraph.branch.surroundings import changed_subgraph
from omnigraph.catalog import Catalog, build_catalog
from omnigraph.compiler import (
    CompiledQuery,
    bind_params,
    compile_query,
    require_mutation,
    require_read,
)
from omnigraph.embed import EnvironmentEmbedder
from omnigraph.errors import BadRequestError, BranchExists, ConflictError, GraphNotFound
from omnigraph.executor import Explanation, QueryResult, execute, explain
from omnigraph.index import DerivedStore, RuntimeCache
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.manifest import (
    MAIN,
    Coordinator,
    GraphCommit,
    SchemaContract,
    Snapshot,
    accepted_contract,
    create_graph,
    load_contract,
    migrate,
    read_stamp,
    reconcile,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.history import KEY as HISTORY_KEY
from omnigraph.manifest.history import TABLE as HISTORY_TABLE
from omnigraph.manifest.history import ancestry
from omnigraph.manifest.targets import resolve
from omnigraph.pipeline.frames import Frames, spooled, table_key
from omnigraph.pipeline.loader import LoadRequest, part_bytes, run_load
from omnigraph.pipeline.model import LoadMode, OnError
from omnigraph.pipeline.progress import Listener
from omnigraph.pipeline.ranges import Source, plan_input
from omnigraph.pipeline.run_export import run_export
from omnigraph.pipeline.scan import TableScan, scan_at
from omnigraph.storage.control import ControlTable
from omnigraph.storage.durability import Durability
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.location import GraphRoot, graph_root
from omnigraph.storage.queues import writer_queues
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text import open_text_store
from omnigraph.syntax import parse_schema
from omnigraph.upkeep.apply_schema import SchemaResult, apply_schema
from omnigraph.upkeep.cleanup import CleanupReport, cleanup
from omnigraph.upkeep.doctor import DoctorReport, examine
from omnigraph.upkeep.ensure_indices import IndexReport, ensure_indices
from omnigraph.upkeep.findings import VerifyReport
from omnigraph.upkeep.optimize import OptimizeReport, optimize
from omnigraph.upkeep.repair import RepairReport, repair
from omnigraph.upkeep.schema_plan import SchemaPlan, plan_schema
from omnigraph.upkeep.self_care import care_for
from omnigraph.upkeep.verify import verify_graph
from omnigraph.write.audit import KEY as AUDIT_KEY
from omnigraph.write.audit import TABLE as AUDIT_TABLE
from omnigraph.write.audit import RecoveryRecord, list_recoveries
from omnigraph.write.check import check_change
from omnigraph.write.commit import (
    SchemaMoved,
    WriteEnvironment,
    WriteRequest,
    queue_keys,
    run_write,
)
from omnigraph.write.mutate import Affected, InsertedRows, run_statements
from omnigraph.write.recovery import settle_all
from omnigraph.write.schema_lock import (
    has_staged_schema,
    refuse_while_applying,
    settle_dead_apply,
)
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.staging import MutationStaging
from omnigraph.write.touched import tables_of_mutation

MANIFEST_TABLE = "__manifest"
_SCHEMA_LOOKS_MAX = 3

Commit = GraphCommit

Mode: TypeAlias = Literal["rw", "r"]


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did. `commit_id` is None when nothing matched and no commit was made."""

    commit_id: str | None
    manifest_version: int
    affected_nodes: int
    affected_edges: int


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `tables` maps table keys to rows loaded."""

    commit_id: str | None
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: Mapping[str, int]
    rows_embedded: int = 0
    rows_rejected: int = 0
    engine: str = "inline"


@dataclass(frozen=True, slots=True)
class _Store:
    """The parts of one graph in storage."""

    root: GraphRoot
    tables: TableStorage
    texts: GraphTexts
    manifest: ControlTable
    history: ControlTable
    audit: ControlTable


def _open_store(
    uri: str | Path, storage_options: Mapping[str, str] | None, durability: Durability
) -> _Store:
    root = graph_root(str(uri))

    def control(name: str, key: str) -> ControlTable:
        return ControlTable(
            root, name, key=key, storage_options=storage_options, durability=durability
        )

    return _Store(
        root=root,
        tables=TableStorage(root, storage_options, durability),
        texts=GraphTexts(open_text_store(root, dict(storage_options or {}), durability), root),
        manifest=control(MANIFEST_TABLE, "object_id"),
        history=control(HISTORY_TABLE, HISTORY_KEY),
        audit=control(AUDIT_TABLE, AUDIT_KEY),
    )


def init(
    uri: str | Path,
    *,
    schema: str,
    storage_options: Mapping[str, str] | None = None,
    actor: str | None = None,
    durability: Durability = "power",
    self_care: bool = True,
) -> Graph:
    """Create an empty graph and open it.

    Raises:
        GraphExists: There is one already.
    """
    catalog = build_catalog(parse_schema(schema))
    store = _open_store(uri, storage_options, durability)
    create_graph(
        store.texts,
        store.tables,
        store.manifest,
        store.history,
        source=schema,
        catalog=catalog,
        actor=actor,
    )
    return Graph(store, mode="rw", actor=actor, self_care=self_care)


def open(  # noqa: A001 — `omnigraph.open` is the name programs use
    uri: str | Path,
    *,
    mode: Mode = "rw",
    storage_options: Mapping[str, str] | None = None,
    actor: str | None = None,
    durability: Durability = "power",
    self_care: bool = True,
) -> Graph:
    """Open a graph. Mode `"r"` never writes, not even to recover.

    Raises:
        GraphNotFound: There is no graph there.
    """
    if mode not in ("rw", "r"):
        raise BadRequestError(f"mode is {mode!r}, expected 'rw' or 'r'")
    store = _open_store(uri, storage_options, durability)
    if not store.manifest.exists():
        raise GraphNotFound(str(uri))
    if mode == "rw":
        migrate(store.manifest)
    else:
        read_stamp(store.manifest)
    return Graph(store, mode=mode, actor=actor, self_care=self_care)


class Graph:
    """One graph, open. Synchronous and thread-safe; use as a context manager or call `close`."""

    def __init__(
        self, store: _Store, *, mode: Mode, actor: str | None, self_care: bool = True
    ) -> None:
        self._store = store
        self._self_care = self_care
        self._mode = mode
        self._actor = actor
        self._lock = threading.Lock()
        self._is_closed = False
        self._coordinator = Coordinator(store.manifest)
        self._cache = RuntimeCache(derived=_derived_store(store.root, mode))
        self._embedder = EnvironmentEmbedder()
        if mode == "rw":
            settle_all(self._environment(), store.audit, full=True)
            settle_dead_apply(self._environment())
        self._contract = load_contract(store.texts)
        if mode == "rw":
            reconcile(self._coordinator, store.history)

    # Life

    @property
    def uri(self) -> str:
        return str(self._store.root)

    @property
    def schema(self) -> str:
        """The accepted schema, as it was written."""
        return self._checked_contract().source

    @property
    def catalog(self) -> Catalog:
        """The types of the accepted schema."""
        return self._checked_contract().catalog

    def refresh(self) -> None:
        """Look at every branch again; finish what a dead writer left, when no undo is needed."""
        self._checked_contract()
        if self._mode == "rw":
            settle_all(self._environment(), self._store.audit, full=False)
            settle_dead_apply(self._environment())
        for branch in self._coordinator.branches():
            self._coordinator.fresh(branch)
        if self._mode == "rw":
            reconcile(self._coordinator, self._store.history)

    def close(self) -> None:
        """Let go of everything. Using the handle afterwards is an error."""
        self._is_closed = True
        self._cache.clear()
        self._store.tables.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph {self.uri} ({self._mode})>"

    # Reading

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
    ) -> QueryResult:
        """Run a read over one snapshot: of a branch now, or of a commit, version or time."""
        started = perf_counter()
        catalog, snapshot = self._reading(branch, commit, version, at)
        ir = require_read(_compile(source, catalog, name))
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
        ir = require_read(_compile(source, catalog, name))
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

    # Changing

    def mutate(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        if_commit: str | None = None,
    ) -> MutationResult:
        """Run a mutation as one commit, or change nothing.

        Raises:
            ExpectedVersionMismatch: Another writer changed a table this one depends on.
            PreconditionFailed: `if_commit` is given and is not the head of the branch.
            ConstraintError: The result would break a rule of the schema.
        """
        try:
            return self._mutate(source, name, params, branch, actor, if_commit)
        except SchemaMoved:
            # What was checked against the schema before is checked against the present one.
            return self._mutate(source, name, params, branch, actor, if_commit)

    def _mutate(
        self,
        source: str | Path,
        name: str | None,
        params: Mapping[str, Any] | None,
        branch: str,
        actor: str | None,
        if_commit: str | None,
    ) -> MutationResult:
        catalog = self._writable_catalog()
        query = _compile(source, catalog, name)
        ir = require_mutation(query)
        bound = bind_params(ir.params, params) | {NOW_PARAMETER: time_ns() // 1_000_000}
        target = canonical_branch(branch)
        affected = Affected()
        inserted = InsertedRows(ir, bound, catalog, self._embedder)

        def prepare(snapshot: Snapshot) -> MutationStaging:
            nonlocal affected
            staging = MutationStaging(self._store.tables, catalog, snapshot)
            affected = run_statements(ir, bound, inserted, staging)
            check_change(staging)
            return staging

        commit = self._write(
            WriteRequest(
                kind=WriterKind.MUTATION,
                branch=target,
                actor=actor if actor is not None else self._actor,
                touched=tables_of_mutation(ir, catalog),
                prepare=prepare,
                if_commit=if_commit,
            ),
            catalog,
        )
        return MutationResult(
            commit_id=commit.commit_id if commit else None,
            manifest_version=(
                commit.manifest_version if commit else self._coordinator.last_seen(target).version
            ),
            affected_nodes=affected.total("node"),
            affected_edges=affected.total("edge"),
        )

    def load(
        self,
        data: Source,
        *,
        mode: str,
        branch: str = MAIN,
        base: str | None = None,
        actor: str | None = None,
        engine: str = "auto",
        on_error: str = "reject",
        quarantine: str | Path | None = None,
        embed: bool = True,
        progress: Listener | bool | None = None,
    ) -> LoadResult:
        """Load records as one commit, or nothing.

        `data` is a path, a glob, a list of paths, text, or an iterable of records; `mode` is
        `"overwrite"`, `"append"` or `"merge"`. With `base` a missing branch is created from it
        first. `on_error="quarantine"` loads the good records and writes the others, with reasons,
        to the file `quarantine`.

        Raises:
            BadRowsError: Records break a rule of the schema; all of them are named, up to a cap.
            KeyConflict: An appended id is there already.
        """
        request = LoadRequest(
            input=plan_input(data, part_bytes()),
            mode=_load_mode(mode),
            branch=canonical_branch(branch),
            actor=actor if actor is not None else self._actor,
            engine=engine,
            on_error=_on_error(on_error),
            quarantine_path=None if quarantine is None else str(quarantine),
            progress=progress,
            embeds=embed,
        )
        return self._load(request, base)

    def ingest(
        self,
        data: Source,
        *,
        branch: str,
        from_branch: str = MAIN,
        mode: str = "merge",
        **options: Any,
    ) -> LoadResult:
        """Load into a branch, which is created from `from_branch` when it is missing."""
        return self.load(data, mode=mode, branch=branch, base=from_branch, **options)

    def load_dataframe(
        self,
        df: Any,
        *,
        type: str | None = None,  # noqa: A002 — the word of the API
        edge: str | None = None,
        mode: str,
        **options: Any,
    ) -> LoadResult:
        """Load a Spark, pandas, polars or Arrow frame of one type: columns are its properties.

        An edge frame has `src` and `dst`, or `from` and `to`.
        """
        if (type is None) == (edge is None):
            raise BadRequestError("name the type of the rows: give one of `type` and `edge`")
        catalog = self._writable_catalog()
        kind = "node" if edge is None else "edge"
        key = table_key(catalog, str(type if edge is None else edge), kind=kind)
        return self.load_dataframes({key: df}, mode=mode, **options)

    def load_dataframes(
        self,
        frames: Mapping[str, Any],
        *,
        mode: str,
        branch: str = MAIN,
        base: str | None = None,
        actor: str | None = None,
        engine: str = "auto",
        on_error: str = "reject",
        quarantine: str | Path | None = None,
        embed: bool = True,
        progress: Listener | bool | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadResult:
        """Load frames, by type name, as one commit, or nothing. See `load_dataframe`."""
        catalog = self._writable_catalog()
        by_key = Frames({table_key(catalog, name): frame for name, frame in frames.items()})
        with spooled(by_key, self._store.tables, part_bytes()) as rows:
            request = LoadRequest(
                input=rows,
                mode=_load_mode(mode),
                branch=canonical_branch(branch),
                actor=actor if actor is not None else self._actor,
                engine=engine,
                on_error=_on_error(on_error),
                quarantine_path=None if quarantine is None else str(quarantine),
                progress=progress,
                embeds=embed,
                spark=by_key.spark,
                properties=properties or {},
            )
            return self._load(request, base)

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
        return scan_at(self._store.tables, snapshot, key, columns, open)

    def _load(self, request: LoadRequest, base: str | None) -> LoadResult:
        catalog = self._writable_catalog()
        if base is None:
            self._coordinator.last_seen(request.branch)
        created = False

        def write(change: WriteRequest) -> GraphCommit | None:
            nonlocal created
            created = base is not None and self._create_if_missing(request.branch, base)
            return self._write(change, catalog)

        outcome = run_load(self._environment(), catalog, request, write)
        return LoadResult(
            commit_id=outcome.commit.commit_id if outcome.commit else None,
            branch=request.branch,
            base_branch=base,
            branch_created=created,
            mode=request.mode.value,
            tables=outcome.tables,
            rows_embedded=outcome.rows_embedded,
            rows_rejected=outcome.rows_rejected,
            engine=outcome.engine,
        )

    # Branches and history

    def branches(self) -> list[str]:
        """Every branch, `main` first."""
        self._checked_contract()
        return self._coordinator.branches()

    def create_branch(self, name: str, from_: str = MAIN) -> Snapshot:
        """Make a branch that shows what `from_` shows now; nothing is copied."""
        self._writable_catalog()
        return create_branch(self._environment(), name, from_).snapshot()

    def delete_branch(self, name: str) -> None:
        """Remove a branch and what only it holds."""
        self._writable_catalog()
        delete_branch(self._environment(), canonical_branch(name))

    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        actor: str | None = None,
        delete_branch: bool = False,
        preview: bool = False,
        resolve: Resolution | None = None,
    ) -> MergeResult | MergePreview:
        """Bring what `source` did into another branch, as one commit or not at all.

        With `preview` nothing is written and the result says what would be. `resolve` settles
        conflicts: `"ours"` keeps what the target has, `"theirs"` what the source has, and a
        mapping or a list says so row by row.

        Raises:
            MergeConflicts: The branches cannot be joined as they are. The target is unchanged.
            ExpectedVersionMismatch: The target changed meanwhile. Merge again.
        """
        names = canonical_branch(source), canonical_branch(into)
        environment = self._environment()
        if preview:
            catalog = self._checked_contract().catalog
            return preview_merge(environment, catalog, *names, resolution=resolve)
        self._writable_catalog()
        seen = self._coordinator.last_seen(names[1])
        queues = queue_keys(frozenset(seen.entries), seen.branch)
        settle_all(environment, self._store.audit, full=False, wait_for=queues)
        catalog = self._writable_catalog()
        who = actor if actor is not None else self._actor
        result = merge_branches(environment, catalog, *names, actor=who, resolution=resolve)
        if self._self_care:
            care_for(environment, names[1], result.tables)
        return delete_merged(environment, result) if delete_branch else result

    def diff(
        self,
        from_: Target,
        to: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> ChangeSet:
        """What differs between two states: branches, commits, versions or times."""
        catalog = self._checked_contract().catalog
        before, after = (find_snapshot(self._coordinator, each) for each in (from_, to))
        wanted = ChangeFilter(kinds, types, ops)
        return diff_snapshots(self._store.tables, catalog, before, after, wanted)

    def diff_page(self, from_: Target, to: Target, *, types: Collection[str] | None = None) -> str:
        """The same as one HTML page to look at offline, with the neighbours of what changed."""
        changes = self.diff(from_, to, types=types)
        catalog = self._checked_contract().catalog
        after = find_snapshot(self._coordinator, to)
        drawn = changed_subgraph(changes, catalog, after, self._store.tables)
        return diff_to_html(changes, title=f"{from_} → {to}", subgraph=drawn)

    def diff_html(
        self,
        from_: Target,
        to: Target,
        *,
        title: str | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> str:
        """A diff as one page that works offline: what changed, drawn and listed."""
        changes = self.diff(from_, to, kinds=kinds, types=types, ops=ops)
        catalog = self._checked_contract().catalog
        after = find_snapshot(self._coordinator, to)
        shown = changed_subgraph(changes, catalog, after, self._store.tables)
        return diff_to_html(changes, title=title or f"{from_} → {to}", subgraph=shown)

    def changes(
        self,
        since: str,
        *,
        branch: str = MAIN,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Iterator[CommitChanges]:
        """What every commit of a branch changed after `since`, oldest first."""
        catalog = self._checked_contract().catalog
        wanted = ChangeFilter(kinds, types, ops)
        return changes_since(self._store.tables, catalog, self._coordinator, since, branch, wanted)

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

    # Upkeep

    def plan_schema(self, text: str, *, allow_data_loss: bool = False) -> SchemaPlan:
        """What applying a schema would do, step by step and table by table. Changes nothing."""
        catalog, snapshot = self._reading(MAIN)
        return plan_schema(
            self._store.tables, snapshot, catalog, text, allow_data_loss=allow_data_loss
        )

    def apply_schema(
        self, text: str, *, allow_data_loss: bool = False, actor: str | None = None
    ) -> SchemaResult:
        """Make `text` the schema of the graph, as one commit, or change nothing.

        Raises:
            MigrationError: A step is not supported.
            ConflictError: There are other branches, or another change is in progress.
        """
        self._writable_catalog()
        environment = self._environment()
        settle_all(environment, self._store.audit, full=False)
        result = apply_schema(
            environment,
            text,
            allow_data_loss=allow_data_loss,
            actor=actor if actor is not None else self._actor,
        )
        self._checked_contract()
        return result

    def ensure_indices(self, branch: str = MAIN) -> IndexReport:
        """Build every declared index that is missing on a branch; answers do not change."""
        catalog = self._writable_catalog()
        return ensure_indices(self._environment(), catalog, canonical_branch(branch))

    def optimize(self) -> OptimizeReport:
        """Compact the tables of main and complete their indexes; answers do not change."""
        catalog = self._writable_catalog()
        return optimize(self._environment(), catalog)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
    ) -> CleanupReport:
        """Remove history outside the policy; without `confirm` say what would go.

        `keep` is how many commits of each branch stay, `older_than` how old a version must be.
        """
        self._writable_catalog()
        return cleanup(
            self._environment(),
            [self._store.history, self._store.audit],
            keep=keep,
            older_than=older_than,
            confirm=confirm,
        )

    def repair(self, *, confirm: bool = False, force: bool = False) -> RepairReport:
        """Look for tables that moved without a write of ours; with `confirm` show what is safe."""
        self._writable_catalog()
        return repair(self._environment(), confirm=confirm, force=force)

    def doctor(self) -> DoctorReport:
        """How the graph and the machine stand, with advice. Changes nothing."""
        return examine(self._environment(), self._checked_contract().catalog, self._store.history)

    def verify(self) -> VerifyReport:
        """Look at every branch, table, file and row; changes nothing.

        The report says in plain words what is wrong, and which command fixes it.
        """
        return verify_graph(self._environment(), self._checked_contract().catalog)

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
        return self._coordinator.at_version(canonical_branch(branch), version).snapshot()

    # Inside

    def _create_if_missing(self, branch: str, base: str) -> bool:
        if branch in self._coordinator.branches():
            return False
        try:
            create_branch(self._environment(), branch, base)
        except BranchExists:
            return False  # another load made it first
        return True

    def _write(self, request: WriteRequest, catalog: Catalog) -> GraphCommit | None:
        environment = replace(self._environment(), schema_hash=catalog.shape_hash)
        queues = queue_keys(request.touched.all, request.branch)
        settle_all(environment, self._store.audit, full=False, wait_for=queues)
        commit = run_write(environment, request)
        if commit is not None and self._self_care:
            care_for(environment, request.branch, request.touched.written)
        return commit

    def _environment(self) -> WriteEnvironment:
        return WriteEnvironment(
            tables=self._store.tables,
            texts=self._store.texts,
            coordinator=self._coordinator,
            queues=writer_queues(self._store.root),
        )

    def _checked_contract(self) -> SchemaContract:
        if self._is_closed:
            raise BadRequestError(f"the handle of '{self.uri}' is closed — open the graph again")
        contract = accepted_contract(self._store.texts, self._coordinator, self._contract)
        with self._lock:
            if self._contract is not contract:
                # Columns of the past that are null because they are not there have no type of
                # their own.
                self._cache.clear()
            self._contract = contract
        return contract

    def _reading(
        self,
        branch: str,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
    ) -> tuple[Catalog, Snapshot]:
        """A schema, and a snapshot whose tables are in it; the past is read in the present one."""
        is_past = (commit, version, at) != (None, None, None)
        for _ in range(_SCHEMA_LOOKS_MAX):
            catalog = self._checked_contract().catalog
            snapshot = resolve(
                self._coordinator, branch=branch, commit=commit, version=version, at=at
            )
            if is_past or snapshot.schema_hash in (None, catalog.shape_hash):
                return catalog, snapshot
        raise ConflictError("the schema keeps changing — try again")

    def _writable_catalog(self) -> Catalog:
        if self._mode == "r":
            self._checked_contract()
            raise BadRequestError(
                f"'{self.uri}' is open for reading only — open it with mode='rw' to change it"
            )
        if not self._is_closed:
            environment = self._environment()
            if has_staged_schema(environment):
                # A schema change died close to its end: what comes now is checked against it.
                settle_all(environment, self._store.audit, full=False)
            refuse_while_applying(environment)
        return self._checked_contract().catalog


def _derived_store(root: GraphRoot, mode: Mode) -> DerivedStore | None:
    """Where adjacency is kept beside a local graph; a read-only handle only looks there."""
    return DerivedStore(Path(root.local_path), is_writable=mode == "rw") if root.is_local else None


def _load_mode(mode: str) -> LoadMode:
    try:
        return LoadMode(mode)
    except ValueError:
        known = ", ".join(f"'{each}'" for each in LoadMode)
        raise BadRequestError(f"load mode is {mode!r}, expected one of {known}") from None


def _on_error(on_error: str) -> OnError:
    try:
        return OnError(on_error)
    except ValueError:
        known = ", ".join(f"'{each}'" for each in OnError)
        raise BadRequestError(f"on_error is {on_error!r}, expected one of {known}") from None


def _compile(source: str | Path, catalog: Catalog, name: str | None) -> CompiledQuery:
    """Compile text, or the file it names: a path has one line, a query has braces."""
    if isinstance(source, Path) or ("{" not in source and source.strip().endswith(".gq")):
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadRequestError(f"cannot read the query file '{path}': {error}") from error
        return compile_query(text, catalog, name, source_name=str(path))
    return compile_query(source, catalog, name)
