"""Changes: what differs between two states of a graph, entity by entity, with both images.

Net: what came and went in between is no change, and neither is a row that was written back as it
was. A change set is read as it is iterated, a bounded batch at a time, in the order of table key
and id; of very many changes also which rows differ is found then (`windows.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import islice
from typing import Any

import pyarrow as pa

from omnigraph.branch.compare_windows import AnyDifferences
from omnigraph.branch.differences import Differences
from omnigraph.branch.images import Image, list_changed_properties
from omnigraph.branch.row_batches import BATCH_ROWS_MAX, BatchSize, read_images
from omnigraph.catalog import EntityType, MigrationStep
from omnigraph.dataclass import dataclass
from omnigraph.display import ROWS_MAX, Grid, Sheet, count_noun, show_html, show_text
from omnigraph.json_form import JsonForm, without_empty
from omnigraph.manifest import GraphCommit
from omnigraph.manifest.schema_view import GONE
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage


class ChangeOp(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One node or edge that differs. `before` is None for an insert, `after` for a delete.

    Each image has the names of its own schema; `renamed` leads from those of `before` to those of
    `after` where they differ. In a history, `commit` made the change and `through` is the merge by
    which it came.
    """

    table_key: str
    kind: str
    type_name: str
    id: str
    op: ChangeOp
    manifest_version: int
    before: Image | None = None
    after: Image | None = None
    renamed: Mapping[str, str] = field(default_factory=dict, repr=False)
    commit: GraphCommit | None = None
    through: str | None = None

    @property
    def endpoints(self) -> tuple[str, str] | None:
        """The `src` and `dst` of an edge, as it is or last was."""
        image = self.after if self.after is not None else self.before
        if self.kind != "edge" or image is None:
            return None
        return image["src"], image["dst"]

    @property
    def properties(self) -> list[str]:
        """The properties that differ, by their later name; all of them for an insert or delete."""
        before = {
            self.renamed.get(name, name): value for name, value in (self.before or {}).items()
        }
        names = list_changed_properties(before, self.after or {})
        return list(dict.fromkeys(name.partition(GONE)[0] for name in names))

    def earlier_name(self, name: str) -> str:
        """What `before` calls a property of that later name."""
        return next((old for old, new in self.renamed.items() if new == name), name)

    def to_json(self) -> dict[str, Any]:
        ends = self.endpoints
        return without_empty(
            {
                "kind": self.kind,
                "type": self.type_name,
                "id": self.id,
                "op": self.op.value,
                "manifest_version": self.manifest_version,
                "endpoints": None if ends is None else {"src": ends[0], "dst": ends[1]},
                "before": None if self.before is None else dict(self.before),
                "after": None if self.after is None else dict(self.after),
                "changed": self.properties if self.op is ChangeOp.UPDATE else None,
            }
        )


