"""Plans: frozen data that says where a match starts, what it binds, and what it only counts.

A plan names no array and no table version, so another engine can run it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import AliasRef, Param, Projected, SortKey
from omnigraph.ir.print import (
    format_counts,
    format_expression,
    format_finish,
    format_hops,
    format_predicate,
    format_variable,
    format_where,
)
from omnigraph.ir.query import Count, Finish, OrderItem, ReturnItem, WalkMode
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.trees import Branch, Tree


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the planner knows of the data: the rows of each table, by table key."""

    row_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NegationPlan:
    """No match of `plan` may exist for what the variables `outer` are bound to.

    `mask_of` is the one outer node variable it hangs on: then it is decided per position, before
    any row is made. None: on the rows at hand, as soon as they bind the outer variables; per row
    when the inner pattern has no variables of its own, else per distinct combination.
    """

    outer: tuple[str, ...]
    plan: MatchPlan
    mask_of: str | None = None

    @property
    def is_per_row(self) -> bool:
        """Whether the outer variables alone decide, so that looking is all there is to do."""
        return self.plan.pattern.nodes.keys() <= set(self.outer)


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """What `optional` or `either` adds to each row, decided per combination of `outer`.

    An optional has one plan, and its variables are null where that has no match. Of an either
    every plan is an alternative, and what they find together is added once.
    """

    is_optional: bool
    outer: tuple[str, ...]
    plans: tuple[MatchPlan, ...]
    nodes: Mapping[str, str]
    edges: Mapping[str, str]

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the block adds to rows."""
        return frozenset([*self.nodes, *self.edges])


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """How a pattern is matched: the trees first, then the blocks in order.

    `bound` are the variables that rows have to hold at some time, `read` those they hold at last.
    """

    pattern: Pattern
    bound: frozenset[str]
    read: frozenset[str]
    trees: tuple[Tree, ...]
    negations: tuple[NegationPlan, ...]
    blocks: tuple[BlockPlan, ...] = ()

    def rewrite(self, change: Callable[[MatchPlan], MatchPlan]) -> MatchPlan:
        """Change the plan of every block and negation, however deep, and then this one."""
        inner = tuple(replace(each, plan=each.plan.rewrite(change)) for each in self.negations)
        blocks = tuple(
            replace(each, plans=tuple(plan.rewrite(change) for plan in each.plans))
            for each in self.blocks
        )
        return change(replace(self, negations=inner, blocks=blocks))


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The rows of `plan`, of which the first `count` in its order go on.

    They start from those of the stage before. `score` is bound to the value of the first key.
    """

    plan: Plan
    count: int | Param
    score: str | None = None

    @property
    def repeats(self) -> bool:
        """Whether a match has rows that bind the same: one for each path that is not bound."""
        hops = self.plan.match.pattern.hops
        return any(h.mode is WalkMode.ALL_SHORTEST and h.edge_variable is None for h in hops)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is answered. `is_grouped` says that rows are groups.

    The match starts from the rows of the last of the `stages`.
    `limit` is how many rows are made: those that are left out before the first one, too. Where a
    parameter says how many, there is a limit that leaves nothing out until `fill_counts` knows it.

    `sort_root` is a variable to visit in the order of the first sort key, to stop early. `is_point`
    says that there is at most one row, and that finding it costs the same in any table.
    """

    match: MatchPlan
    returns: tuple[ReturnItem, ...]
    order: tuple[OrderItem, ...]
    limit: int | None
    is_grouped: bool
    counts: tuple[Count | None, Count | None] = (None, None)
    finish: Finish | None = None
    sort_root: str | None = None
    is_point: bool = False
    stages: tuple[StagePlan, ...] = ()

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
    for stage in plan.stages:
        yield "stage"
        yield from _match_lines(stage.plan.match, "  ")
        yield f"  {_top_text(stage)}"
    yield from _match_lines(plan.match, "")
    verb = "group" if plan.is_grouped else "project"
    yield f"{verb} {', '.join(format_expression(item.expression) for item in plan.returns)}"
    for item in plan.order:
        direction = "desc" if item.descending else "asc"
        yield f"order by {format_expression(item.expression)} {direction}"
    if plan.sort_root is not None:
        yield f"visit {format_variable(plan.sort_root)} in that order and stop early"
    if plan.finish is not None:
        yield from format_finish(plan.finish)
    yield from format_counts(*plan.counts)


def _top_text(stage: StagePlan) -> str:
    count = stage.count if isinstance(stage.count, int) else format_expression(stage.count)
    keys = ", ".join(
        f"{format_expression(each.expression)} {'desc' if each.descending else 'asc'}"
        for each in stage.plan.order
    )
    return f"top {count} by {keys}" + (f" as ${stage.score}" if stage.score else "")


def _match_lines(match: MatchPlan, indent: str) -> Iterator[str]:
    pattern = match.pattern
    for predicate in pattern.constants:
        yield f"{indent}if {format_predicate(predicate)}"
    roots = {tree.root for tree in match.trees}
    for name in (*pattern.outer, *pattern.outer_edges):
        # Where an outer variable is the root of a tree, its scan shows them.
        for predicate in () if name in roots else pattern.filters.get(name, ()):
            yield f"{indent}filter {format_predicate(predicate)}"
    for tree in match.trees:
        yield from _tree_lines(tree, pattern, indent)
    for block in match.blocks:
        yield from _block_lines(block, indent)
    for predicate in pattern.across:
        yield f"{indent}filter {format_predicate(predicate)}"
    for each in match.negations:
        yield f"{indent}not, {_negation_text(each)}"
        yield from _match_lines(each.plan, indent + "  ")


def _block_lines(block: BlockPlan, indent: str) -> Iterator[str]:
    given = ", ".join(map(format_variable, block.outer)) or "nothing"
    word = f"{'optional' if block.is_optional else 'either'}, per combination of {given}"
    for plan in block.plans:
        yield f"{indent}{word}"
        yield from _match_lines(plan, indent + "  ")
        word = "or"


def _negation_text(negation: NegationPlan) -> str:
    if negation.mask_of is not None:
        return f"as a mask of {format_variable(negation.mask_of)}"
    return "per row" if negation.is_per_row else "per combination"


def _tree_lines(tree: Tree, pattern: Pattern, indent: str) -> Iterator[str]:
    if tree.root is not None:
        verb = "count" if tree.is_counted else "scan"
        where = format_where(pattern.filters.get(tree.root, ()))
        yield f"{indent}{verb} {format_variable(tree.root)}: {pattern.nodes[tree.root]}{where}"
    for hop in tree.closing:
        yield f"{indent}close {_hop_text(hop, hop.source, hop.target, pattern)}"
    for branch in tree.branches:
        yield f"{indent}  {_branch_text(branch, pattern)}{_where(branch, pattern)}"
        if branch.folds:
            dropped = ", ".join(map(format_variable, branch.drops))
            yield f"{indent}  drop {dropped} and add up equal rows"


def _branch_text(branch: Branch, pattern: Pattern) -> str:
    if not branch.closing:
        verb = "expand" if branch.is_bound else "count"
        return f"{verb} {_hop_text(branch.hop, branch.parent, branch.child, pattern)}"
    verb = "intersect" if branch.is_bound else "count"
    hops = (branch.hop, *branch.closing)
    ways = [
        f"{format_variable(start)} along {_along(hop, start, pattern)}"
        for hop in hops
        for start in [hop.other_end(branch.child)]
    ]
    return f"{verb} at {format_variable(branch.child)}: {' and '.join(ways)}"


def _where(branch: Branch, pattern: Pattern) -> str:
    edges = [hop.edge_variable for hop in (branch.hop, *branch.closing) if hop.edge_variable]
    names = [branch.child, *edges]
    return "".join(format_where(pattern.filters.get(name, ())) for name in names)


def _hop_text(hop: Hop, start: str, end: str, pattern: Pattern) -> str:
    return f"{format_variable(start)} to {format_variable(end)} along {_along(hop, start, pattern)}"


def _along(hop: Hop, start: str, pattern: Pattern) -> str:
    """A hop as it is walked from `start`; a walk of several hops means what its source sees."""
    is_seen_backwards = start != hop.source
    direction = hop.direction.reverse() if is_seen_backwards and hop.is_single else hop.direction
    hops = format_hops(hop.edge, hop.min_hops, hop.max_hops, WalkMode.REACH, hop.filters)
    name = f"{direction} {hops}" if hop.mode is WalkMode.REACH else f"{hop.mode} {direction} {hops}"
    if hop.edge_variable is not None:
        name = f"${hop.edge_variable}: {name}"
    if hop.weight is not None:
        name += f" by {hop.weight}"
    if not hop.is_single and is_seen_backwards:
        name += " seen from its target"
    if hop.mode is not WalkMode.REACH:
        name += f", {_bound_ends(hop, pattern)}"
    return name


def _bound_ends(hop: Hop, pattern: Pattern) -> str:
    """How many ends of a search are given by something else than the search."""
    others = {end for each in pattern.hops if each is not hop for end in (each.source, each.target)}
    given = others.union(pattern.filters, pattern.outer)
    ends = [end for end in (hop.source, hop.target) if end in given]
    return {0: "no end bound", 1: "one end bound"}.get(len(ends), "both ends bound")
