"""Joins: two sets of rows that share no variable, met by an equality between their properties.

Without one they meet as a cross product. With one, only pairs of equal values are made; the
predicate itself is still checked on them like any other. Either way they come in blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np
import pyarrow as pa

from omnigraph.executor.closing import split_runs
from omnigraph.executor.filters import property_values
from omnigraph.executor.kernels import expand_runs
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.index.columns import to_comparable
from omnigraph.ir.expressions import Compare, CompareKind, PropertyRef
from omnigraph.planner.pattern import Pattern

PAIRS_PER_BLOCK = 1 << 20


def join(
    run: Run,
    pattern: Pattern,
    left: Rows,
    right: Rows,
    conditions: Iterable[object],
    *,
    stops_early: bool = False,
) -> Iterator[Rows]:
    """Every row of one with every row of the other that can satisfy the conditions.

    Unless it stops early, a product that is too large is refused before it is begun.
    """
    for condition in conditions:
        sides = _equality(condition, left, right)
        if sides is not None:
            values = [
                property_values(run, pattern, side, rows)
                for side, rows in zip(sides, (left, right), strict=True)
            ]
            if values[0].type == values[1].type and not pa.types.is_list(values[0].type):
                run.note(f"joined on ${sides[0].variable}.{sides[0].property}")
                yield from _equal_pairs(left, values[0], right, values[1])
                return
    rows = max(1, PAIRS_PER_BLOCK // max(right.count, 1))
    if not stops_early:
        run.look_at(left.count * right.count)
    for first in range(0, left.count, rows):
        if stops_early:
            run.look_at(rows * right.count)
        yield left.take(slice(first, first + rows)).cross(right)


def _equality(condition: object, left: Rows, right: Rows) -> tuple[PropertyRef, PropertyRef] | None:
    match condition:
        case Compare(PropertyRef() as one, CompareKind.EQUAL, PropertyRef() as other):
            if _binds(left, one) and _binds(right, other):
                return one, other
            if _binds(left, other) and _binds(right, one):
                return other, one
    return None


def _binds(rows: Rows, ref: PropertyRef) -> bool:
    return ref.variable in rows.nodes or ref.variable in rows.edges


def _equal_pairs(
    left: Rows, left_values: pa.Array, right: Rows, right_values: pa.Array
) -> Iterator[Rows]:
    both = pa.concat_arrays([to_comparable(left_values), to_comparable(right_values)])
    # Null equals nothing: the two sides get codes that cannot meet.
    codes = both.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    left_codes, right_codes = codes[: left.count].copy(), codes[left.count :]
    left_codes[left_codes < 0] = -2
    order = np.argsort(right_codes, kind="stable")
    ordered = right_codes[order]
    starts = np.searchsorted(ordered, left_codes, side="left")
    ends = np.searchsorted(ordered, left_codes, side="right")
    for part in split_runs(ends - starts, repeat(PAIRS_PER_BLOCK)):
        indices, entries = expand_runs(starts[part], ends[part])
        yield left.pair(indices + part.start, right, order[entries])
