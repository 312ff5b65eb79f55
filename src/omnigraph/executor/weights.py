"""Weights: messages along a tree. How many matches hang below a position, and what they sum to.

A parent's weight is the product, over its children, of the sum over the edge of the child's
weight. A sum of values travels the same way, beside the weight; a least or greatest value travels
as its rank and ignores how often it occurs. No path is ever made.

There are three ways along an edge, and the one with the fewest edges to look at is taken:

    from the children    when few of them are live
    from the parents     when few of them are
    all edges at once    one sequential pass
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omnigraph.executor.kernels import (
    Side,
    best_along,
    best_of,
    edge_count,
    expand,
    reach,
    scattered,
    sum_along,
)
from omnigraph.executor.rows import (
    Carried,
    Extremes,
    Rows,
    carried_at,
    carried_times,
    extremes_at,
    ones,
    too_many_matches,
)
from omnigraph.executor.run import Run
from omnigraph.index import Live
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.columns import Ranks, numbers_to_sum, ranked
from omnigraph.ir.expressions import Aggregate, PropertyRef
from omnigraph.planner.pattern import Pattern

_TOO_MANY = 2.0**62
_FEW = 8
"""Positions are few when there is less than one live in this many."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What travels beside the number of matches: properties to sum, and least and greatest ones."""

    sums: frozenset[PropertyRef] = frozenset()
    extremes: frozenset[Aggregate] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Per position: matches (None for one each), sums and counts of values, and extreme ranks.

    With `support` the arrays are for those positions, ascending, and no others; every live position
    is among them. No number of matches is larger than `largest`.
    """

    matches: AnyArray | None = None
    carried: Carried = field(default_factory=dict)
    extremes: Extremes = field(default_factory=dict)
    support: IntArray | None = None
    largest: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether every position counts once and nothing else is sent."""
        return self.matches is None and not self.carried and not self.extremes

    def at(self, positions: IntArray) -> Weights:
        """The weights of these positions, one for each."""
        if self.is_plain:
            return _PLAIN
        if self.support is not None:
            positions = np.searchsorted(self.support, positions)
        matches = None if self.matches is None else self.matches[positions]
        return Weights(
            matches,
            carried_at(self.carried, positions),
            extremes_at(self.extremes, positions),
            None,
            self.largest,
        )

    def of(self, live: Live) -> Weights:
        """The weights of the live positions, in order."""
        if self.support is None:
            return self if live.is_all else self.at(live.positions())
        if live.count == len(self.support):
            # Every live position is in the support, so they are the same.
            return Weights(self.matches, self.carried, self.extremes, None, self.largest)
        return self.at(live.positions())

    def apply(self, rows: Rows) -> Rows:
        """Make every row stand for its matches here; these weights are one per row."""
        carried = carried_times(self.carried, ones(rows.weight))
        if self.matches is not None:
            rows = rows.scaled(self.matches)
        rows.carried |= carried
        rows.extremes |= self.extremes
        return rows

    def total(self, rows: int) -> Rows:
        """One row that stands for all matches of these `rows` positions."""
        matches = rows if self.matches is None else self._sum_of_matches(self.matches)
        carried: Carried = {
            key: (np.array([sums.sum()]), None if known is None else np.array([known.sum()]))
            for key, (sums, known) in self.carried.items()
        }
        zeros = np.zeros(rows, dtype=np.int64)
        extremes: Extremes = {
            key: (_best_at(key, zeros, codes, 1, ranks), ranks)
            for key, (codes, ranks) in self.extremes.items()
        }
        weight = np.array([matches], dtype=np.int64)
        return Rows(1, weight=weight, carried=carried, extremes=extremes)

    def _sum_of_matches(self, matches: AnyArray) -> int:
        is_doubtful = self.largest * len(matches) > _TOO_MANY
        if is_doubtful and float(matches.sum(dtype=np.float64)) > _TOO_MANY:
            raise too_many_matches()
        return int(matches.sum())


_PLAIN = Weights()


