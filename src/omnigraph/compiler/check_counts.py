"""Counts: how many rows `limit`, `offset` and `top` ask for (T34)."""

from __future__ import annotations

from omnigraph.compiler.scope import Scope
from omnigraph.errors import TypeCheckError
from omnigraph.ir.query import Count
from omnigraph.syntax.query_tree import Count as CountTree
from omnigraph.syntax.query_tree import QueryDecl


def check_count(word: str, count: CountTree | None, scope: Scope) -> Count | None:
    """A number, or a parameter of an integer type that is never null."""
    if count is None or isinstance(count, int):
        return count
    found = scope.parameter(count)
    if found is None or not found.type.scalar.is_integer or found.type.is_list:
        problem = f"`${count.name}` is " + ("no parameter" if found is None else str(found.type))
    elif found.type.nullable:
        problem = f"`${count.name}` is {found.type}"
    else:
        return found
    raise TypeCheckError(
        f"{word} needs an integer that is not nullable, and {problem}",
        code="T34",
        span=count.span,
        hint="give the parameter a default: `= 10`"
        if found is not None
        else f"declare it: `query name(${count.name}: I64)`",
    )


def check_offset(query: QueryDecl, scope: Scope) -> Count | None:
    """Like a limit, and only where rows have an order: pages would overlap."""
    found = check_count("offset", query.offset, scope)
    if found is not None and not query.order:
        raise TypeCheckError(
            "offset needs order: without one, pages would overlap",
            code="T34",
            span=query.span,
            hint="add `order { … }`",
        )
    return found
