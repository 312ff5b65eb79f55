"""Bind variables: rows hold only what something reads; the rest is counted.

A counted variable sends its parent how many matches hang below each position, and no row is made
for them. Aggregates need no more than that: their values travel with the counts.

    match { $p: Person  $p livesIn $t  $p knows $f }  return { $t.name, count($f) as friends }

    before
        scan $f: Person
          expand $f to $p along in Knows
          expand $p to $t along out LivesIn
        group $t.name, count($f)
    after
        scan $t: Town
          count $t to $p along in LivesIn
          count $p to $f along out Knows
        group $t.name, count($f)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import (
    Aggregate,
    AliasRef,
    Bm25,
    Collect,
    GroupColumn,
    Nearest,
    NodeRef,
    Projected,
    PropertyRef,
    Rrf,
    SortKey,
)
from omnigraph.ir.variables import expression_refs, predicate_variables, ranking_variable
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import BlockPlan, MatchPlan, NegationPlan, Plan, Statistics
from omnigraph.planner.trees import AS_WRITTEN, grow_trees


def bind_variables(plan: Plan, _catalog: Catalog, _statistics: Statistics) -> Plan:
    """Bind in every match what rows need, and count what they do not."""
    return replace(plan, match=_bind(plan.match, set(_variables_read(plan))))


def _bind(match: MatchPlan, read: set[str]) -> MatchPlan:
    bound = frozenset(_list_bound(match, read))
    pattern = _without_unread_paths(match.pattern, bound)
    return replace(
        match,
        pattern=pattern,
        bound=bound,
        read=frozenset(read),
        trees=grow_trees(pattern, bound, AS_WRITTEN),
        negations=tuple(map(_bind_negation, match.negations)),
        blocks=tuple(_bind_block(each, bound) for each in match.blocks),
    )


def _without_unread_paths(pattern: Pattern, bound: frozenset[str]) -> Pattern:
    """A path that nothing reads is not kept: it changes no rows."""
    unread = {
        name for name, hop in pattern.edge_hops().items() if not hop.is_single and name not in bound
    }
    if not unread:
        return pattern
    hops = tuple(
        replace(hop, edge_variable=None) if hop.edge_variable in unread else hop
        for hop in pattern.hops
    )
    return replace(pattern, hops=hops)


def _bind_block(block: BlockPlan, needed: frozenset[str]) -> BlockPlan:
    # An either adds each combination of its variables once, so all of them are told apart.
    read = set(block.variables & needed if block.is_optional else block.variables)
    return replace(block, plans=tuple(_bind(plan, set(read)) for plan in block.plans))


def _bind_negation(negation: NegationPlan) -> NegationPlan:
    # What a mask leaves out are the nodes that its match finds.
    read = {negation.mask_of} if negation.mask_of is not None else set()
    return replace(negation, plan=_bind(negation.plan, read))


def _list_bound(match: MatchPlan, read: set[str]) -> Iterator[str]:
    """The variables that rows need: those read or compared, and the ends of edges."""
    pattern = match.pattern
    needed = set(read)
    for predicate in pattern.across:
        needed.update(predicate_variables(predicate))
    for negation in match.negations:
        if negation.mask_of is None:
            needed.update(negation.outer)
    for block in match.blocks:
        needed.update(block.outer)
    yield from needed
    for variable, hop in pattern.edge_hops().items():
        if variable in needed:
            yield from (hop.source, hop.target)


def _variables_read(plan: Plan) -> Iterator[str]:
    pattern = plan.match.pattern
    for item in plan.returns:
        yield from _projection_variables(item.expression, pattern)
        if isinstance(item.expression, Collect):
            # A list has an order, which the ids of all variables decide in the end.
            yield from pattern.visible_variables()
    for order in plan.order:
        yield from _sort_key_variables(order.expression)
    if plan.order and not plan.is_grouped:
        # Ties are broken by the id of every bound variable.
        yield from pattern.visible_variables()


def _projection_variables(expression: Projected, pattern: Pattern) -> Iterator[str]:
    match expression:
        case PropertyRef(variable) | NodeRef(variable):
            yield variable
        case Aggregate(_, PropertyRef(variable) | NodeRef(variable)) if pattern.is_on_rows(
            variable
        ):
            yield variable
        case Aggregate(_, PropertyRef(variable)) if variable in pattern.edge_types():
            # Edges send nothing: their values are taken from rows.
            yield variable
        case Aggregate(_, NodeRef(variable), is_distinct=True):
            yield variable
        case Aggregate(_, PropertyRef() | NodeRef(), is_distinct=False):
            return
        case Collect(NodeRef(variable)):
            yield variable
            yield from (ref.variable for ref in expression_refs(expression))
        case _:
            yield from (ref.variable for ref in expression_refs(expression))


def _sort_key_variables(key: SortKey) -> Iterator[str]:
    match key:
        case Nearest() | Bm25() | Rrf():
            yield ranking_variable(key)
        case AliasRef() | GroupColumn():
            return
        case Aggregate(_, NodeRef()):
            return
        case NodeRef(variable):
            yield variable
        case _:
            yield from (ref.variable for ref in expression_refs(key))
