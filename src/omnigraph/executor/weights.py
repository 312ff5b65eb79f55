"""Weights: messages along a tree. How many matches hang below a position, and what they sum to.

A parent's weight is the product, over its children, of the sum over the edge of the child's
weight. A sum of values travels the same way, beside the weight. No path is ever made.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omnigraph.executor.kernels import sum_along
from omnigraph.executor.rows import Rows, multiplied, too_many_matches
from omnigraph.executor.run import Run
from omnigraph.index import Live
from omnigraph.index.adjacency import Csr
from omnigraph.index.columns import AnyArray, IntArray
from omnigraph.ir.expressions import PropertyRef
from omnigraph.planner.pattern import Pattern

_TOO_MANY = 2.0**62


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Per position: matches (None for one each), and sums and counts of carried values."""

    matches: AnyArray | None = None
    carried: dict[PropertyRef, tuple[AnyArray, AnyArray]] = field(default_factory=dict)

    def live(self) -> Live:
        """The positions with any match."""
        assert self.matches is not None
        return Live(len(self.matches), mask=self.matches > 0)

    def at(self, positions: IntArray) -> Weights:
        return Weights(
            None if self.matches is None else self.matches[positions],
            {
                key: (sums[positions], known[positions])
                for key, (sums, known) in self.carried.items()
            },
        )

    def apply(self, rows: Rows) -> Rows:
        """Make every row stand for its matches here; these weights are one per row."""
        carried = {
            key: (sums * _ones(rows), known * _ones(rows))
            for key, (sums, known) in self.carried.items()
        }
        if self.matches is not None:
            rows = rows.scaled(self.matches)
        rows.carried |= carried
        return rows

    def total_weight(self, rows: int) -> AnyArray:
        matches = rows if self.matches is None else _checked_sum(self.matches)
        return np.array([matches], dtype=np.int64)

    def totals(self) -> dict[PropertyRef, tuple[AnyArray, AnyArray]]:
        return {
            key: (np.array([sums.sum()]), np.array([known.sum()]))
            for key, (sums, known) in self.carried.items()
        }


def leaf_weights(
    run: Run, pattern: Pattern, variable: str, carried: frozenset[PropertyRef]
) -> Weights:
    """One match for each position, and the variable's own values that are to be carried."""
    own: dict[PropertyRef, tuple[AnyArray, AnyArray]] = {}
    for ref in carried:
        if ref.variable == variable:
            array = run.view_of(variable, pattern).column(ref.property)
            known = array.is_valid().to_numpy(zero_copy_only=False)
            own[ref] = (values_to_sum(array), known.astype(np.int64))
    return Weights(None, own)


def values_to_sum(array: object) -> AnyArray:
    """The values of a numeric column as doubles, nulls as zero; zeros for any other column."""
    import pyarrow as pa

    assert isinstance(array, pa.Array)
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return np.zeros(len(array))
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)


def combined(left: Weights | None, right: Weights) -> Weights:
    """Both at once: matches multiply, and each side's sums are taken that many times."""
    if left is None:
        return right
    matches = _product(left.matches, right.matches)
    carried = {
        key: (sums * _factor(right), known * _factor(right))
        for key, (sums, known) in left.carried.items()
    } | {
        key: (sums * _factor(left), known * _factor(left))
        for key, (sums, known) in right.carried.items()
    }
    return Weights(matches, carried)


def message(above: Csr, below: Csr, weights: Weights, live: Live) -> Weights:
    """What a child with these weights, where it is live, sends to its parent."""
    if weights.matches is None and live.is_all:
        matches = above.degree
    else:
        matches = _sum(above, below, _masked(weights.matches, live))
    carried = {
        key: (
            _sum(above, below, _masked(sums, live)),
            _sum(above, below, _masked(known, live)),
        )
        for key, (sums, known) in weights.carried.items()
    }
    return Weights(matches, carried)


def _sum(above: Csr, below: Csr, weights: AnyArray) -> AnyArray:
    largest = float(np.max(weights, initial=0))
    if weights.dtype.kind == "i" and largest * float(np.max(above.degree, initial=0)) > _TOO_MANY:
        raise too_many_matches()
    return sum_along(above, below, weights)


def _masked(weights: AnyArray | None, live: Live) -> AnyArray:
    if weights is None:
        return live.mask()
    return weights if live.is_all else weights * live.mask()


def _product(left: AnyArray | None, right: AnyArray | None) -> AnyArray | None:
    if left is None:
        return right
    return left if right is None else multiplied(left, right)


def _factor(weights: Weights) -> AnyArray | int:
    return 1 if weights.matches is None else weights.matches


def _ones(rows: Rows) -> AnyArray | int:
    return 1 if rows.weight is None else rows.weight


def _checked_sum(matches: AnyArray) -> int:
    if float(matches.astype(np.float64).sum()) > _TOO_MANY:
        raise too_many_matches()
    return int(matches.sum())
