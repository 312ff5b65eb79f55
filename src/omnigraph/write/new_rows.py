"""New rows: what an `insert`, or an `upsert` of what is not there, adds to a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.ir.expressions import Constant, Param
from omnigraph.ir.mutations import Insert
from omnigraph.syntax.query_tree import DateText, DateTimeText, ListLiteral, LiteralValue
from omnigraph.write.convert import ID, columns_from_arrow, columns_from_records
from omnigraph.write.embedding import VectorFiller, embed_columns
from omnigraph.write.given_rows import GivenRows, evaluate_assignments, find_entities
from omnigraph.write.keys import edge_rows, node_rows

ENDS = ("src", "dst")


def build_inserted(
    op: Insert,
    given: GivenRows,
    params: Mapping[str, Any],
    catalog: Catalog,
    vectors: VectorFiller,
) -> pa.Table:
    """The rows of an insert: one per given row."""
    entity = catalog.entity(f"{op.entity_kind}:{op.type_name}")
    if given.count == 1 and not given.columns and _is_plain(op):
        return _build_plain(op, entity, params, vectors)
    values = evaluate_assignments(entity, op.assignments, given)
    rows = make_rows(entity, values, given.count, vectors)
    if given.is_matched and entity.key is not None:
        find_entities(entity, rows[ID].combine_chunks(), values, is_matched=True)
    return rows


def make_rows(
    entity: EntityType, values: Mapping[str, pa.Array], count: int, vectors: VectorFiller
) -> pa.Table:
    """Rows of the stored schema with these columns; the others have their defaults.

    Raises:
        BadRowsError: A required property is null, or an edge lacks an end.
    """
    columns = {ID: pa.nulls(count, pa.utf8())} | dict(values)
    ends = [columns.pop(end) for end in ENDS] if isinstance(entity, EdgeType) else []
    deferred = {
        each.name
        for each in (embed_columns(entity) if isinstance(entity, NodeType) else ())
        if each.name not in columns or columns[each.name].null_count
    }
    converted = columns_from_arrow(entity, pa.table(columns), deferred=deferred)
    if isinstance(entity, EdgeType):
        made = edge_rows(entity, converted, ends[0], ends[1])
    else:
        made = node_rows(entity, converted)
    made.bad.raise_if_any()
    return vectors.fill(entity, made.table) if deferred else made.table


def _is_plain(op: Insert) -> bool:
    """Whether every value is given as it is: then it is converted by the rule for one value."""
    return all(isinstance(each.value, (Constant, Param)) for each in op.assignments)


def _build_plain(
    op: Insert, entity: EntityType, params: Mapping[str, Any], vectors: VectorFiller
) -> pa.Table:
    values = {each.property: _value(each.value, params) for each in op.assignments}
    if isinstance(entity, EdgeType):
        ends = [pa.array([values.pop(end)], pa.utf8()) for end in ENDS]
        made = edge_rows(entity, columns_from_records(entity, [values]), *ends)
        made.bad.raise_if_any()
        return made.table
    deferred = {each.name for each in embed_columns(entity) if values.get(each.name) is None}
    made = node_rows(entity, columns_from_records(entity, [values], deferred=deferred))
    made.bad.raise_if_any()
    return vectors.fill(entity, made.table) if deferred else made.table


def _value(value: object, params: Mapping[str, Any]) -> Any:
    if isinstance(value, Param):
        return params[value.name]
    assert isinstance(value, Constant)
    return _plain(value.value)


def _plain(literal: LiteralValue) -> Any:
    match literal:
        case DateText(text) | DateTimeText(text):
            return text
        case ListLiteral(items):
            return [_plain(item) for item in items]
        case _:
            return literal
