"""Verify: check every part of a graph and report what is wrong with it.

Reads only. Every finding names what it is about and the command, or the step, that fixes it. Damage
anywhere is a finding, never an error.

    error    the graph, or part of it, cannot be trusted or written: act
    warning  answers are right, some maintenance is due

    check        what must hold
    sidecars     no write is unfinished
    manifest     every branch can be read; commits name parents that exist
    tables       every type has its table, with the columns of the schema, and no more are shown
    pins         the pinned version is there, as it was published, and HEAD is the pin
    files        every file that was recorded, or that a pinned version names, is there, in its size
    content      with `content`: every recorded file is byte by byte what was written
    keys         no id occurs twice; unique groups are unique
    endpoints    every edge has both of its nodes
    cardinality  no source has too many edges, or too few
    indexes      declared indexes are built and cover the rows

A write that is under way in another process looks unfinished: verify a quiet graph.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from omnigraph.catalog import Catalog, EdgeType, EntityType, arrow_schema, list_declared_indexes
from omnigraph.errors import NotFoundError, OmnigraphError, StorageError
from omnigraph.manifest import MAIN, GraphCommit, SchemaContract, Snapshot, TableEntry
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.manifest.rows import commits_newest_first
from omnigraph.manifest.schemas import read_schema
from omnigraph.storage.content import Spread, spread_over_threads
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.location import ref_file
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.version_files import find_damaged_files
from omnigraph.upkeep.findings import Finding, Severity, Verification
from omnigraph.upkeep.progress import OnProgress, track
from omnigraph.upkeep.verify_files import BACKUP, UNREADABLE, FileCheck, reason_of
from omnigraph.write.bad_rows import BadRows
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.integrity import (
    NO_IDS,
    cardinality_violations,
    duplicate_ids,
    duplicate_tuples,
    edge_ends,
    missing_endpoints,
    tuple_keys,
    unique_groups,
)
from omnigraph.write.keys import make_ids
from omnigraph.write.sidecar import Sidecar
from omnigraph.write.sidecar_files import list_sidecars, read_sidecar_if_exists

RECOVER = "the next write recovers it, and so does opening the graph read-write"
REPAIR = "run `omnigraph repair`"
OPTIMIZE = "run `omnigraph optimize`"
SCHEMA = "put back the accepted schema, or change it with `omnigraph schema apply`"
RELOAD = "correct the rows with `omnigraph mutate` or `omnigraph load --mode merge`"


def verify_graph(
    environment: WriteEnvironment,
    read_contract: Callable[[], SchemaContract],
    *,
    content: bool = False,
    record: bool = False,
    spread: Spread = spread_over_threads,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Check every branch, every pinned table, every row and, with `content`, every byte of it.

    With `record` files that have no checksum get one, as they are now: the only thing written.
    The bytes of large tables are read through `spread`. The contract is the schema of main.
    """
    verifier = _Verifier(environment, content=content, spread=spread)
    findings = list(verifier.run(read_contract, on_progress))
    findings.sort(key=lambda each: each.severity is not Severity.ERROR)
    if record:
        for uri, paths in verifier.files.find_unrecorded().items():
            environment.tables.recorder.record_files(uri, paths)
    return Verification(
        tuple(findings),
        branches_checked=verifier.branches_checked,
        tables_checked=len(verifier.columns),
        rows_checked=sum(table.num_rows for table in verifier.columns.values()),
        files_checked=verifier.files.files_checked,
        bytes_compared=verifier.files.bytes_compared,
    )


_Lineage = tuple[str, str | None, int, str | None]
"""A version of a table and its schema, checked once for all branches that share them."""


