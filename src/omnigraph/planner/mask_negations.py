"""Mask negations: a `not` that hangs on one variable is decided once per node, not once per row.

Its pattern is matched on its own, and the nodes it finds are left out of that variable.

    match { $p: Person  $p knows $f  not { $f livesIn $t } }  return { $p.name }

    before
        scan $f: Person
          expand $f to $p along in Knows
        not, per combination
            expand $f to $t along out LivesIn
        project $p.name
    after
        scan $f: Person
          expand $f to $p along in Knows
        not, as a mask of $f
          scan $f: Person
            expand $f to $t along out LivesIn
        project $p.name
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import MatchPlan, NegationPlan, Plan, Statistics
from omnigraph.planner.trees import AS_WRITTEN, grow_trees


def mask_negations(plan: Plan, _catalog: Catalog, _statistics: Statistics) -> Plan:
    """Match on its own what hangs on one node variable."""
    return replace(plan, match=plan.match.rewrite(_mask))


def _mask(match: MatchPlan) -> MatchPlan:
    negations = tuple(_mask_one(each, match.pattern) for each in match.negations)
    return replace(match, negations=negations)


def _mask_one(negation: NegationPlan, outer: Pattern) -> NegationPlan:
    match negation.outer:
        case [only] if only in outer.nodes:
            free = replace(negation.plan.pattern, outer=(), outer_edges={})
            trees = grow_trees(free, frozenset(free.nodes), AS_WRITTEN)
            inner = replace(negation.plan, pattern=free, trees=trees)
            return NegationPlan(negation.outer, inner, mask_of=only)
        case _:
            return negation
