"""Choose the root: where each tree of a pattern starts.

    a variable matched by key       it has one position: everything is reached from there
    a variable that decides         it holds a unique grouping key, or the first sort key
    a variable that rows need       the one with the fewest expected matches
    none                            the middle of the tree, so that counts travel least

A match by key beats the smaller table:

    match { $t: Town  $p livesIn $t  $p.name = "Ada" }  return { $t.size }

    before
        scan $t: Town
          count $t to $p along in LivesIn where $p.name = "Ada"
        project $t.size
    after
        scan $p: Person where $p.name = "Ada"
          expand $p to $t along in LivesIn seen from its target
        project $t.size
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import Compare, CompareKind, NodeRef, Predicate, PropertyRef
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import MatchPlan, Plan, Statistics
from omnigraph.planner.trees import Hops, Tree, count_hops, grow_trees

_SHARE_OF_EQUAL = 0.1
_SHARE_OF_OTHER = 0.3
_WORTH_A_ROOT = 1_000
"""Below this many rows a scan costs nothing, so a key match there decides nothing."""


def choose_root(plan: Plan, catalog: Catalog, statistics: Statistics) -> Plan:
    """Root the trees of every match where they cost least."""

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

    def pick(hops: Hops, variables: tuple[str, ...], needed: frozenset[str]) -> str:
        expected = {name: _estimate_rows(pattern, name, catalog, statistics) for name in variables}
        best = min(variables, key=lambda name: expected[name])
        rows = statistics.row_counts.get(f"node:{pattern.nodes[best]}", 0)
        if expected[best] <= 1 and rows >= _WORTH_A_ROOT:
            return best
        first = [name for name in preferred if name in needed]
        if first:
            # Of two unique keys the one with more nodes tells more groups apart.
            return max(first, key=lambda name: expected[name])
        if needed:
            return min(sorted(needed), key=lambda name: expected[name])
        heights = _heights(hops, variables[0])
        return min(variables, key=lambda name: (heights[name], expected[name]))

    return grow_trees(pattern, bound, pick)


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
                if catalog.nodes[nodes[variable]].key == (name,):
                    yield variable


def _estimate_rows(
    pattern: Pattern, variable: str, catalog: Catalog, statistics: Statistics
) -> float:
    """How many nodes may match a variable's own filters."""
    type_name = pattern.nodes[variable]
    rows = float(statistics.row_counts.get(f"node:{type_name}", 0))
    key = catalog.nodes[type_name].key
    for predicate in pattern.filters.get(variable, ()):
        name = _equality_property(predicate)
        if name is not None and key == (name,):
            return min(rows, 1.0)
        rows *= _SHARE_OF_EQUAL if name else _SHARE_OF_OTHER
    return rows


def _equality_property(predicate: Predicate) -> str | None:
    match predicate:
        case Compare(PropertyRef(_, name), CompareKind.EQUAL, _):
            return name
        case Compare(_, CompareKind.EQUAL, PropertyRef(_, name)):
            return name
        case _:
            return None


def _heights(hops: Hops, start: str) -> dict[str, int]:
    """How high the tree is when it is rooted at each of its variables.

    The variable farthest from any is an end of a longest path, the one farthest from that end the
    other; and no variable has anything farther away than both.
    """
    from_start = count_hops(hops, start)
    from_one = count_hops(hops, max(from_start, key=from_start.__getitem__))
    from_other = count_hops(hops, max(from_one, key=from_one.__getitem__))
    return {name: max(distance, from_other[name]) for name, distance in from_one.items()}
