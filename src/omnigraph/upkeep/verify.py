"""Verify: look at everything a graph consists of and say in plain words what is wrong with it.

Reads only. Every finding names what it is about and the command, or the step, that fixes it.

    error    the graph, or part of it, cannot be trusted or written: act
    warning  answers are right, something waits to be tidied up

    check        what must hold
    sidecars     no write is unfinished
    manifest     every branch can be read; commits name parents that exist
    tables       every type has its table, with the columns of the schema, and no more are shown
    pins         the pinned version is there, as it was published, and HEAD is the pin
    files        every file that a pinned version names is there, in its size
    keys         no id occurs twice; unique groups are unique
    endpoints    every edge has both of its nodes
    cardinality  no source has too many edges, or too few
    indexes      declared indexes are built and cover the rows

A write that is under way in another process looks unfinished: verify a quiet graph.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from omnigraph.catalog import Catalog, EdgeType, EntityType, arrow_schema, declared_indexes
from omnigraph.errors import NotFoundError, OmnigraphError
from omnigraph.manifest import MAIN, GraphCommit, Snapshot, TableEntry
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.upkeep.findings import Finding, Severity, VerifyReport
from omnigraph.write.bad_rows import BadRows
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.fork import open_pin
from omnigraph.write.integrity import (
    cardinality_violations,
    duplicate_ids,
    duplicate_tuples,
    missing_endpoints,
    tuple_keys,
    unique_groups,
)
from omnigraph.write.sidecar import Sidecar, list_sidecars, read_sidecar_if_exists

SETTLE = "the next write settles it, and so does opening the graph read-write"
REPAIR = "run `omnigraph repair`"
OPTIMIZE = "run `omnigraph optimize`"
BACKUP = "restore the files from a backup"
SCHEMA = "put back the accepted schema, or change it with `omnigraph schema apply`"
RELOAD = "correct the rows with `omnigraph mutate` or `omnigraph load --mode merge`"


def verify_graph(environment: WriteEnvironment, catalog: Catalog) -> VerifyReport:
    """Check every branch, every pinned table and every row of it."""
    verification = _Verification(environment, catalog)
    findings = list(verification.run())
    findings.sort(key=lambda each: each.severity is not Severity.ERROR)
    return VerifyReport(
        tuple(findings),
        branches_checked=verification.branches_checked,
        tables_checked=len(verification.columns),
        rows_checked=sum(table.num_rows for table in verification.columns.values()),
    )


_Lineage = tuple[str, str | None, int]
"""A version of a table wherever it is shown: branches that share it share its checks."""


class _Verification:
    """One pass over a graph. Remembers the key columns of each version it has read."""

    def __init__(self, environment: WriteEnvironment, catalog: Catalog) -> None:
        self.environment = environment
        self.tables: TableStorage = environment.tables
        self.catalog = catalog
        self.columns: dict[_Lineage, pa.Table] = {}
        self.pending: list[Sidecar] = []
        self.branches_checked = 0
        self._broken: set[_Lineage] = set()

    def run(self) -> Iterator[Finding]:
        yield from self._sidecars()
        for branch in self.environment.coordinator.branches():
            try:
                snapshot = self.environment.coordinator.fresh(branch).snapshot()
                commits = self.environment.coordinator.commits(branch)
            except OmnigraphError as error:
                message = f"its manifest cannot be read: {error.message}"
                yield Finding("manifest", f"branch '{branch}'", message, BACKUP)
                continue
            self.branches_checked += 1
            for finding in self._branch(snapshot, commits):
                yield replace(finding, branch=None if branch == MAIN else branch)

    def _sidecars(self) -> Iterator[Finding]:
        texts = self.environment.texts
        for operation_id in list_sidecars(texts):
            subject = f"sidecar {operation_id}"
            try:
                sidecar = read_sidecar_if_exists(texts, operation_id)
            except OmnigraphError as error:
                yield Finding("sidecars", subject, error.message, "move it away after looking")
                continue
            if sidecar is not None:
                self.pending.append(sidecar)
                named = ", ".join(f"'{pin.table_key}'" for pin in sidecar.pins)
                who = f" of {sidecar.actor_id}" if sidecar.actor_id else ""
                message = f"a {sidecar.writer_kind.value}{who} on {named} is unfinished"
                yield Finding("sidecars", subject, message, SETTLE)

    def _branch(self, snapshot: Snapshot, commits: list[GraphCommit]) -> Iterator[Finding]:
        yield from _commit_findings(commits)
        handles: dict[str, TableHandle] = {}
        for key, entry in snapshot.entries.items():
            entity = self.catalog.by_table_key(key)
            if entity is None:
                yield Finding("tables", f"'{key}'", "is shown but not in the schema", SCHEMA)
                continue
            handle = yield from self._table(entity, entry, snapshot.branch)
            if handle is not None:
                handles[key] = handle
        for entity in self.catalog.entities():
            if entity.table_key not in snapshot.entries:
                message = "is in the schema but has no table"
                yield Finding("tables", f"'{entity.table_key}'", message, SCHEMA)
        for edge in self.catalog.edges.values():
            yield from self._edges(edge, snapshot, handles)

    def _table(
        self, entity: EntityType, entry: TableEntry, branch: str
    ) -> Generator[Finding, None, TableHandle | None]:
        """Check one table; the value of the generator is its handle, when it can be read."""
        subject = f"'{entry.table_key}'"
        try:
            handle = open_pin(self.tables, entry)
        except OmnigraphError as error:
            missing = isinstance(error, NotFoundError)
            what = "is missing" if missing else f"cannot be opened: {error.message}"
            yield Finding("pins", subject, f"its pinned version {entry.version} {what}", BACKUP)
            return None
        yield from self._pin(entry, handle, branch)
        lineage = _lineage(entry)
        if lineage in self.columns:
            return handle
        if lineage in self._broken:
            return None
        damaged = self.tables.damaged_files(handle)
        for uri, problem in sorted(damaged.items()):
            yield Finding("files", subject, f"the file '{uri}' {problem}", BACKUP)
        if handle.schema.names != arrow_schema(entity).names:
            listed = ", ".join(handle.schema.names)
            yield Finding("tables", subject, f"its columns are {listed}", SCHEMA)
        try:
            self.columns[lineage] = self._key_columns(entity, handle)
        except OmnigraphError as error:
            self._broken.add(lineage)
            if not damaged:
                yield Finding("files", subject, f"cannot be read: {error.message}", BACKUP)
            return None
        yield from self._keys(entity, self.columns[lineage])
        yield from self._indexes(entity, handle)
        return handle

    def _pin(self, entry: TableEntry, handle: TableHandle, branch: str) -> Iterator[Finding]:
        subject = f"'{entry.table_key}'"
        uuid = self.tables.table_state(handle).transaction_uuid
        if entry.transaction_uuid is not None and uuid != entry.transaction_uuid:
            message = f"version {entry.version} is not the one that was published"
            yield Finding("pins", subject, message, BACKUP)
        if handle.row_count != entry.row_count:
            message = f"has {handle.row_count} rows, the manifest says {entry.row_count}"
            yield Finding("pins", subject, message, BACKUP)
        if not owns_lineage(branch, entry.table_branch):
            return  # a shared lineage: its own branch answers for its HEAD
        head = self.tables.head_version(handle.location)
        if head < entry.version:
            message = f"HEAD is {head}, behind the pinned version {entry.version}"
            yield Finding("pins", subject, message, BACKUP)
        elif head > entry.version:
            covered = any(
                pin.table_key == entry.table_key and pin.table_branch == entry.table_branch
                for sidecar in self.pending
                for pin in sidecar.pins
            )
            message = f"HEAD is {head}, ahead of the pinned version {entry.version}"
            yield Finding("pins", subject, message, SETTLE if covered else REPAIR)

    def _key_columns(self, entity: EntityType, handle: TableHandle) -> pa.Table:
        members = [name for group in unique_groups(entity) for name in group.members]
        wanted = dict.fromkeys([*entity.structural_columns, *members])
        return self.tables.scan(handle, [name for name in wanted if name in handle.schema.names])

    def _keys(self, entity: EntityType, rows: pa.Table) -> Iterator[Finding]:
        yield from _bad("keys", entity, duplicate_ids(entity, rows["id"].combine_chunks()))
        for group in unique_groups(entity):
            if set(group.members) <= set(rows.column_names):
                tuples = tuple_keys(entity, group, rows)
                yield from _bad("keys", entity, duplicate_tuples(group, tuples))

    def _indexes(self, entity: EntityType, handle: TableHandle) -> Iterator[Finding]:
        if handle.row_count == 0:
            return
        built = {each.column: each for each in self.tables.describe_indices(handle)}
        for column, kind in declared_indexes(entity):
            found = built.get(column)
            if found is not None and found.rows_unindexed <= 0:
                continue
            left = handle.row_count if found is None else found.rows_unindexed
            message = f"the {kind} index on `{column}` does not cover {left} of its rows"
            yield Finding("indexes", f"'{entity.table_key}'", message, OPTIMIZE, Severity.WARNING)

    def _edges(
        self, edge: EdgeType, snapshot: Snapshot, handles: Mapping[str, TableHandle]
    ) -> Iterator[Finding]:
        rows = self._read(edge.table_key, snapshot, handles)
        if rows is None:
            return
        for side, node_name in (("src", edge.source), ("dst", edge.target)):
            nodes = self._read(f"node:{node_name}", snapshot, handles)
            if nodes is not None:
                ends, ids = rows[side].combine_chunks(), nodes["id"].combine_chunks()
                bad = missing_endpoints(edge, side, ends, ids)  # type: ignore[arg-type]
                yield from _bad("endpoints", edge, bad)
        if not edge.cardinality.is_default:
            sources = rows["src"].combine_chunks()
            nobody = pa.array([], pa.utf8())
            bad = cardinality_violations(edge, written=sources, surviving=nobody)
            yield from _bad("cardinality", edge, bad)

    def _read(
        self, key: str, snapshot: Snapshot, handles: Mapping[str, TableHandle]
    ) -> pa.Table | None:
        return self.columns.get(_lineage(snapshot.entries[key])) if key in handles else None


def _lineage(entry: TableEntry) -> _Lineage:
    return (entry.table_path, entry.table_branch, entry.version)


def _bad(check: str, entity: EntityType, bad: BadRows) -> Iterator[Finding]:
    """One finding for all rows that break a rule: the first few by name, the rest by number."""
    if not bad:
        return
    shown = "; ".join(each.reason for each in bad.first[:3])
    more = f"; and {bad.total - 3} more" if bad.total > 3 else ""
    yield Finding(check, f"'{entity.table_key}'", f"{shown}{more}", RELOAD)


def _commit_findings(commits: list[GraphCommit]) -> Iterator[Finding]:
    known = {commit.commit_id for commit in commits}
    for commit in commits:
        if commit.parent_id is not None and commit.parent_id not in known:
            message = f"its parent {commit.parent_id} is not in the history of the branch"
            yield Finding("manifest", f"commit {commit.commit_id}", message, BACKUP)
