"""Trees: the hops of a pattern, grown outwards from a root."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.planner.pattern import Hop, Pattern

Hops: TypeAlias = Mapping[str, Sequence[Hop]]
"""The hops that touch each variable."""
PickRoot: TypeAlias = Callable[[Hops, tuple[str, ...], frozenset[str]], str]
"""From the hops, the variables of one tree, and those of them that rows need, to the root."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A hop as the plan walks it, from `parent` to `child`.

    A bound child appears in rows. One that is not bound is counted: it sends its parent how many
    matches hang below each position, and no row is made for them.
    """

    hop: Hop
    parent: str
    child: str
    is_bound: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """Variables joined by hops. `root` is None where the match hangs on outer variables.

    `branches` come parents first. Without a bound variable the whole tree is one number.
    """

    root: str | None
    variables: tuple[str, ...]
    branches: tuple[Branch, ...]
    is_counted: bool = False


def grow_trees(pattern: Pattern, bound: Iterable[str], pick_root: PickRoot) -> tuple[Tree, ...]:
    """One tree for each connected part of a pattern. What lies between bound variables is bound."""
    needed = frozenset(pattern.nodes).intersection(bound)
    hops = pattern.hops_by_variable()
    trees = []
    planned: set[str] = set()
    if pattern.outer:
        trees.append(_grow(hops, pattern.outer, needed.union(pattern.outer), None))
        planned.update(trees[0].variables)
    for name in pattern.nodes:
        if name in planned:
            continue
        variables = tuple(count_hops(hops, name))
        inside = needed.intersection(variables)
        root = pick_root(hops, variables, inside)
        trees.append(_grow(hops, (root,), inside, root))
        planned.update(variables)
    return tuple(trees)


def _grow(hops: Hops, starts: Iterable[str], needed: frozenset[str], root: str | None) -> Tree:
    reached = list(starts)
    known, bound = set(reached), set(reached)
    arrival: dict[str, tuple[Hop, str]] = {}
    for variable in reached:
        for hop in hops[variable]:
            child = hop.other_end(variable)
            if child not in known:
                known.add(child)
                arrival[child] = (hop, variable)
                reached.append(child)
    for name in needed:
        while name in arrival and name not in bound:
            bound.add(name)
            name = arrival[name][1]
    branches = tuple(
        Branch(hop, parent, child, child in bound) for child, (hop, parent) in arrival.items()
    )
    return Tree(root, tuple(reached), branches, is_counted=root is not None and not needed)


def count_hops(hops: Hops, start: str) -> dict[str, int]:
    """How many hops away each variable of a tree is, the nearest first."""
    distance = {start: 0}
    reached = [start]
    for variable in reached:
        for hop in hops[variable]:
            end = hop.other_end(variable)
            if end not in distance:
                distance[end] = distance[variable] + 1
                reached.append(end)
    return distance
