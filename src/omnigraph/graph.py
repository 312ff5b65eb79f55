"""`Graph`: open, mutate, branch, look back. It alone knows every part."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter, time_ns
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from omnigraph.branch.create import create_branch
from omnigraph.branch.delete import delete_branch
from omnigraph.catalog import Catalog, build_catalog
from omnigraph.compiler import (
    CompiledQuery,
    bind_params,
    compile_query,
    require_mutation,
    require_read,
)
from omnigraph.embed import EnvironmentEmbedder
from omnigraph.errors import BadRequestError, BranchExists, GraphNotFound
from omnigraph.executor import Explanation, QueryResult, execute, explain
from omnigraph.index import RuntimeCache
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.manifest import (
    MAIN,
    Coordinator,
    GraphCommit,
    SchemaContract,
    Snapshot,
    create_graph,
    load_contract,
    migrate,
    read_stamp,
    reconcile,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.history import KEY as HISTORY_KEY
from omnigraph.manifest.history import TABLE as HISTORY_TABLE
from omnigraph.manifest.targets import resolve
from omnigraph.pipeline.load import (
    LoadMode,
    converted_groups,
    stage_load,
    tables_of_load,
)
from omnigraph.pipeline.records import Source, group_records, read_records
from omnigraph.storage.control import ControlTable
from omnigraph.storage.durability import Durability
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.location import GraphRoot, graph_root
from omnigraph.storage.queues import writer_queues
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text import open_text_store
from omnigraph.syntax import parse_schema
from omnigraph.upkeep.findings import VerifyReport
from omnigraph.upkeep.self_care import care_for
from omnigraph.upkeep.verify import verify_graph
from omnigraph.write.audit import KEY as AUDIT_KEY
from omnigraph.write.audit import TABLE as AUDIT_TABLE
from omnigraph.write.audit import RecoveryRecord, list_recoveries
from omnigraph.write.check import check_change
from omnigraph.write.commit import WriteEnvironment, WriteRequest, run_write
from omnigraph.write.mutate import Affected, InsertedRows, run_statements
from omnigraph.write.recovery import settle_all
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.staging import MutationStaging
from omnigraph.write.touched import tables_of_mutation

MANIFEST_TABLE = "__manifest"

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
        self._cache = RuntimeCache()
        self._embedder = EnvironmentEmbedder()
        if mode == "rw":
            settle_all(self._environment(), store.audit, full=True)
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

    def refresh(self) -> None:
        """Look at every branch again; finish what a dead writer left, when no undo is needed."""
        self._checked_contract()
        if self._mode == "rw":
            settle_all(self._environment(), self._store.audit, full=False)
        for branch in self._coordinator.branches():
            self._coordinator.fresh(branch)
        if self._mode == "rw":
            reconcile(self._coordinator, self._store.history)

    def close(self) -> None:
        """Let go of everything. Using the handle afterwards is an error."""
        self._is_closed = True
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
        catalog = self._checked_contract().catalog
        ir = require_read(_compile(source, catalog, name))
        bound = bind_params(ir.params, params) | {NOW_PARAMETER: time_ns() // 1_000_000}
        snapshot = resolve(self._coordinator, branch=branch, commit=commit, version=version, at=at)
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
        catalog = self._checked_contract().catalog
        ir = require_read(_compile(source, catalog, name))
        snapshot = resolve(self._coordinator, branch=branch)
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
    ) -> LoadResult:
        """Load records as one commit, or nothing.

        `data` is a path, text, or an iterable of records; `mode` is `"overwrite"`, `"append"` or
        `"merge"`. With `base` a missing branch is created from it first.

        Raises:
            BadRowsError: Records break a rule of the schema; all of them are named, up to a cap.
            KeyConflict: An appended id is there already.
        """
        catalog = self._writable_catalog()
        load_mode = _load_mode(mode)
        target = canonical_branch(branch)
        groups, unfit = group_records(read_records(data), catalog)
        unfit.raise_if_any()
        tables = converted_groups(groups, load_mode)
        created = base is not None and self._create_if_missing(target, base)

        def prepare(snapshot: Snapshot) -> MutationStaging:
            staging = MutationStaging(self._store.tables, catalog, snapshot)
            stage_load(tables, load_mode, staging)
            check_change(staging)
            return staging

        commit = self._write(
            WriteRequest(
                kind=WriterKind.LOAD,
                branch=target,
                actor=actor if actor is not None else self._actor,
                touched=tables_of_load(groups, load_mode, catalog),
                prepare=prepare,
            ),
        )
        return LoadResult(
            commit_id=commit.commit_id if commit else None,
            branch=target,
            base_branch=base,
            branch_created=created,
            mode=load_mode.value,
            tables={key: rows.num_rows for key, rows in sorted(tables.items())},
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

    def commits(
        self, branch: str = MAIN, *, actor: str | None = None, limit: int | None = None
    ) -> list[GraphCommit]:
        """The commits visible on a branch, newest first."""
        self._checked_contract()
        found = self._coordinator.commits(canonical_branch(branch))
        wanted = [commit for commit in found if actor is None or commit.actor == actor]
        return wanted[:limit]

    def recoveries(self) -> list[RecoveryRecord]:
        """Every write that recovery had to finish or undo, oldest first."""
        self._checked_contract()
        return list_recoveries(self._store.audit)

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

    def _write(self, request: WriteRequest) -> GraphCommit | None:
        environment = self._environment()
        settle_all(environment, self._store.audit, full=False)
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
        contract = load_contract(self._store.texts, self._contract)
        with self._lock:
            self._contract = contract
        return contract

    def _writable_catalog(self) -> Catalog:
        catalog = self._checked_contract().catalog
        if self._mode == "r":
            raise BadRequestError(
                f"'{self.uri}' is open for reading only — open it with mode='rw' to change it"
            )
        return catalog


def _load_mode(mode: str) -> LoadMode:
    try:
        return LoadMode(mode)
    except ValueError:
        known = ", ".join(f"'{each}'" for each in LoadMode)
        raise BadRequestError(f"load mode is {mode!r}, expected one of {known}") from None


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