def leaf_weights(run: Run, pattern: Pattern, variable: str, sent: Sent, live: Live) -> Weights:
    """One match for each position, and the variable's own values that are to be sent."""
    sums = [ref for ref in sent.sums if ref.variable == variable]
    extremes = [each for each in sent.extremes if extreme_ref(each).variable == variable]
    if not sums and not extremes:
        return _PLAIN
    view = run.view_of(variable, pattern)
    support = live.positions() if _is_few(live) else None
    carried: Carried = {}
    for ref in sums:
        if support is None:
            array, numbers = view.column(ref.property), view.numbers(ref.property)
        else:
            array = view.values([ref.property], support)[ref.property]
            numbers = numbers_to_sum(array)
        known = None
        if array.null_count:
            known = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        carried[ref] = (numbers, known)
    best: Extremes = {}
    for each in extremes:
        name = extreme_ref(each).property
        if support is None or view.has_ranks(name):
            ranks = view.ranks(name)
            codes = ranks.codes if support is None else ranks.codes[support]
        else:
            ranks = ranked(view.values([name], support)[name])
            codes = ranks.codes
        best[each] = (_with_none(each, codes, ranks), ranks)
    return Weights(None, carried, best, support)


def combined(left: Weights | None, right: Weights) -> Weights:
    """Both at once: matches multiply, and each side's sums are taken that many times."""
    if left is None or left.is_plain:
        return right
    if right.is_plain:
        return left
    support = _common(left.support, right.support)
    if support is not None:
        left, right = left.at(support), right.at(support)
    carried = carried_times(left.carried, ones(right.matches))
    carried |= carried_times(right.carried, ones(left.matches))
    return Weights(
        _product(left, right),
        carried,
        left.extremes | right.extremes,
        support,
        left.largest * right.largest,
    )


def message(
    above: Side, below: Side, weights: Weights, live: Live, parents: Live
) -> tuple[Weights, Live]:
    """What a child with these weights, where it is live, sends; and the parents with a match."""
    if weights.is_plain and live.is_all:
        reached = reach(above, below, parents, live)
        if not _is_few(reached):
            return Weights(above().degree, largest=above().degree_max), reached
        positions = reached.positions()
        starts, ends = above().runs(positions)
        counts = ends - starts
        return Weights(counts, support=positions, largest=above().degree_max), reached
    if not _is_few(parents):
        send = _sent_by_few if _is_few(live) else _sent_by_all
        return send(above, below, weights, live, parents)
    if _is_few(live):
        from_children = edge_count(below(), live.positions())
        if from_children <= edge_count(above(), parents.positions()):
            return _sent_by_few(above, below, weights, live, parents)
    return _asked_by_few(above, weights, live, parents)


def _sent_by_few(
    above: Side, below: Side, weights: Weights, live: Live, parents: Live
) -> tuple[Weights, Live]:
    """Follow the edges of the few live children."""
    csr = below()
    positions = live.positions()
    rows, places = expand(csr, positions)
    targets = csr.targets[places]
    if not parents.is_all:
        kept = parents.holds(targets)
        rows, targets = rows[kept], targets[kept]
    each = weights.of(live).at(rows)
    if len(positions) == 1 and csr.edges is None:
        # One child has every parent once, in order; stored edges may have one several times.
        support, place = targets, None
    elif len(targets) * _FEW < parents.size:
        support, place = np.unique(targets, return_inverse=True)
    else:
        support, place = np.arange(parents.size), targets
    sent = _folded(each, place, len(support), above, weights.largest)
    if place is targets:
        reached = parents.meet(_where_matched(sent, parents.size))
        return Weights(sent.matches, sent.carried, sent.extremes, None, sent.largest), reached
    return (
        Weights(sent.matches, sent.carried, sent.extremes, support, sent.largest),
        Live(parents.size, positions=support),
    )


def _asked_by_few(above: Side, weights: Weights, live: Live, parents: Live) -> tuple[Weights, Live]:
    """Look along the edges of the few live parents."""
    csr = above()
    positions = parents.positions()
    rows, places = expand(csr, positions)
    targets = csr.targets[places]
    kept = live.holds(targets)
    rows, targets = rows[kept], targets[kept]
    sent = _folded(weights.at(targets), rows, len(positions), above, weights.largest)
    assert sent.matches is not None
    is_matched = sent.matches > 0
    reached = positions[is_matched]
    found = sent.at(np.flatnonzero(is_matched))
    return (
        Weights(found.matches, found.carried, found.extremes, reached, sent.largest),
        Live(parents.size, positions=reached),
    )


def _folded(
    each: Weights, place: IntArray | None, size: int, above: Side, largest: float
) -> Weights:
    """One weight for each place, from one for each edge; None when every edge is its own place."""
    if place is None:
        matches = np.ones(size, dtype=np.int64) if each.matches is None else each.matches
        return Weights(matches, each.carried, each.extremes, None, each.largest)
    bound = _bound(above, each.matches, largest)
    if each.matches is None:
        matches = np.bincount(place, minlength=size)
    else:
        matches = scattered(place, each.matches, size)
    carried: Carried = {
        key: (
            scattered(place, sums, size),
            None if known is None else scattered(place, known, size),
        )
        for key, (sums, known) in each.carried.items()
    }
    extremes: Extremes = {
        key: (_best_at(key, place, codes, size, ranks), ranks)
        for key, (codes, ranks) in each.extremes.items()
    }
    return Weights(matches, carried, extremes, None, bound)


