"""Wide groups: keys and aggregates that are computed, told apart or collected, row by row.

Where every key is a property or a variable and every aggregate adds up, grouping.py needs no row
for what is only counted. Everything else comes here: each argument is one column over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.grouping import (
    Groups,
    best_per_group,
    compute_aggregate,
    group_by,
    ranks_of,
    sums_of,
)
from omnigraph.executor.ranking import tie_columns
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.executor.sorting import array_column, sort_indices
from omnigraph.executor.values import column_type
from omnigraph.executor.views import NullableView
from omnigraph.index.arrays import IntArray
from omnigraph.index.columns import rank_values, to_doubles, to_sort_keys
from omnigraph.index.query_memory import require_bytes
from omnigraph.ir.expressions import (
    Aggregate,
    Collect,
    Grouped,
    NodeRef,
    Projected,
    PropertyRef,
    Scalar,
)
from omnigraph.ir.wide import is_wide
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import Plan
from omnigraph.syntax.query_tree import AggregateFunction

Show: TypeAlias = Callable[[Projected, Rows], pa.Array]
"""Gives an expression in every one of these rows."""


def is_simple(expression: Projected) -> bool:
    return not is_wide(expression)


@dataclass(frozen=True, slots=True)
class WideGroups:
    """Groups of rows, and what is computed of them."""

    run: Run
    plan: Plan
    rows: Rows
    groups: Groups
    show: Show

    def compute(self, expression: Grouped) -> pa.Array:
        """The value of an aggregate for each group."""
        if isinstance(expression, Collect):
            return self._collect(expression)
        if is_simple(expression):
            pattern = self.plan.match.pattern
            found = compute_aggregate(self.run, pattern, expression, self.rows, self.groups)
            return found.cast(expression.type.arrow_type())
        if expression.is_distinct:
            return self._count_distinct(expression)
        assert not isinstance(expression.argument, NodeRef)
        values = self.show(expression.argument, self.rows)
        return fold(expression, values, self.rows.weight, self.groups)

    def _count_distinct(self, aggregate: Aggregate) -> pa.Array:
        codes, space, known = self._codes(aggregate.argument)
        # Null is told apart by its mask: of a variable it is a position like any other.
        rows = np.flatnonzero(known)
        of_row = self._of_row()[rows]
        pairs = group_by([(of_row, self.groups.count), (codes[rows], space)], len(rows))
        firsts = np.arange(len(rows)) if pairs.first is None else pairs.first
        counts = np.bincount(of_row[firsts], minlength=self.groups.count)
        return pa.array(counts.astype(np.int64))

    def _codes(self, argument: Scalar | NodeRef) -> tuple[IntArray, int, np.ndarray]:
        if isinstance(argument, NodeRef):
            view = self.run.view_of(argument.variable, self.plan.match.pattern)
            positions = self.rows.positions(argument.variable)
            known = np.ones(self.rows.count, dtype=bool)
            if isinstance(view, NullableView):
                known = view.known(positions)
            return positions, view.size + 1, known
        pattern = self.plan.match.pattern
        codes, space = tell_apart(self.run, pattern, argument, self.rows, self.show)
        return codes, space, codes > 0

    def _collect(self, collect: Collect) -> pa.Array:
        keys = [
            array_column(to_sort_keys(self.show(key, self.rows)), descending=descending)
            for key, descending in collect.order
        ]
        ties = tie_columns(self.run, self.plan.match.pattern, self.rows)
        order = sort_indices(
            [*keys, *ties, array_column(np.zeros(self.rows.count))], self.rows.count, None
        )
        of_row = self._of_row()
        if collect.is_distinct:
            pattern = self.plan.match.pattern
            codes, _ = tell_apart(self.run, pattern, collect.argument, self.rows, self.show)
            order = first_in_order(codes, order, of_row)
        order = order[np.argsort(of_row[order], kind="stable")]
        # Read in this order: what is taken is the items of the lists, and of repeated values one.
        values, of_row = self.show(collect.argument, self.rows.take(order)), of_row[order]
        if values.null_count:
            known = values.is_valid().to_numpy(zero_copy_only=False)
            require_bytes(2 * values.nbytes)
            values, of_row = values.filter(pa.array(known)), of_row[known]
        return _to_lists(collect, values, of_row, self.groups.count)

    def _of_row(self) -> IntArray:
        if self.groups.of_row is None:
            return np.arange(self.rows.count)
        return self.groups.of_row


def collect_lists(
    collect: Collect, values: pa.Array, order: IntArray, of_row: IntArray, groups: int
) -> pa.Array:
    """One list for each group: its values in this order, without nulls."""
    known = values.is_valid().to_numpy(zero_copy_only=False)
    order = order[known[order]]
    order = order[np.argsort(of_row[order], kind="stable")]
    # The values of all lists are at most those at hand, in another order.
    require_bytes(values.nbytes)
    return _to_lists(collect, values.take(pa.array(order)), of_row[order], groups)


def _to_lists(collect: Collect, values: pa.Array, of_row: IntArray, groups: int) -> pa.Array:
    """One list for each group of these values, which come group by group."""
    counts = np.bincount(of_row, minlength=groups)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    items = values.cast(column_type(collect).value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), items)


def first_in_order(codes: IntArray, order: IntArray, of_row: IntArray) -> IntArray:
    """Of the rows of a group with one code the first, in the order that is given."""
    space = int(codes.max(initial=0)) + 1
    _, first = np.unique(of_row[order] * space + codes[order], return_index=True)
    kept: IntArray = order[np.sort(first)]
    return kept


def fold(
    aggregate: Aggregate, values: pa.Array, weight: np.ndarray | None, groups: Groups
) -> pa.Array:
    """An aggregate of a computed argument."""
    wanted = aggregate.type.arrow_type()
    if aggregate.function in (AggregateFunction.MIN, AggregateFunction.MAX):
        is_minimum = aggregate.function is AggregateFunction.MIN
        return best_per_group(rank_values(values), groups, is_minimum=is_minimum).cast(wanted)
    known = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    known = known if weight is None else known * weight
    counts = sums_of(known, groups)
    if aggregate.function is AggregateFunction.COUNT:
        return pa.array(counts.astype(np.int64, copy=False), wanted)
    doubles = to_doubles(values)
    sums = sums_of(doubles if weight is None else doubles * weight, groups).astype(np.float64)
    if aggregate.function is AggregateFunction.AVG:
        sums = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return pa.array(sums, mask=counts == 0)


def group_wide(
    run: Run, pattern: Pattern, keys: Sequence[Projected], rows: Rows, show: Show
) -> Groups:
    """Group rows by values of any type, and by entities; without any there is one group."""
    if not keys:
        return Groups(1, np.zeros(rows.count, dtype=np.int64), np.zeros(1, dtype=np.int64))
    return group_by((tell_apart(run, pattern, key, rows, show) for key in keys), rows.count)


def tell_apart(
    run: Run, pattern: Pattern, expression: Projected, rows: Rows, show: Show
) -> tuple[IntArray, int]:
    """A number for each row, the same for equal values, and a number that is above all of them."""
    if isinstance(expression, NodeRef):
        # Nodes of two types may have one id.
        positions = rows.positions(expression.variable)
        return positions, int(positions.max(initial=0)) + 1
    if isinstance(expression, PropertyRef):
        ranks = ranks_of(run, pattern, expression, rows)
    else:
        ranks = rank_values(show(expression, rows))
    return ranks.codes.astype(np.int64), ranks.count


def empty_value(expression: Projected) -> pa.Array:
    """An aggregate over no rows: 0 for a count, no members of a list, else null."""
    match expression:
        case Collect():
            return pa.array([[]], column_type(expression))
        case Aggregate(AggregateFunction.COUNT):
            return pa.array([0], column_type(expression))
        case _:
            return pa.nulls(1, column_type(expression))
