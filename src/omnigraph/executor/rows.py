"""Rows: bindings as arrays of positions, one entry per row.

A row may stand for several equal ones: `weight` says how many, None for one each. `sums` holds,
for a property of a variable that is only counted, the sum of its values over the matches a row
stands for, and how many of them are not null (None for all of them); `extremes` likewise the rank
of the least or greatest value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.errors import ResourceLimitError
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray
from omnigraph.index.columns import Ranks
from omnigraph.index.query_memory import read_limit, require_bytes
from omnigraph.ir.expressions import Aggregate, PropertyRef

Sums: TypeAlias = "dict[PropertyRef, tuple[AnyArray, AnyArray | None]]"
Extremes: TypeAlias = "dict[Aggregate, tuple[IntArray, Ranks]]"

ROWS_MAX = 50_000_000
ROWS_VARIABLE = "OMNIGRAPH_QUERY_ROWS_MAX"
LOOKED_AT_MAX = 10_000_000_000
LOOKED_AT_VARIABLE = "OMNIGRAPH_QUERY_WORK_MAX"
_WEIGHT_MAX = 2**62


@dataclass(frozen=True, slots=True)
class Held:
    """What a query holds at once, and how to have it hold less."""

    what: str
    advice: str


ANSWER = Held("rows", "add a filter or a limit, or return counts")
GROUPS = Held("groups", "group by fewer variables, or add a filter")
_FEWER = "give one end of the walk a filter, or the walk fewer hops"
WALKS = Held("pairs of nodes", _FEWER)
PATHS = Held("nodes on paths", _FEWER)
LISTS = Held(
    "nodes on paths to list or to compare",
    "return hops($t) instead of nodes or edges, or order by what tells rows apart",
)
PRODUCT = Held("rows", "two parts share no variable: relate them by a traversal or by equal values")


@dataclass(frozen=True, slots=True, eq=False)
class Shelf:
    """Columns that are not read for a while, as they were when they were put away.

    `index` says for each of their rows which row of the shelf `below` belongs to it.
    """

    nodes: dict[str, IntArray]
    edges: dict[str, IntArray]
    index: IntArray | None
    below: Shelf | None


@dataclass(slots=True)
class Rows:
    """`nodes` and `edges` give the position each variable is bound to in each row.

    `distinct` names a node variable known to differ from row to row, when there is one. What was
    put away is on the `shelf`, and `shelf_index` says where; None for the same rows.
    """

    count: int
    nodes: dict[str, IntArray] = field(default_factory=dict)
    edges: dict[str, IntArray] = field(default_factory=dict)
    weight: AnyArray | None = None
    sums: Sums = field(default_factory=dict)
    extremes: Extremes = field(default_factory=dict)
    seeds: IntArray | None = None
    distinct: str | None = None
    shelf: Shelf | None = None
    shelf_index: IntArray | None = None

    @property
    def is_unit(self) -> bool:
        """Whether this is where a match starts: one row that binds nothing and is itself."""
        binds = self.nodes or self.edges or self.sums or self.extremes
        return self.count == 1 and not binds and self.weight is None and self.seeds is None

    @property
    def nbytes(self) -> int:
        """The bytes of what is bound, and of how many each row stands for."""
        columns = [*self.nodes.values(), *self.edges.values()]
        weight = 0 if self.weight is None else self.weight.nbytes
        return sum(each.nbytes for each in columns) + weight

    def positions(self, variable: str) -> IntArray:
        """The positions that a node or edge variable is bound to."""
        found = self.nodes.get(variable)
        return self.edges[variable] if found is None else found

    def take(self, indices: IntArray | BoolArray | slice) -> Rows:
        """The rows at these indices, or where a mask is true."""
        # Other indices may repeat a row.
        distinct = self.distinct if isinstance(indices, slice) or indices.dtype == bool else None
        if isinstance(indices, slice):
            count = len(range(*indices.indices(self.count)))
        else:
            if indices.dtype == bool:
                indices = np.flatnonzero(indices)
            count = len(indices)
        return Rows(
            count,
            {name: positions[indices] for name, positions in self.nodes.items()},
            {name: positions[indices] for name, positions in self.edges.items()},
            None if self.weight is None else self.weight[indices],
            map_sums(self.sums, lambda numbers: numbers[indices]),
            map_extremes(self.extremes, lambda _, codes, __: codes[indices]),
            None if self.seeds is None else self.seeds[indices],
            distinct,
            self.shelf,
            None if self.shelf is None else self._shelf_rows()[indices],
        )

    def put_away(self, names: Iterable[str]) -> Rows:
        """The same rows; these columns are not copied again until they are taken back."""
        away = set(names)
        nodes = {name: column for name, column in self.nodes.items() if name in away}
        edges = {name: column for name, column in self.edges.items() if name in away}
        return replace(
            self,
            nodes={name: column for name, column in self.nodes.items() if name not in away},
            edges={name: column for name, column in self.edges.items() if name not in away},
            shelf=Shelf(nodes, edges, self.shelf_index, self.shelf),
            shelf_index=None,
        )

    def take_back(self) -> Rows:
        """The same rows with all of their columns."""
        shelf, index = self.shelf, self._shelf_rows()
        while shelf is not None:
            self.nodes |= {name: column[index] for name, column in shelf.nodes.items()}
            self.edges |= {name: column[index] for name, column in shelf.edges.items()}
            index = index if shelf.index is None else shelf.index[index]
            shelf = shelf.below
        self.shelf, self.shelf_index = None, None
        return self

    def _shelf_rows(self) -> IntArray:
        return np.arange(self.count) if self.shelf_index is None else self.shelf_index

    def scale(self, factor: AnyArray | int) -> Rows:
        """The same rows, each standing for `factor` times as many."""
        weight = factor if self.weight is None else multiply(self.weight, factor)
        self.weight = np.broadcast_to(weight, (self.count,))
        self.sums = scale_sums(self.sums, factor)
        return self

    def cross(self, other: Rows) -> Rows:
        """Every row of one with every row of the other."""
        return self.pair(
            np.repeat(np.arange(self.count), other.count),
            other,
            np.tile(np.arange(other.count), self.count),
        )

    def pair(self, indices: IntArray, other: Rows, other_indices: IntArray) -> Rows:
        """The rows at these indices side by side with the other's rows at those indices."""
        left, right = self.take(indices), other.take(other_indices)
        sums = scale_sums(left.sums, ones(right.weight))
        sums |= scale_sums(right.sums, ones(left.weight))
        return Rows(
            left.count,
            left.nodes | right.nodes,
            left.edges | right.edges,
            _weights(left, right),
            sums,
            left.extremes | right.extremes,
            left.seeds if left.seeds is not None else right.seeds,
        )

    def unfold(self, limit: int | None = None) -> Rows:
        """The rows one by one, each as often as its weight says, until there are `limit`."""
        if self.weight is None:
            return self if limit is None else self.take(slice(0, limit))
        counts = self.weight.astype(np.int64)
        if limit is not None:
            # As many as are still missing when a row's turn comes.
            before = np.cumsum(np.minimum(counts, limit)) - np.minimum(counts, limit)
            counts = np.clip(limit - before, 0, counts)
        total = int(counts.sum())
        require_room(total, ANSWER)
        require_bytes(total * 8 * (1 + len(self.nodes) + len(self.edges)))
        indices = np.repeat(np.arange(self.count), counts)
        self.weight = None
        return self.take(indices)


