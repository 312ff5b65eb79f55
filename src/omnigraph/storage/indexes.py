"""Indexes: built beside the table and staged as one transaction. Derived: safe to drop.

An index never decides what a query answers, only how fast. A vector index needs vectors to train
on; while there are none it is pending, not failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import Index, LanceOperation

from omnigraph.errors import BadRequestError
from omnigraph.storage import reads
from omnigraph.storage.counters import record
from omnigraph.storage.handles import (
    IndexInfo,
    IndexKind,
    IndexSpec,
    NotTrainable,
    StagedIndexes,
    StageKind,
    TableHandle,
)
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.predicates import IsNull, Not
from omnigraph.storage.transactions import Stager

FLAT_ROWS_MAX = 1_000_000
ONE_PARTITION_ROWS_MAX = 10_000
PARTITION_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class IndexStaging:
    """Builds indexes without moving HEAD."""

    stager: Stager

    def create(self, handle: TableHandle, specs: Sequence[IndexSpec]) -> StagedIndexes:
        """Build every index that can be built; an index of the same name is replaced."""
        built: list[tuple[IndexSpec, Index]] = []
        pending: list[NotTrainable] = []
        for spec in specs:
            outcome = _build(handle, spec)
            if isinstance(outcome, NotTrainable):
                pending.append(outcome)
            else:
                built.append((spec, outcome))
        if not built:
            return StagedIndexes(None, (), tuple(pending))
        replaced = _existing_segments(handle._dataset, {spec.name for spec, _ in built})
        operation = LanceOperation.CreateIndex([index for _, index in built], replaced)
        staged = self.stager.stage(
            handle, StageKind.CREATE_INDEX, operation, rows=handle.row_count * len(built)
        )
        record(index_builds=len(built))
        return StagedIndexes(staged, tuple(spec for spec, _ in built), tuple(pending))


def describe(handle: TableHandle) -> list[IndexInfo]:
    """List the indexes of a version and how far each of them reaches."""
    with lance_errors("reading indexes", handle.location):
        found = handle._dataset.describe_indices()
        fragments = {f.fragment_id for f in handle._dataset.get_fragments()} if found else set()
    return [_info(index, handle, fragments) for index in found]


def _info(index: Any, handle: TableHandle, fragments: set[int]) -> IndexInfo:
    covered = {fragment for segment in index.segments for fragment in segment.fragment_ids}
    return IndexInfo(
        index.name,
        index.field_names[0],
        index.index_type,
        index.num_rows_indexed,
        handle.row_count - index.num_rows_indexed,
        len(fragments - covered),
    )


def _build(handle: TableHandle, spec: IndexSpec) -> Index | NotTrainable:
    if spec.column not in handle.schema.names:
        raise BadRequestError(f"there is no column '{spec.column}' to index")
    if handle.row_count == 0:
        return NotTrainable(spec, "the table is empty")
    match spec.kind:
        case IndexKind.BTREE:
            return _segment(handle, spec, "BTREE")
        case IndexKind.INVERTED:
            segment = _segment(handle, spec, "INVERTED", with_position=True)
            with lance_errors("building an index", handle.location):
                # Without this step the commit succeeds and every search then fails.
                return handle._dataset.merge_existing_index_segments([segment])
        case IndexKind.VECTOR:
            return _build_vector(handle, spec)
        case _:
            assert_never(spec.kind)


def _build_vector(handle: TableHandle, spec: IndexSpec) -> Index | NotTrainable:
    vectors = reads.count_rows(handle, Not(IsNull(spec.column)))
    if vectors == 0:
        return NotTrainable(spec, f"no row has a value in '{spec.column}'")
    column_type = handle.schema.field(spec.column).type
    assert pa.types.is_fixed_size_list(column_type), column_type
    index_type, options = _vector_shape(vectors, column_type.list_size)
    return _segment(handle, spec, index_type, metric="L2", **options)


def _vector_shape(vectors: int, dimension: int) -> tuple[str, dict[str, int]]:
    """Exact up to a million vectors; beyond, product quantisation to keep the index small."""
    if vectors <= ONE_PARTITION_ROWS_MAX:
        return "IVF_FLAT", {"num_partitions": 1}
    partitions = math.ceil(vectors / PARTITION_ROWS)
    if vectors <= FLAT_ROWS_MAX or dimension % 8:
        return "IVF_FLAT", {"num_partitions": partitions}
    return "IVF_PQ", {"num_partitions": partitions, "num_sub_vectors": dimension // 8}


def _segment(handle: TableHandle, spec: IndexSpec, index_type: str, **options: Any) -> Index:
    with lance_errors("building an index", handle.location):
        return handle._dataset.create_index_uncommitted(
            spec.column,
            index_type,
            name=spec.name,
            replace=True,
            fragment_ids=[fragment.fragment_id for fragment in handle._dataset.get_fragments()],
            **options,
        )


def _existing_segments(dataset: LanceDataset, names: set[str]) -> list[Index]:
    return [
        Index(
            uuid=segment.uuid,
            name=index.name,
            fields=list(index.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for index in dataset.describe_indices()
        if index.name in names
        for segment in index.segments
    ]
