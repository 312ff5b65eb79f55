"""Choose the root: where each tree of a pattern starts, and in which order it grows.

    a variable matched by key       it has one position: everything is reached from there
    a variable that decides         it holds a unique grouping key, or the first sort key
    a variable that rows need       the one with the fewest expected matches
    none                            the middle of the tree, so that counts travel least

From there the hop that leaves the fewest rows is next. With a cycle the whole order is chosen at
once, by cost (`order_joins.py`). A match by key beats the smaller table:

    match { $t: Town  $p livesIn $t  $p.name = "Ada" }  return { $t.size }

    before
        scan $t: Town
          count $t to $p along in LivesIn where $p.name = "Ada"
        project $t.size
    after
        scan $p: Person where $p.name = "Ada"
          expand $p to $t along out LivesIn
        project $t.size
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import NodeRef, PropertyRef
from omnigraph.planner.estimate import Estimates
from omnigraph.planner.order_joins import order_joins
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.plan import MatchPlan, Plan, Statistics
from omnigraph.planner.trees import Component, Hops, Tree, count_hops, grow_trees

_WORTH_A_ROOT = 1_000
"""Below this many rows a scan costs nothing, so a key match there decides nothing."""


def choose_root(plan: Plan, catalog: Catalog, statistics: Statistics) -> Plan:
    """Root the trees of every match where they cost least, and grow them in the best order."""

    def choose(match: MatchPlan) -> MatchPlan:
        trees = choose_trees(match.pattern, match.bound, catalog, statistics)
        return replace(match, trees=trees)

    match = plan.match.rewrite(choose)
    deciding = tuple(_list_deciding(plan, catalog))
    trees = choose_trees(match.pattern, match.bound, catalog, statistics, deciding)
    return replace(plan, match=replace(match, trees=trees))


def choose_trees(
    pattern: Pattern,
    bound: frozenset[str],
    catalog: Catalog,
    statistics: Statistics,
    preferred: tuple[str, ...] = (),
) -> tuple[Tree, ...]:
    """The trees of a pattern, rooted at `preferred` if they can be."""
    estimates = Estimates(pattern, catalog, statistics)
    return grow_trees(pattern, bound, _Cheapest(estimates, preferred))


@dataclass(frozen=True, slots=True)
class _Cheapest:
    estimates: Estimates
    preferred: tuple[str, ...]

    def fan_out(self, hop: Hop, start: str) -> float:
        return self.estimates.fan_out(hop, start)

    def arrange(self, component: Component) -> Sequence[str]:
        if component.is_cyclic and component.core:
            return order_joins(component, self.estimates)
        starts = component.starts or (self._pick_root(component),)
        if not component.core:
            return starts
        core = component.core.union(_way_to(component, starts[0]))
        return [*starts, *self._follow(component.hops, core, starts)]

    def _pick_root(self, component: Component) -> str:
        variables, needed = component.variables, component.needed
        best = min(variables, key=self.estimates.rows)
        if self.estimates.rows(best) <= 1 and self.estimates.size(best) >= _WORTH_A_ROOT:
            return best
        first = [name for name in self.preferred if name in needed]
        if first:
            # Of two unique keys the one with more nodes tells more groups apart.
            return max(first, key=self.estimates.rows)
        if needed:
            return min(sorted(needed), key=self.estimates.rows)
        heights = _heights(component)
        return min(variables, key=lambda name: (heights[name], self.estimates.rows(name)))

    def _follow(self, hops: Hops, core: frozenset[str], starts: Sequence[str]) -> Iterator[str]:
        """What is left of a core without cycles, the hops that leave the fewest rows first."""
        known = set(starts)
        waiting: list[tuple[float, str]] = []

        def look_from(start: str) -> None:
            for hop in hops[start]:
                end = hop.other_end(start)
                if end in core and end not in known:
                    known.add(end)
                    factor = self.estimates.fan_out(hop, start) * self.estimates.share(end)
                    heapq.heappush(waiting, (factor, end))

        for start in starts:
            look_from(start)
        while waiting:
            _, name = heapq.heappop(waiting)
            yield name
            look_from(name)


def _way_to(component: Component, root: str) -> Iterator[str]:
    """What lies between a root and the core."""
    distance = count_hops(component.hops, root)
    name = min(component.core, key=lambda each: (distance.get(each, len(distance)), each))
    while name != root and name in distance:
        yield name
        ends = (hop.other_end(name) for hop in component.hops[name])
        name = min(ends, key=distance.__getitem__)


def _list_deciding(plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Variables that are good roots: one row each means one group each, or rows in order."""
    nodes = plan.match.pattern.nodes
    if not plan.is_grouped:
        if plan.order and plan.limit is not None:
            first = plan.resolve_alias(plan.order[0].expression)
            if isinstance(first, PropertyRef) and first.variable in nodes:
                yield first.variable
        return
    for item in plan.returns:
        match item.expression:
            case NodeRef(variable):
                yield variable
            case PropertyRef(variable, name) if variable in nodes:
                declared = catalog.node(nodes[variable])
                if declared is not None and declared.key == (name,):
                    yield variable


def _heights(component: Component) -> dict[str, int]:
    """How high the tree is when it is rooted at each of its variables.

    The variable farthest from any is an end of a longest path, the one farthest from that end the
    other; and no variable has anything farther away than both. Of the variables as they are listed
    the last is farthest from the first.
    """
    hops = component.hops
    from_one = count_hops(hops, component.variables[-1])
    from_other = count_hops(hops, max(from_one, key=from_one.__getitem__))
    return {name: max(distance, from_other[name]) for name, distance in from_one.items()}
