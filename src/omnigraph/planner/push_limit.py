"""Push the limit: when the order is decided by the root, visit the root in order and stop.

The first rows then come from the first positions, so only as many of them are matched as the limit
needs, and all that tie with the last one. Without an order any rows will do, and every tree stops
as soon as it has enough.

    match { $p: Person  $p livesIn $t }  return { $t.name }  order { $p.age desc }  limit 3

    before
        scan $p: Person
          expand $p to $t along out LivesIn
        project $t.name
        order by $p.age desc
        limit 3
    after
        scan $p: Person
          expand $p to $t along out LivesIn
        project $t.name
        order by $p.age desc
        visit $p in that order and stop early
        limit 3
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import PropertyRef
from omnigraph.planner.plan import Plan, Statistics


def push_limit(plan: Plan, _catalog: Catalog, _statistics: Statistics) -> Plan:
    """Visit the root in order if it alone decides the first sort key of a limited query."""
    if plan.is_grouped or plan.limit is None or not plan.order or len(plan.match.trees) != 1:
        return plan
    first = plan.resolve_alias(plan.order[0].expression)
    root = plan.match.trees[0].root
    if isinstance(first, PropertyRef) and first.variable == root:
        return replace(plan, sort_root=root)
    return plan
