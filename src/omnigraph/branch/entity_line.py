"""Entity line: what happened to one node or edge along the line of a branch, newest first.

A line is walked in segments. Within one the schema stays as it is, so one read of a manifest tells
which commits published the table of the entity; where the schema changed, the walk goes on in the
state before, under the name that the type had there.

    the entity is there       its row says which version last changed it: the walk goes there
    it is not there           each older version of the table is opened until one has it

What a commit changed is known by comparing both sides, so rows that were written back as they were
are no change. Values are matched by the identity of their properties.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.descent import open_entry
from omnigraph.branch.diff import StateOf
from omnigraph.branch.images import Image, images
from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BranchNotFound, NotFoundError
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState, Snapshot, TableEntry
from omnigraph.manifest.pin_history import PinnedCommit
from omnigraph.manifest.rows import row_to_commit
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.row_search import RowSearch, RowStamp
from omnigraph.storage.tables import TableStorage

SCHEMA_NOTE = "schema_hash"
"""What a commit that changes the schema notes on itself."""


class HistoryRemoved(Exception):
    """The state before `commit` is not stored any more. Caught by the callers of a walk."""

    def __init__(self, commit: GraphCommit, after: EntityRow | None = None) -> None:
        super().__init__(commit.commit_id)
        self.commit = commit
        self.after = after


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity as a version of its table has it. `values` are by identity, null ones left out."""

    entity: EntityType
    table_path: str
    stamp: RowStamp
    image: Image = field(repr=False)
    values: Mapping[int | str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """A commit that changed the entity; a side is None where it is not there."""

    commit: GraphCommit
    before: EntityRow | None
    after: EntityRow | None


def differ(before: EntityRow | None, after: EntityRow | None) -> bool:
    """Whether two rows of one entity differ."""
    if before is None or after is None:
        return before is not after
    return bool(changed_values(before, after))


def changed_values(before: EntityRow | None, after: EntityRow | None) -> set[int | str]:
    """The identities of the properties that differ; of a row on one side only, all of it."""
    old, new = (each.values if each is not None else {} for each in (before, after))
    # As texts: -0.0 == 0.0 in Python, yet they are two values.
    return {key for key in {*old, *new} if repr(old.get(key)) != repr(new.get(key))}


@dataclass(frozen=True, slots=True)
class _Segment:
    """The commits of a line that published the table, down to `floor`, newest first.

    The last one shows what `floor` shows; `entity` is None where the schema has no such type.
    """

    floor: GraphCommit
    entity: EntityType | None = None
    pinned: tuple[PinnedCommit, ...] = ()

    def find_origin(self, start: int, row: EntityRow | None) -> int:
        """The position of the commit that made the row what it is, as far as the segment tells."""
        if row is None:
            return start
        positions = range(start + 1, len(self.pinned))
        earlier = (at for at in positions if self.pinned[at].version < row.stamp.updated)
        return next(earlier, len(self.pinned)) - 1


class EntityLine:
    """Walks over lines with one entity in mind. For one operation."""

    def __init__(
        self,
        tables: TableStorage,
        coordinator: Coordinator,
        state_of: StateOf,
        type_id: int,
        entity_id: str,
    ) -> None:
        self._tables = tables
        self._coordinator = coordinator
        self._state_of = state_of
        self._type_id = type_id
        self._rows = RowSearch(tables.reads, entity_id)

    def read(self, commit: GraphCommit) -> EntityRow | None:
        """The entity as a commit left it.

        Raises:
            NotFoundError: That state is not stored any more.
        """
        return self._find_newest(self._read_segment(commit))

    def walk(self, start: GraphCommit) -> Iterator[Step]:
        """Every commit of the line of `start`, and this one, that changed the entity.

        Raises:
            HistoryRemoved: An older state is needed that a cleanup has removed.
        """
        segment = self._read_segment(start)
        row = self._find_newest(segment)
        while True:
            row = yield from self._walk_segment(segment, row)
            floor = segment.floor
            if floor.parent_id is None:
                if row is not None:
                    yield Step(floor, None, row)
                return
            segment = self._read_older_segment(floor, row)
            before = None
            if segment.entity is not None:
                before = self._look_back(floor, segment.entity, segment.pinned[0].entry, row)
            if differ(before, row):
                yield Step(floor, before, row)
            row = before

    def _walk_segment(
        self, segment: _Segment, row: EntityRow | None
    ) -> Generator[Step, None, EntityRow | None]:
        """The steps within a segment; returns what its floor shows."""
        at = 0
        while True:
            at = segment.find_origin(at, row)
            if at >= len(segment.pinned) - 1:
                return row
            commit, older = segment.pinned[at].commit, segment.pinned[at + 1]
            assert segment.entity is not None
            before = self._look_back(commit, segment.entity, older.entry, row)
            if differ(before, row):
                yield Step(commit, before, row)
            row, at = before, at + 1

    # Rows

    def _find_newest(self, segment: _Segment) -> EntityRow | None:
        """The entity at the top of a segment."""
        if segment.entity is None:
            return None
        entry = segment.pinned[0].entry
        handle = open_entry(self._tables, entry)
        return self._take(segment.entity, entry, handle, self._rows.find(handle))

    def _look_back(
        self, commit: GraphCommit, entity: EntityType, entry: TableEntry, row: EntityRow | None
    ) -> EntityRow | None:
        """The entity as it was before a commit; `row` is how the commit left it."""
        try:
            handle = open_entry(self._tables, entry)
            is_known = row is not None and row.table_path == entry.table_path
            stamp: RowStamp | None = None
            if row is not None and is_known and row.stamp.created <= entry.version:
                stamp = self._rows.follow(handle, row.stamp)
            # A row that came with the commit may stand for one of the same id.
            stamp = stamp or self._rows.search(handle)
            return self._take(entity, entry, handle, stamp)
        except NotFoundError:
            raise HistoryRemoved(commit, row) from None

    def _take(
        self, entity: EntityType, entry: TableEntry, handle: TableHandle, stamp: RowStamp | None
    ) -> EntityRow | None:
        if stamp is None:
            return None
        row_ids = np.array([stamp.row_id], np.uint64)
        [batch] = self._tables.reads.take_stream(handle, row_ids)
        [image] = images(batch)
        return EntityRow(entity, entry.table_path, stamp, image, _by_identity(entity, image))

    # Segments

    def _read_older_segment(self, floor: GraphCommit, row: EntityRow | None) -> _Segment:
        assert floor.parent_id is not None
        try:
            return self._read_segment(self._coordinator.commit(floor.parent_id))
        except NotFoundError:
            raise HistoryRemoved(floor, row) from None

    def _read_segment(self, top: GraphCommit) -> _Segment:
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
            return _Segment(floor)
        pinned = self._coordinator.pinned_commits(state, found.entry)
        return _Segment(floor, found.entity, _cut(pinned, top, floor))

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

    def _read_retained(self, top: GraphCommit) -> _Segment:
        """The segment of commits whose branch was deleted: each state is kept by itself."""
        shown = self._state_of(self._coordinator.snapshot_of(top))
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
        return _Segment(floor, None if found is None else found.entity, tuple(pinned))

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


def _by_identity(entity: EntityType, image: Image) -> dict[int | str, Any]:
    return {
        identity_of(entity, name): value
        for name, value in image.items()
        if name != "id" and value is not None
    }


def identity_of(entity: EntityType, name: str) -> int | str:
    """What tells a property from others, whatever it is called; the ends of an edge have names."""
    found = entity.properties.get(name)
    return name if found is None else found.property_id
