"""Trees: the variables of a pattern in the order they are bound, grown outwards from a root.

    core    what rows need, what lies between, and every variable on a cycle: bound step by step
    tails   what hangs on the core by one hop each: counted, and no row is made for it

A variable of the core is reached along one hop. When more hops join it to variables that are
bound before it, they close there: it is bound to what all of them lead to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.planner.pattern import Hop, Pattern

Hops: TypeAlias = Mapping[str, Sequence[Hop]]
"""The hops that touch each variable."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A hop as the plan walks it, from `parent` to `child`, and the hops that close at the child.

    A bound child appears in rows. One that is not bound is counted: without closing hops it sends
    its parent how many matches hang below each position, with them it is counted row by row.
    Nothing reads `drops` after this step; `folds` says that equal rows are then worth adding up.
    """

    hop: Hop
    parent: str
    child: str
    is_bound: bool
    closing: tuple[Hop, ...] = ()
    drops: tuple[str, ...] = ()
    folds: bool = False

    @property
    def is_tail(self) -> bool:
        """Whether the child is one number for each position of its parent."""
        return not self.is_bound and not self.closing


@dataclass(frozen=True, slots=True)
class Tree:
    """Variables joined by hops. `root` is None where the match hangs on outer variables.

    `branches` come parents first; the hops in `closing` join what is bound before any of them.
    Without a bound variable the whole tree is one number.
    """

    root: str | None
    variables: tuple[str, ...]
    branches: tuple[Branch, ...]
    closing: tuple[Hop, ...] = ()
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Component:
    """One connected part of a pattern. `starts` are the outer variables in it, bound before."""

    hops: Hops
    variables: tuple[str, ...]
    needed: frozenset[str]
    core: frozenset[str]
    starts: tuple[str, ...]
    is_cyclic: bool


class Order(Protocol):
    """Decides in which order the variables of a component are bound."""

    def arrange(self, component: Component) -> Sequence[str]:
        """The core in order, its starts first; the root alone when there is no core.

        A root outside of the core comes with what lies between.
        """

    def fan_out(self, hop: Hop, start: str) -> float:
        """How many positions a hop leads to from one position of `start`."""


class _AsWritten:
    """The order of the text: what a plan starts from."""

    def arrange(self, component: Component) -> Sequence[str]:
        core = [name for name in component.variables if name in component.core]
        return core or component.variables[:1]

    def fan_out(self, hop: Hop, start: str) -> float:
        return 1.0


AS_WRITTEN = _AsWritten()


def grow_trees(pattern: Pattern, bound: frozenset[str], order: Order) -> tuple[Tree, ...]:
    """One tree for each connected part of a pattern, and one for all that hangs on `outer`."""
    needed = bound.intersection(pattern.nodes)
    hops = pattern.hops_by_variable()
    trees = []
    planned: set[str] = set()
    if pattern.outer:
        trees.append(_grow(hops, pattern.outer, needed.union(pattern.outer), bound, order))
        planned.update(trees[0].variables)
    for name in pattern.nodes:
        if name not in planned:
            trees.append(_grow(hops, (), needed, bound, order, first=name))
            planned.update(trees[-1].variables)
    return tuple(trees)


def _grow(
    hops: Hops,
    starts: tuple[str, ...],
    needed: frozenset[str],
    bound: frozenset[str],
    order: Order,
    first: str = "",
) -> Tree:
    variables = tuple(count_hops(hops, *(starts or (first,))))
    component = find_core(hops, variables, needed, starts)
    ordered = order.arrange(component)
    at = len(starts) or 1
    placed = set(ordered[:at])
    branches = [
        *_core_branches(component, ordered[at:], placed, needed | bound, order),
        *_tail_branches(hops, ordered),
    ]
    closing = [hop for name in ordered[:at] for hop in hops[name] if _is_inside(hop, ordered[:at])]
    return Tree(
        root=None if starts else ordered[0],
        variables=variables,
        branches=tuple(branches),
        closing=tuple(dict.fromkeys(closing)),
        is_counted=not component.core,
    )


def _is_inside(hop: Hop, names: Sequence[str]) -> bool:
    return hop.source in names and hop.target in names


def _core_branches(
    component: Component,
    ordered: Sequence[str],
    placed: set[str],
    needed: frozenset[str],
    order: Order,
) -> Iterator[Branch]:
    place = {name: number for number, name in enumerate(ordered)}
    for child in ordered:
        joining = [hop for hop in component.hops[child] if hop.other_end(child) in placed]
        # Walks come last: what they lead to is not at hand before their ends are.
        joining.sort(key=lambda hop: (not hop.is_single, order.fan_out(hop, hop.other_end(child))))
        main = joining[0]
        loops = [hop for hop in component.hops[child] if hop.source == hop.target]
        closing = (*joining[1:], *loops)
        is_read_later = any(
            place.get(hop.other_end(child), -1) > place[child] for hop in component.hops[child]
        )
        edges = {hop.edge_variable for hop in (main, *closing)}
        is_bound = not closing or is_read_later or child in needed or bool(edges & needed)
        placed.add(child)
        yield Branch(main, main.other_end(child), child, is_bound, closing)


def _tail_branches(hops: Hops, ordered: Sequence[str]) -> Iterator[Branch]:
    reached = list(ordered)
    known = set(reached)
    for variable in reached:
        for hop in hops[variable]:
            child = hop.other_end(variable)
            if child not in known:
                known.add(child)
                reached.append(child)
                yield Branch(hop, variable, child, is_bound=False)


def find_core(
    hops: Hops, variables: tuple[str, ...], needed: frozenset[str], starts: tuple[str, ...]
) -> Component:
    """Take away, one after the other, what nothing needs and only one hop leads to."""
    loops = [hop.source for name in variables for hop in hops[name] if hop.source == hop.target]
    kept = needed.union(loops)
    left = {name: len(hops[name]) for name in variables}
    joined = (sum(left.values()) - len(loops)) // 2
    # A tree has one hop for each variable but those it starts from.
    is_cyclic = bool(loops) or joined > len(variables) - max(len(starts), 1)
    free = deque(name for name in variables if left[name] <= 1 and name not in kept)
    gone: set[str] = set()
    while free:
        name = free.popleft()
        gone.add(name)
        for hop in hops[name]:
            end = hop.other_end(name)
            left[end] -= 1
            if left[end] == 1 and end not in kept and end not in gone:
                free.append(end)
    core = frozenset(variables) - gone
    return Component(hops, variables, needed & core, core, starts, is_cyclic)


def count_hops(hops: Hops, *starts: str) -> dict[str, int]:
    """How many hops away each variable of a tree is, the nearest first."""
    distance = dict.fromkeys(starts, 0)
    reached = list(distance)
    for variable in reached:
        for hop in hops[variable]:
            end = hop.other_end(variable)
            if end not in distance:
                distance[end] = distance[variable] + 1
                reached.append(end)
    return distance
