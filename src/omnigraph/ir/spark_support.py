"""What the Spark engine does not have yet: refused there by name, so that `auto` stays local."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.ir.query import AntiJoin, EitherMatch, Expand, Operator, OptionalMatch, QueryIR, Top


def not_on_spark(ir: QueryIR) -> str | None:
    """The first construct of a read that has no Spark form; None when all of them have one."""
    return _first_missing(ir.pipeline)


def _first_missing(operators: Iterable[Operator]) -> str | None:
    for operator in operators:
        found = _missing(operator)
        if found is not None:
            return found
    return None


def _missing(operator: Operator) -> str | None:
    match operator:
        case Top():
            return "top"
        case Expand(weight=weight) if weight is not None:
            return "shortest by a weight"
        case AntiJoin(inner=inner) | OptionalMatch(inner=inner):
            return _first_missing(inner)
        case EitherMatch(alternatives=alternatives):
            return _first_missing(each for inner in alternatives for each in inner)
        case _:
            return None
