"""Indexes: built beside the table and staged as one transaction. Derived: safe to drop.

An index never decides what a query answers, only how fast. A vector index needs vectors to train
on; while there are none it is pending, not failed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import Index, LanceOperation

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.storage.counters import record
from omnigraph.storage.filters import to_lance
from omnigraph.storage.fragments import count_live
from omnigraph.storage.handles import (
    IndexInfo,
    IndexKind,
    IndexSpec,
    NotTrainable,
    StagedIndexes,
    StagedTransaction,
    StageKind,
    TableHandle,
)
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.predicates import IsNull, Not
from omnigraph.storage.reads import Reads
from omnigraph.storage.transactions import Stager

if TYPE_CHECKING:
    from omnigraph.storage.table_tasks import TableTasks
    from omnigraph.storage.tables import TableStorage

FLAT_ROWS_MAX = 1_000_000
ONE_PARTITION_ROWS_MAX = 10_000
PARTITION_ROWS = 4_096
SEGMENT_ROWS = 4_000_000
SEGMENTS_BUILT = 4
"""At most so many segments are built by tasks: a search looks into each, and later ones come."""

_Build: TypeAlias = tuple[IndexSpec, "list[int] | None"]
"""An index, and the fragments to build it over: None for all of them."""


@dataclass(frozen=True, slots=True)
class Indexes:
    """Describes the indexes of a version, and builds others without moving HEAD."""

    stager: Stager
    reads: Reads

    def describe(self, handle: TableHandle) -> list[IndexInfo]:
        """List the indexes of a version and how far each of them reaches."""
        with lance_errors("reading indexes", handle.location):
            found = handle._dataset.describe_indices()
            fragments = handle._dataset.get_fragments() if found else []
            rows = {fragment.fragment_id: count_live(fragment) for fragment in fragments}
        return [_info(index, rows) for index in found]

    def stage_create(
        self,
        handle: TableHandle,
        specs: Sequence[IndexSpec],
        extended: Sequence[IndexSpec] = (),
        tasks: TableTasks | None = None,
    ) -> StagedIndexes:
        """Build `specs` anew, and give each of `extended` one more segment over what it lacks.

        What cannot be built yet is pending; an index of the same name is replaced, and by a zone
        map also the B-tree that an earlier Omnigraph built on its column. With `tasks`, those
        build the indexes of a large table, and its ordered ones in several segments.
        """
        lacking = _list_uncovered(handle)
        work: list[_Build] = [(spec, None) for spec in specs]
        outcomes: Sequence[Index | NotTrainable]
        if tasks is not None and tasks.takes(handle):
            work = [(spec, part) for spec in specs for part in _cut(handle, spec)]
            work += [(spec, lacking[spec.name]) for spec in extended]
            outcomes = tasks.run(handle, _build_by_task, work, "indexing")
        else:
            work += [(spec, lacking[spec.name]) for spec in extended]
            outcomes = [self._build(handle, spec, only) for spec, only in work]
        built: list[tuple[IndexSpec, Index]] = []
        pending: list[NotTrainable] = []
        for (spec, _), outcome in zip(work, outcomes, strict=True):
            if isinstance(outcome, NotTrainable):
                pending.append(outcome)
            else:
                built.append((spec, outcome))
        if not built:
            return StagedIndexes(None, (), tuple(pending))
        anew = {name for spec, _ in built if spec in specs for name in _replaced_names(spec)}
        named = anew | {spec.name for spec, _ in built}
        # A compaction leaves segments behind that cover nothing any more.
        replaced = [
            segment
            for segment in _existing_segments(handle._dataset, named)
            if segment.name in anew or not segment.fragment_ids
        ]
        operation = LanceOperation.CreateIndex([index for _, index in built], replaced)
        staged = self.stager.stage(
            handle, StageKind.CREATE_INDEX, operation, rows=handle.row_count * len(built)
        )
        record(index_builds=len(built))
        named_once = dict.fromkeys(spec for spec, _ in built)
        return StagedIndexes(staged, tuple(named_once), tuple(pending))

    def stage_drop(self, handle: TableHandle, names: Collection[str]) -> StagedTransaction:
        """Stage the removal of indexes by name. Answers do not change."""
        removed = _existing_segments(handle._dataset, set(names))
        operation = LanceOperation.CreateIndex([], removed)
        return self.stager.stage(handle, StageKind.CREATE_INDEX, operation, rows=0)

    def _build(
        self, handle: TableHandle, spec: IndexSpec, only: list[int] | None = None
    ) -> Index | NotTrainable:
        """Build one index over the whole version, or over some of its fragments."""
        if spec.column not in handle.schema.names:
            raise BadRequestError(f"there is no column '{spec.column}' to index")
        if handle.row_count == 0:
            return NotTrainable(spec, "the table is empty")
        match spec.kind:
            case IndexKind.BTREE:
                return _segment(handle, spec, "BTREE", only)
            case IndexKind.ZONEMAP:
                return _segment(handle, spec, "ZONEMAP", only)
            case IndexKind.INVERTED:
                segment = _segment(handle, spec, "INVERTED", only, with_position=True)
                with lance_errors("building an index", handle.location):
                    # Without this step the commit succeeds and every search then fails.
                    return handle._dataset.merge_existing_index_segments([segment])
            case IndexKind.VECTOR:
                return self._build_vector(handle, spec, only)
            case _:
                assert_never(spec.kind)

    def _build_vector(
        self, handle: TableHandle, spec: IndexSpec, only: list[int] | None
    ) -> Index | NotTrainable:
        vectors = self._count_values(handle, spec.column, only)
        if vectors == 0:
            return NotTrainable(spec, f"no row has a value in '{spec.column}'")
        column_type = handle.schema.field(spec.column).type
        assert pa.types.is_fixed_size_list(column_type), column_type
        index_type, options = _vector_shape(vectors, column_type.list_size)
        return _segment(handle, spec, index_type, only, metric="L2", **options)

    def _count_values(self, handle: TableHandle, column: str, only: list[int] | None) -> int:
        present = Not(IsNull(column))
        if only is None:
            return self.reads.count_rows(handle, present)
        with lance_errors("counting rows", handle.location):
            fragments = [handle._dataset.get_fragment(each) for each in only]
            text = to_lance(present, handle.schema)
            return sum(fragment.count_rows(text) for fragment in fragments if fragment is not None)


def _build_by_task(
    tables: TableStorage, handle: TableHandle, build: _Build
) -> Index | NotTrainable:
    return tables.indexes._build(handle, *build)


def _cut(handle: TableHandle, spec: IndexSpec) -> list[list[int] | None]:
    """The fragments of each segment of an index that is built anew; None for all of them.

    Neighbours stay together: a compaction joins no fragments of two segments.
    """
    if spec.kind not in (IndexKind.BTREE, IndexKind.ZONEMAP):
        return [None]  # what these learn of all rows cannot be put together from parts
    fragments = [fragment.fragment_id for fragment in handle._dataset.get_fragments()]
    count = min(len(fragments), SEGMENTS_BUILT, -(-handle.row_count // SEGMENT_ROWS))
    if count <= 1:
        return [None]
    edges = [len(fragments) * at // count for at in range(count + 1)]
    return [fragments[start:end] for start, end in pairwise(edges)]


def _replaced_names(spec: IndexSpec) -> tuple[str, ...]:
    if spec.kind is IndexKind.ZONEMAP:
        return (spec.name, IndexSpec(spec.column, IndexKind.BTREE).name)
    return (spec.name,)


def _info(index: Any, live_rows: Mapping[int, int]) -> IndexInfo:
    covered = {fragment for segment in index.segments for fragment in segment.fragment_ids}
    lacking = [rows for fragment, rows in live_rows.items() if fragment not in covered]
    return IndexInfo(
        index.name,
        index.field_names[0],
        index.index_type,
        index.num_rows_indexed,
        sum(lacking),
        len(lacking),
        len(index.segments),
    )


def _list_uncovered(handle: TableHandle) -> dict[str, list[int]]:
    """Index name → the fragments it says nothing about."""
    with lance_errors("reading indexes", handle.location):
        every = [fragment.fragment_id for fragment in handle._dataset.get_fragments()]
        known = handle._dataset.describe_indices()
    return {
        index.name: sorted(
            set(every).difference(*(segment.fragment_ids for segment in index.segments))
        )
        for index in known
    }


def _vector_shape(vectors: int, dimension: int) -> tuple[str, dict[str, int]]:
    """Exact up to a million vectors; beyond, product quantisation to keep the index small."""
    if vectors <= ONE_PARTITION_ROWS_MAX:
        return "IVF_FLAT", {"num_partitions": 1}
    partitions = math.ceil(vectors / PARTITION_ROWS)
    if vectors <= FLAT_ROWS_MAX or dimension % 8:
        return "IVF_FLAT", {"num_partitions": partitions}
    return "IVF_PQ", {"num_partitions": partitions, "num_sub_vectors": dimension // 8}


def _segment(
    handle: TableHandle, spec: IndexSpec, index_type: str, only: list[int] | None, **options: Any
) -> Index:
    with lance_errors("building an index", handle.location):
        every = [fragment.fragment_id for fragment in handle._dataset.get_fragments()]
        return handle._dataset.create_index_uncommitted(
            spec.column,
            index_type,
            name=spec.name,
            replace=True,
            fragment_ids=every if only is None else only,
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
