"""Patterns: bindings, traversals, filters and negations of a `match` or a `not` block.

Kinds are visited in this order, each in source order, whatever order the clauses are written in: a
binding may follow the traversal or filter that uses its variable, and means the same there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.compiler.check_filters import check_filter
from omnigraph.compiler.check_traversals import check_traversal
from omnigraph.compiler.check_values import Slot, check_matched_value, member_value
from omnigraph.compiler.not_yet import not_yet
from omnigraph.compiler.scope import Scope, require_node, require_property
from omnigraph.compiler.typed import TypedBinding, TypedPattern, TypedTraversal
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import Compare, CompareKind, Predicate, PropertyRef
from omnigraph.ir.variables import predicate_variables
from omnigraph.syntax.query_tree import (
    ANONYMOUS,
    Binding,
    Clause,
    EitherClause,
    Negation,
    OptionalClause,
    PropertyMatch,
    Traversal,
)


def check_pattern(clauses: tuple[Clause, ...], scope: Scope) -> TypedPattern:
    """Type the clauses of one block and bind their variables in `scope`."""
    _refuse_unbuilt(clauses)
    outer = scope.bound_names()
    # The types of all bindings come first, so that a traversal before them can use them.
    bound = [(clause, _bind(clause, scope)) for clause in clauses if isinstance(clause, Binding)]
    bindings = tuple(
        TypedBinding(clause.variable, node.name, _inline_filters(clause, node, scope))
        for clause, node in bound
    )
    followed = [check_traversal(c, scope) for c in clauses if isinstance(c, Traversal)]
    traversals = tuple(
        replace(each, hop_filters=()) if _is_edge(each) else each for each in followed
    )
    filters = tuple(
        predicate for each in followed if _is_edge(each) for predicate in each.hop_filters
    )
    filters += tuple(
        predicate
        for clause in clauses
        if not isinstance(clause, (Binding, Traversal, Negation, OptionalClause, EitherClause))
        for predicate in check_filter(clause, scope)
    )
    negations = tuple(_check_negation(c, scope) for c in clauses if isinstance(c, Negation))
    pattern = TypedPattern(bindings, traversals, filters, negations)
    mentioned = outer.intersection(_mentions(pattern))
    return TypedPattern(bindings, traversals, filters, negations, tuple(sorted(mentioned)))


def _refuse_unbuilt(clauses: tuple[Clause, ...]) -> None:
    for clause in clauses:
        match clause:
            case OptionalClause():
                raise not_yet("optional")
            case EitherClause():
                raise not_yet("either")


def _is_edge(traversal: TypedTraversal) -> bool:
    """Whether the edge is bound, so that a condition on the hop is one on the variable."""
    return traversal.edge_variable is not None and not traversal.is_path


def _check_negation(clause: Negation, scope: Scope) -> TypedPattern:
    pattern = check_pattern(clause.clauses, scope.inner())
    if not pattern.outer_variables:
        raise TypeCheckError(
            "this `not` mentions no variable that is bound outside it, so it would keep or drop "
            "every row alike; relate it to an outer variable",
            code="T9",
            span=clause.span,
        )
    return pattern


def _mentions(pattern: TypedPattern) -> Iterator[str]:
    for binding in pattern.bindings:
        yield binding.variable
    for traversal in pattern.traversals:
        yield traversal.source
        yield traversal.target
    for predicate in pattern.filters:
        yield from predicate_variables(predicate)
    for negation in pattern.negations:
        yield from negation.outer_variables


def _bind(clause: Binding, scope: Scope) -> NodeType:
    node = scope.catalog.node(clause.type_name)
    if node is None:
        raise _unknown_type(clause, scope)
    if clause.variable == ANONYMOUS:
        raise TypeCheckError("`$_` binds nothing; give the node a name", span=clause.span)
    require_node(clause.variable, clause.span, scope)
    match scope.variables.setdefault(clause.variable, node):
        case EdgeType(name=edge_name):
            raise TypeCheckError(
                f"`${clause.variable}` is bound to an edge ({edge_name}) and cannot be a node",
                code="T23",
                span=clause.span,
            )
        case NodeType(name=bound_name) if bound_name != node.name:
            raise TypeCheckError(
                f"`${clause.variable}` is already bound to {bound_name} and cannot be {node.name}",
                span=clause.span,
            )
    return node


def _unknown_type(clause: Binding, scope: Scope) -> TypeCheckError:
    name, catalog = clause.type_name, scope.catalog
    hint = did_you_mean(name, catalog.nodes)
    if name in catalog.interfaces:
        message = f"{name} is an interface, which has no nodes of its own; name a node type"
        hint = None
    elif name in catalog.edges:
        message = f"{name} is an edge type; reach it by a traversal"
        hint = f"as in `$a {name[0].lower()}{name[1:]} $b`"
    else:
        message = f"there is no node type {name}"
    return TypeCheckError(message, code="T1", span=clause.type_span, hint=hint)


def _inline_filters(clause: Binding, node: NodeType, scope: Scope) -> tuple[Predicate, ...]:
    return tuple(_inline_filter(clause.variable, match, node, scope) for match in clause.matches)


def _inline_filter(variable: str, match: PropertyMatch, node: NodeType, scope: Scope) -> Predicate:
    found = require_property(node, match.property, code="T2", span=match.span)
    slot = Slot(f"{node.name}.{found.name}", found.type)
    if found.type.is_blob:
        raise TypeCheckError(
            f"{slot.label} is a Blob and cannot be matched", code="T3", span=match.span
        )
    left = PropertyRef(variable, found.name, found.type)
    if found.type.is_list:
        return Compare(left, CompareKind.LIST_CONTAINS, member_value(match.value, slot, scope))
    return Compare(left, CompareKind.EQUAL, check_matched_value(match.value, slot, scope))