class _Verifier:
    """One pass over a graph. Remembers the key columns of each version it has read."""

    def __init__(self, environment: WriteEnvironment, *, content: bool, spread: Spread) -> None:
        self.environment = environment
        self.tables: TableStorage = environment.tables
        self.files = FileCheck(environment, content=content, spread=spread)
        self.columns: dict[_Lineage, pa.Table] = {}
        self.pending: list[Sidecar] = []
        self.branches_checked = 0
        self._broken: set[_Lineage] = set()
        self._schema: str | None = None

    def run(
        self, read_contract: Callable[[], SchemaContract], on_progress: OnProgress | None
    ) -> Iterator[Finding]:
        self.files.inspect()
        yield from self._sidecars()
        contract = None
        try:
            if self.files.manifest_problem(MAIN) is None:
                contract = read_contract()
        except UNREADABLE as error:
            yield Finding("schema", "the schema", f"cannot be read: {reason_of(error)}", SCHEMA)
        branches = self.environment.coordinator.branches()
        for branch in track(branches, on_progress, _name_branch, "files"):
            try:
                snapshot, commits = self._read_branch(branch)
            except UNREADABLE as error:
                message = f"its manifest cannot be read: {reason_of(error)}"
                yield Finding("manifest", f"branch '{branch}'", message, BACKUP)
                continue
            self.branches_checked += 1
            for finding in self._branch(snapshot, commits, contract):
                yield replace(finding, branch=None if branch == MAIN else branch)
        yield from self.files.findings()

    def _read_branch(self, branch: str) -> tuple[Snapshot, list[GraphCommit]]:
        damaged = self.files.manifest_problem(branch)
        if damaged is not None:
            raise StorageError(f"'{damaged}' is damaged")
        # Not what the handle remembers: it may have read a file before or while it was damaged.
        state = self.environment.coordinator.states.read_anew(branch)
        rows = pa.concat_tables([state.commit_rows, state.ancestor_rows])
        return state.snapshot(), list(commits_newest_first(rows))

    def _sidecars(self) -> Iterator[Finding]:
        texts = self.environment.texts
        for operation_id in list_sidecars(texts):
            subject = f"sidecar {operation_id}"
            try:
                sidecar = read_sidecar_if_exists(texts, operation_id)
            except OmnigraphError as error:
                yield Finding(
                    "sidecars", subject, error.message, "look at the file, then move it away"
                )
                continue
            if sidecar is not None:
                self.pending.append(sidecar)
                named = ", ".join(f"'{pin.table_key}'" for pin in sidecar.pins)
                who = f" of {sidecar.actor_id}" if sidecar.actor_id else ""
                message = f"a {sidecar.writer_kind.value}{who} on {named} is unfinished"
                yield Finding("sidecars", subject, message, RECOVER)

    def _branch(
        self, snapshot: Snapshot, commits: list[GraphCommit], contract: SchemaContract | None
    ) -> Iterator[Finding]:
        yield from _commit_findings(commits)
        catalog = yield from self._read_catalog(snapshot, contract)
        self._schema = snapshot.schema_name
        handles: dict[str, TableHandle] = {}
        for key, entry in snapshot.entries.items():
            opened = yield from self._open(entry, snapshot.branch)
            entity = None if catalog is None else catalog.by_table_key(key)
            if entity is None:
                if catalog is not None:
                    yield Finding(
                        "tables", f"'{key}'", "is in the manifest but not in the schema", SCHEMA
                    )
                continue
            if opened is None:
                continue
            handle = yield from self._table(entity, entry, snapshot.branch, opened)
            if handle is not None:
                handles[key] = handle
        if catalog is None:
            return
        for entity in catalog.entities():
            if entity.table_key not in snapshot.entries:
                message = "is in the schema but has no table"
                yield Finding("tables", f"'{entity.table_key}'", message, SCHEMA)
        for edge in catalog.edges.values():
            found = self._edges(edge, snapshot, handles)
            yield from _guard(f"'{edge.table_key}'", found)

    def _read_catalog(
        self, snapshot: Snapshot, contract: SchemaContract | None
    ) -> Generator[Finding, None, Catalog | None]:
        """The schema that a branch is in, when it can be read."""
        if contract is None:
            return None
        try:
            return read_schema(self.environment.texts, snapshot, contract).catalog
        except UNREADABLE as error:
            yield Finding("schema", "the schema", f"cannot be read: {reason_of(error)}", BACKUP)
            return None

    def _open(self, entry: TableEntry, branch: str) -> Generator[Finding, None, TableHandle | None]:
        """Open what a branch shows, unless that is known to be damaged."""
        subject, fork = f"'{entry.table_key}'", entry.table_branch
        location = self.tables.root.table(entry.table_path, fork)
        problem = self.files.version_problem(location, entry.version)
        if problem is not None:
            message = f"its pinned version {entry.version} {problem}"
            yield Finding("pins", subject, message, BACKUP)
            return None
        if fork is not None and not self.files.names_ref(location):
            ref = f"{location.uri}/{ref_file(fork)}"
            message = f"its fork '{fork}' has lost its ref '{ref}'"
            yield Finding("pins", subject, message, BACKUP, file=ref)
        try:
            # Whatever has the number: `_pin` tells whether it is what was published.
            handle = self.tables.open_at(
                location, entry.version, incarnation="verify", shown=entry.shown
            )
            if self.files.note(entry.table_key, branch, handle) is not None:
                self._broken.add(self._lineage(entry))
        except UNREADABLE as error:
            missing = isinstance(error, NotFoundError)
            what = "is missing" if missing else f"cannot be opened: {reason_of(error)}"
            yield Finding("pins", subject, f"its pinned version {entry.version} {what}", BACKUP)
            return None
        return handle

    def _table(
        self, entity: EntityType, entry: TableEntry, branch: str, handle: TableHandle
    ) -> Generator[Finding, None, TableHandle | None]:
        """Check one table; the value of the generator is its handle, when it can be read."""
        subject = f"'{entry.table_key}'"
        yield from _guard(subject, self._pin(entry, handle, branch))
        lineage = self._lineage(entry)
        if lineage in self.columns:
            return handle
        if lineage in self._broken:
            return None
        damaged = find_damaged_files(handle, self.tables.storage_options)
        for uri, problem in sorted(damaged.items()):
            if not self.files.knows(uri):
                yield Finding("files", subject, f"the file '{uri}' {problem}", BACKUP, file=uri)
        if handle.schema.names != arrow_schema(entity).names:
            listed = ", ".join(handle.schema.names)
            yield Finding("tables", subject, f"its columns are {listed}", SCHEMA)
        try:
            self.columns[lineage] = self._key_columns(entity, handle)
        except UNREADABLE as error:
            self._broken.add(lineage)
            if not damaged:
                yield Finding("files", subject, f"cannot be read: {reason_of(error)}", BACKUP)
            return None
        yield from _guard(subject, self._keys(entity, self.columns[lineage]))
        yield from _guard(subject, self._indexes(entity, handle))
        return handle

    def _pin(self, entry: TableEntry, handle: TableHandle, branch: str) -> Iterator[Finding]:
        subject = f"'{entry.table_key}'"
        uuid = handle.transaction_uuid
        if entry.transaction_uuid is not None and uuid != entry.transaction_uuid:
            message = f"version {entry.version} is not the one that was published"
            yield Finding("pins", subject, message, BACKUP)
        if handle.row_count != entry.row_count:
            message = f"has {handle.row_count} rows, the manifest says {entry.row_count}"
            yield Finding("pins", subject, message, BACKUP)
        if not owns_lineage(branch, entry.table_branch):
            return  # a shared lineage: checked on the branch that owns it
        try:
            head = self.tables.head_version(handle.location)
        except OmnigraphError as error:
            yield Finding("pins", subject, f"its HEAD cannot be found: {error.message}", BACKUP)
            return
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
            yield Finding("pins", subject, message, RECOVER if covered else REPAIR)

    def _key_columns(self, entity: EntityType, handle: TableHandle) -> pa.Table:
        members = [name for group in unique_groups(entity) for name in group.members]
        wanted = dict.fromkeys([*entity.structural_columns, *members])
        return self.tables.reads.scan(
            handle, [name for name in wanted if name in handle.schema.names]
        )

    def _keys(self, entity: EntityType, rows: pa.Table) -> Iterator[Finding]:
        ids = rows["id"].combine_chunks()
        yield from _bad("keys", entity, duplicate_ids(entity, ids))
        if entity.key is not None and set(entity.key) <= set(rows.column_names):
            yield from _bad("keys", entity, make_ids(entity, rows, ids).bad)
        for group in unique_groups(entity):
            if set(group.members) <= set(rows.column_names):
                tuples = tuple_keys(entity, group, rows)
                yield from _bad("keys", entity, duplicate_tuples(group, tuples))

    def _indexes(self, entity: EntityType, handle: TableHandle) -> Iterator[Finding]:
        if handle.row_count == 0:
            return
        built = {each.column: each for each in self.tables.indexes.describe(handle)}
        for column, kind in list_declared_indexes(entity):
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
        for side, node_name in edge_ends(edge):
            nodes = self._read(f"node:{node_name}", snapshot, handles)
            if nodes is not None:
                ends, ids = rows[side].combine_chunks(), nodes["id"].combine_chunks()
                bad = missing_endpoints(edge, side, ends, ids)
                yield from _bad("endpoints", edge, bad)
        if not edge.cardinality.is_default:
            sources = rows["src"].combine_chunks()
            bad = cardinality_violations(edge, written=sources, surviving=NO_IDS)
            yield from _bad("cardinality", edge, bad)

    def _read(
        self, key: str, snapshot: Snapshot, handles: Mapping[str, TableHandle]
    ) -> pa.Table | None:
        return self.columns.get(self._lineage(snapshot.entries[key])) if key in handles else None

    def _lineage(self, entry: TableEntry) -> _Lineage:
        return (entry.table_path, entry.table_branch, entry.version, self._schema)


def _name_branch(branch: str) -> str:
    return f"branch '{branch}'"


def _guard(subject: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Run a check; what it cannot decode is a finding too."""
    try:
        yield from findings
    except UNREADABLE as error:
        yield Finding("files", subject, f"cannot be checked: {reason_of(error)}", BACKUP)


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
