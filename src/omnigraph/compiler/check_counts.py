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
    if found is None:
        problem, hint = "no parameter", f"declare it: `query name(${count.name}: I64)`"
    elif not found.type.scalar.is_integer or found.type.is_list:
        problem, hint = str(found.type), f"declare it as `${count.name}: I64`"
    elif found.type.nullable:
        problem, hint = str(found.type), "give the parameter a default: `= 10`"
    else:
        return found
    raise TypeCheckError(
        f"{word} needs an integer that is not nullable, and `${count.name}` is {problem}",
        code="T34",
        span=count.span,
        hint=hint,
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
