"""Mutate: run the statements of a mutation over one snapshot, in memory.

Statements run in order and see the rows of earlier ones. Nothing is written here: the result is a
staging that holds the combined change, checked as a whole, and the counts to report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.dataclass import dataclass
from omnigraph.errors import ResourceLimitError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.ir import MutationIR
from omnigraph.ir.expressions import Constant, Param
from omnigraph.ir.query import Assignment, Delete, Insert, MutationPredicate, Update
from omnigraph.storage.predicates import Compare, CompareOp, IsIn, Or, Predicate
from omnigraph.syntax.query_tree import DateText, DateTimeText, ListLiteral, LiteralValue
from omnigraph.types import PropertyType, repeat
from omnigraph.write.convert import columns_from_records, scalar_from_value
from omnigraph.write.embedding import VectorFiller, embed_columns
from omnigraph.write.integrity import NO_IDS
from omnigraph.write.keys import edge_rows, node_rows
from omnigraph.write.staging import MutationStaging, PendingMode

STAGED_ROWS_MAX = 8_192
STAGED_BYTES_MAX = 32 * 1024 * 1024

Params = Mapping[str, Any]


@dataclass(slots=True)
class Affected:
    """What a mutation touched. Deletions count each entity once, however often it was selected."""

    written: dict[str, int] = field(default_factory=lambda: {"node": 0, "edge": 0})
    deleted: dict[str, pa.Array] = field(default_factory=dict)

    def total(self, kind: str) -> int:
        deleted = (len(ids) for key, ids in self.deleted.items() if key.startswith(f"{kind}:"))
        return self.written[kind] + sum(deleted)


class InsertedRows:
    """The rows of the inserts of one mutation, made once.

    A mutation that is prepared again keeps the ids it generated and the vectors it paid for.
    """

    def __init__(
        self, ir: MutationIR, params: Params, catalog: Catalog, vectors: VectorFiller
    ) -> None:
        self.vectors = vectors
        self._rows = [
            _build_rows(op, params, catalog, vectors) if isinstance(op, Insert) else None
            for op in ir.ops
        ]

    def list_ids(self, ir: MutationIR) -> dict[str, list[pa.Array]]:
        """The ids of the rows, by table."""
        found: dict[str, list[pa.Array]] = {}
        for op, rows in zip(ir.ops, self._rows, strict=True):
            if isinstance(op, Insert) and rows is not None:
                key = f"{op.entity_kind}:{op.type_name}"
                found.setdefault(key, []).extend(rows["id"].chunks)
        return found

    def of(self, number: int) -> pa.Table:
        rows = self._rows[number]
        assert rows is not None
        return rows


def run_statements(
    ir: MutationIR, params: Params, inserted: InsertedRows, staging: MutationStaging
) -> Affected:
    """Run every statement into `staging` and count what they affect."""
    affected = Affected()
    for number, op in enumerate(ir.ops):
        match op:
            case Insert():
                _insert(op, inserted.of(number), staging)
                affected.written[op.entity_kind] += 1
            case Update():
                affected.written["node"] += _update(op, params, staging, inserted.vectors)
            case Delete():
                _delete(op, params, staging, affected)
            case _:
                assert_never(op)
    for key, pending in staging.pending.items():
        _check_size(key, pending.batches)
    return affected


def _build_rows(op: Insert, params: Params, catalog: Catalog, vectors: VectorFiller) -> pa.Table:
    values = {each.property: _value(each.value, params) for each in op.assignments}
    if op.entity_kind == "edge":
        edge = catalog.edges[op.type_name]
        endpoints = [pa.array([values.pop(column)], pa.utf8()) for column in ("src", "dst")]
        made = edge_rows(edge, columns_from_records(edge, [values]), *endpoints)
        made.bad.raise_if_any()
        return made.table
    node = catalog.nodes[op.type_name]
    deferred = {each.name for each in embed_columns(node) if values.get(each.name) is None}
    made = node_rows(node, columns_from_records(node, [values], deferred=deferred))
    made.bad.raise_if_any()
    return vectors.fill(node, made.table) if deferred else made.table


def _insert(op: Insert, rows: pa.Table, staging: MutationStaging) -> None:
    entity = staging.catalog.entity(f"{op.entity_kind}:{op.type_name}")
    # A keyed insert replaces the whole row of that key; without a key every insert is a new row.
    mode = PendingMode.MERGE if entity.key is not None else PendingMode.APPEND
    staging.push(entity, mode, rows)


def _update(op: Update, params: Params, staging: MutationStaging, vectors: VectorFiller) -> int:
    node = staging.catalog.nodes[op.type_name]
    before = rows = staging.scan(node, _predicate(op.predicate, params))
    for assignment in op.assignments:
        rows = _assign(node, rows, assignment, params)
    rows = vectors.refill(node, before, rows, {each.property for each in op.assignments})
    staging.push(node, PendingMode.MERGE, rows, is_strict=True)
    return int(rows.num_rows)


def _assign(node: NodeType, rows: pa.Table, assignment: Assignment, params: Params) -> pa.Table:
    name = assignment.property
    scalar = scalar_from_value(
        node.properties[name].type, _value(assignment.value, params), name=f"{node.name}.{name}"
    )
    column = rows.schema.get_field_index(name)
    return rows.set_column(column, rows.schema.field(column), repeat(scalar, rows.num_rows))


def _delete(op: Delete, params: Params, staging: MutationStaging, affected: Affected) -> None:
    catalog = staging.catalog
    predicate = _predicate(op.predicate, params)
    if op.entity_kind == "edge":
        _delete_matching(catalog.edges[op.type_name], predicate, staging, affected)
        return
    node = catalog.nodes[op.type_name]
    ids = _delete_matching(node, predicate, staging, affected)
    hit(Failpoint.MUTATION_DELETE_NODE_PRE_PRIMARY_DELETE)
    for edge in catalog.edges_of(node.name):
        _delete_matching(edge, _incident(edge, node, ids), staging, affected)


def _incident(edge: EdgeType, node: NodeType, ids: pa.Array) -> Predicate:
    """Edges with one of the nodes at an end of that type."""
    ends = [("src", edge.source), ("dst", edge.target)]
    return Or(tuple(IsIn(column, ids) for column, type_name in ends if type_name == node.name))


def _delete_matching(
    entity: EntityType, predicate: Predicate, staging: MutationStaging, affected: Affected
) -> pa.Array:
    """Delete the matching rows that are not deleted yet; returns their ids."""
    pending = staging.touch(entity)
    found = staging.scan(entity, predicate, ["id"])["id"].combine_chunks()
    gone = affected.deleted.get(entity.table_key, NO_IDS)
    new = found.filter(pc.invert(pc.is_in(found, gone)))
    pending.is_strict = True
    if len(new):
        staging.delete(entity, new)
        affected.deleted[entity.table_key] = pa.concat_arrays([gone, new])
    return new


def _predicate(predicate: MutationPredicate, params: Params) -> Predicate:
    """The predicate with its value filled in, at the value's own type: 2.7 is not a 2."""
    value = _value(predicate.value, params)
    given = predicate.value.type
    type_ = predicate.type if not given.is_numeric else given
    scalar = scalar_from_value(_nullable(type_), value, name=predicate.column)
    return Compare(predicate.column, CompareOp(predicate.kind.value), scalar)


def _nullable(type_: PropertyType) -> PropertyType:
    return PropertyType(type_.scalar, type_.is_list, True, type_.dimension)


def _value(value: Constant | Param, params: Params) -> Any:
    match value:
        case Param(name):
            return params[name]
        case Constant(literal):
            return _plain(literal)


def _plain(literal: LiteralValue) -> Any:
    match literal:
        case DateText(text) | DateTimeText(text):
            return text
        case ListLiteral(items):
            return [_plain(item) for item in items]
        case _:
            return literal


def _check_size(table_key: str, batches: list[pa.Table]) -> None:
    rows = sum(batch.num_rows for batch in batches)
    size = sum(batch.nbytes for batch in batches)
    advice = "use `load` for bulk changes; nothing was written"
    if rows > STAGED_ROWS_MAX:
        raise ResourceLimitError(
            f"rows staged for '{table_key}'", limit=STAGED_ROWS_MAX, actual=rows, advice=advice
        )
    if size > STAGED_BYTES_MAX:
        raise ResourceLimitError(
            f"bytes staged for '{table_key}'", limit=STAGED_BYTES_MAX, actual=size, advice=advice
        )
