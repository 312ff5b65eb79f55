"""Finish: from groups to the rows of the result.

having      the groups for which every condition is true
show        the columns, computed of keys and aggregates
distinct    one of equal rows
order       by the keys, then by what breaks ties
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.evaluate import Given, decide, evaluate, repeat_value
from omnigraph.executor.grouping import group_by
from omnigraph.executor.sorting import array_column, sort_indices
from omnigraph.executor.values import column_type
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.columns import rank_values, to_sort_keys
from omnigraph.index.query_memory import require_bytes
from omnigraph.ir.expressions import (
    Constant,
    GroupColumn,
    Param,
    Projected,
    PropertyRef,
    SortKey,
    TextMatch,
)
from omnigraph.ir.query import Finish


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """The keys and aggregates of groups, by number."""

    values: Given
    columns: Sequence[pa.Array]
    count: int

    def property(self, ref: PropertyRef) -> pa.Array:
        return self.columns[int(ref.property)]

    def search(self, match: TextMatch) -> BoolArray:
        raise AssertionError(f"{match} is no value")

    def take(self, indices: IntArray) -> GroupColumns:
        require_bytes(sum(column.nbytes for column in self.columns))
        places = pa.array(indices)
        taken = [column.take(places) for column in self.columns]
        return GroupColumns(self.values, taken, len(indices))

    def show(self, expression: Projected | SortKey) -> pa.Array:
        """The value of a column of the result in every group."""
        match expression:
            case GroupColumn(place):
                return self.columns[place]
            case Constant() | Param():
                return repeat_value(self.values.scalar(expression), self.count).cast(
                    column_type(expression)
                )
            case _:
                return evaluate(expression, self).cast(column_type(expression))  # type: ignore[arg-type]


def finish_groups(finish: Finish, groups: GroupColumns) -> list[pa.Array]:
    """The columns of the result, in order."""
    for predicate in finish.having:
        true, _ = decide(predicate, groups)
        groups = groups.take(np.flatnonzero(true))
    if finish.is_distinct:
        told_apart = [groups.show(each) for each in finish.ties]
        groups = groups.take(first_of_equal(told_apart, groups.count))
    if finish.order:
        groups = groups.take(_order(finish, groups))
    return [groups.show(item.expression) for item in finish.returns]


def first_of_equal(columns: Sequence[pa.Array], count: int) -> IntArray:
    """The first of each set of equal rows, in the order they come."""
    ranks = map(rank_values, columns)
    found = group_by(((each.codes.astype(np.int64), each.count) for each in ranks), count)
    assert found.first is not None
    return np.sort(found.first)


def _order(finish: Finish, groups: GroupColumns) -> IntArray:
    keys = [
        array_column(to_sort_keys(groups.show(item.expression)), descending=item.descending)
        for item in finish.order
    ]
    ties = [array_column(to_sort_keys(groups.show(each))) for each in finish.ties]
    return sort_indices([*keys, *ties], groups.count, None)