def _sent_by_all(
    above: Side, below: Side, weights: Weights, live: Live, parents: Live
) -> tuple[Weights, Live]:
    """One pass over every edge."""
    dense = _spread(weights, live)
    bound = _bound(above, dense.matches, weights.largest)

    def summed(values: AnyArray) -> AnyArray:
        return sum_along(above, below, values, parents.size)

    if dense.matches is None:
        matches: AnyArray = above().degree
    else:
        matches = summed(dense.matches)
    carried: Carried = {
        key: (summed(sums), None if known is None else summed(known))
        for key, (sums, known) in dense.carried.items()
    }
    extremes: Extremes = {}
    for key, (codes, ranks) in dense.extremes.items():
        least = is_least(key)
        best = best_along(above, codes, _none(key, ranks), is_minimum=least)
        extremes[key] = (best, ranks)
    sent = Weights(matches, carried, extremes, None, bound)
    return sent, parents.meet(_where_matched(sent, parents.size))


def _spread(weights: Weights, live: Live) -> Weights:
    """The weights of every position; what is not live weighs nothing."""
    if live.is_all and weights.support is None:
        return weights
    if weights.support is None:
        mask = live.mask()
        matches = mask if weights.matches is None else weights.matches * mask
        # Chosen and not multiplied: an infinite value times nothing would not be nothing.
        carried: Carried = {
            key: (np.where(mask, sums, 0.0), None if known is None else known * mask)
            for key, (sums, known) in weights.carried.items()
        }
        extremes: Extremes = {
            key: (np.where(mask, codes, codes.dtype.type(_none(key, ranks))), ranks)
            for key, (codes, ranks) in weights.extremes.items()
        }
        return Weights(matches, carried, extremes, None, weights.largest)
    positions = live.positions()
    found = weights.at(positions)

    def placed(values: AnyArray, empty: int) -> AnyArray:
        spread = np.full(live.size, empty, dtype=values.dtype)
        spread[positions] = values
        return spread

    return Weights(
        live.mask() if found.matches is None else placed(found.matches, 0),
        {
            key: (placed(sums, 0), None if known is None else placed(known, 0))
            for key, (sums, known) in found.carried.items()
        },
        {
            key: (placed(codes, _none(key, ranks)), ranks)
            for key, (codes, ranks) in found.extremes.items()
        },
        None,
        weights.largest,
    )


def _where_matched(weights: Weights, size: int) -> Live:
    assert weights.matches is not None
    return Live(size, mask=weights.matches > 0)


def _bound(above: Side, matches: AnyArray | None, largest: float) -> float:
    """The most matches a parent can get. Refuses what an I64 could not count."""
    # The cheap bound is enough for nearly every graph; the true numbers are only then looked at.
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
    if left is None:
        return right
    if right is None:
        return left
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    if len(many) == 0:
        return many
    place = np.minimum(np.searchsorted(many, few), len(many) - 1)
    return np.asarray(few[many[place] == few])


def _is_few(live: Live) -> bool:
    return not live.is_all and live.count * _FEW < live.size


# Extremes: a rank for each position, and one that stands for no value at all


def extreme_ref(aggregate: Aggregate) -> PropertyRef:
    """The property whose least or greatest value is wanted."""
    assert isinstance(aggregate.argument, PropertyRef)
    return aggregate.argument


def is_least(aggregate: Aggregate) -> bool:
    """Whether an extreme is a minimum."""
    return aggregate.function == "min"


def _none(aggregate: Aggregate, ranks: Ranks) -> int:
    """Stands for no value: it loses against every rank."""
    return ranks.count if is_least(aggregate) else 0


def _with_none(aggregate: Aggregate, codes: IntArray, ranks: Ranks) -> IntArray:
    if not is_least(aggregate):
        return codes
    return np.where(codes == 0, codes.dtype.type(ranks.count), codes)


def _best_at(
    aggregate: Aggregate, place: IntArray, codes: IntArray, size: int, ranks: Ranks
) -> IntArray:
    none = _none(aggregate, ranks)
    return best_of(place, codes, size, none, is_minimum=is_least(aggregate))
