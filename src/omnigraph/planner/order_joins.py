"""Order joins: in which order the variables of a pattern with cycles are bound.

A set of bound variables has the same expected rows however it was reached, and binding one more
costs what the hop with the fewest targets leads to. So the cheapest order is a shortest way from
nothing to everything, and it is searched for as one:

    rows(a, b)             nodes of a · fan-out of the hop
    rows(a, b, c)          rows(a, b) · least fan-out to c · for every other hop to c, its chance
    cost of binding c      rows before · (1 + least fan-out to c)

A tail makes the variable it hangs on as rare as itself. Equal costs are decided by name. Of many
variables the next one is the one that leaves the fewest rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import field

from omnigraph.dataclass import dataclass
from omnigraph.planner.estimate import Estimates
from omnigraph.planner.pattern import Hop
from omnigraph.planner.trees import Component

_SEARCHED_MAX = 11
"""Larger cores are ordered greedily: there are twice as many sets for each variable more."""
_ROWS_MAX = 1e300
"""Keeps products of many estimates finite, and so comparable."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What binding a variable multiplies rows by, and how many targets it looks at for each."""

    factor: float
    looked_at: float


def order_joins(component: Component, estimates: Estimates) -> Sequence[str]:
    """The core of a component with cycles, cheapest first."""
    search = _Search(component, estimates)
    if len(component.core) - len(component.starts) > _SEARCHED_MAX:
        return search.follow_greedily()
    return search.find_cheapest()


@dataclass(slots=True)
class _Search:
    component: Component
    estimates: Estimates
    _shares: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self._shares = {name: self._share(name, None) for name in sorted(self.component.core)}

    def find_cheapest(self) -> Sequence[str]:
        core = self.component.core
        # cost, variables in order, rows: equal costs are compared by the names
        heap: list[tuple[float, tuple[str, ...], float]] = list(self._begin())
        heapq.heapify(heap)
        settled: set[frozenset[str]] = set()
        while True:
            cost, order, rows = heapq.heappop(heap)
            bound = frozenset(order)
            if bound == core:
                return order
            if bound in settled:
                continue
            settled.add(bound)
            for name in self._next(bound):
                step = self._bind(name, bound)
                dearer = min(cost + rows * (1 + step.looked_at), _ROWS_MAX)
                more = min(rows * step.factor, _ROWS_MAX)
                heapq.heappush(heap, (dearer, (*order, name), more))

    def follow_greedily(self) -> Sequence[str]:
        core = self.component.core
        _, order, _ = min(self._begin())
        bound = frozenset(order)
        found = list(order)
        while bound != core:
            name = min(self._next(bound), key=lambda each: (self._bind(each, bound).factor, each))
            found.append(name)
            bound |= {name}
        return found

    def _begin(self) -> list[tuple[float, tuple[str, ...], float]]:
        if self.component.starts:
            return [(0.0, self.component.starts, 1.0)]
        sizes = {name: self.estimates.size(name) * share for name, share in self._shares.items()}
        return [(rows, (name,), rows) for name, rows in sizes.items()]

    def _share(self, name: str, seen_from: Hop | None) -> float:
        """The part of a type that the filters of a variable and of its tails keep."""
        share = self.estimates.share(name)
        for hop in self.component.hops[name]:
            end = hop.other_end(name)
            if hop is not seen_from and end not in self.component.core:
                share *= min(self.estimates.fan_out(hop, name) * self._share(end, hop), 1.0)
        return share

    def _next(self, bound: frozenset[str]) -> list[str]:
        hops, core = self.component.hops, self.component.core
        ends = {hop.other_end(name) for name in bound for hop in hops[name]}
        return sorted(ends & core - bound)

    def _bind(self, name: str, bound: frozenset[str]) -> _Step:
        size = max(self.estimates.size(name), 1.0)
        fans = [
            self.estimates.fan_out(hop, hop.other_end(name))
            for hop in self.component.hops[name]
            if hop.other_end(name) in bound
        ]
        looked_at = min(fans)
        factor = looked_at * self._shares[name]
        factor *= self.estimates.share_across(bound | {name}, name)
        fans.remove(looked_at)
        for fan in fans:
            factor *= min(fan / size, 1.0)
        return _Step(factor, looked_at)
