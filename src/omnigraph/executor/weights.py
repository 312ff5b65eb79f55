"""Weights: messages along a tree. How many matches hang below a position, and what they sum to.

A parent's weight is the product, over its children, of the sum over the edge of the child's
weight. A sum of values travels the same way, beside the weight. No path is ever made.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omnigraph.executor.kernels import Side, reach, sum_along
from omnigraph.executor.rows import (
    Carried,
    Rows,
    carried_at,
    carried_times,
    multiplied,
    ones,
    too_many_matches,
)
from omnigraph.executor.run import Run
from omnigraph.index import Live
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.ir.expressions import PropertyRef
from omnigraph.planner.pattern import Pattern

_TOO_MANY = 2.0**62


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Per position: matches (None for one each), and sums and counts of carried values."""

    matches: AnyArray | None = None
    carried: Carried = field(default_factory=dict)

    def at(self, positions: IntArray) -> Weights:
        matches = None if self.matches is None else self.matches[positions]
        return Weights(matches, carried_at(self.carried, positions))

    def apply(self, rows: Rows) -> Rows:
        """Make every row stand for its matches here; these weights are one per row."""
        carried = carried_times(self.carried, ones(rows.weight))
        if self.matches is not None:
            rows = rows.scaled(self.matches)
        rows.carried |= carried
        return rows

    def total(self, rows: int) -> Rows:
        """One row that stands for all matches of these `rows` positions."""
        matches = rows if self.matches is None else _checked_sum(self.matches)
        carried: Carried = {
            key: (np.array([sums.sum()]), None if known is None else np.array([known.sum()]))
            for key, (sums, known) in self.carried.items()
        }
        return Rows(1, weight=np.array([matches], dtype=np.int64), carried=carried)


def leaf_weights(
    run: Run, pattern: Pattern, variable: str, carried: frozenset[PropertyRef]
) -> Weights:
    """One match for each position, and the variable's own values that are to be carried."""
    own: Carried = {}
    for ref in carried:
        if ref.variable == variable:
            view = run.view_of(variable, pattern)
            array = view.column(ref.property)
            known = None
            if array.null_count:
                known = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
            own[ref] = (view.numbers(ref.property), known)
    return Weights(None, own)


def combined(left: Weights | None, right: Weights) -> Weights:
    """Both at once: matches multiply, and each side's sums are taken that many times."""
    if left is None:
        return right
    carried = carried_times(left.carried, ones(right.matches))
    carried |= carried_times(right.carried, ones(left.matches))
    return Weights(_product(left.matches, right.matches), carried)


def message(
    above: Side, below: Side, weights: Weights, live: Live, parents: Live
) -> tuple[Weights, Live]:
    """What a child with these weights, where it is live, sends; and the parents with a match."""
    if weights.matches is None and live.is_all:
        matches, reached = above().degree, reach(above, below, parents, live)
    else:
        matches = _sum(above, below, _masked(weights.matches, live), parents.size)
        reached = parents.meet(Live(parents.size, mask=matches > 0))

    def sent(values: AnyArray | None) -> AnyArray | None:
        return None if values is None else _sum(above, below, _masked(values, live), parents.size)

    carried: Carried = {}
    for key, (sums, known) in weights.carried.items():
        total = sent(sums)
        assert total is not None
        carried[key] = (total, sent(known))
    return Weights(matches, carried), reached


def _sum(above: Side, below: Side, weights: AnyArray, size: int) -> AnyArray:
    largest = float(np.max(weights, initial=0))
    # The cheap bound is enough for nearly every graph; the true degrees are only then looked at.
    if weights.dtype.kind == "i" and largest > 2**31:
        most = float(np.max(above().degree, initial=0))
        if largest * most > _TOO_MANY:
            raise too_many_matches()
    return sum_along(above, below, weights, size)


def _masked(weights: AnyArray | None, live: Live) -> AnyArray:
    if weights is None:
        return live.mask()
    return weights if live.is_all else weights * live.mask()


def _product(left: AnyArray | None, right: AnyArray | None) -> AnyArray | None:
    if left is None:
        return right
    return left if right is None else multiplied(left, right)


def _checked_sum(matches: AnyArray) -> int:
    if float(matches.sum(dtype=np.float64)) > _TOO_MANY:
        raise too_many_matches()
    return int(matches.sum())
