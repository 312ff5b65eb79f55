"""Make a plan: pipeline → pattern → what rows need → trees.

What rows need to hold decides everything: a variable that nothing reads is only counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import (
    Aggregate,
    AliasRef,
    Bm25,
    Constant,
    Nearest,
    NodeRef,
    Param,
    Projected,
    PropertyRef,
    Rrf,
    SortKey,
)
from omnigraph.ir.query import QueryIR
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.choose_root import Statistics, choose_trees
from omnigraph.planner.merge_filters import merge_filters
from omnigraph.planner.pattern import Negation, Pattern
from omnigraph.planner.plan import MatchPlan, NegationPlan, Plan
from omnigraph.planner.point import is_point
from omnigraph.planner.push_limit import resolved_key, sort_root


def make_plan(ir: QueryIR, catalog: Catalog, statistics: Statistics) -> Plan:
    """Plan a read."""
    pattern = merge_filters(ir.pipeline)
    is_grouped = any(isinstance(item.expression, Aggregate) for item in ir.returns)
    read = set(_variables_read(ir))
    read.update(_edges_summed(ir, pattern))
    if ir.order and not is_grouped:
        # Ties are broken by the id of every bound variable.
        read.update(pattern.visible_variables())
    deciding = tuple(_deciding(ir, pattern, catalog, is_grouped=is_grouped))
    match = _plan_match(pattern, frozenset(read), catalog, statistics, deciding)
    return Plan(
        match=match,
        returns=ir.returns,
        order=ir.order,
        limit=ir.limit,
        is_grouped=is_grouped,
        sort_root=None if is_grouped else sort_root(ir, match),
        is_point=is_point(ir, pattern, catalog, is_grouped=is_grouped),
    )


def _plan_match(
    pattern: Pattern,
    read: frozenset[str],
    catalog: Catalog,
    statistics: Statistics,
    deciding: tuple[str, ...] = (),
) -> MatchPlan:
    bound = frozenset(_list_bound(pattern, read))
    nodes = bound.intersection(pattern.nodes)
    return MatchPlan(
        pattern=pattern,
        bound=bound,
        trees=choose_trees(pattern, nodes, catalog, statistics, deciding),
        negations=tuple(
            _plan_negation(each, pattern, catalog, statistics) for each in pattern.negations
        ),
    )


def _deciding(
    ir: QueryIR, pattern: Pattern, catalog: Catalog, *, is_grouped: bool
) -> Iterator[str]:
    """Variables that are good roots: one row each means one group each, or rows in order."""
    if not is_grouped:
        if ir.order and ir.limit is not None:
            first = resolved_key(ir, ir.order[0].expression)
            if isinstance(first, PropertyRef) and first.variable in pattern.nodes:
                yield first.variable
        return
    for item in ir.returns:
        match item.expression:
            case NodeRef(variable):
                yield variable
            case PropertyRef(variable, name) if variable in pattern.nodes:
                if catalog.nodes[pattern.nodes[variable]].key == (name,):
                    yield variable


def _list_bound(pattern: Pattern, read: frozenset[str]) -> Iterator[str]:
    """The variables that rows hold: those read, compared or closed over, and ends of edges."""
    needed = set(read)
    for predicate in pattern.across:
        needed.update(predicate_variables(predicate))
    for hop in pattern.closing:
        needed.update((hop.source, hop.target))
        if hop.edge_variable is not None:
            needed.add(hop.edge_variable)
    for negation in pattern.negations:
        if _mask_variable(negation, pattern) is None:
            needed.update(negation.outer)
    yield from needed
    for variable, hop in pattern.edge_hops().items():
        if variable in needed:
            yield hop.source
            yield hop.target


def _plan_negation(
    negation: Negation, outer: Pattern, catalog: Catalog, statistics: Statistics
) -> NegationPlan:
    mask_of = _mask_variable(negation, outer)
    inner = negation.pattern
    if mask_of is None:
        return NegationPlan(negation, _plan_match(inner, frozenset(), catalog, statistics), None)
    # Hanging on one variable, the pattern is matched on its own, and that variable is the answer.
    free = Pattern(
        nodes=inner.nodes,
        hops=inner.hops,
        closing=inner.closing,
        filters=inner.filters,
        across=inner.across,
        constants=inner.constants,
        negations=inner.negations,
    )
    plan = _plan_match(free, frozenset({mask_of}), catalog, statistics)
    return NegationPlan(negation, plan, mask_of)


def _mask_variable(negation: Negation, outer: Pattern) -> str | None:
    if len(negation.outer) == 1 and negation.outer[0] in outer.nodes:
        return negation.outer[0]
    return None


def _variables_read(ir: QueryIR) -> Iterator[str]:
    for item in ir.returns:
        yield from _projection_variables(item.expression)
    for order in ir.order:
        yield from _sort_key_variables(order.expression)


def _edges_summed(ir: QueryIR, pattern: Pattern) -> Iterator[str]:
    """Edge variables under an aggregate: their values are taken from rows."""
    for item in ir.returns:
        match item.expression:
            case Aggregate(_, PropertyRef(variable)) if variable in pattern.edge_hops():
                yield variable


def _projection_variables(expression: Projected) -> Iterator[str]:
    match expression:
        case PropertyRef(variable) | NodeRef(variable):
            yield variable
        case Constant() | Param() | Aggregate():
            # What an aggregate needs travels along the tree, so its variable is only counted.
            return
        case _:
            assert_never(expression)


def _sort_key_variables(key: SortKey) -> Iterator[str]:
    match key:
        case PropertyRef(variable):
            yield variable
        case Nearest(target) | Bm25(target):
            yield target.variable
        case Rrf(first, _):
            yield first.target.variable
        case AliasRef():
            return
        case _:
            assert_never(key)
