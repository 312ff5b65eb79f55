"""Plans: frozen data that says where a match starts, what it binds, and what it only counts.

A plan names no array and no table version, so another engine can run it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.ir.expressions import AliasRef, Projected, SortKey
from omnigraph.ir.print import format_expression, format_predicate
from omnigraph.ir.query import HIDDEN_PREFIX, OrderItem, ReturnItem
from omnigraph.planner.pattern import Hop, Negation, Pattern


@dataclass(frozen=True, slots=True)
class Branch:
    """A step as the plan walks it, from `parent` to `child`.

    A bound child appears in rows. One that is not bound is counted: it sends its parent how many
    matches hang below each position, and no row is made for them.
    """

    hop: Hop
    parent: str
    child: str
    is_bound: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """Variables joined by steps. `root` is None where the match hangs on outer variables.

    `branches` come parents first. Without a bound variable the whole tree is one number.
    """

    root: str | None
    variables: tuple[str, ...]
    branches: tuple[Branch, ...]
    is_counted: bool = False

    def children_of(self, variable: str) -> list[Branch]:
        return [branch for branch in self.branches if branch.parent == variable]


@dataclass(frozen=True, slots=True)
class NegationPlan:
    """How a `not` is decided.

    `mask_of` is the one outer node variable it hangs on: then it is decided per position, before
    any row is made. None: per distinct combination of the outer variables, on the rows at hand.
    """

    negation: Negation
    plan: MatchPlan
    mask_of: str | None


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """How a pattern is matched. `bound` are the variables that rows have to hold."""

    pattern: Pattern
    bound: frozenset[str]
    trees: tuple[Tree, ...]
    negations: tuple[NegationPlan, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is answered. `is_grouped` says that rows are groups.

    `is_point` says that there is at most one row, and that finding it costs the same in any table.
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
        yield f"visit {_shown(plan.sort_root)} in that order and stop early"
    if plan.limit is not None:
        yield f"limit {plan.limit}"


def _match_lines(match: MatchPlan, indent: str) -> Iterator[str]:
    pattern = match.pattern
    for predicate in pattern.constants:
        yield f"{indent}if {format_predicate(predicate)}"
    for tree in match.trees:
        yield from _tree_lines(tree, match, indent)
    for hop in pattern.closing:
        yield f"{indent}close {_hop_text(hop, hop.source, hop.target)}"
    for predicate in pattern.across:
        yield f"{indent}filter {format_predicate(predicate)}"
    for each in match.negations:
        how = f"mask of {_shown(each.mask_of)}" if each.mask_of else "per combination"
        yield f"{indent}not, as a {how}" if each.mask_of else f"{indent}not, {how}"
        yield from _match_lines(each.plan, indent + "  ")


def _tree_lines(tree: Tree, match: MatchPlan, indent: str) -> Iterator[str]:
    pattern = match.pattern
    if tree.root is not None:
        verb = "count" if tree.is_counted else "scan"
        type_name = pattern.nodes[tree.root]
        yield f"{indent}{verb} {_shown(tree.root)}: {type_name}{_where(pattern, tree.root)}"
    for branch in tree.branches:
        verb = "expand" if branch.is_bound else "count"
        walk = _hop_text(branch.hop, branch.parent, branch.child)
        where = _where(pattern, branch.child)
        if branch.hop.edge_variable is not None:
            where += _where(pattern, branch.hop.edge_variable)
        yield f"{indent}  {verb} {walk}{where}"


def _hop_text(hop: Hop, start: str, end: str) -> str:
    name = f"{hop.direction} {hop.edge}"
    if hop.edge_variable is not None:
        name = f"${hop.edge_variable}: {name}"
    if not hop.is_single:
        name += f"{{{hop.min_hops},{hop.max_hops}}}"
    backwards = " seen from its target" if start != hop.source else ""
    return f"{_shown(start)} to {_shown(end)} along {name}{backwards}"


def _where(pattern: Pattern, variable: str) -> str:
    filters = pattern.filters.get(variable, ())
    return f" where {' and '.join(map(format_predicate, filters))}" if filters else ""


def _shown(variable: str) -> str:
    return variable if variable.startswith(HIDDEN_PREFIX) else f"${variable}"
