"""What the Spark engine does not have yet: refused there by name, so that `auto` stays local."""

from __future__ import annotations

from omnigraph.ir.expressions import Bm25, Collect, Nearest, ObjectRef, Projected, Rrf
from omnigraph.ir.query import QueryIR
from omnigraph.ir.wide import is_wide


def not_on_spark(ir: QueryIR) -> str | None:
    """The first construct of a read that has no Spark form; None when all of them have one."""
    if ir.finish is not None:
        return "having, distinct groups and expressions over aggregates"
    found = (_missing(item.expression, ir) for item in ir.returns)
    return next(filter(None, found), None)


def _missing(expression: Projected, ir: QueryIR) -> str | None:
    match expression:
        case ObjectRef():
            return "an object"
        case Collect():
            return "collect"
        case Nearest() | Bm25() | Rrf():
            return "a score as a column"
        case _ if ir.is_grouped and is_wide(expression):
            return "computed keys and aggregates"
        case _:
            return None
