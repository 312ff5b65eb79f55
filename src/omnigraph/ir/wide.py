"""Wide: keys and aggregates that are computed for each row, and not added up on the way."""

from __future__ import annotations

from omnigraph.ir.expressions import Aggregate, Constant, NodeRef, Param, Projected, PropertyRef


def is_wide(expression: Projected) -> bool:
    """Whether a key or an aggregate has to be computed row by row."""
    match expression:
        case Aggregate(argument=PropertyRef() | NodeRef() | Constant() | Param()):
            return expression.is_distinct
        case PropertyRef() | NodeRef() | Constant() | Param():
            return False
        case _:
            return True
