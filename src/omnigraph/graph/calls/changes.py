"""Change calls: what differs between two states, and what commits changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN

if TYPE_CHECKING:
    from omnigraph.branch.changes import ChangeSet
    from omnigraph.branch.diff import ChangeFilter, CommitChanges, Target
    from omnigraph.branch.feed import Baseline, ChangeFeed, ChangePage, CommitPage
    from omnigraph.pipeline.progress import Listener


class ChangeCalls(GraphPart):
    """Differences of states, and the change feed."""

    def diff(
        self,
        from_: Target,
        to: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        progress: Listener | bool | None = None,
    ) -> ChangeSet:
        """What differs between two states: branches, commits, versions or times.

        `progress` is told of the rows compared before this returns, as that of `load`.
        """
        from omnigraph.branch.diff import ChangeFilter, diff_states
        from omnigraph.pipeline.progress import reporting_work

        before, after = map(self._find_state, (from_, to))
        wanted = ChangeFilter(kinds, types, ops)
        wanted.check([before.catalog, after.catalog])
        with reporting_work(progress):
            return diff_states(self._session.store.tables, before, after, wanted, reads_all=True)

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
        wanted = {"kinds": kinds, "types": types, "ops": ops}
        return "".join(stream_diff_html(self, from_, to, title=title, **wanted))

    def changes(
        self,
        since: str,
        *,
        branch: str = MAIN,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Iterator[CommitChanges]:
        """What every commit of a branch changed after `since`, oldest first.

        A type is followed through renames, by any name that it has had.
        """
        from omnigraph.branch.diff import changes_since

        session, wanted = self._session, self._follow(kinds, types, ops)
        session.read_contract()
        return changes_since(
            session.store.tables, session.coordinator, self._find_state, since, branch, wanted
        )

    def poll_changes(
        self,
        branch: str = MAIN,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> ChangePage:
        """Read the next page of a branch's changes, with a cursor to go on from.

        Begin with a `start` (`"now"`, `"beginning"`, `"after:COMMIT"`). While a page has a
        `next_page_token`, pass it on; the last page has a `cursor` for the next poll. Filters are
        part of a cursor; a type is followed through renames, by any name that it has had. A reader
        that stops anywhere and goes on from its last cursor loses nothing, and may see some changes
        twice.

        Raises:
            ChangeCursorRejected: The token is damaged, or of another branch or filter.
            ChangeFeedGap: A cleanup removed states that were not read yet.
        """
        wanted = self._follow(kinds, types, ops)
        return self._feed().poll(
            branch, wanted, cursor=cursor, start=start, page_token=page_token, limit=limit
        )

    def commit_changes(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> CommitPage:
        """Read a page of what one commit changed, against its first parent."""
        wanted = self._follow(kinds, types, ops)
        return self._feed().read_commit(commit_id, wanted, page_token, limit)

    def change_baseline(
        self,
        branch: str = MAIN,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Baseline:
        """The records of a branch as it is now, and the cursor of what comes after them."""
        from omnigraph.branch.feed import Baseline, list_types

        wanted = self._follow(kinds, types, ops)
        commit, cursor = self._feed().pin(branch, wanted)
        names = list_types(self._find_state(commit.commit_id).catalog, wanted)
        records = self._graph.export(commit=commit.commit_id, types=names) if names else iter(())
        return Baseline(commit.commit_id, cursor, records)

    def _follow(
        self,
        kinds: Collection[str] | None,
        types: Collection[str] | None,
        ops: Collection[str] | None,
    ) -> ChangeFilter:
        """A filter of changes over time, in which types have other names."""
        from omnigraph.branch.diff import ChangeFilter

        had = self._session.list_types_had() if types else ()
        return ChangeFilter(kinds, types, ops).follow_types(had)

    def _feed(self) -> ChangeFeed:
        from omnigraph.branch.feed import ChangeFeed

        session = self._session
        session.read_contract()
        return ChangeFeed(
            session.store.tables, session.coordinator, self._find_state, session.feed_changes
        )


def poll_small_pages(
    graph: ChangeCalls,
    branch: str,
    *,
    page_bytes: int,
    kinds: Collection[str] | None,
    types: Collection[str] | None,
    ops: Collection[str] | None,
    **place: Any,
) -> ChangePage:
    """As `Graph.poll_changes`, in pages for a reader that may take long to read one."""
    return graph._feed().poll(
        branch, graph._follow(kinds, types, ops), page_bytes=page_bytes, **place
    )


def stream_diff_html(
    graph: ChangeCalls, from_: Target, to: Target, *, title: str | None = None, **wanted: Any
) -> Iterator[str]:
    """As `Graph.diff_html`, in parts that are written while the changes are read."""
    from omnigraph.branch.html import stream_diff_page
    from omnigraph.branch.surroundings import find_changed_subgraph

    before, after = map(graph._find_state, (from_, to))
    changes = graph.diff(before.snapshot, after.snapshot, **wanted)
    shown = find_changed_subgraph(changes, before.catalog, after, graph._session.store.tables)
    return stream_diff_page(changes, title=title or f"{from_} → {to}", subgraph=shown)
