"""Lint of nulls: conditions that a null leaves unknown, where a reader may expect a yes.

L307   a parameter that may be null is compared, and nothing asks whether it is null
L309   `!=` or `not ( … )` on a property that may be null drops the rows where it is
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.compiler.typed import TypedPattern, TypedRead
from omnigraph.compiler.walk import walk
from omnigraph.ir.expressions import (
    ID_PROPERTY,
    And,
    Compare,
    CompareKind,
    IsIn,
    IsNull,
    Not,
    Or,
    Param,
    Predicate,
    PropertyRef,
)
from omnigraph.ir.print import format_expression, quote_predicate
from omnigraph.ir.variables import expression_refs, predicate_refs


def lint_parameters(query: object) -> Iterator[str]:
    """L307: one text for each parameter of a read or mutation."""
    parts = list(walk(query))
    asked = {each.operand for each in parts if isinstance(each, IsNull)}
    for param in dict.fromkeys(each for part in parts for each in _compared(part)):
        if param.type.nullable and param not in asked:
            name = f"${param.name}"
            yield (
                f"`{name}` may be null, and a comparison with null finds nothing; "
                f"write `{name} is null or …` where null means no filter"
            )


def lint_negatives(read: TypedRead) -> Iterator[str]:
    """L309: one text for each condition of a read."""
    for pattern in [*(stage.pattern for stage in read.stages), read.pattern]:
        yield from _negatives(pattern)


def _negatives(pattern: TypedPattern) -> Iterator[str]:
    # What is null because a block did not match is the matter of L305.
    added = {name for block in pattern.optionals for name, _ in (*block.nodes, *block.edges)}
    for condition in pattern.filters:
        asked = {ref for part in walk(condition) for ref in _null_tested(part)}
        unbound = added | {ref.variable for ref in asked if ref.property == ID_PROPERTY}
        for ref in dict.fromkeys(_turned_around(condition)):
            if not ref.type.nullable or ref in asked or ref.variable in unbound:
                continue
            name = format_expression(ref)
            yield (
                f"`{quote_predicate(condition)}` drops rows where `{name}` is null; "
                f"add `or {name} is null` to keep them"
            )
    for block in (*pattern.optionals, *(each for e in pattern.eithers for each in e.alternatives)):
        yield from _negatives(block)


def _compared(part: object) -> Iterator[Param]:
    match part:
        case Compare(left, _, right):
            yield from (each for each in (left, right) if isinstance(each, Param))
        case IsIn(operand, values):
            yield from (each for each in (operand, values) if isinstance(each, Param))


def _null_tested(part: object) -> Iterator[PropertyRef]:
    if isinstance(part, IsNull):
        yield from expression_refs(part.operand)


def _turned_around(predicate: Predicate) -> Iterator[PropertyRef]:
    """The properties whose null makes a denial unknown that reads as if it were true."""
    match predicate:
        case Compare(left, CompareKind.NOT_EQUAL, right):
            yield from (each for each in (left, right) if isinstance(each, PropertyRef))
        case Not(IsNull()):
            return
        case Not(part):
            yield from predicate_refs(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _turned_around(part)
