"""Index work: which indexes a table lacks, which lag behind, and how each catches up.

missing    declared and not there                          built over all rows
lagging    there, but says nothing about newer fragments   continued over those, or, when they
                                                           are many, built anew
pending    nothing to train on yet                         left; searches scan meanwhile
"""

from __future__ import annotations

from omnigraph.catalog import EntityType, list_declared_indexes
from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm
from omnigraph.storage.handles import BY_PLACE, IndexInfo, IndexKind, IndexSpec, TableHandle
from omnigraph.storage.tables import TableStorage

ANEW_SHARE = 4
"""An index that lacks more than a quarter of the rows is built anew rather than continued."""
SEGMENTS_MAX = 8


@dataclass(frozen=True, slots=True)
class PendingIndex(JsonForm):
    """A declared index that cannot be built yet, and why."""

    table_key: str
    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """What a table's indexes need. `anew` holds indexes that are there and are built again."""

    missing: tuple[IndexSpec, ...] = ()
    anew: tuple[IndexSpec, ...] = ()
    extended: tuple[IndexSpec, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.missing or self.anew or self.extended)

    @property
    def to_build(self) -> tuple[IndexSpec, ...]:
        return self.missing + self.anew


def to_index_specs(entity: EntityType) -> tuple[IndexSpec, ...]:
    """The indexes the schema asks of a table."""
    return tuple(
        IndexSpec(column, IndexKind(kind.value)) for column, kind in list_declared_indexes(entity)
    )


def plan_indexes(
    tables: TableStorage, handle: TableHandle, wanted: tuple[IndexSpec, ...]
) -> IndexPlan:
    """What the declared indexes of this version lack."""
    if handle.row_count == 0:
        return IndexPlan()
    known = {info.name: info for info in tables.indexes.describe(handle)}
    lagging = [spec for spec in wanted if spec.name in known and _lags(known[spec.name])]
    anew = tuple(spec for spec in lagging if _is_built_anew(known[spec.name], handle))
    return IndexPlan(
        missing=tuple(spec for spec in wanted if spec.name not in known),
        anew=anew,
        extended=tuple(spec for spec in lagging if spec not in anew),
    )


def existing_by_place(
    tables: TableStorage, handle: TableHandle, rows_unindexed_max: int
) -> tuple[IndexSpec, ...]:
    """The indexes that a compaction takes coverage from and that lag this far at most."""
    return tuple(
        IndexSpec(info.column, IndexKind(info.kind.lower()), info.name)
        for info in tables.indexes.describe(handle)
        if info.kind.lower() in BY_PLACE and info.rows_unindexed <= rows_unindexed_max
    )


def _lags(info: IndexInfo) -> bool:
    return info.fragments_unindexed > 0


def _is_built_anew(info: IndexInfo, handle: TableHandle) -> bool:
    return info.segments >= SEGMENTS_MAX or info.rows_unindexed * ANEW_SHARE > handle.row_count
