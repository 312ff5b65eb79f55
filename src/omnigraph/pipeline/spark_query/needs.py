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
    """What rows carry for predicates over several variables, and for `not` on rows."""
    yield from properties_of(match.pattern.across)
    for negation in match.negations:
        if negation.mask_of is None:
            outer = set(negation.outer)
            inner = negation.plan
            for filters in inner.pattern.filters.values():
                yield from (ref for ref in properties_of(filters) if ref.variable in outer)
            yield from (ref for ref in needs_of_match(inner) if ref.variable in outer)
