"""Push the limit: when the order is decided by one variable, visit that one in order and stop.

The first rows then come from the first positions, so only as many of them are matched as the limit
needs, and all that tie with the last one. Without an order any rows will do, and every tree stops
as soon as it has enough.
"""

from __future__ import annotations

from omnigraph.ir.expressions import AliasRef, PropertyRef, SortKey
from omnigraph.ir.query import QueryIR
from omnigraph.planner.plan import MatchPlan


def sort_root(ir: QueryIR, match: MatchPlan) -> str | None:
    """The root that alone decides the first sort key of a limited query, if there is one."""
    if ir.limit is None or not ir.order or len(match.trees) != 1:
        return None
    first = resolved_key(ir, ir.order[0].expression)
    root = match.trees[0].root
    if isinstance(first, PropertyRef) and first.variable == root:
        return root
    return None


def resolved_key(ir: QueryIR, key: SortKey) -> object:
    """What an alias stands for, or the key itself."""
    if isinstance(key, AliasRef):
        for item in ir.returns:
            if item.alias == key.alias:
                return item.expression
    return key
