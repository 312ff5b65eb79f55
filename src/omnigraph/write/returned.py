"""Returned: the rows that a mutation gives back, read from what its statements leave.

Of removed entities these are the last values: no query both writes and deletes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EntityType
from omnigraph.executor.evaluate import evaluate
from omnigraph.executor.finish import first_of_equal
from omnigraph.executor.objects import make_objects
from omnigraph.executor.values import Values, column_type, properties_of
from omnigraph.index.arrays import IntArray
from omnigraph.ir.expressions import NodeRef, ObjectRef
from omnigraph.ir.mutations import MATCHED, ForEach, MutationIR, Returned, ReturnedEntity
from omnigraph.storage.predicates import IsIn
from omnigraph.write.convert import ID
from omnigraph.write.for_rows import make_row_columns
from omnigraph.write.given_rows import Fields, GivenRows, find_places
from omnigraph.write.mutate import Affected, Labelled
from omnigraph.write.staging import MutationStaging


def read_returned(
    ir: MutationIR,
    params: Mapping[str, Any],
    affected: Affected,
    matched: pa.Table | None,
    staging: MutationStaging,
) -> pa.Table | None:
    """The rows of `return`, when the mutation has one."""
    if ir.returned is None:
        return None
    given = _make_rows(ir, ir.returned, params, affected, matched, staging)
    columns = [_evaluate(item.expression, given) for item in ir.returned.items]
    schema = pa.schema([(each.column, column_type(each.expression)) for each in ir.returned.items])
    rows = pa.Table.from_arrays(columns, schema=schema)
    if not ir.returned.distinct:
        return rows
    return rows.take(pa.array(first_of_equal(columns, rows.num_rows)))


def _make_rows(
    ir: MutationIR,
    returned: Returned,
    params: Mapping[str, Any],
    affected: Affected,
    matched: pa.Table | None,
    staging: MutationStaging,
) -> GivenRows:
    has_label = any(each.column is None for each in returned.entities)
    rows, ids = _join(affected.labelled)
    columns: dict[str, Fields] = {}
    if matched is not None:
        rows = rows if has_label else np.arange(matched.num_rows)
        taken = matched.take(pa.array(rows))
        columns[MATCHED] = {name: taken[name].combine_chunks() for name in matched.column_names}
    for op in ir.ops:
        if isinstance(op, ForEach) and any(getattr(each, "label", None) for each in op.body):
            columns |= make_row_columns(op, params).take(rows).columns
    for each in returned.entities:
        wanted = ids if each.column is None else columns[MATCHED][each.column]
        kinds = None if each.type_column is None else columns[MATCHED][each.type_column]
        found = {
            ref.property for ref in properties_of(returned.items) if ref.variable == each.variable
        }
        names = [ID, *sorted(found - {ID})]
        columns[each.variable] = _read_types(each, wanted, kinds, names, staging)
    return GivenRows(Values((), params), len(rows), columns)


def _join(labelled: Sequence[Labelled]) -> tuple[IntArray, pa.Array]:
    rows = [np.empty(0, dtype=np.int64), *(each[0] for each in labelled)]
    ids = [pa.array([], pa.utf8()), *(each[1] for each in labelled)]
    return np.concatenate(rows), pa.concat_arrays(ids)


def _read_types(
    each: ReturnedEntity,
    ids: pa.Array,
    kinds: pa.Array | None,
    names: Sequence[str],
    staging: MutationStaging,
) -> Fields:
    """Columns of the entities, row for row; those of an interface are in one of several tables."""
    catalog = staging.catalog
    if kinds is None:
        return _read(catalog.entity(f"{each.entity_kind}:{each.type_name}"), ids, names, staging)
    none = pa.scalar(None, ids.type)
    read = [
        _read(catalog.nodes[name], pc.if_else(pc.equal(kinds, name), ids, none), names, staging)
        for name in catalog.types_of(each.type_name)
    ]
    if not read:  # no type implements it, so no row matched
        return dict.fromkeys(names, ids)
    return {name: pc.coalesce(*(fields[name] for fields in read)) for name in names}


def _read(
    entity: EntityType, ids: pa.Array, names: Sequence[str], staging: MutationStaging
) -> Fields:
    """Columns of the entities with these ids, row for row; null for a null id."""
    rows = staging.scan(entity, IsIn(ID, ids.drop_null().unique()), names)
    places = find_places(ids, rows[ID].combine_chunks())
    taken = rows.take(pa.array(places, mask=places < 0))
    return {name: taken[name].combine_chunks() for name in names}


def _evaluate(expression: Any, given: GivenRows) -> pa.Array:
    if isinstance(expression, NodeRef):
        return given.columns[expression.variable][ID]
    if isinstance(expression, ObjectRef):
        return make_objects(expression, given.property)
    return evaluate(expression, given).cast(column_type(expression))
