"""Rows: bindings as arrays of positions, one place per row.

A row may stand for several equal ones: `weight` says how many, None for one each. `carried` holds,
for a property of a variable that is only counted, the sum of its values over the matches a row
stands for, and how many of them are not null (None for all of them); `extremes` likewise the rank
of the least or greatest value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from omnigraph.errors import ResourceLimitError
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray
from omnigraph.index.columns import Ranks
from omnigraph.ir.expressions import Aggregate, PropertyRef

Carried: TypeAlias = "dict[PropertyRef, tuple[AnyArray, AnyArray | None]]"
Extremes: TypeAlias = "dict[Aggregate, tuple[IntArray, Ranks]]"

ROWS_MAX = 50_000_000
_WEIGHT_MAX = 2**62


@dataclass(slots=True)
class Rows:
    """`nodes` and `edges` give the position each variable is bound to in each row.

    `distinct` names a node variable known to differ from row to row, when there is one.
    """

    count: int
    nodes: dict[str, IntArray] = field(default_factory=dict)
    edges: dict[str, IntArray] = field(default_factory=dict)
    weight: AnyArray | None = None
    carried: Carried = field(default_factory=dict)
    extremes: Extremes = field(default_factory=dict)
    seeds: IntArray | None = None
    distinct: str | None = None

    @property
    def is_unit(self) -> bool:
        """Whether this is where a match starts: one row that binds nothing and is itself."""
        binds = self.nodes or self.edges or self.carried or self.extremes
        return self.count == 1 and not binds and self.weight is None and self.seeds is None

    def take(self, places: IntArray | BoolArray | slice) -> Rows:
        """The rows at these places, or where a mask is true."""
        if isinstance(places, slice):
            count = len(range(*places.indices(self.count)))
        else:
            count = int(np.count_nonzero(places)) if places.dtype == bool else len(places)
        return Rows(
            count,
            {name: positions[places] for name, positions in self.nodes.items()},
            {name: positions[places] for name, positions in self.edges.items()},
            None if self.weight is None else self.weight[places],
            carried_at(self.carried, places),
            extremes_at(self.extremes, places),
            None if self.seeds is None else self.seeds[places],
            # Other places may repeat a row.
            self.distinct if isinstance(places, slice) or places.dtype == bool else None,
        )

    def scaled(self, factor: AnyArray | int) -> Rows:
        """The same rows, each standing for `factor` times as many."""
        weight = factor if self.weight is None else multiplied(self.weight, factor)
        self.weight = np.broadcast_to(weight, (self.count,))
        self.carried = carried_times(self.carried, factor)
        return self

    def cross(self, other: Rows) -> Rows:
        """Every row of one with every row of the other."""
        require_room(self.count * other.count)
        return self.paired(
            np.repeat(np.arange(self.count), other.count),
            other,
            np.tile(np.arange(other.count), self.count),
        )

    def paired(self, places: IntArray, other: Rows, other_places: IntArray) -> Rows:
        """The rows at these places side by side with the other's rows at those places."""
        left, right = self.take(places), other.take(other_places)
        carried = carried_times(left.carried, ones(right.weight))
        carried |= carried_times(right.carried, ones(left.weight))
        return Rows(
            left.count,
            left.nodes | right.nodes,
            left.edges | right.edges,
            _weights(left, right),
            carried,
            left.extremes | right.extremes,
            left.seeds if left.seeds is not None else right.seeds,
        )

    def unfolded(self) -> Rows:
        """The rows one by one, each as often as its weight says."""
        if self.weight is None:
            return self
        counts = self.weight.astype(np.int64)
        require_room(int(counts.sum()))
        places = np.repeat(np.arange(self.count), counts)
        self.weight = None
        return self.take(places)


def require_room(rows: int) -> None:
    """Refuse to make more rows than memory can be trusted to hold."""
    if rows > ROWS_MAX:
        raise ResourceLimitError(
            "the number of rows in the middle of the query",
            limit=ROWS_MAX,
            actual=rows,
            advice="relate the variables by a traversal, add a filter, or count instead",
        )


def multiplied(left: AnyArray | int, right: AnyArray | int) -> AnyArray:
    """The product of two weights; more matches than an I64 can count are refused."""
    if float(np.max(left, initial=0)) * float(np.max(right, initial=0)) > _WEIGHT_MAX:
        raise too_many_matches()
    return np.asarray(left) * right


def too_many_matches() -> ResourceLimitError:
    return ResourceLimitError(
        "the number of matches",
        limit=_WEIGHT_MAX,
        actual=_WEIGHT_MAX + 1,
        advice="an I64 cannot count them; add a filter",
    )


def carried_at(carried: Carried, places: IntArray | BoolArray | slice) -> Carried:
    """The carried sums at these places."""
    return {
        key: (total[places], None if known is None else known[places])
        for key, (total, known) in carried.items()
    }


def extremes_at(extremes: Extremes, places: IntArray | BoolArray | slice) -> Extremes:
    """The extreme ranks at these places."""
    return {key: (codes[places], ranks) for key, (codes, ranks) in extremes.items()}


def carried_times(carried: Carried, factor: AnyArray | int) -> Carried:
    """The carried sums, each taken `factor` times."""
    return {
        key: (total * factor, None if known is None else known * factor)
        for key, (total, known) in carried.items()
    }


def ones(weight: AnyArray | None) -> AnyArray | int:
    """The weight as a factor."""
    return 1 if weight is None else weight


def _weights(left: Rows, right: Rows) -> AnyArray | None:
    if left.weight is None:
        return right.weight
    return left.weight if right.weight is None else multiplied(left.weight, right.weight)
