"""Weights: messages along a tree. How many matches hang below a position, and what they sum to.

A parent's weight is the product, over its children, of the sum over the edge of the child's
weight. A sum of values travels the same way, beside the weight; a least or greatest value travels
as its rank and ignores how often it occurs. No path is ever made. Along the five edges

    0 → 0   0 → 1   1 → 2   2 → 1   2 → 3

children that have 1, 2, 0 and 1 matches below them send their three parents:

    >>> from omnigraph.index.adjacency import Endpoints, build_distinct_relation
    >>> ends = Endpoints(np.array([0, 0, 1, 2, 2]), np.array([0, 1, 2, 1, 3]))
    >>> relation = build_distinct_relation(ends, (3, 4))
    >>> below = Weights(np.array([1, 2, 0, 1]), largest=2.0)
    >>> sent, parents = message(
    ...     lambda: relation.forward, lambda: relation.backward, below, Selection(4), Selection(3)
    ... )
    >>> sent.matches.tolist(), parents.positions().tolist()     # 1 + 2,  0,  2 + 1
    ([3, 0, 3], [0, 2])

There are three ways along an edge, and the one with the fewest edges to look at is taken:

    from the children    when few of them are selected
    from the parents     when few of them are
    all edges at once    one sequential pass
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.kernels import (
    Side,
    best_along,
    best_of,
    edge_count,
    expand,
    reach,
    scatter_sums,
    sum_along,
)
from omnigraph.executor.rows import (
    Extremes,
    Rows,
    Sums,
    map_extremes,
    map_sums,
    ones,
    scale_sums,
    too_many_matches,
)
from omnigraph.executor.run import Run
from omnigraph.index import Selection, TableView
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.columns import Ranks, rank_values, to_doubles
from omnigraph.ir.expressions import Aggregate, PropertyRef
from omnigraph.planner.pattern import Pattern

_TOO_MANY = 2.0**62
FEW = 8
"""Positions are few when less than one in this many is selected."""


@dataclass(frozen=True, slots=True)
class Payload:
    """What travels beside the number of matches: properties to sum, and least and greatest ones."""

    sums: frozenset[PropertyRef] = frozenset()
    extremes: frozenset[Aggregate] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Per position: matches (None for one each), sums and counts of values, and extreme ranks.

    With `support` the arrays are for those positions, ascending, and no others; every selected
    position is among them. No number of matches is larger than `largest`.
    """

    matches: AnyArray | None = None
    sums: Sums = field(default_factory=dict)
    extremes: Extremes = field(default_factory=dict)
    support: IntArray | None = None
    largest: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether every position counts once and nothing else is sent."""
        return self.matches is None and not self.sums and not self.extremes

    def on(self, support: IntArray | None) -> Weights:
        """The same arrays, for these positions."""
        return Weights(self.matches, self.sums, self.extremes, support, self.largest)

    def at(self, positions: IntArray) -> Weights:
        """The weights of these positions, one for each."""
        if self.is_plain:
            return _PLAIN
        if self.support is not None:
            positions = np.searchsorted(self.support, positions)
        return Weights(
            None if self.matches is None else self.matches[positions],
            map_sums(self.sums, lambda numbers: numbers[positions]),
            map_extremes(self.extremes, lambda _, codes, __: codes[positions]),
            None,
            self.largest,
        )

    def of(self, selection: Selection) -> Weights:
        """The weights of the selected positions, in order."""
        if self.support is None:
            return self if selection.is_all else self.at(selection.positions())
        if selection.count == len(self.support):
            # Every selected position is in the support, so they are the same.
            return self.on(None)
        return self.at(selection.positions())

    def apply(self, rows: Rows) -> Rows:
        """Make every row stand for its matches here; these weights are one per row."""
        sums = scale_sums(self.sums, ones(rows.weight))
        if self.matches is not None:
            rows = rows.scale(self.matches)
        rows.sums |= sums
        rows.extremes |= self.extremes
        return rows

    def total(self, rows: int) -> Rows:
        """One row that stands for all matches of these `rows` positions."""
        matches = rows if self.matches is None else self._sum_matches(self.matches)
        zeros = np.zeros(rows, dtype=np.int64)
        return Rows(
            1,
            weight=np.array([matches], dtype=np.int64),
            sums=map_sums(self.sums, lambda numbers: np.array([numbers.sum()])),
            extremes=fold_extremes(self.extremes, zeros, 1),
        )

    def _sum_matches(self, matches: AnyArray) -> int:
        is_doubtful = self.largest * len(matches) > _TOO_MANY
        if is_doubtful and float(matches.sum(dtype=np.float64)) > _TOO_MANY:
            raise too_many_matches()
        return int(matches.sum())


_PLAIN = Weights()


def leaf_weights(
    run: Run, pattern: Pattern, variable: str, payload: Payload, selection: Selection
) -> Weights:
    """One match for each position, and the variable's own values that are to be sent."""
    properties = [ref for ref in payload.sums if ref.variable == variable]
    aggregates = [each for each in payload.extremes if _extreme_ref(each).variable == variable]
    if not properties and not aggregates:
        return _PLAIN
    view = run.view_of(variable, pattern)
    support = selection.positions() if _is_few(selection) else None
    wanted = np.arange(view.size) if support is None else support
    sums: Sums = {}
    for ref in properties:
        if support is None and isinstance(view, TableView):
            array, numbers = view.column(ref.property), view.numbers(ref.property)
        else:
            array = view.values([ref.property], wanted)[ref.property]
            numbers = to_doubles(array)
        known = None
        if array.null_count:
            known = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        sums[ref] = (numbers, known)
    extremes: Extremes = {}
    for each in aggregates:
        name = _extreme_ref(each).property
        if isinstance(view, TableView) and (support is None or view.lookup.has_ranks(name)):
            ranks = view.lookup.ranks(name)
            codes = ranks.codes if support is None else ranks.codes[support]
        else:
            ranks = rank_values(view.values([name], wanted)[name])
            codes = ranks.codes
        if _is_least(each):
            codes = np.where(codes == 0, codes.dtype.type(_no_value(each, ranks)), codes)
        extremes[each] = (codes, ranks)
    return Weights(None, sums, extremes, support)


