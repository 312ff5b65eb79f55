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
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from omnigraph.catalog import Catalog, EdgeType
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.embed import EmbedSource
from omnigraph.errors import KeyConflict, RecoveryRequired
from omnigraph.manifest import GraphCommit, Snapshot
from omnigraph.manifest.vector_models import note_models
from omnigraph.pipeline.check import Violation, addresses_of
from omnigraph.pipeline.checked import CheckedIds
from omnigraph.pipeline.columns import CheckPlan
from omnigraph.pipeline.count_changes import count_edges_added, list_unchanged
from omnigraph.pipeline.crossing import Machine, is_faster_on_spark
from omnigraph.pipeline.embed import EmbedPlan, FillCounts, LoadVectors, has_vectors
from omnigraph.pipeline.engine import (
    PART_BYTES,
    PART_BYTES_VARIABLE,
    SparkUse,
    choose_runner,
    setting,
)
from omnigraph.pipeline.model import LoadMode, LoadPlan, OnError
from omnigraph.pipeline.prepared import PreparedLoad, find_touched
from omnigraph.pipeline.preview import LoadPreview, describe_load
from omnigraph.pipeline.progress import Listener, Reporter, reporting
from omnigraph.pipeline.quarantine import Quarantine
from omnigraph.pipeline.ranges import Input
from omnigraph.pipeline.run_checks import LoadChecks
from omnigraph.pipeline.runner import InlineRunner, Runner
from omnigraph.pipeline.staged import StagedLoad
from omnigraph.storage.scratch import Scratch, open_scratch, sweep
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import SHOWN_MAX, BadRow, BadRows, excerpt
from omnigraph.write.commit import WriteRequest
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.sidecar import WriterKind


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
    ignores_members: bool = False
    is_preview: bool = False
    embed_source: EmbedSource = field(default_factory=EmbedSource, repr=False)
    spark: SparkUse = field(default_factory=SparkUse)
    properties: Mapping[str, str] = field(default_factory=dict)
    note: CommitNote = NO_NOTE


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """What a load did."""

    commit: GraphCommit | None
    tables: Mapping[str, int]
    vectors: FillCounts
    notes: tuple[str, ...]
    rows_rejected: int
    quarantine: str | None
    engine: str
    edges_added: int = 0
    """Edges without an id or a key, added by a merge to those that were there."""


def part_bytes() -> int:
    """How much input one task takes."""
    return setting(PART_BYTES_VARIABLE, PART_BYTES)


def run_load(
    environment: WriteEnvironment,
    catalog: Catalog,
    request: LoadRequest,
    write: Callable[[WriteRequest], GraphCommit | None],
    see: Callable[[], Snapshot],
) -> LoadOutcome:
    """Load as one commit, or change nothing. `see` gives the target, or what it starts from.

    Raises:
        BadRowsError: Records break a rule of the schema; the first of them are named.
        KeyConflict: An appended id is there already.
    """
    with _starting(environment, catalog, request, see) as load:
        return load.run(write)


def preview_load(
    environment: WriteEnvironment,
    catalog: Catalog,
    request: LoadRequest,
    see: Callable[[], Snapshot],
) -> LoadPreview:
    """Count what a load would do, and store nothing."""
    quarantining = replace(request, on_error=OnError.QUARANTINE, is_preview=True)
    with _starting(environment, catalog, quarantining, see) as load:
        return load.preview()


@contextmanager
def _starting(
    environment: WriteEnvironment,
    catalog: Catalog,
    request: LoadRequest,
    see: Callable[[], Snapshot],
) -> Iterator[_Load]:
    """A load with its engine and its scratch, which is removed afterwards."""
    tables = environment.tables
    sweep(tables, tables.storage_options)
    threads = _count_threads(catalog, request)
    runner = choose_runner(
        request.engine,
        stays=stays_in_process(request.input),
        spark=request.spark,
        threads=threads,
    )
    is_held = request.input.is_small and isinstance(runner, InlineRunner)
    scratch = None if is_held else open_scratch(tables, tables.storage_options)
    quarantine = Quarantine(environment.texts, request.quarantine_path)
    try:
        with reporting(request.progress) as reporter:
            yield _Load(
                tables, catalog, request, runner, threads, reporter, scratch, quarantine, see
            )
    except RecoveryRequired:
        # Effects may exist that recovery will finish: the next load looks at the scratch again.
        if scratch is not None:
            scratch.leave()
        raise
    except BaseException:
        if scratch is not None:
            scratch.abandon(tables)
        quarantine.withdraw()
        raise
    if scratch is not None:
        scratch.close()


def stays_in_process(given: Input) -> bool:
    """Whether this process loads the input as fast as Spark would."""
    if given.file_bytes <= part_bytes():
        return True
    return not is_faster_on_spark(given.file_bytes, given.parts, part_bytes(), Machine.here())