@dataclass(frozen=True, slots=True)
class ChangeStats(JsonForm):
    """How much differs. `types_affected` is sorted."""

    inserts: int
    updates: int
    deletes: int
    types_affected: tuple[str, ...]

    @property
    def total(self) -> int:
        return self.inserts + self.updates + self.deletes


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The rows of one table that differ; a side is None where the table is not there.

    `entity` is the later one of both sides, `renamed` its columns that were called otherwise.
    """

    entity: EntityType
    before: TableHandle | None
    after: TableHandle | None
    rows: AnyDifferences
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangeSet(JsonForm):
    """The changes between two states. Iterate it for the entities.

    `len` and `stats` cost nothing while all rows that differ fit in one window, and after the whole
    was iterated; of more they read everything once.

    `branch` is the branch both states are of, None when they are of two. `from_schema` and
    `to_schema` name the schema of each state, when the graph says, and `schema_steps` lead from
    one to the other. They are no entities: neither `len` nor the stats count them.
    """

    tables: TableStorage = field(repr=False, compare=False)
    from_version: int
    to_version: int
    branch: str | None
    table_changes: Sequence[TableChanges] = ()
    from_schema: str | None = None
    to_schema: str | None = None
    schema_steps: tuple[MigrationStep, ...] = ()

    def __iter__(self) -> Iterator[EntityChange]:
        for each in sorted(self.table_changes, key=lambda each: each.entity.table_key):
            yield from self.of_table(each)

    def __len__(self) -> int:
        return sum(len(each.rows) for each in self.table_changes)

    def __bool__(self) -> bool:
        return any(each.rows for each in self.table_changes)

    def is_long(self, most: int) -> bool:
        """Whether there are more changes than these, as far as that is known for nothing."""
        rows = [each.rows for each in self.table_changes]
        known = [each for each in rows if isinstance(each, Differences)]
        return len(known) < len(rows) or sum(map(len, known)) > most

    @property
    def stats(self) -> ChangeStats:
        counts = [each.rows.counts for each in self.table_changes]
        inserts, updates, deletes = (sum(column) for column in zip((0, 0, 0), *counts, strict=True))
        affected = {each.entity.name for each in self.table_changes if sum(each.rows.counts)}
        return ChangeStats(inserts, updates, deletes, tuple(sorted(affected)))

    def make_sheet(self) -> Sheet:
        """Counts per type and the first changes; only these are read."""
        counts = [(each.entity.table_key, *each.rows.counts) for each in self.table_changes]
        grids = [
            Grid(("table", "inserted", "updated", "deleted"), [c for c in counts if any(c[1:])])
        ]
        rows = [
            (each.op.value, each.type_name, each.id, ", ".join(each.properties))
            for each in islice(self, ROWS_MAX)
        ]
        grids.append(Grid(("change", "type", "id", "properties"), rows, len(self)))
        stats = self.stats
        where = "" if self.branch is None else f" on branch {self.branch}"
        title = (
            f"{count_noun(stats.total, 'change')}{where}: {stats.inserts:,} inserted, "
            f"{stats.updates:,} updated, {stats.deletes:,} deleted"
        )
        return Sheet(title, grids=grids if len(counts) > 1 else grids[1:])

    __repr__ = show_text
    _repr_html_ = show_html

    def to_json(self) -> dict[str, Any]:
        """Everything at once; `to_stream` and `to_jsonl` read as they are iterated."""
        document = self.to_stream()
        return {**document, "changes": list(document["changes"]), "stats": document["stats"]()}

    def to_stream(self) -> dict[str, Any]:
        """The document of `to_json`; its changes are an iterator, its counts a call for the end."""
        return {
            "from_version": self.from_version,
            "to_version": self.to_version,
            "branch": self.branch,
            "from_schema": self.from_schema,
            "to_schema": self.to_schema,
            "schema_steps": [each.to_json() for each in self.schema_steps],
            "changes": (each.to_json() for each in self),
            "stats": lambda: self.stats.to_json(),
        }

    def to_jsonl(self) -> Iterator[str]:
        """One line of JSON per change, without line ends."""
        for each in self:
            yield json.dumps(each.to_json(), ensure_ascii=False)

    def of_table(
        self, changes: TableChanges, start: str | None = None, wanted: int | None = None
    ) -> Iterator[EntityChange]:
        """The changes of one table, by id, from an id on.

        A caller that takes no more than it has `wanted` has no others read for it.
        """
        most = BATCH_ROWS_MAX if wanted is None else max(1, min(BATCH_ROWS_MAX, wanted))
        sides = [
            _Side(self.tables, each, name, most)
            for each, name in ((changes.before, "before"), (changes.after, "after"))
        ]
        for rows in changes.rows.list_parts(start):
            for first in range(0, rows.num_rows, most):
                part = rows.slice(first, most)
                images = (side.read_images(part) for side in sides)
                for id_, *both in zip(part["id"].to_pylist(), *images, strict=True):
                    yield self._change(changes, id_, *both)

    def _change(
        self,
        changes: TableChanges,
        id_: str,
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
    ) -> EntityChange:
        entity, op = changes.entity, ChangeOp.UPDATE
        if before is None:
            op = ChangeOp.INSERT
        elif after is None:
            op = ChangeOp.DELETE
        return EntityChange(
            table_key=entity.table_key,
            kind=entity.kind,
            type_name=entity.name,
            id=id_,
            op=op,
            manifest_version=self.to_version,
            before=before,
            after=after,
            renamed=changes.renamed if op is ChangeOp.UPDATE else {},
        )


class _Side:
    """One side of a table that is read; what its rows take is learned over all of them."""

    def __init__(
        self, tables: TableStorage, handle: TableHandle | None, name: str, most: int
    ) -> None:
        self._tables = tables
        self._handle = handle
        self._name = name
        self._size = None if handle is None else BatchSize(handle, most=most)

    def read_images(self, part: pa.Table) -> Iterator[dict[str, Any] | None]:
        rows = part[self._name]
        if self._handle is None or rows.null_count == len(rows):
            return iter([None] * len(rows))
        return read_images(self._tables, self._handle, rows, self._size)
