"""Needs: which properties rows have to carry for what is done with them later."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.executor.values import properties_of
from omnigraph.ir.expressions import Bm25, Nearest, PropertyRef, Rrf
from omnigraph.planner.plan import MatchPlan, Plan


def needs_of_plan(plan: Plan) -> frozenset[PropertyRef]:
    """What rows carry for the result, for what decides between rows, and for later stages."""
    parts = [*(stage.plan for stage in plan.stages), plan]
    return frozenset(ref for part in parts for ref in _needs_of_part(part))


def _needs_of_part(plan: Plan) -> Iterator[PropertyRef]:
    keys = [plan.resolve_alias(item.expression) for item in plan.order]
    shown = [item.expression for item in plan.returns]
    # A ranking reads the table itself.
    read = tuple(each for each in (*shown, *keys) if not isinstance(each, (Nearest, Bm25, Rrf)))
    yield from (*properties_of(read), *needs_of_match(plan.match))
    pattern = plan.match.pattern
    for name in (*pattern.outer, *pattern.outer_edges):
        # What is required of the rows of a stage is decided on them.
        yield from properties_of(pattern.filters.get(name, ()))


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
