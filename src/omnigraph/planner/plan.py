"""Plans: frozen data that says where a match starts, what it binds, and what it only counts.

A plan names no array and no table version, so another engine can run it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import AliasRef, Projected, SortKey
from omnigraph.ir.print import format_expression, format_predicate, format_variable, format_where
from omnigraph.ir.query import OrderItem, ReturnItem
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.trees import Tree


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the planner knows of the data: the rows of each table, by table key."""

    row_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NegationPlan:
    """No match of `plan` may exist for what the variables `outer` are bound to.

    `mask_of` is the one outer node variable it hangs on: then it is decided per position, before
    any row is made. None: per distinct combination of the outer variables, on the rows at hand.
    """

    outer: tuple[str, ...]
    plan: MatchPlan
    mask_of: str | None = None


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """How a pattern is matched. `bound` are the variables that rows have to hold."""

    pattern: Pattern
    bound: frozenset[str]
    trees: tuple[Tree, ...]
    negations: tuple[NegationPlan, ...]

    def rewrite(self, change: Callable[[MatchPlan], MatchPlan]) -> MatchPlan:
        """Change the plan of every negation, however deep, and then this one."""
        inner = tuple(replace(each, plan=each.plan.rewrite(change)) for each in self.negations)
        return change(replace(self, negations=inner))


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is answered. `is_grouped` says that rows are groups.

    `sort_root` is a variable to visit in the order of the first sort key, to stop early. `is_point`
    says that there is at most one row, and that finding it costs the same in any table.
    """

    match: MatchPlan
    returns: tuple[ReturnItem, ...]
    order: tuple[OrderItem, ...]
    limit: int | None
    is_grouped: bool
    sort_root: str | None = None
    is_point: bool = False

    def resolve_alias(self, key: SortKey) -> Projected | SortKey:
        """What an alias stands for, or the key itself."""
        if isinstance(key, AliasRef):
            return next(item.expression for item in self.returns if item.alias == key.alias)
        return key


Rewrite: TypeAlias = Callable[[Plan, Catalog, Statistics], Plan]
"""From a plan to a better one that gives the same rows."""


def format_plan(plan: Plan) -> str:
    """Return the plan as indented lines, in the order things happen."""
    return "\n".join(_plan_lines(plan))


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield from _match_lines(plan.match, "")
    verb = "group" if plan.is_grouped else "project"
    yield f"{verb} {', '.join(format_expression(item.expression) for item in plan.returns)}"
    for item in plan.order:
        direction = "desc" if item.descending else "asc"
        yield f"order by {format_expression(item.expression)} {direction}"
    if plan.sort_root is not None:
        yield f"visit {format_variable(plan.sort_root)} in that order and stop early"
    if plan.limit is not None:
        yield f"limit {plan.limit}"


def _match_lines(match: MatchPlan, indent: str) -> Iterator[str]:
    pattern = match.pattern
    for predicate in pattern.constants:
        yield f"{indent}if {format_predicate(predicate)}"
    for tree in match.trees:
        yield from _tree_lines(tree, pattern, indent)
    for hop in pattern.closing:
        yield f"{indent}close {_hop_text(hop, hop.source, hop.target)}"
    for predicate in pattern.across:
        yield f"{indent}filter {format_predicate(predicate)}"
    for each in match.negations:
        how = f"as a mask of {format_variable(each.mask_of)}" if each.mask_of else "per combination"
        yield f"{indent}not, {how}"
        yield from _match_lines(each.plan, indent + "  ")


def _tree_lines(tree: Tree, pattern: Pattern, indent: str) -> Iterator[str]:
    if tree.root is not None:
        verb = "count" if tree.is_counted else "scan"
        where = format_where(pattern.filters.get(tree.root, ()))
        yield f"{indent}{verb} {format_variable(tree.root)}: {pattern.nodes[tree.root]}{where}"
    for branch in tree.branches:
        verb = "expand" if branch.is_bound else "count"
        where = format_where(pattern.filters.get(branch.child, ()))
        if branch.hop.edge_variable is not None:
            where += format_where(pattern.filters.get(branch.hop.edge_variable, ()))
        yield f"{indent}  {verb} {_hop_text(branch.hop, branch.parent, branch.child)}{where}"


def _hop_text(hop: Hop, start: str, end: str) -> str:
    name = f"{hop.direction} {hop.edge}"
    if hop.edge_variable is not None:
        name = f"${hop.edge_variable}: {name}"
    if not hop.is_single:
        name += f"{{{hop.min_hops},{hop.max_hops}}}"
    backwards = " seen from its target" if start != hop.source else ""
    return f"{format_variable(start)} to {format_variable(end)} along {name}{backwards}"