def require_room(rows: int, held: Held) -> None:
    """Refuse to hold more rows than memory can be trusted with.

    Raises:
        ResourceLimitError: There are more than the limit.
    """
    limit = rows_max()
    if rows > limit:
        raise ResourceLimitError(
            f"the number of {held.what} to hold",
            limit=limit,
            actual=rows,
            advice=f"{held.advice}; {ROWS_VARIABLE} sets the limit",
        )


def rows_max() -> int:
    """How many rows a query may hold, unless the environment says otherwise."""
    return read_limit(ROWS_VARIABLE, ROWS_MAX)


def require_effort(rows: int) -> None:
    """Refuse to go on with a query that looked at more rows than any answer is worth.

    Raises:
        ResourceLimitError: There are more than the limit.
    """
    limit = read_limit(LOOKED_AT_VARIABLE, LOOKED_AT_MAX)
    if rows > limit:
        raise ResourceLimitError(
            "the number of rows that a query looks at",
            limit=limit,
            actual=rows,
            advice="relate its parts by traversals or by equal values, so that fewer combinations "
            "are tried, give walks an end with a filter or fewer hops, and ask for one of many "
            "values by `in`; "
            f"{LOOKED_AT_VARIABLE} sets the limit",
        )


def multiply(left: AnyArray | int, right: AnyArray | int) -> AnyArray:
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


def map_sums(sums: Sums, change: Callable[[AnyArray], AnyArray]) -> Sums:
    """The sums, and how many values are in them, with every array changed."""
    return {
        key: (change(total), None if known is None else change(known))
        for key, (total, known) in sums.items()
    }


def scale_sums(sums: Sums, factor: AnyArray | int) -> Sums:
    """The sums, each taken `factor` times."""
    return map_sums(sums, lambda numbers: numbers * factor)


def map_extremes(
    extremes: Extremes, change: Callable[[Aggregate, IntArray, Ranks], IntArray]
) -> Extremes:
    """The extreme ranks, with every array changed."""
    return {key: (change(key, codes, ranks), ranks) for key, (codes, ranks) in extremes.items()}


def ones(weight: AnyArray | None) -> AnyArray | int:
    """The weight as a factor."""
    return 1 if weight is None else weight


def _weights(left: Rows, right: Rows) -> AnyArray | None:
    if left.weight is None:
        return right.weight
    return left.weight if right.weight is None else multiply(left.weight, right.weight)
