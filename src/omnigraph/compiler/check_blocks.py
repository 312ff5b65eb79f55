"""Blocks: `optional` and `either`, checked after the bindings and traversals around them.

    optional    mentions an outer variable; not in `not` or `either`, one level deep           T35
    either      not in another one; visible are the variables that every alternative has,
                each with one type; without any, every alternative mentions an outer variable  T41

What a block introduces is bound in the scope around it: by an `optional` it may be null there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from omnigraph.catalog.model import EdgeType, InterfaceType
from omnigraph.compiler.scope import Scope
from omnigraph.compiler.typed import TypedEither, TypedPattern, Types
from omnigraph.errors import TypeCheckError
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import Clause, EitherClause, OptionalClause

CheckInner: TypeAlias = Callable[[tuple[Clause, ...], Scope, tuple[str, ...]], TypedPattern]
"""Checks the clauses of an inner block; the words are those of the blocks around them."""

DEPTH_MAX = 2


def check_optional(
    clause: OptionalClause, scope: Scope, inside: tuple[str, ...], check: CheckInner
) -> TypedPattern:
    """Type an `optional`, and bind what it introduces."""
    for word in ("not", "either"):
        if word in inside:
            raise _misplaced(f"an optional cannot stand inside `{word}`", clause.span)
    if inside.count("optional") >= DEPTH_MAX:
        raise _misplaced("an optional holds one more level of optional, not two", clause.span)
    inner = scope.inner()
    pattern = check(clause.clauses, inner, (*inside, "optional"))
    scope.typed.update(inner.typed)
    if not pattern.outer_variables and inner.typed.isdisjoint(scope.variables):
        names = " and ".join(f"`${name}`" for name, _ in pattern.nodes)
        raise TypeCheckError(
            "this optional mentions no variable from outside",
            code="T35",
            span=clause.span,
            hint=f"connect it, or bind {names} outside" if names else "connect it",
        )
    for name in _names(pattern.nodes, pattern.edges):
        _bind(name, inner, scope)
        scope.nullable.add(name)
    return pattern


def check_either(
    clause: EitherClause, scope: Scope, inside: tuple[str, ...], check: CheckInner
) -> TypedEither:
    """Type an `either`, and bind the variables that are visible outside of it."""
    if "either" in inside:
        raise TypeCheckError(
            "an either cannot stand inside another either",
            code="T41",
            span=clause.span,
            hint="write its alternatives beside the others",
        )
    scopes = [scope.inner() for _ in clause.alternatives]
    patterns = [
        check(clauses, inner, (*inside, "either"))
        for clauses, inner in zip(clause.alternatives, scopes, strict=True)
    ]
    scope.typed.update(*(inner.typed for inner in scopes))
    visible = _list_visible(patterns, scopes, clause.span)
    is_connected = all(
        pattern.outer_variables or not inner.typed.isdisjoint(scope.variables)
        for pattern, inner in zip(patterns, scopes, strict=True)
    )
    if not visible and not is_connected:
        raise TypeCheckError(
            "an alternative of this either mentions no variable from outside, and no variable is "
            "introduced by all of them",
            code="T41",
            span=clause.span,
            hint="connect every alternative, or introduce one variable in all of them",
        )
    for name in visible:
        _bind(name, scopes[0], scope)
        if len({inner.node_type(name) for inner in scopes}) > 1:
            scope.narrowed.pop(name, None)
    edges = tuple(
        (name, scope.variables[name].name)
        for name in visible
        if isinstance(scope.variables[name], EdgeType)
    )
    nodes = tuple((name, scope.node_type(name)) for name in visible if name not in dict(edges))
    mentioned = {name for pattern in patterns for name in pattern.outer_variables}
    return TypedEither(tuple(patterns), tuple(sorted(mentioned)), nodes, edges)


def _list_visible(
    patterns: Sequence[TypedPattern], scopes: Sequence[Scope], span: Span
) -> list[str]:
    """The variables that every alternative introduces. One with two types is refused."""
    found: dict[str, list[str]] = {}
    for pattern, inner in zip(patterns, scopes, strict=True):
        for name in _names(pattern.nodes, pattern.edges):
            # A path stays inside: it has no identity to tell two of them apart.
            if name in inner.variables:
                found.setdefault(name, []).append(inner.variables[name].name)
    for name, types in found.items():
        if len(set(types)) > 1:
            raise TypeCheckError(
                f"`${name}` is {' and '.join(dict.fromkeys(types))} in different alternatives of "
                "this either",
                code="T41",
                span=span,
                hint="give one of them another name",
            )
    return sorted(name for name, types in found.items() if len(types) == len(patterns))


def _names(nodes: Types, edges: Types) -> Iterator[str]:
    yield from (name for name, _ in (*nodes, *edges))


def _bind(name: str, inner: Scope, scope: Scope) -> None:
    if name in inner.paths:
        scope.paths[name] = inner.paths[name]
        return
    scope.variables[name] = inner.variables[name]
    if isinstance(inner.variables[name], InterfaceType) and name in inner.narrowed:
        scope.narrowed[name] = inner.narrowed[name]


def _misplaced(message: str, span: Span) -> TypeCheckError:
    return TypeCheckError(
        message, code="T35", span=span, hint="it stands in `match`, `top` or another `optional`"
    )