def combine(left: Weights | None, right: Weights) -> Weights:
    """Both at once: matches multiply, and each side's sums are taken that many times."""
    if left is None or left.is_plain:
        return right
    if right.is_plain:
        return left
    support = _common(left.support, right.support)
    if support is not None:
        left, right = left.at(support), right.at(support)
    sums = scale_sums(left.sums, ones(right.matches))
    sums |= scale_sums(right.sums, ones(left.matches))
    extremes = left.extremes | right.extremes
    largest = left.largest * right.largest
    return Weights(_product(left, right), sums, extremes, support, largest)


def message(
    above: Side, below: Side, weights: Weights, children: Selection, parents: Selection
) -> tuple[Weights, Selection]:
    """What the selected children send; and the parents with a match.

    `above` is the relation keyed by parent, `below` the same keyed by child.
    """
    if weights.is_plain and children.is_all:
        reached = reach(above, below, parents, children)
        if not _is_few(reached):
            return Weights(above().degree, largest=above().degree_max), reached
        positions = reached.positions()
        starts, ends = above().runs(positions)
        return Weights(ends - starts, support=positions, largest=above().degree_max), reached
    if not _is_few(parents):
        send = _send_from_children if _is_few(children) else _send_along_all
        return send(above, below, weights, children, parents)
    if _is_few(children):
        from_children = edge_count(below(), children.positions())
        if from_children <= edge_count(above(), parents.positions()):
            return _send_from_children(above, below, weights, children, parents)
    return _send_to_parents(above, weights, children, parents)


def _send_from_children(
    above: Side, below: Side, weights: Weights, children: Selection, parents: Selection
) -> tuple[Weights, Selection]:
    """Follow the edges of the few selected children."""
    csr = below()
    positions = children.positions()
    rows, entries = expand(csr, positions)
    targets = csr.neighbours(entries)
    if not parents.is_all:
        kept = parents.contains(targets)
        rows, targets = rows[kept], targets[kept]
    each = weights.of(children).at(rows)
    index: IntArray | None
    if len(positions) == 1 and csr.edges is None:
        # One child has every parent once, in order; stored edges may have one several times.
        support, index = targets, None
    elif len(targets) * FEW < parents.size:
        support, index = np.unique(targets, return_inverse=True)
    else:
        sent = _fold(each, targets, parents.size, above, weights.largest)
        return sent, parents.intersect(_select_matched(sent, parents.size))
    sent = _fold(each, index, len(support), above, weights.largest)
    return sent.on(support), Selection(parents.size, positions=support)


def _send_to_parents(
    above: Side, weights: Weights, children: Selection, parents: Selection
) -> tuple[Weights, Selection]:
    """Look along the edges of the few selected parents."""
    csr = above()
    positions = parents.positions()
    rows, entries = expand(csr, positions)
    targets = csr.neighbours(entries)
    kept = children.contains(targets)
    rows, targets = rows[kept], targets[kept]
    sent = _fold(weights.at(targets), rows, len(positions), above, weights.largest)
    assert sent.matches is not None
    is_matched = sent.matches > 0
    reached = positions[is_matched]
    found = sent.at(np.flatnonzero(is_matched)).on(reached)
    return found, Selection(parents.size, positions=reached)


