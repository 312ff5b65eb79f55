"""Cleanup: remove history outside the policy, and what dead writers left.

A version of a table goes when it is outside the policy and nothing needs it:

    kept anyway      HEAD, and versions with a tag or a fork on them
                     what a branch shows, one that only inherits included
                     what a commit that is kept shows, and every version since; the head of a
                     graph without branches is shown by what was compacted after it
                     every commit that a merge of live branches can compare with
                     what a tag names
    policy           `keep`: all but the newest so many commits of a branch, and versions of a table
                     `older_than`: older than that; with both, a version must be outside both

A table that none of these names goes whole (`lost_tables.py`).

Nothing is removed while an interrupted write is pending, a table has drift, or a branch cannot be
read. A failure at one table is reported and does not stop the others; running again converges.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from itertools import islice, pairwise

from omnigraph.branch.commit_dag import possible_bases, read_dag
from omnigraph.branch.create import history_turn
from omnigraph.branch.line_segments import SCHEMA_NOTE
from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import BadRequestError, ConflictError, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.index.derived import remove_unneeded_files
from omnigraph.json_form import JsonForm
from omnigraph.manifest import MAIN, Coordinator, GraphCommit, ManifestState, Snapshot
from omnigraph.manifest.branch_names import RECEIVED
from omnigraph.manifest.line_reader import LineReader, Shown
from omnigraph.manifest.rows import commits_newest_first
from omnigraph.manifest.state_text import find_forks
from omnigraph.storage.control import ControlTable
from omnigraph.storage.garbage import Garbage, Removed
from omnigraph.storage.leftovers import remove_leftovers
from omnigraph.storage.location import TableLocation
from omnigraph.storage.scratch import sweep
from omnigraph.upkeep.content_keeping import refuse_while_pending
from omnigraph.upkeep.lost_tables import list_lost_tables, remove_table
from omnigraph.upkeep.orphan_forks import reclaim_forks
from omnigraph.upkeep.progress import OnProgress, track
from omnigraph.write.drift import check_heads
from omnigraph.write.environment import WriteEnvironment, publish_turn, queue_keys
from omnigraph.write.purge import empty_table

MANIFEST = "__manifest"
PROJECTION_VERSIONS_KEPT = 3


@dataclass(frozen=True, slots=True)
class TableCleaned(JsonForm):
    """What was removed from one table, or would be. `error` says why some of it stays."""

    table_key: str
    bytes_removed: int = 0
    old_versions_removed: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CleanupReport(JsonForm):
    """What a cleanup removed; `confirm` unset means that it only looked."""

    uri: str
    keep_versions: int | None
    older_than_secs: int | None
    confirm: bool
    forks_removed: tuple[str, ...]
    loads_removed: int
    tables: tuple[TableCleaned, ...]

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class _Policy:
    keep: int | None
    older_than: timedelta | None

    @property
    def cutoff(self) -> float | None:
        return None if self.older_than is None else time.time() - self.older_than.total_seconds()

    def select_retained(self, state: ManifestState) -> list[GraphCommit]:
        """The commits of a branch that the policy keeps, newest first; the head always."""
        count = min(max(self.keep or 1, 1), sys.maxsize)
        commits = commits_newest_first(state.commit_rows, count)
        kept = list(islice(commits, count))
        if self.cutoff is not None:
            kept += [each for each in commits if each.created_at / 1e6 >= self.cutoff]
        return kept

    def outside(
        self, garbage: Garbage, location: TableLocation, versions: Sequence[int]
    ) -> list[int]:
        """The versions, given oldest first, that are outside: never the latest."""
        found = list(versions[: max(len(versions) - max(self.keep or 1, 1), 0)])
        if self.cutoff is None or not found:
            return found
        made_at = garbage.creation_times(location)
        return [each for each in found if made_at.get(each, time.time()) < self.cutoff]


@dataclass(slots=True)
class _Needed:
    """What must stay, by path. Versions of a table from its floor on, and single ones below it."""

    floors: dict[str, int] = field(default_factory=dict)
    single: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    bases: Mapping[str, GraphCommit] = field(default_factory=dict)
    forks: set[tuple[str, str]] = field(default_factory=set)
    written_down: set[str] = field(default_factory=set)

    def from_here_on(self, shown: Shown) -> None:
        for entry in shown.entries.values():
            known = self.floors.get(entry.table_path, entry.version)
            self.floors[entry.table_path] = min(known, entry.version)

    def just_this(self, shown: Shown) -> None:
        for entry in shown.entries.values():
            self.single[entry.table_path].add(entry.version)


def cleanup(
    environment: WriteEnvironment,
    projections: Sequence[ControlTable],
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    confirm: bool = False,
    grace: timedelta | None = None,
    on_progress: OnProgress | None = None,
) -> CleanupReport:
    """Remove history outside the policy; without `confirm` report what would be removed.

    With a `grace` a version stays until it was replaced that long ago, and so does a dropped table.

    Raises:
        BadRequestError: Neither `keep` nor `older_than` is given, or one makes no sense.
        ConflictError: A write is pending, a table has drift, or a branch cannot be read.
    """
    policy = _make_policy(keep, older_than)
    refuse_while_pending(environment, "cleanup")
    with history_turn(environment):
        return _clean(environment, projections, policy, confirm, grace, on_progress)


def _clean(
    environment: WriteEnvironment,
    projections: Sequence[ControlTable],
    policy: _Policy,
    confirm: bool,
    grace: timedelta | None,
    on_progress: OnProgress | None,
) -> CleanupReport:
    keep, older_than = policy.keep, policy.older_than
    # Branches have most of their history in common: each line is read once.
    reader = LineReader(environment.coordinator)
    states = _branch_states(environment, reader)
    check_heads(environment, MAIN, states[MAIN].entries)
    needed = _find_needed(environment, states, policy, reader.find)
    retained = _find_retained(environment.coordinator, needed, policy)
    tagged = _keep_tagged(environment.coordinator, needed)
    for state in retained.values():
        needed.just_this(state)
    if confirm:
        environment.coordinator.retained.retain(retained)
    kept = find_forks([*retained.values(), *tagged]) | needed.forks
    forks, errors = reclaim_forks(environment, states, kept, is_dry_run=not confirm)
    garbage = Garbage(environment.tables.storage_options)
    job = _Job(environment, policy, needed, garbage, confirm, grace)
    paths = {key: path for path, key in _list_paths(states)}
    rows = [
        job.clean_table(key, paths[key], error=errors.get(key))
        for key in track(paths, on_progress, str, MANIFEST)
    ]
    lost = list_lost_tables(environment, [*retained.values(), *tagged])
    rows += [job.remove_lost(path) for path in lost]
    rows.append(job.clean_manifest())
    rows += [job.clean_projection(each) for each in projections]
    hit(Failpoint.CLEANUP_AFTER_LAST_TABLE)
    if confirm:
        remove_leftovers(environment.tables.root)
        remove_unneeded_files(environment.tables.root)
    options = environment.tables.storage_options
    return CleanupReport(
        uri=str(environment.tables.root),
        keep_versions=keep,
        older_than_secs=None if older_than is None else int(older_than.total_seconds()),
        confirm=confirm,
        forks_removed=tuple(forks),
        loads_removed=sweep(environment.tables, options) if confirm else 0,
        tables=tuple(rows),
    )


def _make_policy(keep: int | None, older_than: timedelta | None) -> _Policy:
    if keep is None and older_than is None:
        raise BadRequestError("cleanup needs a policy: give keep, older_than or both")
    if keep is not None and keep < 1:
        raise BadRequestError(f"keep is {keep}, expected at least 1 — 10 is a good number")
    if older_than is not None and older_than < timedelta(0):
        raise BadRequestError("older_than is negative")
    return _Policy(keep, older_than)


def _branch_states(environment: WriteEnvironment, reader: LineReader) -> dict[str, ManifestState]:
    """The present state of every branch; one that cannot be read stops the whole cleanup."""
    states = {}
    for branch in environment.coordinator.branches():
        try:
            hit(Failpoint.CLEANUP_RESOLVE_BRANCH_SNAPSHOT)
            states[branch] = reader.fresh(branch)
        except OmnigraphError as error:
            raise ConflictError(
                f"branch '{branch}' cannot be read, so what it needs is unknown: "
                f"{error.message} — nothing was removed"
            ) from error
    return states


def _find_needed(
    environment: WriteEnvironment,
    states: Mapping[str, ManifestState],
    policy: _Policy,
    read: Callable[[GraphCommit], Shown | None],
) -> _Needed:
    coordinator, needed = environment.coordinator, _Needed()
    heads: list[GraphCommit] = []
    has_received = _has_received(environment, states)
    for branch, state in states.items():
        needed.from_here_on(state.snapshot())
        heads.append(state.head)
        retained = policy.select_retained(state)
        if len(states) == 1 and retained == [state.head]:
            # Its rows are those that the branch shows now, in fewer files after a compaction, and
            # no branch can have come from the files that they were in before.
            needed.floors[MANIFEST] = state.version
            needed.bases = {state.head.commit_id: state.head}
            return needed
        needed.written_down |= {each.commit_id for each in retained if each.is_kept}
        oldest = _oldest_readable(read, retained) or state.snapshot()
        needed.from_here_on(oldest)
        for commit in retained:
            # A table that was added since the oldest is unknown to it, and may be gone by now.
            if SCHEMA_NOTE in commit.properties and (added := read(commit)) is not None:
                needed.from_here_on(added)
        if branch == MAIN:
            needed.floors[MANIFEST] = oldest.manifest_version
        needed.single[MANIFEST] |= {c.manifest_version for c in retained if c.branch == MAIN}
        if has_received:
            # Its earlier commits may show tables on other forks than it does now.
            needed.forks |= find_forks(filter(None, map(read, retained)))
    needed.bases = possible_bases(read_dag(coordinator, list(states.values())), heads)
    for base in needed.bases.values():
        shown = read(base) or coordinator.commit_states.find(base)
        if shown is not None:  # an earlier Omnigraph may have removed it
            needed.just_this(shown)
            if has_received:
                needed.forks |= find_forks([shown])
        if base.branch == MAIN:
            needed.single[MANIFEST].add((shown or base).manifest_version)
    return needed


def _has_received(environment: WriteEnvironment, states: Mapping[str, ManifestState]) -> bool:
    """Whether some table has versions that came from another store."""
    tables = environment.tables
    paths = {entry.table_path for state in states.values() for entry in state.entries.values()}
    names = (name for path in paths for name in tables.forks.names(tables.root.child(path)))
    return any(name.startswith(RECEIVED) for name in names)


def _oldest_readable(
    read: Callable[[GraphCommit], Shown | None], commits: Sequence[GraphCommit]
) -> Shown | None:
    """The state of the oldest of these commits that an earlier cleanup has left, if there is one.

    A branch may show its head alone: one that was received when its past was gone here.
    """
    oldest_first = sorted(commits, key=lambda each: each.order)
    return next((found for each in oldest_first if (found := read(each)) is not None), None)


def _find_retained(
    coordinator: Coordinator, needed: _Needed, policy: _Policy
) -> dict[str, Snapshot]:
    """The states of deleted branches that a merge can need, or that are too young to go, and those
    that commits within the policy have no manifest for."""
    cutoff = policy.cutoff
    return {
        state.head.commit_id: state
        for state in coordinator.retained
        if state.head.commit_id in {*needed.bases, *needed.written_down}
        or (cutoff is not None and state.head.created_at / 1e6 >= cutoff)
    }


def _keep_tagged(coordinator: Coordinator, needed: _Needed) -> list[Snapshot]:
    """The states that tags name. Of one on main the manifest stays too: branches start there."""
    tagged = [state for _, state in coordinator.tags]
    for state in tagged:
        needed.just_this(state)
        if state.branch == MAIN:
            needed.single[MANIFEST].add(state.manifest_version)
    return tagged


def _list_paths(states: Mapping[str, ManifestState]) -> list[tuple[str, str]]:
    """Path and table key of every table that is shown, and of those that were and are not.

    A table is called as on main, where it is there. One whose key is another's is called by its
    path.
    """
    keys: dict[str, str] = {}
    for state in states.values():
        for key, entry in state.entries.items():
            if entry.table_path not in keys:
                keys[entry.table_path] = entry.table_path if key in keys.values() else key
    for state in states.values():
        last = {path: key for key, path in sorted(state.paths.items())}
        for path in sorted(state.hidden_paths - keys.keys()):
            key = last.get(path, path)
            keys[path] = path if key in keys.values() else key
    return sorted(keys.items(), key=lambda each: each[::-1])


@dataclass(frozen=True, slots=True)
class _Job:
    """One cleanup, table by table."""

    environment: WriteEnvironment
    policy: _Policy
    needed: _Needed
    garbage: Garbage
    confirm: bool
    grace: timedelta | None = None

    def clean_table(self, key: str, path: str, *, error: str | None) -> TableCleaned:
        with self.environment.queues.acquire_many(queue_keys([key], MAIN)):
            return self._row(key, lambda: self._clean_table(path), error)

    def _clean_table(self, path: str) -> Removed:
        hit(Failpoint.CLEANUP_TABLE_GC)
        tables = self.environment.tables
        is_needed = path in self.needed.floors or path in self.needed.single
        if not is_needed and not tables.exists(tables.root.child(path)):
            return Removed()  # a copy has no tables that no state names
        if not is_needed and self.confirm and self.grace is None:
            # Dropped, and in no commit that is kept: even its latest version may be removed.
            empty_table(tables, tables.root.table(path))
        removed = self._remove_unneeded(path)
        tables.forget()
        return removed

    def remove_lost(self, path: str) -> TableCleaned:
        tables = self.environment.tables
        return self._row(
            path, lambda: remove_table(tables, path, is_dry_run=not self.confirm), None
        )

    def clean_manifest(self) -> TableCleaned:
        with publish_turn(self.environment, MAIN):
            return self._row(MANIFEST, lambda: self._remove_unneeded(MANIFEST), None)

    def _remove_unneeded(self, path: str) -> Removed:
        """Remove the versions that are outside the policy and that nothing needs."""
        location = self.environment.tables.root.table(path)
        floor = self.needed.floors.get(path)
        single = self.needed.single.get(path, set()) | self.garbage.list_tagged(location)
        candidates = self.policy.outside(self.garbage, location, self.garbage.versions(location))
        versions = [
            each for each in candidates if each not in single and (floor is None or each < floor)
        ]
        return self.garbage.remove(
            location, self._replaced_long_ago(location, versions), is_dry_run=not self.confirm
        )

    def _replaced_long_ago(self, location: TableLocation, versions: list[int]) -> list[int]:
        if self.grace is None or not versions:
            return versions
        made_at = self.garbage.creation_times(location)
        followers = dict(pairwise(sorted(made_at)))
        latest = time.time() - self.grace.total_seconds()
        return [
            each for each in versions if each in followers and made_at[followers[each]] < latest
        ]

    def clean_projection(self, table: ControlTable) -> TableCleaned:
        """History and audit are read at their latest version only."""
        location = TableLocation(table.uri)
        name = table.uri.rpartition("/")[2]

        def clean() -> Removed:
            if not table.exists():
                return Removed()
            # Another handle may be about to add rows to one of the last few: no queue guards them.
            versions = self.garbage.versions(location)[:-PROJECTION_VERSIONS_KEPT]
            going = self.policy.outside(self.garbage, location, versions)
            return self.garbage.remove(location, going, is_dry_run=not self.confirm)

        return self._row(name, clean, None)

    def _row(self, key: str, clean: Callable[[], Removed], error: str | None) -> TableCleaned:
        try:
            removed = clean()
        except OmnigraphError as failure:
            return TableCleaned(key, error="; ".join(filter(None, [error, failure.message])))
        return TableCleaned(key, removed.bytes, removed.versions, error)
