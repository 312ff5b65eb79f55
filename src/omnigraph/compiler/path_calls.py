"""Path calls: `hops`, `nodes`, `edges` and `cost`, the only use of a path variable (T36).

hops($t)  nodes($t)  edges($t)    of any path
nodes($t, p)                      a property that both types of its ends have (T6)
edges($t, p)                      a property of its edge (T6)
cost($t)                          of one that was searched by a weight
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.model import EntityType
from omnigraph.compiler.functions import require_count
from omnigraph.compiler.scope import PathVariable, Scope, require_property
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import IsNull, PropertyRef
from omnigraph.syntax.query_tree import AliasExpr, Expr, FunctionExpr, VariableExpr
from omnigraph.types import PropertyType, Scalar


def check_path_call(expression: FunctionExpr, scope: Scope) -> PropertyRef:
    """Type a function of a path; what it gives is read as a property of the variable."""
    name, arguments = expression.name, expression.arguments
    most = 2 if name in ("nodes", "edges") else 1
    require_count(name, len(arguments), 1, most, expression.span)
    variable, path = _path(name, arguments[0], scope)
    if name == "hops":
        return PropertyRef(variable, f"#{name}", PropertyType(Scalar.I64, nullable=True))
    if name == "cost":
        if not path.has_weight:
            raise _misuse(
                f"cost needs a weight, and `${variable}` is a path without one",
                arguments[0],
                "write shortest … by and a numeric property of the edge",
            )
        return PropertyRef(variable, f"#{name}", PropertyType(Scalar.F64, nullable=True))
    if len(arguments) == 1:
        return PropertyRef(variable, f"#{name}", _list_of(PropertyType(Scalar.STRING)))
    owners: list[EntityType] = [path.edge]
    if name == "nodes":
        owners = list(_end_types(path, scope))
    return _check_property(variable, name, arguments[1], owners)


def is_null(argument: Expr, scope: Scope) -> IsNull | None:
    """Type `$t is null` of a path; None for any other operand."""
    if not isinstance(argument, VariableExpr) or scope.path(argument.name) is None:
        return None
    return IsNull(PropertyRef(argument.name, "#hops", PropertyType(Scalar.I64, nullable=True)))


def _path(name: str, argument: Expr, scope: Scope) -> tuple[str, PathVariable]:
    if isinstance(argument, VariableExpr):
        found = scope.path(argument.name)
        if found is not None:
            return argument.name, found
    raise _misuse(
        f"{name} needs a path variable",
        argument,
        "bind one before the edge, as in `$a $t:knows{1,3} $b` or `$a $t:shortest knows $b`",
    )


def _end_types(path: PathVariable, scope: Scope) -> Iterator[EntityType]:
    for name in dict.fromkeys((path.left, path.right)):
        yield scope.catalog.nodes[name]


def _check_property(
    variable: str, function: str, argument: Expr, owners: list[EntityType]
) -> PropertyRef:
    if not isinstance(argument, AliasExpr):
        raise TypeCheckError(
            f"{function} takes the name of a property, as in `{function}(${variable}, name)`",
            code="T6",
            span=argument.span,
        )
    name = argument.name
    types = [require_property(owner, name, code="T6", span=argument.span).type for owner in owners]
    found = types[0]
    if any(each.scalar is not found.scalar or each.is_list for each in types):
        shown = " and ".join(str(each) for each in types)
        raise TypeCheckError(
            f"{function} lists single values of one type, and `{name}` is {shown}",
            code="T6",
            span=argument.span,
        )
    if found.is_vector or found.is_blob:
        raise TypeCheckError(
            f"{function} lists no {found.scalar}, and `{name}` is {found}",
            code="T6",
            span=argument.span,
        )
    return PropertyRef(variable, f"#{function}/{name}", _list_of(found))


def _list_of(found: PropertyType) -> PropertyType:
    return PropertyType(found.scalar, is_list=True, nullable=True, variants=found.variants)


def _misuse(message: str, argument: Expr, hint: str) -> TypeCheckError:
    return TypeCheckError(message, code="T36", span=argument.span, hint=hint)
