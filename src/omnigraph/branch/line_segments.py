"""Line segments: which commits of a line published the table of one type.

Within a segment the schema stays as it is, so one read of a manifest tells which commits published
the table; where the schema changed, the next segment begins in the state before, under the name
that the type had there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.diff import StateOf
from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BranchNotFound, NotFoundError
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState, Snapshot
from omnigraph.manifest.pin_history import PinnedCommit
from omnigraph.manifest.rows import row_to_commit

SCHEMA_NOTE = "schema_hash"
"""What a commit that changes the schema notes on itself."""


class HistoryRemoved(Exception):
    """The state before `commit` is not stored any more. Caught by the callers of a walk.

    `is_there` says whether what was walked for is there after the commit.
    """

    def __init__(self, commit: GraphCommit, *, is_there: bool = False) -> None:
        super().__init__(commit.commit_id)
        self.commit = commit
        self.is_there = is_there


@dataclass(frozen=True, slots=True)
class Segment:
    """The commits of a line that published the table, down to `floor`, newest first.

    The last one shows what `floor` shows; `entity` is None where the schema has no such type.
    """

    floor: GraphCommit
    entity: EntityType | None = None
    pinned: tuple[PinnedCommit, ...] = ()

    def find_origin(self, start: int, updated: int) -> int:
        """The position of the commit that published a version, as far as the segment tells."""
        positions = range(start + 1, len(self.pinned))
        earlier = (at for at in positions if self.pinned[at].version < updated)
        return next(earlier, len(self.pinned)) - 1


class LineSegments:
    """Reads lines with one type in mind. For one operation."""

    def __init__(self, coordinator: Coordinator, state_of: StateOf, type_id: int) -> None:
        self._coordinator = coordinator
        self._state_of = state_of
        self._type_id = type_id

    def read_older(self, floor: GraphCommit, *, is_there: bool = False) -> Segment:
        """The segment before a floor.

        Raises:
            HistoryRemoved: It is not stored any more.
        """
        assert floor.parent_id is not None
        try:
            return self.read(self._coordinator.commit(floor.parent_id))
        except NotFoundError:
            raise HistoryRemoved(floor, is_there=is_there) from None

    def read(self, top: GraphCommit) -> Segment:
        """The segment that a commit is the newest of.

        Raises:
            NotFoundError: Its state is not stored any more.
        """
        state = self._find_manifest(top)
        if state is None:
            return self._read_retained(top)
        floor = _find_floor(state, top)
        found = self._state_of(state.snapshot()).tables().get(self._type_id)
        if found is None:
            return Segment(floor)
        pinned = self._coordinator.pinned_commits(state, found.entry)
        return Segment(floor, found.entity, _cut(pinned, top, floor))

    def _find_manifest(self, commit: GraphCommit) -> ManifestState | None:
        """A manifest in the schema of a commit that knows its line; None if its branch is gone."""
        with suppress(BranchNotFound):
            state = self._coordinator.fresh(commit.branch)
            if not _is_on_line(state, commit):
                return None  # of an earlier branch of that name
            if _find_floor(state, state.head).order <= commit.order:
                return state
            return self._coordinator.at_version(commit.branch, commit.manifest_version)
        return None

    def _read_retained(self, top: GraphCommit) -> Segment:
        """The segment of commits whose branch was deleted: each state is kept by itself."""
        shown = self._state_of(self._coordinator.commit_states.get(top))
        found = shown.tables().get(self._type_id)
        pinned: list[PinnedCommit] = []
        floor = top
        for snapshot in self._walk_retained(shown.snapshot):
            floor = snapshot.head
            entry = None if found is None else snapshot.entries.get(found.entry.table_key)
            if entry is not None:
                pinned.append(PinnedCommit(floor, entry, entry.version))
            if SCHEMA_NOTE in floor.properties:
                break
        return Segment(floor, None if found is None else found.entity, tuple(pinned))

    def _walk_retained(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """A state whose branch is gone, and those before it on its line."""
        found: Snapshot | None = snapshot
        while found is not None:
            yield found
            parent_id = found.head.parent_id
            found = None if parent_id is None else self._coordinator.retained.read(parent_id)


def _is_on_line(state: ManifestState, commit: GraphCommit) -> bool:
    place = pc.index(state.commit_rows["object_id"], pa.scalar(commit.commit_id))
    return bool(place.as_py() >= 0)


def _find_floor(state: ManifestState, top: GraphCommit) -> GraphCommit:
    """The newest commit of a line, up to one of it, that changed the schema; else its first."""
    rows = state.commit_rows
    is_change = pc.match_substring(rows["metadata"], f'"{SCHEMA_NOTE}"')
    is_first = pc.match_substring(rows["metadata"], '"parent": null')
    found = map(row_to_commit, rows.filter(pc.or_(is_change, is_first)).to_pylist())
    floors = (
        each
        for each in found
        if (SCHEMA_NOTE in each.properties or each.parent_id is None) and each.order <= top.order
    )
    return max(floors, key=lambda each: each.order)


def _cut(
    pinned: list[PinnedCommit], top: GraphCommit, floor: GraphCommit
) -> tuple[PinnedCommit, ...]:
    """The commits after a floor, up to a top, and behind them what the floor shows."""
    known = [each for each in pinned if each.commit.order <= top.order]
    later = [each for each in known if each.commit.order > floor.order]
    return tuple(known[: len(later) + 1])
