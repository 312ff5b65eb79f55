"""Masks: the same predicate over rows in memory, with the same answer as Lance's filter.

Pending rows are filtered here, and so is every scan whose predicate cannot be pushed down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.binding import bind
from omnigraph.storage.predicates import (
    And,
    Compare,
    CompareOp,
    IsIn,
    IsNull,
    Known,
    ListContains,
    Not,
    Or,
    Predicate,
    TextContains,
    TextStartsWith,
    leaves,
)
from omnigraph.storage.value_sets import PREPARED_MIN, ValueSet

Column: TypeAlias = pa.Array
ValueSets: TypeAlias = Mapping[int, ValueSet]
"""The long lists of a predicate, by the identity of the `IsIn` that names them."""


def to_mask(predicate: Predicate, table: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """Return true for each row the predicate keeps, false for the others; never null."""
    bound = bind(predicate, table.schema)
    return pc.fill_null(_evaluate(bound, table, {}), False)


class PreparedMask:
    """The same for one batch of a schema after the other: what does not vary is prepared once."""

    def __init__(self, predicate: Predicate, schema: pa.Schema) -> None:
        self._bound = bind(predicate, schema)
        self._sets = {
            id(leaf): ValueSet(leaf.values)
            for leaf in leaves(self._bound)
            if isinstance(leaf, IsIn) and len(leaf.values) >= PREPARED_MIN
        }

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that the predicate keeps, in order."""
        return batch.filter(pc.fill_null(_evaluate(self._bound, batch, self._sets), False))


def keep(predicate: Predicate, table: pa.Table) -> pa.Table:
    """Return the rows of `table` that the predicate keeps, in order."""
    return table.filter(to_mask(predicate, table))


def _evaluate(
    bound: Predicate, table: pa.Table | pa.RecordBatch, sets: ValueSets
) -> pa.BooleanArray:
    match bound:
        case And(parts):
            return _fold(pc.and_kleene, parts, table, sets, empty=True)
        case Or(parts):
            return _fold(pc.or_kleene, parts, table, sets, empty=False)
        case Not(part):
            return pc.invert(_evaluate(part, table, sets))
        case Compare(column, op, value):
            return _compare(_column(table, column), op, value)
        case IsIn(column, values):
            prepared = sets.get(id(bound))
            if prepared is not None:
                return prepared.find(_column(table, column))
            return _is_in(_column(table, column), values)
        case IsNull(column):
            return pc.is_null(_column(table, column))
        case ListContains(column, value):
            return _list_contains(_column(table, column), value)
        case TextContains(column, needle):
            return pc.match_substring(_column(table, column), needle)
        case TextStartsWith(column, prefix):
            return pc.starts_with(_column(table, column), prefix)
        case Known(column, truth):
            return _constant(_column(table, column), truth)
        case _:
            assert_never(bound)


def _column(table: pa.Table | pa.RecordBatch, name: str) -> Column:
    column = table.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _fold(
    combine: Callable[[Column, Column], Column],
    parts: tuple[Predicate, ...],
    table: pa.Table | pa.RecordBatch,
    sets: ValueSets,
    *,
    empty: bool,
) -> pa.BooleanArray:
    start = pa.array(np.full(table.num_rows, empty))
    return reduce(combine, (_evaluate(part, table, sets) for part in parts), start)


def _constant(column: Column, truth: bool | None) -> pa.BooleanArray:
    answer = pa.array(np.full(len(column), bool(truth)))
    unknown = pa.scalar(None, pa.bool_())
    return pc.if_else(pc.and_(pc.is_valid(column), truth is not None), answer, unknown)


def _compare(column: Column, op: CompareOp, value: pa.Scalar) -> pa.BooleanArray:
    if pa.types.is_boolean(column.type):
        column, value = column.cast(pa.uint8()), value.cast(pa.uint8())
    match op:
        case CompareOp.EQ:
            return _equal(column, value)
        case CompareOp.NE:
            return pc.invert(_equal(column, value))
        case CompareOp.LT:
            return _less(column, value)
        case CompareOp.GE:
            return pc.invert(_less(column, value))
        case CompareOp.GT:
            return pc.invert(pc.or_(_less(column, value), _equal(column, value)))
        case CompareOp.LE:
            return pc.or_(_less(column, value), _equal(column, value))
        case _:
            assert_never(op)


def _equal(column: Column, value: pa.Scalar) -> pa.BooleanArray:
    return pc.is_nan(column) if _is_nan(value) else pc.equal(column, value)


def _less(column: Column, value: pa.Scalar) -> pa.BooleanArray:
    # NaN is the greatest number, so everything else is less than it and it is less than nothing.
    return pc.invert(pc.is_nan(column)) if _is_nan(value) else pc.less(column, value)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and value.as_py() != value.as_py())


def _is_in(column: Column, values: pa.Array) -> pa.BooleanArray:
    if pa.types.is_floating(column.type):
        # The set look-up of `is_in` tells -0.0 from 0.0; adding zero makes them one value.
        zero = pa.scalar(0.0, column.type)
        column, values = pc.add(column, zero), pc.add(values, zero)
    found = pc.is_in(column, value_set=values)
    return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))


def _list_contains(column: Column, value: pa.Scalar) -> pa.BooleanArray:
    element_matches = pc.fill_null(_equal(pc.list_flatten(column), value), False)
    parents = pc.list_parent_indices(column).filter(element_matches)
    found = np.zeros(len(column), dtype=bool)
    found[parents.to_numpy()] = True
    return pc.if_else(pc.is_valid(column), pa.array(found), pa.scalar(None, pa.bool_()))
