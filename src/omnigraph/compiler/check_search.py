"""Search and ranking calls: what they may be asked about, and with what.

    search, fuzzy          a String property and a String     T19
    match_text, bm25       a String property and a String     T20
    nearest                a Vector property and a vector of its width, or text to embed   T15
    rrf                    two rankings of one variable, and a positive whole number       T21

A property of an edge variable is T23 in every one of them.
"""

from __future__ import annotations

from typing import Final

from omnigraph.catalog.model import EdgeType, InterfaceType
from omnigraph.compiler.check_values import plain_value
from omnigraph.compiler.scope import Scope
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import Bm25, Constant, Nearest, Param, PropertyRef, Rrf, TextMatch
from omnigraph.ir.expressions import Plain as Operand
from omnigraph.syntax.query_tree import (
    Expr,
    FuzzyExpr,
    ListLiteral,
    NearestExpr,
    PropertyExpr,
    RrfExpr,
    TextSearchExpr,
)
from omnigraph.types import PropertyType, Scalar

_CODES: Final = {"search": "T19", "fuzzy": "T19", "match_text": "T20", "bm25": "T20"}


def text_match(expression: TextSearchExpr | FuzzyExpr, scope: Scope) -> TextMatch:
    """Type `search`, `match_text` or `fuzzy`."""
    match expression:
        case FuzzyExpr():
            target, query = _text_arguments(expression, "fuzzy", scope)
            edits = _max_edits(expression.max_edits, scope)
            return TextMatch("fuzzy", target, query, edits, scope.language_of(target))
        case TextSearchExpr(function="search" | "match_text" as function):
            target, query = _text_arguments(expression, function, scope)
            return TextMatch(function, target, query, None, scope.language_of(target))
        case _:
            raise AssertionError("bm25 ranks and does not filter")


def ranking_arm(expression: NearestExpr | TextSearchExpr, scope: Scope) -> Nearest | Bm25:
    """Type `nearest` or `bm25`."""
    if isinstance(expression, NearestExpr):
        nearest = _nearest(expression, scope)
        _require_one_type(nearest.target, expression, scope)
        return nearest
    assert expression.function == "bm25"
    target, query = _text_arguments(expression, "bm25", scope)
    _require_one_type(target, expression, scope)
    return Bm25(target, query, scope.language_of(target))


def _require_one_type(target: PropertyRef, expression: Expr, scope: Scope) -> None:
    owner = scope.variable(target.variable)
    if isinstance(owner, InterfaceType):
        raise TypeCheckError(
            f"a ranking orders the nodes of one type, and `${target.variable}` is of the "
            f"interface {owner.name}",
            code="T40",
            span=expression.span,
            hint="bind the concrete type",
        )


def rank_fusion(expression: RrfExpr, scope: Scope) -> Rrf:
    """Type `rrf`."""
    for arm in (expression.first, expression.second):
        if isinstance(arm, TextSearchExpr) and arm.function != "bm25":
            raise TypeCheckError(
                f"rrf fuses rankings: its first two arguments are `nearest` or `bm25` calls, "
                f"not `{arm.function}`",
                code="T21",
                span=arm.span,
            )
    first = ranking_arm(expression.first, scope)
    second = ranking_arm(expression.second, scope)
    if first.target.variable != second.target.variable:
        raise TypeCheckError(
            f"rrf ranks one variable, and its arms rank `${first.target.variable}` "
            f"and `${second.target.variable}`",
            code="T21",
            span=expression.span,
        )
    return Rrf(first, second, _fusion_constant(expression.k, scope))


def _nearest(expression: NearestExpr, scope: Scope) -> Nearest:
    target = _searchable(expression.target, scope)
    if not target.type.is_vector or target.type.is_list:
        raise TypeCheckError(
            f"nearest needs a Vector property, and `${target.variable}.{target.property}` "
            f"is {target.type}",
            code="T15",
            span=expression.target.span,
        )
    return Nearest(target, _vector_query(expression.query, target.type, scope))


def _vector_query(expression: Expr, wanted: PropertyType, scope: Scope) -> Operand:
    query = plain_value(expression, scope)
    if query is None:
        raise _vector_mismatch(expression, wanted, "this is neither")
    found = query.type
    if found.is_text or found.compatible_with(wanted):
        return query
    if isinstance(query, Constant) and isinstance(query.value, ListLiteral):
        if not found.scalar.is_numeric or not query.value.items:
            raise _vector_mismatch(expression, wanted, "the list holds no numbers")
        if len(query.value.items) != wanted.dimension:
            size = len(query.value.items)
            raise _vector_mismatch(expression, wanted, f"the list has {size} elements")
        return Constant(query.value, PropertyType(Scalar.VECTOR, dimension=wanted.dimension))
    raise _vector_mismatch(expression, wanted, f"this is {found}")


def _vector_mismatch(expression: Expr, wanted: PropertyType, found: str) -> TypeCheckError:
    width = PropertyType(Scalar.VECTOR, dimension=wanted.dimension)
    return TypeCheckError(
        f"nearest compares with a {width} or with a String to embed; {found}",
        code="T15",
        span=expression.span,
    )


def _text_arguments(
    expression: TextSearchExpr | FuzzyExpr, function: str, scope: Scope
) -> tuple[PropertyRef, Operand]:
    """The property that is looked in, and the text that is looked for."""
    code, looked_in, looked_for = _CODES[function], expression.target, expression.query
    if not isinstance(looked_in, PropertyExpr):
        raise TypeCheckError(
            f"{function} looks in a String property, as in `{function}($v.property, ...)`",
            code=code,
            span=looked_in.span,
        )
    target = _searchable(looked_in, scope)
    if not target.type.is_text:
        raise TypeCheckError(
            f"{function} looks in a String property, and `${target.variable}.{target.property}` "
            f"is {target.type}",
            code=code,
            span=looked_in.span,
        )
    query = plain_value(looked_for, scope)
    if query is None or not query.type.is_text:
        found = "no value" if query is None else str(query.type)
        raise TypeCheckError(
            f"{function} looks for a String, and this is {found}",
            code=code,
            span=looked_for.span,
        )
    return target, query


def _max_edits(expression: Expr | None, scope: Scope) -> Operand | None:
    if expression is None:
        return None
    return _whole_number(expression, "the edits that fuzzy allows are", "T19", scope)


def _fusion_constant(expression: Expr | None, scope: Scope) -> Operand | None:
    if expression is None:
        return None
    k = _whole_number(expression, "k of rrf is", "T21", scope)
    if isinstance(k, Constant) and isinstance(k.value, int) and k.value <= 0:
        raise TypeCheckError(
            f"k of rrf is greater than zero, and this is {k.value}",
            code="T21",
            span=expression.span,
        )
    return k


def _whole_number(expression: Expr, what: str, code: str, scope: Scope) -> Operand:
    found = plain_value(expression, scope)
    if found is None or found.type.is_list or not found.type.scalar.is_integer:
        raise TypeCheckError(f"{what} a whole number", code=code, span=expression.span)
    return found


def _searchable(expression: PropertyExpr, scope: Scope) -> PropertyRef:
    """Resolve the property that is searched; only nodes are."""
    target = scope.property_ref(expression)
    if isinstance(scope.variable(expression.variable), EdgeType):
        raise TypeCheckError(
            f"`${expression.variable}` is bound to an edge, and only nodes can be searched",
            code="T23",
            span=expression.span,
        )
    if isinstance(target, Param):
        raise TypeCheckError(
            f"`${expression.variable}` is a parameter, and only nodes can be searched",
            code="T6",
            span=expression.span,
        )
    return target
