"""Lint of patterns: what an `optional` does not do although it looks as if it did.

L305   a filter outside of the block drops every row in which the block did not match
L306   two independent blocks multiply rows that are then counted, summed or collected
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from omnigraph.compiler.rejects_null import rejects_null
from omnigraph.compiler.typed import TypedPattern, TypedRead
from omnigraph.compiler.walk import walk
from omnigraph.ir.expressions import Aggregate, Collect
from omnigraph.ir.print import format_variable, quote_predicate
from omnigraph.ir.variables import predicate_variables
from omnigraph.syntax.query_tree import AggregateFunction

_MULTIPLIED = (AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.AVG)


def lint_patterns(read: TypedRead) -> Iterator[tuple[str, str]]:
    """The code and the text of each warning about the patterns of a read."""
    parts = [*(stage.pattern for stage in read.stages), read.pattern]
    for part in parts:
        yield from _lost_optionals(part)
    blocks = [block for part in parts for block in part.optionals]
    if any(map(_is_multiplied, walk(read.returns))) and _has_independent(blocks):
        yield (
            "L306",
            "two `optional` blocks multiply the rows that are counted or summed; count with "
            "`distinct`, or ask in two queries",
        )


def _lost_optionals(pattern: TypedPattern) -> Iterator[tuple[str, str]]:
    for block in pattern.optionals:
        added = _added(block)
        for each in pattern.filters:
            if predicate_variables(each) & added and rejects_null(each, added):
                names = ", ".join(format_variable(name) for name in sorted(added))
                yield (
                    "L305",
                    f"`{quote_predicate(each)}` drops every row in which the optional of {names} "
                    "did not match; put it into the block, or leave `optional` out",
                )
        yield from _lost_optionals(block)


def _has_independent(blocks: list[TypedPattern]) -> bool:
    """Whether neither of two blocks uses what the other adds."""
    return any(
        _added(one).isdisjoint(other.outer_variables)
        and _added(other).isdisjoint(one.outer_variables)
        for one, other in combinations(blocks, 2)
        if _added(one) and _added(other)
    )


def _added(block: TypedPattern) -> frozenset[str]:
    return frozenset(name for name, _ in (*block.nodes, *block.edges))


def _is_multiplied(part: object) -> bool:
    match part:
        case Aggregate(function, is_distinct=is_distinct):
            return function in _MULTIPLIED and not is_distinct
        case Collect(is_distinct=is_distinct):
            return not is_distinct
        case _:
            return False