@dataclass(slots=True)
class _Load:
    """One load on its way."""

    _tables: TableStorage
    _catalog: Catalog
    _request: LoadRequest
    _runner: Runner
    _threads: int
    _reporter: Reporter
    _scratch: Scratch | None
    _quarantine: Quarantine
    _see: Callable[[], Snapshot]
    _vectors: LoadVectors = field(init=False)
    _embed: EmbedPlan = field(init=False)
    _noted: Mapping[str, Any] = field(init=False, default_factory=dict)
    _plan: LoadPlan = field(init=False)
    _staged: StagedLoad = field(init=False)
    _checks: LoadChecks = field(init=False)
    _edges_added: int = 0

    def __post_init__(self) -> None:
        request, tables = self._request, self._tables
        self._vectors = LoadVectors(
            tables,
            self._catalog,
            request.embed_source,
            is_wanted=request.embeds,
            replaces=request.mode is LoadMode.OVERWRITE,
            seen=self._see() if has_vectors(self._catalog) else None,
            given=request.input.models,
        )
        self._embed = self._vectors.plan()
        self._plan = LoadPlan(
            catalog=self._catalog,
            mode=request.mode,
            on_error=request.on_error,
            scratch_uri=self._scratch.uri if self._scratch is not None else None,
            storage_options=tables.storage_options,
            part_bytes=part_bytes(),
            input_options=request.input.options,
            directory=_current_directory(),
            ignores_members=request.ignores_members,
            is_preview=request.is_preview,
            embed=self._embed,
        )
        self._staged = StagedLoad(self._plan, self._runner, self._reporter)
        limit = None if self._quarantines else SHOWN_MAX
        self._checks = LoadChecks(
            tables, self._runner, self._reporter, limit, self._plan.scratch_uri, self._threads
        )

    @property
    def _quarantines(self) -> bool:
        return self._request.on_error is OnError.QUARANTINE

    def run(self, write: Callable[[WriteRequest], GraphCommit | None]) -> LoadOutcome:
        """Read everything, then commit it."""
        staged = self._staged
        staged.read(self._request.input.ranges)
        self._embed_again_if_mixed()
        if not self._quarantines and staged.bad_rows():
            self._find_all_bad_rows().raise_if_any()
        keys = frozenset(staged.rows_by_table())
        commit = write(
            WriteRequest(
                kind=WriterKind.LOAD,
                branch=self._request.branch,
                actor=self._request.actor,
                touched=find_touched(keys, self._request.mode, self._catalog),
                prepare=self._prepare,
                note=self._request.note.to_json(),
                properties=self._properties,
            )
        )
        return LoadOutcome(
            commit=commit,
            tables=staged.rows_by_table(),
            vectors=staged.vectors(),
            notes=self._vectors.list_notes(self._embed, staged.vectors()),
            rows_rejected=len(staged.rejected),
            quarantine=self._quarantine.written_to,
            engine=self._runner.name,
            edges_added=self._edges_added,
        )

    def _embed_again_if_mixed(self) -> None:
        other = self._vectors.find_mixed(self._embed, self._staged.vectors())
        if other is not None:
            self._embed = other
            self._staged.embed_again(other)

    def _properties(self) -> dict[str, Any]:
        properties = {**self._request.properties, **self._noted}
        if self._staged.rejected:
            properties["rows_rejected"] = str(len(self._staged.rejected))
        return properties

    def preview(self) -> LoadPreview:
        """Read and check everything, and count what a load would do."""
        self._staged.read(self._request.input.ranges)
        check, _ = self._settle(self._see())
        return describe_load(check, self._tables, self._staged)

    def _settle(self, snapshot: Snapshot) -> tuple[CheckPlan, CheckedIds]:
        """Check the loaded rows against a snapshot; drop what loses or is quarantined."""
        self._reporter.stage("checking")
        while True:
            check = self._check_plan(snapshot)
            ids = self._checks.check_ids(check)
            if ids.has_lost:
                self._staged.drop(check, ids.lost, ids.lost_in)
                continue
            violations, total = self._violations(check, ids)
            if not violations:
                return check, ids
            self._refuse_or_quarantine(check, violations, total)

    def _prepare(self, snapshot: Snapshot) -> PreparedLoad:
        """Check the load; tables that have all of its rows already are left out."""
        vectors = self._staged.vectors()
        self._noted = note_models(self._vectors.find_changed_models(vectors, snapshot))
        check, ids = self._settle(snapshot)
        if self._quarantines:
            self._quarantine.write(self._staged.rejected)
        touched = find_touched(
            frozenset(check.list_table_keys()), self._request.mode, self._catalog
        )
        self._edges_added = count_edges_added(check)
        unchanged: frozenset[str] = frozenset()
        # What is to be recorded in the commit has to be recorded, even with no rows.
        if not self._request.properties and not self._noted:
            unchanged = list_unchanged(check, self._tables)
            parts = tuple(part for part in check.parts if part.table_key not in unchanged)
            check = replace(check, parts=parts)
        replaced = {key: each for key, each in ids.replaced.items() if key not in unchanged}
        return PreparedLoad(
            self._tables,
            check,
            self._request.mode,
            read_versions={key: snapshot.version_of(key) for key in touched.all},
            replaced={key: addresses_of(each) for key, each in replaced.items()},
            replaced_in=tuple(each for each in ids.replaced_in if each.table_key not in unchanged),
            runner=self._runner,
            scratch=self._scratch,
            reporter=self._reporter,
        )

    def _find_all_bad_rows(self) -> BadRows:
        """What is wrong with single records, and then what their good neighbours break.

        The input is read once more without the bad records. An edge may lead to one of them, and a
        source may have lost edges with them: what could be due to that is not reported.
        """
        alone, ranges = self._staged.bad_rows(), self._staged.list_ranges()
        plan = replace(self._plan, on_error=OnError.QUARANTINE, is_preview=True)
        self._staged = StagedLoad(plan, self._runner, self._reporter)
        self._staged.read(ranges)
        check = self._check_plan(self._see())
        ids = self._checks.check_ids(check)
        if ids.has_lost:
            self._staged.drop(check, ids.lost, ids.lost_in)
            check = self._check_plan(self._see())
            ids = self._checks.check_ids(check)
        found, _ = self._checks.check_rules(check, ids)
        refused: dict[str, set[str]] = {}
        for _, each in self._staged.rejected:
            refused.setdefault(each.type_name, set()).add(excerpt(each.entity_id))
        kept = [
            (violation.row_number, violation.bad)
            for violation in found
            if not _may_follow(violation, refused, self._catalog)
        ]
        located = self._staged.locate(check, kept[:SHOWN_MAX])
        shown = (*alone.first, *located)[:SHOWN_MAX]
        return BadRows(shown, alone.total + len(kept))

    def _check_plan(self, snapshot: Snapshot) -> CheckPlan:
        return CheckPlan(
            catalog=self._catalog,
            mode=self._request.mode,
            parts=self._staged.parts(),
            entries=snapshot.entries,
            storage_options=self._tables.storage_options,
            root=str(self._tables.root),
        )

    def _violations(self, check: CheckPlan, ids: CheckedIds) -> tuple[list[Violation], int]:
        """Every broken rule between rows, in input order; if there is none, ids that are taken.

        Raises:
            KeyConflict: Rows are not quarantined; names the taken id that is first in the input.
        """
        found, total = self._checks.check_rules(check, ids)
        if found:
            return found, total
        taken = ids.taken
        if taken and not self._quarantines:
            lines = self._staged.input_lines(check, [number for number, _, _ in taken])
            _, table_key, id_ = min(taken, key=lambda each: lines[each[0]])
            raise KeyConflict(table_key, id_)
        conflicts = [
            Violation(number, key, _describe_conflict(check, key, id_))
            for number, key, id_ in taken
        ]
        return conflicts, len(conflicts)

    def _refuse_or_quarantine(
        self, check: CheckPlan, violations: list[Violation], total: int
    ) -> None:
        blamed = [(each.row_number, each.bad) for each in violations if each.row_number is not None]
        if self._quarantines and len(blamed) == len(violations):
            self._staged.quarantine(check, blamed)
            return
        shown = [(each.row_number, each.bad) for each in violations[:SHOWN_MAX]]
        located = self._staged.locate(check, shown)
        BadRows(tuple(located), total).raise_if_any()


