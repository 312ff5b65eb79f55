"""Merge filters: put every predicate beside what it is about.

    over no variable      once per query
    over one variable     to the scan or expansion that binds it
    over several          where the last of them is bound; likewise over one that a block adds,
                          over a path, and over the score of a stage

A query with one of each:

    match { $p: Person { age: 30 }  $p livesIn $t  $p.age < $t.size  1 = 1 }  return { $t.name }

    before
        scan $p: Person
          expand $p to $t along out LivesIn
        filter $p.age = 30
        filter $p.age < $t.size
        filter 1 = 1
        project $t.name
    after
        if 1 = 1
        scan $p: Person where $p.age = 30
          expand $p to $t along out LivesIn
        filter $p.age < $t.size
        project $t.name
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import Predicate
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.plan import MatchPlan, Plan, Statistics


def merge_filters(plan: Plan, _catalog: Catalog, _statistics: Statistics) -> Plan:
    """Move the predicates of every pattern to their variables."""
    return replace(plan, match=plan.match.rewrite(_merge))


def _merge(match: MatchPlan) -> MatchPlan:
    filters: dict[str, tuple[Predicate, ...]] = {}
    across: list[Predicate] = []
    constants: list[Predicate] = []
    for predicate in match.pattern.across:
        match list(predicate_variables(predicate)):
            case []:
                constants.append(predicate)
            case [only] if not match.pattern.is_on_rows(only):
                filters[only] = (*filters.get(only, ()), predicate)
            case _:
                across.append(predicate)
    pattern = replace(
        match.pattern, filters=filters, across=tuple(across), constants=tuple(constants)
    )
    return replace(match, pattern=pattern)
