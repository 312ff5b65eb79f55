"""Traversals: the edge exists, its bounds are finite, its direction follows from what is bound.

    bound        its type is            the edge is read
    source       the edge's source      forwards; else, when it is the edge's target, backwards
    target only  the edge's target      forwards; else, when it is the edge's source, backwards
    neither      –                      forwards

The other end is then bound to, or checked against, the opposite type. So either written order
works for an edge between two types, and the written order is the direction for any other.

A variable of an interface is of a type that implements it: it fits an end of such a type, and the
traversal leaves it that one.
"""

from __future__ import annotations

from omnigraph.catalog.model import Catalog, EdgeType, InterfaceType, NodeType
from omnigraph.compiler.check_paths import (
    bind_path,
    check_hop_filter,
    check_weight,
    is_path,
    walk_mode,
)
from omnigraph.compiler.scope import Scope, edge_hint, require_node
from omnigraph.compiler.typed import TypedTraversal
from omnigraph.errors import TypeCheckError
from omnigraph.ir.query import Direction
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import ANONYMOUS, Traversal


def check_traversal(clause: Traversal, scope: Scope) -> TypedTraversal:
    """Type one traversal, and bind the variables it introduces."""
    edge = _edge(clause, scope)
    _check_bounds(clause)
    check_weight(clause, edge)
    if clause.undirected and edge.source != edge.target:
        raise TypeCheckError(
            f"<{clause.edge}> reads an edge both ways, and {edge.name} leads from {edge.source} "
            f"to {edge.target}; write `{clause.edge}`",
            code="T22",
            span=clause.edge_span,
        )
    direction = _direction(clause, edge, scope)
    source_type, target_type = _end_types(edge, direction)
    _bind_end(clause.source, source_type, edge, clause.source_span, scope)
    _bind_end(clause.target, target_type, edge, clause.target_span, scope)
    if clause.edge_variable is not None:
        _require_fresh(clause, clause.edge_variable, scope)
        if is_path(clause):
            bind_path(clause, clause.edge_variable, (source_type, target_type), scope)
        else:
            scope.variables[clause.edge_variable] = edge
    return TypedTraversal(
        source=clause.source,
        target=clause.target,
        edge=edge.name,
        direction=direction,
        source_type=source_type,
        target_type=target_type,
        min_hops=clause.min_hops,
        max_hops=clause.max_hops,
        edge_variable=clause.edge_variable,
        mode=walk_mode(clause),
        hop_filters=check_hop_filter(clause, edge, scope),
        weight=clause.weight,
    )


def _edge(clause: Traversal, scope: Scope) -> EdgeType:
    edge = scope.catalog.edge(clause.edge)
    if edge is None:
        raise TypeCheckError(
            f"there is no edge `{clause.edge}`",
            code="T4",
            span=clause.edge_span,
            hint=_hint_test(clause) or edge_hint(clause.edge, scope.catalog),
        )
    return edge


def _hint_test(clause: Traversal) -> str | None:
    """Between two variables the word of a test is the name of an edge."""
    if clause.edge not in ("in", "contains", "starts_with", "ends_with"):
        return None
    return f"to compare two values: `(${clause.source}) {clause.edge} ${clause.target}`"


def _check_bounds(clause: Traversal) -> None:
    if clause.max_hops is None and clause.shortest is None:
        raise _bad_bounds(
            clause,
            "unbounded traversal is disabled; give the most hops, "
            f"as in `{{{clause.min_hops},{max(clause.min_hops, 3)}}}`",
            f"write shortest {clause.edge}, or give an upper bound",
        )
    if clause.min_hops < 1:
        raise _bad_bounds(clause, "a traversal takes at least one hop; start the bounds at 1")
    if clause.max_hops is not None and clause.max_hops < clause.min_hops:
        raise _bad_bounds(
            clause,
            f"the bounds {{{clause.min_hops},{clause.max_hops}}} hold no number of hops; "
            "write the smaller one first",
        )


def _bad_bounds(clause: Traversal, message: str, hint: str | None = None) -> TypeCheckError:
    return TypeCheckError(message, code="T15", span=clause.edge_span, hint=hint)


def _direction(clause: Traversal, edge: EdgeType, scope: Scope) -> Direction:
    if clause.undirected:
        return Direction.BOTH
    source = _end(clause.source, clause.source_span, scope)
    if source is not None:
        if fits(source, edge.source, scope.catalog):
            return Direction.OUT
        if fits(source, edge.target, scope.catalog):
            return Direction.IN
        raise _misfit(clause.source, source.name, edge, clause.source_span)
    target = _end(clause.target, clause.target_span, scope)
    if target is None or fits(target, edge.target, scope.catalog):
        return Direction.OUT
    if fits(target, edge.source, scope.catalog):
        return Direction.IN
    raise _misfit(clause.target, target.name, edge, clause.target_span)


def _end_types(edge: EdgeType, direction: Direction) -> tuple[str, str]:
    if direction is Direction.IN:
        return edge.target, edge.source
    return edge.source, edge.target


def fits(bound: NodeType | InterfaceType, type_name: str, catalog: Catalog) -> bool:
    """Whether a variable that is bound to this may be a node of a type."""
    if isinstance(bound, InterfaceType):
        return bound.name in catalog.nodes[type_name].interfaces
    return bound.name == type_name


def _end(name: str, span: Span, scope: Scope) -> NodeType | InterfaceType | None:
    """The type of an endpoint, if it is bound. An edge is no endpoint (T23)."""
    found = scope.variable(name)
    require_node(name, span, scope)
    if isinstance(found, EdgeType):
        raise TypeCheckError(
            f"`${name}` is bound to an edge ({found.name}), and a traversal joins nodes",
            code="T23",
            span=span,
        )
    return found


def _bind_end(name: str, type_name: str, edge: EdgeType, span: Span, scope: Scope) -> None:
    if name == ANONYMOUS:
        return
    bound = _end(name, span, scope)
    if bound is None:
        scope.variables[name] = scope.catalog.nodes[type_name]
    elif not fits(bound, type_name, scope.catalog):
        raise _misfit(name, bound.name, edge, span)
    elif isinstance(bound, InterfaceType):
        # Where another type is left already, no node is of both; the pattern sees to that.
        scope.narrowed.setdefault(name, type_name)


def _misfit(name: str, type_name: str, edge: EdgeType, span: Span) -> TypeCheckError:
    return TypeCheckError(
        f"`${name}` is {type_name}, which does not fit here: "
        f"{edge.name} leads from {edge.source} to {edge.target}",
        code="T5",
        span=span,
    )


def _require_fresh(clause: Traversal, name: str, scope: Scope) -> None:
    if name in (clause.source, clause.target):
        raise _misuse(clause, f"`${name}` is an end of this edge and cannot be the edge as well")
    if scope.is_bound(name):
        raise _misuse(clause, f"`${name}` is already bound; give the edge a name of its own")


def _misuse(clause: Traversal, message: str) -> TypeCheckError:
    return TypeCheckError(message, code="T23", span=clause.span)
