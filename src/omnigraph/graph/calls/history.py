"""History: the calls of a graph about its commits, and how a node or edge came to be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from omnigraph.errors import BadRequestError
from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN, CommitLog
from omnigraph.manifest.branch_names import canonical_branch

if TYPE_CHECKING:
    from omnigraph.branch.diff import State
    from omnigraph.branch.entity_history import EntityBlame, EntityHistory, EntityReview
    from omnigraph.branch.log import CommitPatch, LogFilter, LogReader
    from omnigraph.manifest import GraphCommit, ManifestState, Snapshot
    from omnigraph.write.audit import RecoveryRecord


class LogSelection(TypedDict, total=False):
    """Which commits of a log: see `HistoryCalls.log`."""

    type: str | None
    id: str | None
    actor: str | None
    since: datetime | str | None
    until: datetime | str | None
    message: str | None
    after: str | None
    limit: int | None


class HistoryCalls(GraphPart):
    """What `Graph` tells of its history; a part of that class."""

    def commit(self, commit_id: str) -> GraphCommit:
        """The commit that a revision names: by its id, on whichever branch it is, or otherwise."""
        from omnigraph.manifest.revisions import find_commit

        self._session.read_contract()
        return find_commit(self._session.coordinator, commit_id)

    def snapshot(self, branch: str = MAIN) -> Snapshot:
        """What a branch shows now, or another revision: a pin per table."""
        from omnigraph.manifest.revisions import find_revision

        self._session.read_contract()
        return find_revision(self._session.coordinator, branch)

    def snapshot_at_version(self, version: int, *, branch: str = MAIN) -> Snapshot:
        """What a branch showed at a manifest version."""
        self._session.read_contract()
        return self._session.coordinator.at_version(canonical_branch(branch), version).snapshot()

    def recoveries(self) -> list[RecoveryRecord]:
        """Every write that recovery had to finish or undo, oldest first."""
        from omnigraph.write.audit import list_recoveries

        self._session.read_contract()
        return list_recoveries(self._session.store.audit)

    def commits(self, branch: str = MAIN, **selection: Unpack[LogSelection]) -> CommitLog:
        """The commits visible on a branch, newest first; of another revision, its first parents.

        `selection` is that of `log`.
        """
        reader, entries = self._list_entries(branch, selection, merged=False)
        return CommitLog([commit for commit, _ in entries], reader.notes)

    def log(self, branch: str = MAIN, **selection: Unpack[LogSelection]) -> CommitLog:
        """Every commit that led to a branch, those of merged branches too, newest first.

        `selection` keeps those that changed rows of a `type`, or the type itself, and with `id` one
        node or edge: where a merge brought the change, the commit that made it; those of an
        `actor`; those between the times `since` and `until`, both included; those with the text
        `message` in their message, in any case. `limit` and `after`, the last commit of a page,
        read page by page. `notes` of the list say what is not stored any more.

        Raises:
            EntityNotFound: The branch never had the node or edge.
        """
        reader, entries = self._list_entries(branch, selection, merged=True)
        return CommitLog([commit for commit, _ in entries], reader.notes)

    def log_patches(
        self,
        branch: str = MAIN,
        *,
        changes: int | None = None,
        merged: bool = True,
        **selection: Unpack[LogSelection],
    ) -> Iterator[CommitPatch]:
        """The commits of `log`, or without `merged` of `commits`, and what each of them changed.

        Counts by table, and at most so many `changes` of each commit, as the change feed spells
        them; none without. They are read as the patches are asked for, of a type or an entity
        nothing else.
        """
        from omnigraph.branch.change_records import check_limit

        most = None if changes is None else check_limit(changes)
        reader, entries = self._list_entries(branch, selection, merged=merged)
        return (reader.read_patch(each, most) for each in entries)

    def history(
        self,
        type: str,  # noqa: A002 — the word of the API
        id: str,  # noqa: A002 — the API names it so
        *,
        branch: str = MAIN,
    ) -> EntityHistory:
        """What every commit did to one node or edge, the latest to reach the branch first.

        Where a merge brought a change, the commit is the one that made it on the merged branch and
        `through` is the merge. `notes` of the list say what is not stored any more.

        Raises:
            EntityNotFound: The branch never had it.
        """
        return self._review(type, id, branch).list_changes()

    def blame(
        self,
        type: str,  # noqa: A002 — the word of the API
        id: str,  # noqa: A002 — the API names it so
        *,
        branch: str = MAIN,
    ) -> EntityBlame:
        """For each property of a node or edge, its value and the commit that wrote it.

        Raises:
            EntityNotFound: The branch does not have it now.
        """
        return self._review(type, id, branch).blame()

    def _review(self, type_name: str, entity_id: str, branch: str) -> EntityReview:
        from omnigraph.branch.entity_history import EntityReview
        from omnigraph.pipeline.frames import table_key

        session = self._session
        session.read_contract()
        state = session.coordinator.fresh(canonical_branch(branch))
        shown = self._find_state(state.snapshot())
        entity = shown.catalog.entity(table_key(shown.catalog, type_name))
        place = session.store.tables, session.coordinator, self._see_as(shown)
        return EntityReview(*place, state, entity, entity_id)

    def _see_as(self, shown: State) -> Callable[..., State]:
        """Find states under the identities of one: merges may have found some to be the same."""
        from omnigraph.branch.diff import State
        from omnigraph.catalog import unify

        def find_state(target: Any) -> State:
            found = self._find_state(target)
            return State(found.snapshot, unify(shown.catalog, found.catalog)(found.catalog))

        return find_state

    def _list_entries(
        self, branch: str, selection: LogSelection, *, merged: bool
    ) -> tuple[LogReader, Iterator[Any]]:
        from omnigraph.branch.log import LogReader
        from omnigraph.manifest.history import list_ancestry
        from omnigraph.manifest.revisions import list_line
        from omnigraph.pipeline.frames import table_key

        session = self._session
        session.read_contract()
        coordinator, tables = session.coordinator, session.store.tables
        wanted = _to_filter(selection, coordinator.commit)
        most = _check_limit(selection.get("limit"))
        type_name = selection.get("type")
        known: tuple[ManifestState, ...] = ()
        if merged:
            known = (coordinator.fresh(canonical_branch(branch)),)
            commits = list_ancestry(coordinator, session.store.history, known[0])
        else:
            commits = list_line(coordinator, branch)
        if type_name is None:
            reader = LogReader(tables, coordinator, self._find_state)
            return reader, reader.list_commits(commits, wanted, most)
        start = next(iter(commits))
        shown = self._find_state(coordinator.commit_states.get(start))
        entity = shown.catalog.entity(table_key(shown.catalog, type_name))
        reader = LogReader(tables, coordinator, self._see_as(shown), entity, selection.get("id"))
        return reader, reader.list_changing(start, wanted, most, known, merged=merged)


def _to_filter(selection: LogSelection, find: Callable[[str], GraphCommit]) -> LogFilter:
    from omnigraph.branch.log import LogFilter
    from omnigraph.manifest.revisions import to_microseconds

    if selection.get("id") is not None and selection.get("type") is None:
        raise BadRequestError("`id` is given without `type` — name the type of the node or edge")
    times = selection.get("since"), selection.get("until")
    since, until = (None if each is None else to_microseconds(each) for each in times)
    if since is not None and isinstance(times[0], str):
        since -= since % 1_000  # a text names a millisecond, all of which counts
    last = selection.get("after")
    after = None if last is None else find(last)
    return LogFilter(selection.get("actor"), since, until, selection.get("message"), after)


def _check_limit(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise BadRequestError(f"limit is {limit}, expected 0 or more")
    return None if limit is None else min(limit, sys.maxsize)
