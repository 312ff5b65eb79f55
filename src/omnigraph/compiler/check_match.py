"""Patterns: bindings, traversals, blocks, filters and negations of a `match` or an inner block.

Kinds are visited in this order, `either` before `optional`, each in source order, whatever order
the clauses are written in: a binding may follow the traversal or filter that uses its variable, and
means the same there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from omnigraph.catalog.model import EdgeType, InterfaceType, NodeType
from omnigraph.compiler.check_blocks import check_either, check_optional
from omnigraph.compiler.check_filters import check_filter
from omnigraph.compiler.check_traversals import check_traversal
from omnigraph.compiler.check_values import Slot, check_matched_value, member_value
from omnigraph.compiler.scope import Scope, require_node, require_property
from omnigraph.compiler.typed import TypedBinding, TypedPattern, TypedTraversal
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import Compare, CompareKind, Predicate, PropertyRef
from omnigraph.ir.query import PATH
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


def check_pattern(
    clauses: tuple[Clause, ...], scope: Scope, inside: tuple[str, ...] = ()
) -> TypedPattern:
    """Type the clauses of one block and bind their variables in `scope`.

    `inside` are the words of the blocks around it, from the outermost one.
    """
    outer = scope.inner()
    # The types of all bindings come first, so that a traversal before them can use them.
    bound = [(clause, _bind(clause, scope)) for clause in clauses if isinstance(clause, Binding)]
    matched = [(clause, _inline_filters(clause, node, scope)) for clause, node in bound]
    followed = [check_traversal(c, scope) for c in clauses if isinstance(c, Traversal)]
    _keep_concrete(clauses, scope, outer)
    eithers = tuple(
        check_either(c, scope, inside, check_pattern)
        for c in clauses
        if isinstance(c, EitherClause)
    )
    optionals = tuple(
        check_optional(c, scope, inside, check_pattern)
        for c in clauses
        if isinstance(c, OptionalClause)
    )
    pattern = TypedPattern(
        bindings=tuple(
            TypedBinding(clause.variable, scope.node_type(clause.variable), filters)
            for clause, filters in matched
        ),
        traversals=tuple(
            replace(each, hop_filters=()) if _is_edge(each) else each for each in followed
        ),
        filters=(*_hop_conditions(followed), *_check_filters(clauses, scope)),
        negations=tuple(
            _check_negation(c, scope, inside) for c in clauses if isinstance(c, Negation)
        ),
        eithers=eithers,
        optionals=optionals,
    )
    return _describe(pattern, scope, outer)


def _check_filters(clauses: tuple[Clause, ...], scope: Scope) -> Iterator[Predicate]:
    for clause in clauses:
        if not isinstance(clause, (Binding, Traversal, Negation, OptionalClause, EitherClause)):
            yield from check_filter(clause, scope)


def _hop_conditions(traversals: Sequence[TypedTraversal]) -> Iterator[Predicate]:
    for each in traversals:
        if _is_edge(each):
            yield from each.hop_filters


def _describe(pattern: TypedPattern, scope: Scope, outer: Scope) -> TypedPattern:
    """Add what a pattern mentions, introduces and narrows."""
    added = sorted(scope.variables.keys() - outer.variables.keys())
    edges = {n: scope.variables[n].name for n in added if isinstance(scope.variables[n], EdgeType)}
    paths = dict.fromkeys(sorted(scope.paths.keys() - outer.paths.keys()), PATH)
    is_never = any(
        name != ANONYMOUS and scope.node_type(name) != type_name
        for each in pattern.traversals
        for name, type_name in ((each.source, each.source_type), (each.target, each.target_type))
    )
    mentioned = outer.bound_names() & set(_mentions(pattern))
    return replace(
        pattern,
        outer_variables=tuple(sorted(mentioned)),
        nodes=tuple((name, scope.node_type(name)) for name in added if name not in edges),
        edges=tuple((edges | paths).items()),
        narrowed=tuple(
            (name, type_name)
            for name, type_name in sorted(scope.narrowed.items())
            if name in mentioned and (is_never or name not in outer.narrowed)
        ),
        is_never=is_never,
    )


def _keep_concrete(clauses: tuple[Clause, ...], scope: Scope, outer: Scope) -> None:
    """Let a variable that a traversal binds before any interface keep the type it has there."""
    seen: set[str] = set(outer.variables)
    for clause in clauses:
        if isinstance(clause, Binding):
            seen.add(clause.variable)
        elif isinstance(clause, Traversal):
            for name in (clause.source, clause.target):
                if name not in seen and isinstance(scope.variable(name), InterfaceType):
                    scope.variables[name] = scope.catalog.nodes[scope.narrowed.pop(name)]
                seen.add(name)


def _is_edge(traversal: TypedTraversal) -> bool:
    """Whether the edge is bound, so that a condition on the hop is one on the variable."""
    return traversal.edge_variable is not None and not traversal.is_path


def _check_negation(clause: Negation, scope: Scope, inside: tuple[str, ...]) -> TypedPattern:
    inner = scope.inner()
    pattern = check_pattern(clause.clauses, inner, (*inside, "not"))
    scope.typed.update(inner.typed)
    if not pattern.outer_variables and inner.typed.isdisjoint(scope.variables):
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
    for block in (*pattern.negations, *pattern.optionals):
        yield from block.outer_variables
    for either in pattern.eithers:
        yield from either.outer_variables


def _bind(clause: Binding, scope: Scope) -> NodeType | InterfaceType:
    """Bind a variable to a type, or to all that implement an interface; say which it names."""
    catalog = scope.catalog
    wanted = catalog.node(clause.type_name) or catalog.interfaces.get(clause.type_name)
    if wanted is None:
        raise _unknown_type(clause, scope)
    if clause.variable == ANONYMOUS:
        raise TypeCheckError("`$_` binds nothing; give the node a name", span=clause.span)
    require_node(clause.variable, clause.span, scope)
    bound = scope.variables.setdefault(clause.variable, wanted)
    if isinstance(bound, EdgeType):
        raise TypeCheckError(
            f"`${clause.variable}` is bound to an edge ({bound.name}) and cannot be a node",
            code="T23",
            span=clause.span,
        )
    is_implemented = isinstance(bound, NodeType) and wanted.name in bound.interfaces
    if bound is not wanted and bound.name != wanted.name and not is_implemented:
        raise TypeCheckError(
            f"`${clause.variable}` is already bound to {bound.name} and cannot be {wanted.name}",
            span=clause.span,
        )
    types = catalog.types_of(wanted.name)
    if isinstance(bound, InterfaceType) and len(types) == 1:
        scope.narrowed.setdefault(clause.variable, types[0])
    return wanted


def _unknown_type(clause: Binding, scope: Scope) -> TypeCheckError:
    name, catalog = clause.type_name, scope.catalog
    hint = did_you_mean(name, [*catalog.nodes, *catalog.interfaces])
    if name in catalog.edges:
        message = f"{name} is an edge type; reach it by a traversal"
        hint = f"as in `$a {name[0].lower()}{name[1:]} $b`"
    else:
        message = f"there is no node type {name}"
    return TypeCheckError(message, code="T1", span=clause.type_span, hint=hint)


def _inline_filters(
    clause: Binding, node: NodeType | InterfaceType, scope: Scope
) -> tuple[Predicate, ...]:
    return tuple(_inline_filter(clause.variable, match, node, scope) for match in clause.matches)


def _inline_filter(
    variable: str, match: PropertyMatch, node: NodeType | InterfaceType, scope: Scope
) -> Predicate:
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
