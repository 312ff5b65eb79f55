"""Choose the root: where each tree of a pattern starts, and which variables it has to bind.

    a variable matched by key       it has one position: everything is reached from there
    a variable that decides         it holds a unique grouping key, or the first sort key
    a variable that rows need       the one with the fewest expected matches
    none                            the middle of the tree, so that counts travel least

Variables on the way between two needed ones are bound too; the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import Compare, CompareKind, Predicate, PropertyRef
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.plan import Branch, Tree

Hops: TypeAlias = Mapping[str, Sequence[Hop]]
"""The steps that touch each variable."""

_SHARE_OF_EQUAL = 0.1
_SHARE_OF_OTHER = 0.3
_WORTH_A_ROOT = 1_000
"""Below this many rows a scan costs nothing, so a key match there decides nothing."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the planner knows of the data: the rows of each table, by table key."""

    row_counts: Mapping[str, int]


def choose_trees(
    pattern: Pattern,
    needed: frozenset[str],
    catalog: Catalog,
    statistics: Statistics,
    preferred: tuple[str, ...] = (),
) -> tuple[Tree, ...]:
    """Arrange the introducing steps of a pattern into trees, rooted at `preferred` if they can."""
    trees = []
    hops = pattern.hops_by_variable()
    planned: set[str] = set()
    if pattern.outer:
        trees.append(_grow(hops, list(pattern.outer), needed | set(pattern.outer), None))
        planned.update(trees[0].variables)
    for name in pattern.nodes:
        if name in planned:
            continue
        variables = tuple(_distances(hops, name))
        inside = needed.intersection(variables)
        first = [each for each in preferred if each in inside]
        root = _root(pattern, hops, variables, inside, catalog, statistics, first)
        trees.append(_grow(hops, [root], inside, root))
        planned.update(variables)
    return tuple(trees)


def _root(
    pattern: Pattern,
    hops: Hops,
    variables: tuple[str, ...],
    needed: frozenset[str],
    catalog: Catalog,
    statistics: Statistics,
    preferred: list[str],
) -> str:
    expected = {name: _estimate_rows(pattern, name, catalog, statistics) for name in variables}
    best = min(variables, key=lambda name: expected[name])
    rows = statistics.row_counts.get(f"node:{pattern.nodes[best]}", 0)
    if expected[best] <= 1 and rows >= _WORTH_A_ROOT:
        return best
    if preferred:
        # Of two unique keys the one with more nodes tells more groups apart.
        return max(preferred, key=lambda name: expected[name])
    if needed:
        return min(sorted(needed), key=lambda name: expected[name])
    heights = _heights(hops, variables[0])
    return min(variables, key=lambda name: (heights[name], expected[name]))


def _estimate_rows(
    pattern: Pattern, variable: str, catalog: Catalog, statistics: Statistics
) -> float:
    """How many nodes may match a variable's own filters."""
    type_name = pattern.nodes[variable]
    rows = float(statistics.row_counts.get(f"node:{type_name}", 0))
    key = catalog.nodes[type_name].key
    for predicate in pattern.filters.get(variable, ()):
        if _equality_property(predicate) is not None and key == (_equality_property(predicate),):
            return min(rows, 1.0)
        rows *= _SHARE_OF_EQUAL if _equality_property(predicate) else _SHARE_OF_OTHER
    return rows


def _equality_property(predicate: Predicate) -> str | None:
    match predicate:
        case Compare(PropertyRef(_, name), CompareKind.EQUAL, _):
            return name
        case Compare(_, CompareKind.EQUAL, PropertyRef(_, name)):
            return name
        case _:
            return None


def _grow(hops: Hops, starts: list[str], needed: Iterable[str], root: str | None) -> Tree:
    """Walk outwards from `starts`, then bind what lies between them and the needed variables."""
    reached = list(starts)
    arrival: dict[str, tuple[Hop, str]] = {}
    known = set(starts)
    for variable in reached:
        for hop in hops[variable]:
            child = hop.other_end(variable)
            if child not in known:
                known.add(child)
                arrival[child] = (hop, variable)
                reached.append(child)
    bound = set(starts)
    for name in needed:
        while name in arrival and name not in bound:
            bound.add(name)
            name = arrival[name][1]
    branches = tuple(
        Branch(hop, parent, child, child in bound) for child, (hop, parent) in arrival.items()
    )
    return Tree(root, tuple(reached), branches, is_counted=root is not None and not set(needed))


def _distances(hops: Hops, start: str) -> dict[str, int]:
    """How many steps away each variable of a tree is, the nearest first."""
    distance = {start: 0}
    reached = [start]
    for variable in reached:
        for hop in hops[variable]:
            end = hop.other_end(variable)
            if end not in distance:
                distance[end] = distance[variable] + 1
                reached.append(end)
    return distance


def _heights(hops: Hops, start: str) -> dict[str, int]:
    """How high the tree is when it is rooted at each of its variables.

    The variable farthest from any is an end of a longest path, the one farthest from that end the
    other; and no variable has anything farther away than both.
    """
    from_start = _distances(hops, start)
    from_one = _distances(hops, max(from_start, key=from_start.__getitem__))
    from_other = _distances(hops, max(from_one, key=from_one.__getitem__))
    return {name: max(distance, from_other[name]) for name, distance in from_one.items()}
