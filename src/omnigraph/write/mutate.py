"""Mutate: run the statements of a mutation over one snapshot, in memory.

Statements run in order and see the rows of earlier ones. Nothing is written here: the result is a
staging that holds the combined change, checked as a whole, and the counts to report.

    given_rows.py    the rows that a statement runs over, and what it assigns
    new_rows.py      insert
    upsert.py        upsert
    select_rows.py   the `where` of update and delete
    returned.py      what the mutation gives back
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.dataclass import dataclass
from omnigraph.errors import ResourceLimitError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.index.arrays import IntArray
from omnigraph.ir.mutations import (
    MATCHED,
    Delete,
    DeleteBound,
    ForEach,
    Insert,
    MutationIR,
    PlainOp,
    Update,
    UpdateBound,
    Upsert,
)
from omnigraph.storage.predicates import IsIn, Or, Predicate
from omnigraph.write.convert import ID
from omnigraph.write.embedding import VectorFiller
from omnigraph.write.for_rows import element_params, make_row_columns
from omnigraph.write.given_rows import (
    GivenRows,
    evaluate_assignments,
    find_entities,
    find_places,
    one_row,
    replace_columns,
    without_null_ids,
)
from omnigraph.write.integrity import NO_IDS
from omnigraph.write.new_rows import build_inserted
from omnigraph.write.select_rows import as_self, select_rows
from omnigraph.write.staging import MutationStaging, PendingMode
from omnigraph.write.upsert import upsert_rows

STAGED_ROWS_MAX = 8_192
STAGED_BYTES_MAX = 32 * 1024 * 1024

Params: TypeAlias = Mapping[str, Any]
Labelled: TypeAlias = tuple[IntArray, pa.StringArray]
"""Which given row, or element of `for`, wrote or removed which entity."""


@dataclass(slots=True)
class Affected:
    """What a mutation touched. Deletions count each entity once, however often it was selected."""

    written: dict[str, int] = field(default_factory=lambda: {"node": 0, "edge": 0})
    deleted: dict[str, pa.Array] = field(default_factory=dict)
    labelled: list[Labelled] = field(default_factory=list)

    def total(self, kind: str) -> int:
        deleted = (len(ids) for key, ids in self.deleted.items() if key.startswith(f"{kind}:"))
        return self.written[kind] + sum(deleted)


class InsertedRows:
    """The rows of the inserts of one mutation that no match decides, made once.

    A mutation that is prepared again keeps the ids it generated and the vectors it paid for.
    """

    def __init__(
        self, ir: MutationIR, params: Params, catalog: Catalog, vectors: VectorFiller
    ) -> None:
        self.vectors = vectors
        self._rows: dict[int, pa.Table] = {}
        self._table_keys: dict[int, str] = {}
        for op in ir.ops if ir.match is None else ():
            if isinstance(op, Insert):
                self._make(op, one_row(params), params, catalog)
            elif isinstance(op, ForEach) and op.is_batched:
                given = make_row_columns(op, params)
                for each in op.body:
                    if isinstance(each, Insert) and given.count:
                        self._make(each, given, params, catalog)

    def _make(self, op: Insert, given: GivenRows, params: Params, catalog: Catalog) -> None:
        table_key = f"{op.entity_kind}:{op.type_name}"
        _check_rows(table_key, given.count)
        self._rows[id(op)] = build_inserted(op, given, params, catalog, self.vectors)
        self._table_keys[id(op)] = table_key

    def list_ids(self) -> dict[str, list[pa.Array]]:
        """The ids of the rows, by table."""
        found: dict[str, list[pa.Array]] = {}
        for number, rows in self._rows.items():
            found.setdefault(self._table_keys[number], []).extend(rows[ID].chunks)
        return found

    def find(self, op: Insert) -> pa.Table | None:
        return self._rows.get(id(op))


def run_statements(
    ir: MutationIR,
    params: Params,
    inserted: InsertedRows,
    staging: MutationStaging,
    matched: pa.Table | None = None,
) -> Affected:
    """Run every statement into `staging` and count what they affect.

    `matched` has the rows of the match, when there is one.
    """
    run = _Run(params, inserted, staging, Affected())
    given = one_row(params)
    if matched is not None:
        columns = {name: matched[name].combine_chunks() for name in matched.column_names}
        given = GivenRows(given.values, matched.num_rows, {MATCHED: columns}, is_matched=True)
    for op in ir.ops:
        if isinstance(op, ForEach):
            _run_for(op, run)
        else:
            _run_plain(op, given, run)
    for key, pending in staging.pending.items():
        _check_size(key, pending.batches)
    return run.affected


@dataclass(slots=True)
class _Run:
    """What the statements of one run share."""

    params: Params
    inserted: InsertedRows
    staging: MutationStaging
    affected: Affected
    element: int = 0
    """The element of `for` that the statements run for, one after the other."""

    def entity(self, op: PlainOp) -> EntityType:
        return self.staging.catalog.entity(f"{op.entity_kind}:{op.type_name}")

    def note_written(self, op: PlainOp, label: str | None, written: Labelled) -> None:
        self.affected.written[op.entity_kind] += len(written[0])
        self.note_labelled(label, written)

    def note_labelled(self, label: str | None, written: Labelled) -> None:
        if label is not None:
            self.affected.labelled.append((written[0] + self.element, written[1]))


def _run_for(op: ForEach, run: _Run) -> None:
    """Each statement over all elements at once, or all statements for one after the other."""
    if op.is_batched:
        given = make_row_columns(op, run.params)
        for each in op.body if given.count else ():
            _run_plain(each, given, run)
        return
    params = run.params
    for number, element in enumerate(element_params(op, params)):
        run.params, run.element = element, number
        given = one_row(element)
        for each in op.body:
            _run_plain(each, given, run)
    run.params, run.element = params, 0


def _run_plain(op: PlainOp, given: GivenRows, run: _Run) -> None:
    match op:
        case Insert():
            _insert(op, given, run)
        case Upsert():
            _check_rows(f"{op.entity_kind}:{op.type_name}", given.count)
            written = upsert_rows(op, given, run.staging, run.inserted.vectors)
            run.note_written(op, op.label, written)
        case Update():
            _update(op, given, run)
        case UpdateBound():
            _update_bound(op, given, run)
        case Delete():
            _delete(op, given, run)
        case DeleteBound():
            ids = given.columns[MATCHED][op.target].drop_null().unique()
            _delete_ids(run.entity(op), ids, run)
        case _:
            assert_never(op)


def _insert(op: Insert, given: GivenRows, run: _Run) -> None:
    entity = run.entity(op)
    rows = run.inserted.find(op)
    if rows is None:
        _check_rows(entity.table_key, given.count)
        rows = build_inserted(op, given, run.params, run.staging.catalog, run.inserted.vectors)
    # A keyed insert replaces the whole row of that key; without a key every insert is a new row.
    mode = PendingMode.MERGE if entity.key is not None else PendingMode.APPEND
    run.staging.push(entity, mode, rows)
    run.note_written(op, op.label, (np.arange(rows.num_rows), rows[ID].combine_chunks()))


def _update(op: Update, given: GivenRows, run: _Run) -> None:
    entity = run.entity(op)
    before = select_rows(entity, op.predicate, given, run.staging)
    values = evaluate_assignments(entity, op.assignments, as_self(before, given))
    _push_updated(entity, before, replace_columns(before, values), set(values), run)
    first_row = np.zeros(before.num_rows, dtype=np.int64)
    run.note_written(op, op.label, (first_row, before[ID].combine_chunks()))


def _update_bound(op: UpdateBound, given: GivenRows, run: _Run) -> None:
    entity = run.entity(op)
    ids, given = without_null_ids(given.columns[MATCHED][op.target], given)
    values = evaluate_assignments(entity, op.assignments, given)
    wanted, rows = find_entities(entity, ids, values, is_matched=True)
    before = run.staging.scan(entity, IsIn(ID, wanted))
    places = rows[find_places(before[ID].combine_chunks(), wanted)]
    _push_updated(entity, before, replace_columns(before, values, places), set(values), run)
    run.affected.written[op.entity_kind] += before.num_rows


def _push_updated(
    entity: EntityType, before: pa.Table, rows: pa.Table, assigned: set[str], run: _Run
) -> None:
    if isinstance(entity, NodeType):
        rows = run.inserted.vectors.refill(entity, before, rows, assigned)
    run.staging.push(entity, PendingMode.MERGE, rows, is_strict=True)


def _delete(op: Delete, given: GivenRows, run: _Run) -> None:
    entity = run.entity(op)
    found = select_rows(entity, op.predicate, given, run.staging, [ID])[ID].combine_chunks()
    ids = _delete_ids(entity, found, run)
    run.note_labelled(op.label, (np.zeros(len(ids), dtype=np.int64), ids))


def _delete_ids(entity: EntityType, found: pa.Array, run: _Run) -> pa.Array:
    """Delete rows and, of nodes, the edges that end there; returns the ids of the rows."""
    ids = _mark_deleted(entity, found, run)
    if isinstance(entity, NodeType):
        hit(Failpoint.MUTATION_DELETE_NODE_PRE_PRIMARY_DELETE)
        for edge in run.staging.catalog.edges_of(entity.name):
            incident = run.staging.scan(edge, _incident(edge, entity, ids), [ID])
            _mark_deleted(edge, incident[ID].combine_chunks(), run)
    return ids


def _incident(edge: EdgeType, node: NodeType, ids: pa.Array) -> Predicate:
    """Edges with one of the nodes at an end of that type."""
    ends = [("src", edge.source), ("dst", edge.target)]
    return Or(tuple(IsIn(column, ids) for column, type_name in ends if type_name == node.name))


def _mark_deleted(entity: EntityType, found: pa.Array, run: _Run) -> pa.Array:
    """Delete the rows that are not deleted yet; returns their ids."""
    pending = run.staging.touch(entity)
    gone = run.affected.deleted.get(entity.table_key, NO_IDS)
    new = found.filter(pc.invert(pc.is_in(found, gone)))
    pending.is_strict = True
    if len(new):
        run.staging.delete(entity, new)
        run.affected.deleted[entity.table_key] = pa.concat_arrays([gone, new])
    return new


def _check_size(table_key: str, batches: list[pa.Table]) -> None:
    _check_rows(table_key, sum(batch.num_rows for batch in batches))
    size = sum(batch.nbytes for batch in batches)
    if size > STAGED_BYTES_MAX:
        _refuse_size(f"bytes staged for '{table_key}'", STAGED_BYTES_MAX, size)


def _check_rows(table_key: str, rows: int) -> None:
    if rows > STAGED_ROWS_MAX:
        _refuse_size(f"rows staged for '{table_key}'", STAGED_ROWS_MAX, rows)


def _refuse_size(what: str, limit: int, actual: int) -> None:
    advice = "use `load` for bulk changes; nothing was written"
    raise ResourceLimitError(what, limit=limit, actual=actual, advice=advice)
