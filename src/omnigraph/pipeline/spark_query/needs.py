"""Needs: which properties rows have to carry for what is done with them later."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.executor.values import properties_of
from omnigraph.ir.expressions import Bm25, Nearest, PropertyRef, Rrf
from omnigraph.planner.plan import MatchPlan, Plan


def needs_of_plan(plan: Plan) -> frozenset[PropertyRef]:
    """What rows carry for the result, and for what decides between rows."""
    keys = (plan.resolve_alias(item.expression) for item in plan.order)
    # A ranking reads the table itself.
    order = tuple(key for key in keys if not isinstance(key, (Nearest, Bm25, Rrf)))
    shown = tuple(item.expression for item in plan.returns)
    return frozenset([*properties_of(shown), *properties_of(order), *needs_of_match(plan.match)])


def needs_of_match(match: MatchPlan) -> Iterator[PropertyRef]:
    """What rows carry for predicates on rows, for `not` on rows, and for blocks."""
    yield from properties_of(match.pattern.across)
    for negation in match.negations:
        if negation.mask_of is None:
            yield from _needs_of_inner(negation.plan, set(negation.outer))
    for block in match.blocks:
        for plan in block.plans:
            yield from _needs_of_inner(plan, set(block.outer))


def _needs_of_inner(inner: MatchPlan, outer: set[str]) -> Iterator[PropertyRef]:
    """What an inner pattern reads of outer variables."""
    for filters in inner.pattern.filters.values():
        yield from (ref for ref in properties_of(filters) if ref.variable in outer)
    yield from (ref for ref in needs_of_match(inner) if ref.variable in outer)
