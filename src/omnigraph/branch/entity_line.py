"""Entity line: what happened to one node or edge along the line of a branch, newest first.

A line is walked in segments (`line_segments.py`), which tell the commits that published the table.

    the entity is there       its row says which version last changed it: the walk goes there
    it is not there           each older version of the table is opened until one has it

What a commit changed is known by comparing both sides, so rows that were written back as they were
are no change. Values are matched by the identity of their properties.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import field
from typing import Any

from omnigraph.branch.changes import ChangeOp, EntityChange
from omnigraph.branch.descent import open_entry
from omnigraph.branch.diff import StateOf
from omnigraph.branch.images import Image, images
from omnigraph.branch.line_segments import HistoryRemoved, LineSegments, Segment
from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import NotFoundError
from omnigraph.lru import Lru
from omnigraph.manifest import Coordinator, GraphCommit, TableEntry
from omnigraph.manifest.schema_view import find_renamed_columns
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.row_search import RowSearch, RowStamp
from omnigraph.storage.tables import TableStorage

_NEWEST_MAX = 4


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


def describe_step(step: Step, entity_id: str, through: str | None = None) -> EntityChange:
    """A step as a change; `through` is the merge by which it came."""
    before, after = step.before, step.after
    shown = after or before
    assert shown is not None
    renamed: Mapping[str, str] = {}
    op = ChangeOp.INSERT if before is None else ChangeOp.DELETE
    if before is not None and after is not None:
        op, renamed = ChangeOp.UPDATE, find_renamed_columns(before.entity, after.entity)
    return EntityChange(
        table_key=shown.entity.table_key,
        kind=shown.entity.kind,
        type_name=shown.entity.name,
        id=entity_id,
        op=op,
        manifest_version=step.commit.manifest_version,
        before=None if before is None else before.image,
        after=None if after is None else after.image,
        renamed=renamed,
        commit=step.commit,
        through=through,
    )


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
        self._segments = LineSegments(coordinator, state_of, type_id)
        self._rows = RowSearch(tables.reads, entity_id)
        self._newest: Lru[str, tuple[Segment, EntityRow | None]] = Lru(_NEWEST_MAX)

    def read(self, commit: GraphCommit) -> EntityRow | None:
        """The entity as a commit left it.

        Raises:
            NotFoundError: That state is not stored any more.
        """
        return self._read_newest(commit)[1]

    def walk(self, start: GraphCommit) -> Iterator[Step]:
        """Every commit of the line of `start`, and this one, that changed the entity.

        Raises:
            HistoryRemoved: An older state is needed that a cleanup has removed.
        """
        segment, row = self._read_newest(start)
        while True:
            row = yield from self._walk_segment(segment, row)
            floor = segment.floor
            if floor.parent_id is None:
                if row is not None:
                    yield Step(floor, None, row)
                return
            segment = self._segments.read_older(floor, is_there=row is not None)
            before = None
            if segment.entity is not None:
                before = self._look_back(floor, segment.entity, segment.pinned[0].entry, row)
            if differ(before, row):
                yield Step(floor, before, row)
            row = before

    def is_own(self, step: Step, source: GraphCommit) -> bool:
        """Whether a merge left something else than its source has.

        Raises:
            NotFoundError: That state is not stored any more.
        """
        return differ(self.read(source), step.after)

    def _walk_segment(
        self, segment: Segment, row: EntityRow | None
    ) -> Generator[Step, None, EntityRow | None]:
        """The steps within a segment; returns what its floor shows."""
        at = 0
        while True:
            at = at if row is None else segment.find_origin(at, row.stamp.updated)
            if at >= len(segment.pinned) - 1:
                return row
            commit, older = segment.pinned[at].commit, segment.pinned[at + 1]
            assert segment.entity is not None
            before = self._look_back(commit, segment.entity, older.entry, row)
            if differ(before, row):
                yield Step(commit, before, row)
            row, at = before, at + 1

    # Rows

    def _read_newest(self, commit: GraphCommit) -> tuple[Segment, EntityRow | None]:
        """The segment below a commit and the entity at its top; often a walk follows a read."""
        found = self._newest.get(commit.commit_id)
        if found is None:
            segment = self._segments.read(commit)
            found = segment, self._find_newest(segment)
            self._newest.put(commit.commit_id, found)
        return found

    def _find_newest(self, segment: Segment) -> EntityRow | None:
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
            raise HistoryRemoved(commit, is_there=row is not None) from None

    def _take(
        self, entity: EntityType, entry: TableEntry, handle: TableHandle, stamp: RowStamp | None
    ) -> EntityRow | None:
        if stamp is None:
            return None
        [image] = images(self._tables.reads.take_one(handle, stamp.row_id, stamp.address))
        return EntityRow(entity, entry.table_path, stamp, image, _by_identity(entity, image))


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
