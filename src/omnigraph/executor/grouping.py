"""Grouping: rows to groups by the values of their keys, and aggregates over each group.

Values become ranks, ranks of several keys one number, and equal numbers one group; null is a value
like any other here. When a key is unique in its type and no two rows share its node, every row is
a group of its own and nothing is compared at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.kernels import best_of, scatter_sums
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.executor.views import NullableView, ranks_at
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.columns import Ranks, rank_values, to_doubles
from omnigraph.ir.expressions import ID_PROPERTY, Aggregate, Constant, NodeRef, Param, PropertyRef
from omnigraph.planner.pattern import Pattern
from omnigraph.syntax.query_tree import AggregateFunction

Key: TypeAlias = PropertyRef | NodeRef

_KEY_SPACE_MAX = 2**62


@dataclass(frozen=True, slots=True)
class Groups:
    """`of_row` gives the group of each row, `first` a row of each; None when rows are groups."""

    count: int
    of_row: IntArray | None
    first: IntArray | None

    def rows_of(self, indices: IntArray) -> IntArray:
        """A row of each of these groups."""
        return indices if self.first is None else self.first[indices]


def make_groups(run: Run, pattern: Pattern, keys: Sequence[Key], rows: Rows) -> Groups:
    """Group rows by the values of their keys; without keys there is one group."""
    if not keys:
        return Groups(1, np.zeros(rows.count, dtype=np.int64), np.zeros(1, dtype=np.int64))
    if _is_grouped_already(run, pattern, keys, rows):
        return Groups(rows.count, None, None)
    return group_by([_codes(run, pattern, key, rows) for key in keys], rows.count)


def group_by(keys: Iterable[tuple[IntArray, int]], rows: int) -> Groups:
    """Group rows by codes, each below a number that is given with them."""
    codes, space = np.zeros(rows, dtype=np.int64), 1
    for more, count in keys:
        if space * count > _KEY_SPACE_MAX:
            codes, space = _compact(codes)
        codes, space = codes * count + more, space * count
    return _number_groups(codes, space)


def _is_grouped_already(run: Run, pattern: Pattern, keys: Sequence[Key], rows: Rows) -> bool:
    for key in keys:
        type_name = pattern.nodes.get(key.variable)
        if type_name is None:
            continue
        declared = run.catalog.node(type_name)
        is_key = declared is not None and (declared.key or ()) == (_property(key),)
        if isinstance(key, NodeRef) or is_key:
            if rows.distinct == key.variable:
                return True
            if np.bincount(rows.nodes[key.variable], minlength=1).max() <= 1:
                return True
    return False


def _property(key: Key) -> str:
    return ID_PROPERTY if isinstance(key, NodeRef) else key.property


def _codes(run: Run, pattern: Pattern, key: Key, rows: Rows) -> tuple[IntArray, int]:
    view = run.view_of(key.variable, pattern)
    positions = rows.positions(key.variable)
    if isinstance(key, NodeRef):
        return positions, max(view.size, 1)
    ranks = ranks_of(run, pattern, key, rows)
    return ranks.codes, ranks.count


def ranks_of(run: Run, pattern: Pattern, ref: PropertyRef, rows: Rows) -> Ranks:
    """The rank of a property in every row."""
    view = run.view_of(ref.variable, pattern)
    positions = rows.positions(ref.variable)
    ranks = ranks_at(view, ref.property, positions)
    if ranks is not None:
        return ranks
    if len(positions) <= view.size:
        return rank_values(view.values([ref.property], positions)[ref.property])
    # More rows than there are values: each is read once.
    is_read = np.zeros(view.size, dtype=bool)
    is_read[positions] = True
    ranks = rank_values(view.values([ref.property], np.flatnonzero(is_read))[ref.property])
    place = np.cumsum(is_read) - 1
    return Ranks(ranks.codes[place[positions]], ranks.values)


def _compact(codes: IntArray) -> tuple[IntArray, int]:
    distinct, of_row = np.unique(codes, return_inverse=True)
    return of_row, max(len(distinct), 1)


def _number_groups(codes: IntArray, space: int) -> Groups:
    if space > 4 * len(codes) + 1024:
        _, first, of_row = np.unique(codes, return_index=True, return_inverse=True)
        return Groups(len(first), of_row, first)
    # Few possible codes: mark the ones that occur instead of sorting the rows.
    first = np.full(space, -1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    present = np.flatnonzero(first >= 0)
    number = np.empty(space, dtype=np.int64)
    number[present] = np.arange(len(present))
    return Groups(len(present), number[codes], first[present])


def compute_aggregate(
    run: Run, pattern: Pattern, aggregate: Aggregate, rows: Rows, groups: Groups
) -> pa.Array:
    """The value of an aggregate for each group."""
    argument = aggregate.argument
    assert isinstance(argument, (Constant, Param, PropertyRef, NodeRef)), "wide_groups.py has these"
    match aggregate.function:
        case AggregateFunction.COUNT:
            _, known = _summands(run, pattern, argument, rows)
            return pa.array(sums_of(known, groups).astype(np.int64, copy=False))
        case AggregateFunction.SUM | AggregateFunction.AVG:
            values, known = _summands(run, pattern, argument, rows)
            sums = sums_of(values, groups).astype(np.float64, copy=False)
            counts = sums_of(known, groups)
            if aggregate.function is AggregateFunction.AVG:
                sums = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
            return pa.array(sums, mask=counts == 0)
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return _extremes(run, pattern, aggregate, rows, groups)
        case _:
            assert_never(aggregate.function)


def _summands(
    run: Run, pattern: Pattern, argument: Constant | Param | Key, rows: Rows
) -> tuple[AnyArray, AnyArray]:
    """Per row: the sum of the argument over the matches it stands for, and how many have one."""
    weight = np.ones(rows.count, dtype=np.int64) if rows.weight is None else rows.weight
    match argument:
        case NodeRef():
            return weight, weight
        case Constant() | Param():
            value = run.values.scalar(argument)
            if not value.is_valid:
                return weight * 0.0, weight * 0
            number = value.as_py()
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            return weight * float(number if is_number else 0), weight
        case PropertyRef(variable, name):
            if argument in rows.sums:
                sums, known = rows.sums[argument]
                return sums, weight if known is None else known
            positions = rows.positions(variable)
            view = run.view_of(variable, pattern)
            if name == ID_PROPERTY and isinstance(view, NullableView):
                weight = weight * view.known(positions)
                return weight, weight
            array = view.values([name], positions)[name]
            values = to_doubles(array)
            if array.null_count:
                weight = weight * array.is_valid().to_numpy(zero_copy_only=False)
            return values * weight, weight
        case _:
            assert_never(argument)


def sums_of(values: AnyArray, groups: Groups) -> AnyArray:
    """The sum of each group; whole numbers exactly."""
    return values if groups.of_row is None else scatter_sums(groups.of_row, values, groups.count)


def best_per_group(ranks: Ranks, groups: Groups, *, is_minimum: bool) -> pa.Array:
    """The least (or greatest) value of each group. Rank 0 and rank `count` are no value."""
    codes = ranks.codes
    if groups.of_row is None:
        best = codes.copy()
    else:
        known = (codes > 0) & (codes < ranks.count)
        none = ranks.count if is_minimum else 0
        best = best_of(
            groups.of_row[known], codes[known], groups.count, none, is_minimum=is_minimum
        )
    best[best == ranks.count] = 0
    return ranks.decode(best)


def _extremes(
    run: Run, pattern: Pattern, aggregate: Aggregate, rows: Rows, groups: Groups
) -> pa.Array:
    argument = aggregate.argument
    wanted = aggregate.type.arrow_type()
    if isinstance(argument, (Constant, Param)):
        return pa.repeat(run.values.to_column_type(argument), groups.count).cast(wanted)
    assert isinstance(argument, PropertyRef)
    if aggregate in rows.extremes:
        codes, ranks = rows.extremes[aggregate]
        ranks = Ranks(codes, ranks.values)
    else:
        ranks = ranks_of(run, pattern, argument, rows)
    is_minimum = aggregate.function is AggregateFunction.MIN
    return best_per_group(ranks, groups, is_minimum=is_minimum).cast(wanted)