def _count_threads(catalog: Catalog, request: LoadRequest) -> int:
    """How many parts of the input this process reads at a time.

    Functions of a program and models of other packages are never called by two threads.
    """
    is_asked = request.embeds and has_vectors(catalog) and not request.embed_source.is_default
    if request.input.is_small or is_asked:
        return 1
    return Machine.here().count_threads(part_bytes())


def _current_directory() -> str:
    """Where relative paths of the input begin; empty when it is gone, and they with it."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _may_follow(
    violation: Violation, refused: Mapping[str, Collection[str]], catalog: Catalog
) -> bool:
    """Whether a rule may be broken only because records were refused: their ids by type.

    An id is as it is shown, and empty where it could not be told.
    """
    entity, bad = catalog.entity(violation.table_key), violation.bad
    if not isinstance(entity, EdgeType) or "@unique" in bad.reason:
        return False
    if not refused.keys() <= {*catalog.nodes, *catalog.edges}:
        return True
    if "not found in" in bad.reason:
        lost = refused.get(entity.source if bad.property == "src" else entity.target, ())
        return "" in lost or bad.value_excerpt in lost
    # A bound of @card.
    return bool(refused.keys() & {entity.source, entity.target, entity.name})


def _describe_conflict(check: CheckPlan, table_key: str, entity_id: str) -> BadRow:
    name = check.catalog.entity(table_key).name
    return BadRow(0, name, "id", "", f"key conflict: '{entity_id}' already exists in '{table_key}'")