def _send_along_all(
    above: Side, below: Side, weights: Weights, children: Selection, parents: Selection
) -> tuple[Weights, Selection]:
    """One pass over every edge."""
    dense = _spread(weights, children)
    largest = _most_matches(above, dense.matches, weights.largest)

    def sum_up(values: AnyArray) -> AnyArray:
        return sum_along(above, below, values, parents.size)

    def best(aggregate: Aggregate, codes: IntArray, ranks: Ranks) -> IntArray:
        none = _no_value(aggregate, ranks)
        return best_along(above, codes, none, is_minimum=_is_least(aggregate))

    matches = above().degree if dense.matches is None else sum_up(dense.matches)
    sums, extremes = map_sums(dense.sums, sum_up), map_extremes(dense.extremes, best)
    sent = Weights(matches, sums, extremes, None, largest)
    return sent, parents.intersect(_select_matched(sent, parents.size))


def _fold(each: Weights, index: IntArray | None, size: int, above: Side, largest: float) -> Weights:
    """One weight per index, from one per edge; None when every edge is an index of its own."""
    if index is None:
        matches = np.ones(size, dtype=np.int64) if each.matches is None else each.matches
        return Weights(matches, each.sums, each.extremes, None, each.largest)
    return Weights(
        np.bincount(index, minlength=size)
        if each.matches is None
        else scatter_sums(index, each.matches, size),
        map_sums(each.sums, lambda numbers: scatter_sums(index, numbers, size)),
        fold_extremes(each.extremes, index, size),
        None,
        _most_matches(above, each.matches, largest),
    )


def fold_extremes(extremes: Extremes, index: IntArray, size: int) -> Extremes:
    """The extreme of each index."""

    def best(aggregate: Aggregate, codes: IntArray, ranks: Ranks) -> IntArray:
        none = _no_value(aggregate, ranks)
        return best_of(index, codes, size, none, is_minimum=_is_least(aggregate))

    return map_extremes(extremes, best)


def _spread(weights: Weights, selection: Selection) -> Weights:
    """The weights of every position; what is not selected weighs nothing."""
    if selection.is_all and weights.support is None:
        return weights
    if weights.support is None:
        mask = selection.mask()
        found = weights

        def fill(values: AnyArray, empty: int) -> AnyArray:
            # Chosen and not multiplied: an infinite value times nothing would not be nothing.
            return np.where(mask, values, values.dtype.type(empty))

    else:
        positions = selection.positions()
        found = weights.at(positions)

        def fill(values: AnyArray, empty: int) -> AnyArray:
            spread = np.full(selection.size, empty, dtype=values.dtype)
            spread[positions] = values
            return spread

    return Weights(
        selection.mask() if found.matches is None else fill(found.matches, 0),
        map_sums(found.sums, lambda numbers: fill(numbers, 0)),
        map_extremes(found.extremes, lambda key, codes, ranks: fill(codes, _no_value(key, ranks))),
        None,
        weights.largest,
    )


def _select_matched(weights: Weights, size: int) -> Selection:
    assert weights.matches is not None
    return Selection(size, mask=weights.matches > 0)


def _most_matches(above: Side, matches: AnyArray | None, largest: float) -> float:
    """The most matches a parent can get. Refuses what an I64 could not count."""
    # The cheap bound is enough for nearly every graph; only beyond it the true numbers are read.
    most = float(above().degree_max)
    if largest * most > _TOO_MANY:
        largest = 1.0 if matches is None else float(np.max(matches, initial=0))
        if largest * most > _TOO_MANY:
            raise too_many_matches()
    return largest * most


def _product(left: Weights, right: Weights) -> AnyArray | None:
    if left.matches is None:
        return right.matches
    if right.matches is None:
        return left.matches
    if left.largest * right.largest > _TOO_MANY:
        most = float(np.max(left.matches, initial=0)) * float(np.max(right.matches, initial=0))
        if most > _TOO_MANY:
            raise too_many_matches()
    return np.asarray(left.matches * right.matches)


def _common(left: IntArray | None, right: IntArray | None) -> IntArray | None:
    """The positions in both supports; None is every position."""
    if left is None:
        return right
    if right is None:
        return left
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    if len(many) == 0:
        return many
    index = np.minimum(np.searchsorted(many, few), len(many) - 1)
    return np.asarray(few[many[index] == few])


def _is_few(selection: Selection) -> bool:
    return not selection.is_all and selection.count * FEW < selection.size


# Extremes: a rank for each position, and one that stands for no value at all


def _extreme_ref(aggregate: Aggregate) -> PropertyRef:
    """The property whose least or greatest value is wanted."""
    assert isinstance(aggregate.argument, PropertyRef)
    return aggregate.argument


def _is_least(aggregate: Aggregate) -> bool:
    """Whether an extreme is a minimum."""
    return aggregate.function == "min"


def _no_value(aggregate: Aggregate, ranks: Ranks) -> int:
    """Stands for no value: it loses against every rank."""
    return ranks.count if _is_least(aggregate) else 0
