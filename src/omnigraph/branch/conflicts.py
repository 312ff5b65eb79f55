"""Conflicts: rows that both sides changed since the base, and not in the same way.

source vs base   target vs base   then
same             any              the target's row stays
changed          same             the source's row is taken
changed          changed alike    the target's row stays: both meant the same
changed          changed          divergent insert, divergent update, or delete against update
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.differences import SCHEMA, Differences
from omnigraph.branch.images import list_changed_properties
from omnigraph.branch.merge_base import VirtualBase
from omnigraph.branch.row_batches import is_valid, read_images, to_row_ids
from omnigraph.branch.row_tasks import equal_content
from omnigraph.branch.virtual_base import DISPUTED, BaseTable, Rows
from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import MergeConflict
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage


class ConflictKind(StrEnum):
    """Why a merge cannot decide."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    EMBEDDING_MODELS = "embedding_models"
    DIVERGENT_SCHEMA = "divergent_schema"
    DROP_VS_USE = "drop_vs_use"
    ROWS_DO_NOT_FIT = "rows_do_not_fit"
    DIVERGENT_CHECK = "divergent_check"


@dataclass(frozen=True, slots=True)
class Edit:
    """A row of a table's delta put in place of what is there for the id; None drops it.

    With `ours` and `values` the source's row is taken with these columns as the target has them,
    and these given.
    """

    table_key: str
    row_id: str
    row: tuple[int | None, int | None] | None
    ours: frozenset[str] = frozenset()
    values: Mapping[str, pa.Scalar] = field(default_factory=dict)

    @property
    def is_mixed(self) -> bool:
        """Whether neither side has the row."""
        return bool(self.ours or self.values)


@dataclass(frozen=True, slots=True)
class Contest:
    """A conflict, and what keeping either side would mean; None where a side cannot be kept."""

    conflict: MergeConflict
    ours: Sequence[Edit] | None
    theirs: Sequence[Edit] | None


def contest(
    tables: TableStorage,
    entity: EntityType,
    base: TableHandle,
    source: TableHandle,
    target: TableHandle,
    theirs: Differences,
    ours_candidates: Differences,
    ours: Differences,
) -> tuple[Differences, list[Contest]]:
    """What the source did that the target can take, and what both did in different ways."""
    joined = _with_target_rows(theirs, ours_candidates)
    is_contested = pc.is_in(joined["id"], value_set=ours.ids)
    free = joined.filter(pc.invert(is_contested))
    both = joined.filter(is_contested)
    delta = pa.table({"id": free["id"], "before": free["target"], "after": free["after"]})
    unequal = both.filter(pa.array(_is_unequal(tables, source, target, both)))
    bases = [BaseImage(each) for each in read_images(tables, base, unequal["before"])]
    found = list_contests(tables, entity, bases, (target, source), unequal)
    return Differences(delta.cast(SCHEMA)), found


def contest_virtual(
    entity: EntityType,
    base: VirtualBase,
    base_table: BaseTable,
    source: TableHandle,
    target: TableHandle,
    differing: Differences,
) -> tuple[Differences, list[Contest]]:
    """The same over several bases. `differing` leads from the target's rows to the source's."""
    tables, rows = base_table.tables, differing.rows
    found = base_table.find(base, differing.ids)
    ours = base_table.rows_in(target, rows["before"])
    theirs = base_table.rows_in(source, rows["after"])
    is_theirs = ~base_table.are_equal(found, theirs)
    is_ours = ~base_table.are_equal(found, ours)
    free = rows.filter(pa.array(is_theirs & ~is_ours))
    both = np.flatnonzero(is_theirs & is_ours)
    unequal = rows.take(pa.array(both)).rename_columns(["id", "target", "after"])
    bases = read_base_images(base_table, found.take(both))
    return Differences(free), list_contests(tables, entity, bases, (target, source), unequal)


def read_base_images(base_table: BaseTable, rows: Rows) -> list[BaseImage]:
    images_ = [BaseImage(None, is_disputed=each == DISPUTED) for each in rows.numbers.tolist()]
    for handle, row_ids in base_table.columns(rows):
        for position, image in enumerate(read_images(base_table.tables, handle, row_ids)):
            if image is not None:
                images_[position] = BaseImage(image)
    return images_


@dataclass(frozen=True, slots=True)
class BaseImage:
    """A row of the base; none where it has no such row, or where several bases disagree."""

    image: dict[str, Any] | None
    is_disputed: bool = False


def _with_target_rows(theirs: Differences, ours_candidates: Differences) -> pa.Table:
    """Add where each row is in the target: where the base has it, unless the target moved it."""
    position = pc.index_in(theirs.rows["id"], value_set=ours_candidates.ids)
    moved = ours_candidates.rows["after"].take(position)
    target = pc.if_else(position.is_valid(), moved, theirs.rows["before"])
    return theirs.rows.append_column("target", target)


def _is_unequal(
    tables: TableStorage, source: TableHandle, target: TableHandle, both: pa.Table
) -> np.ndarray:
    in_source, in_target = is_valid(both["after"]), is_valid(both["target"])
    result: np.ndarray = in_source | in_target  # gone on both sides is the same
    pairs = in_source & in_target
    if pairs.any():
        chosen = both.filter(pa.array(pairs))
        result[pairs] = ~equal_content(
            tables, source, to_row_ids(chosen["after"]), target, to_row_ids(chosen["target"])
        )
    return result


def list_contests(
    tables: TableStorage,
    entity: EntityType,
    bases: Sequence[BaseImage],
    handles: tuple[TableHandle, TableHandle],
    rows: pa.Table,
) -> list[Contest]:
    sides = [
        read_images(tables, handle, rows[column])
        for handle, column in zip(handles, ("target", "after"), strict=True)
    ]
    found = []
    for row, base, ours, theirs in zip(rows.to_pylist(), bases, *sides, strict=True):
        conflict = _conflict(entity, row["id"], base, ours, theirs)
        take_theirs = Edit(entity.table_key, row["id"], (row["target"], row["after"]))
        found.append(Contest(conflict, ours=(), theirs=(take_theirs,)))
    return found


def _conflict(
    entity: EntityType,
    row_id: str,
    base: BaseImage,
    ours: dict[str, Any] | None,
    theirs: dict[str, Any] | None,
) -> MergeConflict:
    subject = f"{entity.name} '{row_id}'"
    if ours is None or theirs is None:
        kind = ConflictKind.DELETE_VS_UPDATE
        who, other = ("target", "source") if ours is None else ("source", "target")
        message = f"{subject}: deleted in the {who}, changed in the {other}"
        changed = list_changed_properties(base.image or {}, ours or theirs or {})
    else:
        changed = list_changed_properties(ours, theirs)
        listed = ", ".join(changed)
        if base.image is None and not base.is_disputed:
            kind = ConflictKind.DIVERGENT_INSERT
            message = f"{subject}: added on both sides with different {listed}"
        else:
            kind = ConflictKind.DIVERGENT_UPDATE
            message = f"{subject}: changed on both sides, with different {listed}"
    return MergeConflict(
        kind=kind.value,
        table_key=entity.table_key,
        row_id=row_id,
        message=message,
        base=_only(base.image, changed),
        ours=_only(ours, changed),
        theirs=_only(theirs, changed),
    )


def _only(image: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Any] | None:
    return None if image is None else {name: image.get(name) for name in names}
