"""Objects: `$p { * }` and `$p { title, year }`, the properties of one node or edge as one value."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.model import EdgeType
from omnigraph.compiler.scope import ENDPOINTS, ID_TYPE, Bound, Scope, variable_hint
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import ObjectRef, PropertyRef
from omnigraph.syntax.query_tree import ObjectExpr, PropertyExpr


def check_object(expression: ObjectExpr, scope: Scope) -> ObjectRef:
    """The properties that are shown: unknown ones are T6, a Blob is T24, a path has none (T36)."""
    if expression.variable in scope.paths:
        raise scope.path_error(expression.variable, expression.span)
    owner = scope.variable(expression.variable)
    if owner is None:
        raise TypeCheckError(
            f"`${expression.variable}` is not bound to a node or edge",
            code="T6",
            span=expression.span,
            hint=variable_hint(expression.variable, list(scope.variables)),
        )
    if expression.properties is None:
        fields = tuple(_all_fields(expression.variable, owner, scope))
    else:
        fields = tuple(_named_field(expression, name, scope) for name in expression.properties)
        if len(set(expression.properties)) < len(fields):
            raise TypeCheckError("a property is named twice", code="T6", span=expression.span)
    return ObjectRef(expression.variable, fields, scope.id_of(expression.variable))


def _all_fields(variable: str, owner: Bound, scope: Scope) -> Iterator[PropertyRef]:
    yield scope.id_of(variable)
    if isinstance(owner, EdgeType):
        for end in ENDPOINTS.values():
            yield PropertyRef(variable, end, scope.type_at(variable, ID_TYPE))
    for found in owner.properties.values():
        if not found.type.is_blob and not found.type.is_vector:
            yield PropertyRef(variable, found.name, scope.type_at(variable, found.type))


def _named_field(expression: ObjectExpr, name: str, scope: Scope) -> PropertyRef:
    written = PropertyExpr(expression.variable, name, expression.span, span=expression.span)
    found = scope.property_ref(written)
    assert isinstance(found, PropertyRef), "a bound variable wins over a parameter"
    if found.type.is_blob:
        raise TypeCheckError(
            f"`${expression.variable}.{name}` is a Blob, which a query cannot return; "
            "read it by node id",
            code="T24",
            span=expression.span,
        )
    return found
