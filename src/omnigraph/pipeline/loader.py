"""Load: an input becomes one checked change of the graph, in one of three modes, in one commit.

overwrite  replaces every type that occurs in the input; the others stay
append     strict insert: an id that is there already is a key conflict
merge      upsert by id; of several records of one id the last wins

    step                 leaves when it fails or dies
    read, check, write   scratch files, removed at once or at the start of the next load
    check between rows   the same
    stage, commit        as any write: recovery finishes or undoes it
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.catalog import Catalog, arrow_schema
from omnigraph.errors import ConflictError, KeyConflict, RecoveryRequired
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import GraphCommit, Snapshot, TableEntry
from omnigraph.pipeline.buckets import Bucket
from omnigraph.pipeline.check import (
    IdOutcome,
    Violation,
    addresses_of,
    check_bucket,
    check_ids,
    tables_for,
)
from omnigraph.pipeline.columns import CheckPlan, KeyColumns, RowNumbers
from omnigraph.pipeline.embed import embed_settings
from omnigraph.pipeline.engine import (
    CHECK_ROWS,
    CHECK_ROWS_VARIABLE,
    CONCURRENCY,
    CONCURRENCY_VARIABLE,
    PART_BYTES,
    PART_BYTES_VARIABLE,
    THREADED_ROWS,
    SparkUse,
    choose_runner,
    setting,
)
from omnigraph.pipeline.model import LoadMode, LoadPlan, OnError, StagedPart
from omnigraph.pipeline.progress import Listener, Reporter, reporting
from omnigraph.pipeline.quarantine import Quarantine
from omnigraph.pipeline.ranges import Input
from omnigraph.pipeline.runner import InlineRunner, Runner
from omnigraph.pipeline.staged import StagedLoad
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.loose import LooseRows
from omnigraph.storage.scratch import MovedFiles, Scratch, open_scratch, sweep
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import SHOWN_MAX, BadRow, BadRows
from omnigraph.write.commit import WriteRequest
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.touched import TouchedTables


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """One load. `input` is cut into ranges already; `properties` go into the commit."""

    input: Input
    mode: LoadMode
    branch: str
    actor: str | None = None
    engine: str = "auto"
    on_error: OnError = OnError.REJECT
    quarantine_path: str | None = None
    progress: Listener | bool | None = None
    embeds: bool = True
    spark: SparkUse = field(default_factory=SparkUse)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """What a load did."""

    commit: GraphCommit | None
    tables: Mapping[str, int]
    rows_embedded: int
    rows_unembedded: int
    rows_rejected: int
    quarantine: str | None
    engine: str


def part_bytes() -> int:
    """How much input one task takes."""
    return setting(PART_BYTES_VARIABLE, PART_BYTES)


def run_load(
    environment: WriteEnvironment,
    catalog: Catalog,
    request: LoadRequest,
    write: Callable[[WriteRequest], GraphCommit | None],
) -> LoadOutcome:
    """Load as one commit, or change nothing.

    Raises:
        BadRowsError: Records break a rule of the schema; the first of them are named.
        KeyConflict: An appended id is there already.
    """
    tables = environment.tables
    sweep(tables, tables.storage_options)
    runner = choose_runner(request.engine, is_small=request.input.is_small, spark=request.spark)
    is_held = request.input.is_small and isinstance(runner, InlineRunner)
    scratch = None if is_held else open_scratch(tables, tables.storage_options)
    aside = Quarantine(environment.texts, request.quarantine_path)
    try:
        with reporting(request.progress) as reporter:
            load = _Load(tables, catalog, request, runner, reporter, scratch, aside)
            outcome = load.run(write)
    except RecoveryRequired:
        # Effects may exist that recovery will finish: the next load looks at the scratch again.
        if scratch is not None:
            scratch.leave()
        raise
    except BaseException:
        if scratch is not None:
            scratch.abandon(tables)
        aside.withdraw()
        raise
    if scratch is not None:
        scratch.close()
    return outcome


class _Load:
    """One load on its way."""

    def __init__(
        self,
        tables: TableStorage,
        catalog: Catalog,
        request: LoadRequest,
        runner: Runner,
        reporter: Reporter,
        scratch: Scratch | None,
        aside: Quarantine,
    ) -> None:
        self._tables = tables
        self._catalog = catalog
        self._request = request
        self._runner = runner
        self._reporter = reporter
        self._scratch = scratch
        self._aside = aside
        plan = LoadPlan(
            catalog=catalog,
            mode=request.mode,
            on_error=request.on_error,
            scratch_uri=scratch.uri if scratch is not None else None,
            storage_options=tables.storage_options,
            part_bytes=part_bytes(),
            input_options=request.input.options,
            embeds=request.embeds,
            embed_settings=embed_settings(os.environ),
        )
        self._staged = StagedLoad(plan, runner, reporter)

    @property
    def _puts_aside(self) -> bool:
        return self._request.on_error is OnError.QUARANTINE

    def run(self, write: Callable[[WriteRequest], GraphCommit | None]) -> LoadOutcome:
        """Read everything, then commit it."""
        staged = self._staged
        staged.read(self._request.input.ranges)
        if not self._puts_aside:
            staged.bad_rows().raise_if_any()
        keys = frozenset(staged.rows_by_table())
        commit = write(
            WriteRequest(
                kind=WriterKind.LOAD,
                branch=self._request.branch,
                actor=self._request.actor,
                touched=tables_of_load(keys, self._request.mode, self._catalog),
                prepare=self._prepare,
                properties=self._properties,
            )
        )
        return LoadOutcome(
            commit=commit,
            tables=staged.rows_by_table(),
            rows_embedded=staged.rows_embedded,
            rows_unembedded=staged.rows_unembedded,
            rows_rejected=len(staged.rejected),
            quarantine=self._aside.written_to,
            engine=self._runner.name,
        )

    def _properties(self) -> dict[str, str]:
        properties = dict(self._request.properties)
        if self._staged.rejected:
            properties["rows_rejected"] = str(len(self._staged.rejected))
        return properties

    def _prepare(self, snapshot: Snapshot) -> PreparedLoad:
        """Check the loaded rows against a snapshot; drop what loses or is put aside."""
        self._reporter.stage("checking")
        while True:
            check = self._check_plan(snapshot)
            outcomes = self._ids(check)
            lost = _joined([outcome.lost for outcome in outcomes])
            if len(lost):
                self._staged.drop(check, lost)
                continue
            violations, total = self._violations(check, outcomes)
            if not violations:
                break
            self._refuse_or_put_aside(check, violations, total)
        if self._puts_aside:
            self._aside.write(self._staged.rejected)
        replaced = {each.table_key: addresses_of(each.replaced) for each in outcomes}
        return PreparedLoad(
            self._tables,
            check,
            self._request.mode,
            read_versions={
                key: snapshot.version_of(key)
                for key in tables_of_load(
                    frozenset(check.loaded_keys()), self._request.mode, self._catalog
                ).all
            },
            replaced=replaced,
            scratch=self._scratch,
            reporter=self._reporter,
        )

    def _check_plan(self, snapshot: Snapshot) -> CheckPlan:
        return CheckPlan(
            catalog=self._catalog,
            mode=self._request.mode,
            parts=self._staged.parts(),
            entries=snapshot.entries,
            storage_options=self._tables.storage_options,
            root=str(self._tables.root),
        )

    @property
    def _limit(self) -> int | None:
        return None if self._puts_aside else SHOWN_MAX

    def _ids(self, check: CheckPlan) -> list[IdOutcome]:
        buckets = _buckets(check)
        if len(buckets) == 1:
            return check_ids(KeyColumns(check, self._tables), self._limit, _threads(check))
        function = partial(_ids_of_bucket, check, self._limit)
        parts = self._runner.map(function, buckets, self._reporter)
        return _merged([outcome for part in parts for outcome in part])

    def _violations(
        self, check: CheckPlan, outcomes: list[IdOutcome]
    ) -> tuple[list[Violation], int]:
        """Every broken rule between rows, in input order. Ids that are taken come last."""
        found = [violation for outcome in outcomes for violation in outcome.repeated]
        total = sum(outcome.repeated_total for outcome in outcomes)
        replaced = {o.table_key: o.replaced for o in outcomes if o.replaced is not None}
        buckets = _buckets(check)
        if len(buckets) == 1:
            columns = KeyColumns(check, self._tables)
            broken, count = check_bucket(columns, replaced, self._limit, _threads(check))
            found += broken
            total += count
        else:
            function = partial(_rules_of_bucket, check, replaced, self._limit)
            for part, count in self._runner.map(function, buckets, self._reporter):
                found += part
                total += count
        found.sort(
            key=lambda violation: -1 if violation.row_number is None else violation.row_number
        )
        if found:
            return found, total
        taken = [
            Violation(row_number, outcome.table_key, _taken(check, outcome.table_key, entity_id))
            for outcome in outcomes
            for row_number, entity_id in outcome.taken
        ]
        if taken and not self._puts_aside:
            raise self._first_conflict(check, outcomes)
        return taken, len(taken)

    def _first_conflict(self, check: CheckPlan, outcomes: list[IdOutcome]) -> KeyConflict:
        """The conflict that comes first in the input."""
        taken = [
            (row_number, out.table_key, found)
            for out in outcomes
            for row_number, found in out.taken
        ]
        input_lines = self._staged.input_lines(check, [row_number for row_number, _, _ in taken])
        _, table_key, entity_id = min(taken, key=lambda each: input_lines[each[0]])
        return KeyConflict(table_key, entity_id)

    def _refuse_or_put_aside(
        self, check: CheckPlan, violations: list[Violation], total: int
    ) -> None:
        blamed = [(each.row_number, each.bad) for each in violations if each.row_number is not None]
        if self._puts_aside and len(blamed) == len(violations):
            self._staged.put_aside(check, blamed)
            return
        shown = [(each.row_number, each.bad) for each in violations[:SHOWN_MAX]]
        located = self._staged.located(check, shown)
        BadRows(tuple(located), total).raise_if_any()


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load that is checked over one snapshot. Staging adopts its files, or writes its rows."""

    tables: TableStorage
    check: CheckPlan
    mode: LoadMode
    read_versions: Mapping[str, int]
    replaced: Mapping[str, np.ndarray]
    scratch: Scratch | None
    reporter: Reporter

    @property
    def is_strict(self) -> bool:
        return self.mode is LoadMode.OVERWRITE

    def changed(self) -> dict[str, TableEntry]:
        keys = self.check.loaded_keys()
        missing = [key for key in keys if key not in self.check.entries]
        if missing:
            raise ConflictError(
                f"table '{missing[0]}' is not in the manifest any more — refresh and retry"
            )
        return {key: self.check.entries[key] for key in sorted(keys)}

    def stage(self, handles: Mapping[str, TableHandle]) -> dict[str, StagedTransaction]:
        """One transaction a table. Several tables are staged at a time; commits take turns."""
        self.reporter.stage("writing", len(handles))
        for key, handle in handles.items():
            self._announce(key, handle)
        hit(Failpoint.LOAD_BEFORE_COMMIT)
        workers = min(setting(CONCURRENCY_VARIABLE, CONCURRENCY), max(1, len(handles)))
        if workers == 1 or self.scratch is None:
            return {key: self._stage(key, handle) for key, handle in handles.items()}
        with ThreadPoolExecutor(workers) as pool:
            return dict(zip(handles, pool.map(self._stage, handles, handles.values()), strict=True))

    def _announce(self, key: str, handle: TableHandle) -> None:
        if self.scratch is not None:
            names = tuple(name for each in self._loose(key).fragments for name in each.file_names)
            location = handle.location
            self.scratch.announce(MovedFiles(location.uri, location.branch, handle.version, names))

    def _stage(self, key: str, handle: TableHandle) -> StagedTransaction:
        replaced = self.replaced.get(key, _NO_ADDRESSES)
        if self.scratch is None:
            return self._stage_rows(handle, self._rows(key), replaced)
        loose = self._loose(key)
        match self.mode:
            case LoadMode.OVERWRITE:
                return self.tables.stage_loose_overwrite(handle, loose)
            case LoadMode.MERGE if len(replaced):
                return self.tables.stage_loose_merge(handle, loose, replaced)
            case LoadMode.APPEND | LoadMode.MERGE:
                return self.tables.stage_loose_append(handle, loose)

    def _stage_rows(
        self, handle: TableHandle, rows: pa.Table, replaced: np.ndarray
    ) -> StagedTransaction:
        match self.mode:
            case LoadMode.OVERWRITE:
                return self.tables.stage_overwrite(handle, rows)
            case LoadMode.MERGE if len(replaced):
                return self.tables.stage_replace(handle, rows.to_batches(), replaced)
            case LoadMode.APPEND | LoadMode.MERGE:
                return self.tables.stage_append(handle, rows)

    def _parts(self, key: str) -> list[StagedPart]:
        return [part for part in self.check.parts if part.table_key == key]

    def _loose(self, key: str) -> LooseRows:
        fragments = tuple(each for part in self._parts(key) for each in part.fragments)
        return LooseRows(arrow_schema(self.check.entity(key)), fragments)

    def _rows(self, key: str) -> pa.Table:
        parts = [part.rows for part in self._parts(key) if part.rows is not None]
        return pa.concat_tables(parts)


