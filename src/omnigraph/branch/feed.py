"""Feed: what the commits of a branch changed, in pages, from where a reader was to the head.

    poll(start="now")        → a cursor, and nothing to read yet
    poll(cursor=…)           → blocks, one per commit; a next_page_token while there is more of them
    poll(page_token=…)       → more blocks; the last page has the next cursor and `caught_up`

The first page of a poll pins the commits that it walks, so later commits wait for the next one. A
reader that is stopped anywhere goes on from its last cursor: it sees some changes again, and loses
none. Within a commit nodes come before edges, then types by identity, then entities by id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import pairwise
from typing import Any, TypeAlias

from omnigraph.branch.change_records import (
    PAGE_CHANGES,
    Key,
    Record,
    Room,
    check_limit,
    read_key,
    write_key,
)
from omnigraph.branch.changes import ChangeSet
from omnigraph.branch.diff import (
    ChangeFilter,
    CommitChanges,
    StateOf,
    diff_states,
    line_after,
    walk_back,
)
from omnigraph.branch.feed_tokens import Scope, read_token, write_token
from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.display import ROWS_MAX, Grid, Sheet, count_noun, format_time, show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import (
    BadRequestError,
    ChangeCursorRejected,
    ChangeFeedGap,
    CommitStateGone,
    NotFoundError,
)
from omnigraph.json_form import without_empty
from omnigraph.lru import Lru
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.revisions import find_commit
from omnigraph.storage.tables import TableStorage

COMMITS_PER_POLL = 128

KeptChanges: TypeAlias = Lru[tuple[str, str], ChangeSet]


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """Changes of one commit: all of them, or those that a page had room for."""

    cause: Record
    changes: list[Record]

    def to_json(self) -> Record:
        return {"cause": self.cause, "changes": self.changes}


@dataclass(frozen=True, slots=True)
class ChangePage:
    """One page of a poll. The last one has a cursor instead of a token for the next."""

    blocks: list[ChangeBlock] = field(default_factory=list)
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_json(self) -> Record:
        paging = {
            "next_page_token": self.next_page_token,
            "cursor": self.cursor,
            "caught_up": self.caught_up,
        }
        return {"blocks": [each.to_json() for each in self.blocks], **without_empty(paging)}

    def make_sheet(self) -> Sheet:
        columns = ("commit", "branch", "time", "actor", "changes")
        rows = [
            (each.cause["graph_commit_id"], each.cause["authored_branch"],
             format_time(each.cause["authored_at"]), each.cause.get("actor_id"), len(each.changes))
            for each in self.blocks[:ROWS_MAX]
        ]  # fmt: skip
        count = len(self.blocks)
        paging = {name: getattr(self, name) for name in ("caught_up", "next_page_token", "cursor")}
        facts = {name.replace("_", " "): value for name, value in paging.items()}
        return Sheet(
            f"changes of {count_noun(count, 'commit')}", facts, [Grid(columns, rows, count)]
        )

    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class CommitPage:
    """One page of what a commit changed."""

    cause: Record
    changes: list[Record]
    next_page_token: str | None = None

    def to_json(self) -> Record:
        paging = {"next_page_token": self.next_page_token}
        return {"cause": self.cause, "changes": self.changes, **without_empty(paging)}

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class Baseline:
    """A state to start from: its records, as `export` gives them, and what comes after them."""

    commit_id: str
    cursor: str
    records: Iterator[Record]

    def to_stream(self) -> Iterator[Record]:
        """The records, and behind them which state they are of."""
        yield from self.records
        yield {"baseline": {"snapshot_commit_id": self.commit_id, "resume_cursor": self.cursor}}

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


def list_types(catalog: Catalog, wanted: ChangeFilter) -> list[str]:
    """The table keys that a filter leaves."""
    return [each.table_key for each in catalog.entities() if wanted.wants_table([each])]


class ChangeFeed:
    """The feed of one graph. What was compared for a page is in `kept` for the next one."""

    def __init__(
        self, tables: TableStorage, coordinator: Coordinator, state_of: StateOf, kept: KeptChanges
    ) -> None:
        self._tables = tables
        self._coordinator = coordinator
        self._state_of = state_of
        self._kept = kept

    def poll(
        self,
        branch: str,
        wanted: ChangeFilter,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        page_bytes: int | None = None,
    ) -> ChangePage:
        """Read the next page, from exactly one of a cursor, a start and a page token.

        Raises:
            ChangeCursorRejected: The token is damaged or of another feed.
            ChangeFeedGap: A cleanup removed states that the walk needs.
        """
        if sum(each is not None for each in (cursor, start, page_token)) > 1:
            raise BadRequestError("give one of cursor, start and page_token — each is a place")
        room = Room(check_limit(limit), page_bytes)
        state = self._coordinator.fresh(canonical_branch(branch))
        walk = _Walk(state, Scope(state.branch, state.branch_id, wanted))
        if page_token is not None:
            return self._read(walk.resume(read_token(page_token, "page", walk.scope)), room)
        if cursor is not None:
            after = read_token(cursor, "cursor", walk.scope).get("after")
            return self._read(replace(walk, after=after or ""), room)
        return self._read(walk.begin(self._find_start(state, start or "now")), room)

    def pin(self, branch: str, wanted: ChangeFilter) -> tuple[GraphCommit, str]:
        """The head of a branch, and the cursor of a reader that has seen everything up to it."""
        state = self._coordinator.fresh(canonical_branch(branch))
        wanted.check([self._state_of(state.snapshot()).catalog])
        scope = Scope(state.branch, state.branch_id, wanted)
        return state.head, write_token("cursor", scope, {"after": state.head.commit_id})

    def read_commit(
        self, commit_id: str, wanted: ChangeFilter, page_token: str | None, limit: int | None
    ) -> CommitPage:
        """A page of what a commit, or the one of another revision, changed since its first parent.

        Raises:
            CommitNotFound: There is no such commit.
            ChangeCursorRejected: The token is damaged or of another commit.
            ChangeFeedGap: A cleanup removed one of the two states.
        """
        most = check_limit(limit)
        commit = find_commit(self._coordinator, commit_id)
        scope = Scope(commit.commit_id, None, wanted)
        place = {} if page_token is None else read_token(page_token, "page", scope)
        after = self._state_of(self._snapshot(commit))
        if commit.parent_id is None:
            wanted.check([after.catalog])
            return CommitPage(CommitChanges.describe(commit), [])
        parent = self._coordinator.commit(commit.parent_id)
        wanted.check([self._state_of(self._snapshot(parent)).catalog, after.catalog])
        room = Room(most)
        changes = self._compare(parent, commit, wanted)
        records, key = room.take(changes, read_key(place))
        token = None if key is None else write_token("page", scope, write_key(key))
        return CommitPage(CommitChanges.describe(commit), records, token)

    def _find_start(self, state: ManifestState, start: str) -> str:
        word, _, commit_id = start.partition(":")
        if start == "now":
            return state.head.commit_id
        if start == "beginning":
            return list(walk_back(state))[-1].commit_id
        if word == "after" and commit_id:
            return commit_id
        raise BadRequestError(f"start is '{start}' — expected now, beginning or after:COMMIT")

    def _read(self, walk: _Walk, room: Room) -> ChangePage:
        line = self._find_line(walk)
        self._check_filter(walk, line)
        key = walk.key
        blocks: list[ChangeBlock] = []
        for parent, commit in pairwise(line):
            if room.is_full:
                return ChangePage(blocks, walk.token_at(parent, line[-1], None))
            changes = self._compare(parent, commit, walk.scope.wanted, walk)
            records, key = room.take(changes, key)
            if records:
                blocks.append(ChangeBlock(CommitChanges.describe(commit), records))
            if key is not None:
                return ChangePage(blocks, walk.token_at(parent, line[-1], key))
        cursor = write_token("cursor", walk.scope, {"after": line[-1].commit_id})
        is_caught_up = line[-1].commit_id == walk.state.head.commit_id
        return ChangePage(blocks, cursor=cursor, caught_up=is_caught_up)

    def _find_line(self, walk: _Walk) -> list[GraphCommit]:
        """The commits of a walk, oldest first, from the one it starts after."""
        try:
            line = line_after(walk.state, walk.after)
        except NotFoundError as error:
            if walk.is_given:
                raise
            raise ChangeCursorRejected(str(error)) from None
        if walk.end is None:
            return line[: COMMITS_PER_POLL + 1]
        ids = [each.commit_id for each in line]
        if walk.end not in ids:
            raise ChangeCursorRejected("it names a commit that is not on the branch")
        return line[: ids.index(walk.end) + 1]

    def _check_filter(self, walk: _Walk, line: list[GraphCommit]) -> None:
        ends = line[:1] if len(line) == 1 else [line[0], line[-1]]
        states = (self._state_of(self._snapshot(each, walk.cursor)) for each in ends)
        walk.scope.wanted.check([each.catalog for each in states])

    def _compare(
        self,
        parent: GraphCommit,
        commit: GraphCommit,
        wanted: ChangeFilter,
        walk: _Walk | None = None,
    ) -> ChangeSet:
        key = commit.commit_id, repr(wanted)
        found = self._kept.get(key)
        if found is None:
            cursor = None if walk is None else walk.cursor
            before, after = (
                self._state_of(self._snapshot(each, cursor)) for each in (parent, commit)
            )
            found = diff_states(self._tables, before, after, wanted)
            if found.is_long(PAGE_CHANGES):
                self._kept.put(key, found)
        return found

    def _snapshot(self, commit: GraphCommit, cursor: str | None = None) -> Any:
        try:
            return self._coordinator.commit_states.get(commit)
        except CommitStateGone as error:
            raise ChangeFeedGap(error.commit_id, cursor=cursor) from None


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk over commits: after one, up to another, perhaps from within the first."""

    state: ManifestState
    scope: Scope
    after: str = ""
    end: str | None = None
    key: Key | None = None
    is_given: bool = False

    def begin(self, after: str) -> _Walk:
        return replace(self, after=after, is_given=True)

    def resume(self, place: Any) -> _Walk:
        after, end = place.get("after"), place.get("end")
        if after is None or end is None:
            raise ChangeCursorRejected("it is damaged")
        return replace(self, after=after, end=end, key=read_key(place))

    @property
    def cursor(self) -> str:
        """The cursor of where the walk began."""
        return write_token("cursor", self.scope, {"after": self.after})

    def token_at(self, parent: GraphCommit, end: GraphCommit, key: Key | None) -> str:
        place = {"after": parent.commit_id, "end": end.commit_id}
        inside = {} if key is None else write_key(key)
        return write_token("page", self.scope, {**place, **inside})
