"""Point reads: at most one node, found by a value that no other has. Their cost has no size.

Such a plan may run on a thread that must not block. Its text does not change.

    match { $p: Person { name: "Ada" }  $p.age > 3 }  return { $p.age }

    before
        scan $p: Person where $p.name = "Ada" and $p.age > 3
        project $p.age
    after
        scan $p: Person where $p.name = "Ada" and $p.age > 3
        project $p.age
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.ir.expressions import Compare, CompareKind, Constant, Param, Predicate, PropertyRef
from omnigraph.planner.plan import Plan, Statistics


def mark_point_read(plan: Plan, catalog: Catalog, _statistics: Statistics) -> Plan:
    """Set `is_point` on a read that looks up one node and returns what it has."""
    pattern = plan.match.pattern
    if len(pattern.nodes) != 1 or pattern.hops or plan.match.negations or plan.match.blocks:
        return plan
    if plan.is_grouped or plan.order or pattern.outer:
        return plan
    [(variable, type_name)] = pattern.nodes.items()
    filters = pattern.filters.get(variable, ())
    declared = catalog.node(type_name)
    if declared is None:
        return plan
    is_point = all(isinstance(each, Compare) for each in filters) and any(
        _finds_one(each, declared) for each in filters
    )
    return replace(plan, is_point=is_point)


def _finds_one(predicate: Predicate, declared: NodeType) -> bool:
    match predicate:
        case Compare(PropertyRef(_, name), CompareKind.EQUAL, Constant() | Param()):
            return (name,) in (declared.key, *declared.uniques)
        case _:
            return False