_NO_ADDRESSES = np.empty(0, np.uint64)


def tables_of_load(written: frozenset[str], mode: LoadMode, catalog: Catalog) -> TouchedTables:
    """The loaded tables, and those that endpoint checks look at."""
    read: set[str] = set()
    for edge in catalog.edges.values():
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key in written:
            read |= ends
        elif mode is LoadMode.OVERWRITE and ends & written:
            read.add(edge.table_key)
    return TouchedTables(written, frozenset(read - written))


def _buckets(check: CheckPlan) -> list[Bucket]:
    rows = sum(part.row_count for part in check.parts)
    count = max(1, -(-rows // setting(CHECK_ROWS_VARIABLE, CHECK_ROWS)))
    return [Bucket(index, count) for index in range(count)]


def _threads(check: CheckPlan) -> int:
    """How many columns the driver looks at together: one a core, of a small load one at all."""
    rows = sum(part.row_count for part in check.parts)
    return 1 if rows < THREADED_ROWS else pa.cpu_count()


def _ids_of_bucket(check: CheckPlan, limit: int | None, bucket: Bucket) -> list[IdOutcome]:
    return check_ids(KeyColumns(check, tables_for(check), bucket), limit)


def _rules_of_bucket(
    check: CheckPlan, replaced: dict[str, pa.Table], limit: int | None, bucket: Bucket
) -> tuple[list[Violation], int]:
    return check_bucket(KeyColumns(check, tables_for(check), bucket), replaced, limit)


def _merged(outcomes: list[IdOutcome]) -> list[IdOutcome]:
    """Join the buckets of each table."""
    by_key: dict[str, list[IdOutcome]] = {}
    for outcome in outcomes:
        by_key.setdefault(outcome.table_key, []).append(outcome)
    return [
        IdOutcome(
            key,
            repeated=[each for part in parts for each in part.repeated],
            repeated_total=sum(part.repeated_total for part in parts),
            taken=[each for part in parts for each in part.taken],
            lost=_joined([part.lost for part in parts]),
            replaced=_concatenated([part.replaced for part in parts]),
        )
        for key, parts in by_key.items()
    ]


def _joined(parts: list[RowNumbers]) -> RowNumbers:
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))


def _concatenated(parts: list[pa.Table | None]) -> pa.Table | None:
    tables = [part for part in parts if part is not None]
    return pa.concat_tables(tables) if tables else None


def _taken(check: CheckPlan, table_key: str, entity_id: str) -> BadRow:
    name = check.entity(table_key).name
    return BadRow(0, name, "id", "", f"key conflict: '{entity_id}' already exists in '{table_key}'")
