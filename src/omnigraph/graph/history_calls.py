"""History: the calls of a graph about its commits, and how a node or edge came to be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.manifest import MAIN, CommitLog
from omnigraph.manifest.branch_names import canonical_branch

if TYPE_CHECKING:
    from omnigraph.branch.diff import State
    from omnigraph.branch.entity_history import Blame, EntityHistory, EntityReview
    from omnigraph.branch.log import CommitPatch, LogFilter, LogReader
    from omnigraph.graph.session import Session
    from omnigraph.manifest import GraphCommit, ManifestState


class HistoryCalls:
    """What `Graph` tells of its history; a part of that class."""

    _session: Session
    _find_state: Callable[..., State]

    def commits(
        self,
        branch: str = MAIN,
        *,
        type: str | None = None,  # noqa: A002 — the word of the API
        id: str | None = None,  # noqa: A002 — the API names it so
        actor: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        message: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> CommitLog:
        """The commits visible on a branch, newest first; of another revision, its first parents.

        The other arguments are those of `log`.
        """
        asked = _Asked(type, id, actor, since, until, message, after, limit)
        reader, entries = self._list_entries(branch, asked, merged=False)
        return CommitLog([commit for commit, _ in entries], reader.notes)

    def log(
        self,
        branch: str = MAIN,
        *,
        type: str | None = None,  # noqa: A002 — the word of the API
        id: str | None = None,  # noqa: A002 — the API names it so
        actor: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        message: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> CommitLog:
        """Every commit that led to a branch, those of merged branches too, newest first.

        With `type` those that changed rows of it or the type, and with `id` one node or edge: where
        a merge brought the change, the commit that made it. `since` and `until` are times, both
        included; `message` is a part of the message, in any case. With `after`, the last commit of
        a page, the next one. `notes` of the list say what is not stored any more.

        Raises:
            EntityNotFound: The branch never had the node or edge.
        """
        asked = _Asked(type, id, actor, since, until, message, after, limit)
        reader, entries = self._list_entries(branch, asked, merged=True)
        return CommitLog([commit for commit, _ in entries], reader.notes)

    def log_patches(
        self,
        branch: str = MAIN,
        *,
        type: str | None = None,  # noqa: A002 — the word of the API
        id: str | None = None,  # noqa: A002 — the API names it so
        actor: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        message: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        changes: int | None = None,
        merged: bool = True,
    ) -> Iterator[CommitPatch]:
        """The commits of `log`, or without `merged` of `commits`, and what each of them changed.

        Counts by table, and at most so many `changes` of each commit, as the change feed spells
        them; none without. They are read as the patches are asked for, of a type or an entity
        nothing else.
        """
        from omnigraph.branch.change_records import check_limit

        most = None if changes is None else check_limit(changes)
        asked = _Asked(type, id, actor, since, until, message, after, limit)
        reader, entries = self._list_entries(branch, asked, merged=merged)
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
    ) -> dict[str, Blame]:
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
        self, branch: str, asked: _Asked, *, merged: bool
    ) -> tuple[LogReader, Iterator[Any]]:
        from omnigraph.branch.log import LogReader
        from omnigraph.manifest.history import list_ancestry
        from omnigraph.manifest.revisions import list_line
        from omnigraph.pipeline.frames import table_key

        session = self._session
        session.read_contract()
        coordinator, tables = session.coordinator, session.store.tables
        wanted, most = asked.to_filter(coordinator.commit), asked.check_limit()
        known: tuple[ManifestState, ...] = ()
        if merged:
            known = (coordinator.fresh(canonical_branch(branch)),)
            commits = list_ancestry(coordinator, session.store.history, known[0])
        else:
            commits = list_line(coordinator, branch)
        if asked.type is None:
            reader = LogReader(tables, coordinator, self._find_state)
            return reader, reader.list_commits(commits, wanted, most)
        start = next(iter(commits))
        shown = self._find_state(coordinator.snapshot_of(start))
        entity = shown.catalog.entity(table_key(shown.catalog, asked.type))
        reader = LogReader(tables, coordinator, self._see_as(shown), entity, asked.id)
        return reader, reader.list_changing(start, wanted, most, known, merged=merged)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a caller asks of a log."""

    type: str | None
    id: str | None
    actor: str | None
    since: datetime | str | None
    until: datetime | str | None
    message: str | None
    after: str | None
    limit: int | None

    def to_filter(self, find: Callable[[str], GraphCommit]) -> LogFilter:
        from omnigraph.branch.log import LogFilter
        from omnigraph.manifest.revisions import to_microseconds

        if self.id is not None and self.type is None:
            raise BadRequestError(
                "`id` is given without `type` — name the type of the node or edge"
            )
        since, until = (
            None if each is None else to_microseconds(each) for each in (self.since, self.until)
        )
        if since is not None and isinstance(self.since, str):
            since -= since % 1_000  # a text names a millisecond, all of which counts
        after = None if self.after is None else find(self.after)
        return LogFilter(self.actor, since, until, self.message, after)

    def check_limit(self) -> int | None:
        if self.limit is not None and self.limit < 0:
            raise BadRequestError(f"limit is {self.limit}, expected 0 or more")
        return None if self.limit is None else min(self.limit, sys.maxsize)
