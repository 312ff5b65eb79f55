"""Expressions: values that are computed row by row, in filters, `return` and `order`.

arithmetic           operands that go together                T26
functions            known, with the arguments they take      T25 T26
case, coalesce       one type for all branches                T30
null                 only where another branch has a type     T30
a bare word          nothing in a filter or a projection      T31
"""

from __future__ import annotations

from typing import assert_never

from omnigraph.catalog.model import InterfaceType
from omnigraph.compiler.check_values import NOW, constant
from omnigraph.compiler.functions import PATH_FUNCTIONS, check_call, require_count, require_known
from omnigraph.compiler.path_calls import check_path_call
from omnigraph.compiler.scope import Scope, type_of
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.arithmetic import common_type, number_type, result_type
from omnigraph.ir.expressions import (
    TYPE_PROPERTY,
    Arithmetic,
    Call,
    Case,
    Constant,
    IsNull,
    Minus,
    NodeRef,
    Not,
    Null,
    Predicate,
    PropertyRef,
    Truth,
)
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    AliasExpr,
    ArithmeticExpr,
    ArithmeticOp,
    CaseExpr,
    CollectExpr,
    ConditionExpr,
    Expr,
    FunctionExpr,
    FuzzyExpr,
    LiteralExpr,
    MinusExpr,
    NearestExpr,
    NowExpr,
    NullExpr,
    ObjectExpr,
    PropertyExpr,
    RrfExpr,
    TextSearchExpr,
    VariableExpr,
)
from omnigraph.types import PropertyType, Scalar

UNTYPED = PropertyType(Scalar.STRING, nullable=True)
"""The type of a `null` that stands alone, until its place gives it one."""


def check_scalar(expression: Expr, scope: Scope) -> Operand:
    """Type one value; what has none for a row is refused."""
    given = scope.given(expression)
    if given is not None:
        return given
    match expression:
        case LiteralExpr():
            return constant(expression)
        case NowExpr():
            return NOW
        case PropertyExpr():
            return scope.property_ref(expression)
        case VariableExpr():
            return _check_variable(expression, scope)
        case NullExpr():
            return scope.word("null") or Null(UNTYPED)
        case ArithmeticExpr():
            return _check_arithmetic(expression, scope)
        case MinusExpr():
            return _check_minus(expression, scope)
        case FunctionExpr():
            return _check_function(expression, scope)
        case CaseExpr():
            return _check_case(expression, scope)
        case ConditionExpr():
            return check_truth(expression, scope)
        case AliasExpr() if scope.words is not None:
            return scope.word_ref(expression)
        case AliasExpr(name):
            raise bare_word(name, expression.span, scope)
        case AggregateExpr() | CollectExpr():
            return scope.aggregate(expression)
        case ObjectExpr():
            raise TypeCheckError(
                "an object stands alone in `return` or in `collect`",
                code="T26",
                span=expression.span,
            )
        case NearestExpr() | RrfExpr() | TextSearchExpr() | FuzzyExpr():
            raise TypeCheckError(
                "a ranking stands alone: it orders rows and is not part of an expression",
                code="T40",
                span=expression.span,
                hint="rank in `order`, or use top … as $score",
            )
        case _:
            assert_never(expression)


def check_truth(expression: ConditionExpr, scope: Scope) -> Truth:
    """Type a condition that is used as a Bool. A search has no truth of its own (T40)."""
    from omnigraph.compiler.check_filters import check_condition, find_search

    search = find_search(expression.condition)
    if search is not None:
        raise TypeCheckError(
            "a search call is a condition of `match` and no value", code="T40", span=search.span
        )
    predicate = check_condition(expression.condition, scope)
    return Truth(predicate, PropertyType(Scalar.BOOL, nullable=not _is_decided(predicate)))


def _is_decided(predicate: Predicate) -> bool:
    inner = predicate.part if isinstance(predicate, Not) else predicate
    return isinstance(inner, IsNull)


def bare_word(name: str, span: Span, scope: Scope) -> TypeCheckError:
    """A word that names nothing where it stands (T31)."""
    owners = [
        f"${variable}.{name}"
        for variable, entity in scope.variables.items()
        if name in entity.properties
    ]
    known = [f"${v}.{each}" for v, entity in scope.variables.items() for each in entity.properties]
    hint = f"did you mean {owners[0]}?" if owners else did_you_mean(name, known)
    hint = (
        hint
        or f'a text stands in quotes: "{name}"; a property is read from a variable: `$p.{name}`'
    )
    return TypeCheckError(
        f"bare word '{name}' names no value here", code="T31", span=span, hint=hint
    )


def _check_variable(expression: VariableExpr, scope: Scope) -> Operand:
    found = scope.bare_variable(expression)
    if isinstance(found, NodeRef):
        raise TypeCheckError(
            f"`${found.variable}` is a node, and this needs a value; "
            f"name a property, as in `${found.variable}.property`",
            code="T7",
            span=expression.span,
        )
    return found


def _check_arithmetic(expression: ArithmeticExpr, scope: Scope) -> Arithmetic:
    first = check_scalar(expression.first, scope)
    found = first.type
    rest: list[tuple[ArithmeticOp, Operand]] = []
    for op, operand in expression.rest:
        checked = check_scalar(operand, scope)
        result = result_type(op, found, checked.type)
        if result is None or Null in (type(first), type(checked)):
            raise _bad_operands(op, found, checked.type, expression.span)
        found = result
        rest.append((op, checked))
    return Arithmetic(first, tuple(rest), found)


_TIMES = {Scalar.DATE, Scalar.DATETIME}


def _bad_operands(
    op: ArithmeticOp, left: PropertyType, right: PropertyType, span: Span
) -> TypeCheckError:
    needs = {
        ArithmeticOp.PLUS: "two numbers, two Strings, or a date and a duration",
        ArithmeticOp.MINUS: "two numbers, or a date and a duration",
    }.get(op, "two numbers")
    is_time_of_day = left.scalar is Scalar.DATE and right.is_duration
    hint = None
    if is_time_of_day:
        hint = "a Date takes whole days: days(n)"
    elif op is ArithmeticOp.MINUS and {left.scalar, right.scalar} <= _TIMES:
        hint = "there is no difference of dates: compare them, as in `$p.seen > now() - days(7)`"
    elif (left.is_text and right.is_numeric) or (left.is_numeric and right.is_text):
        hint = "a number is not turned into text: return both, and join them in the caller"
    return TypeCheckError(
        f"{op} needs {needs}, got {left} and {right}",
        code="T26",
        span=span,
        hint=hint,
    )


def _check_minus(expression: MinusExpr, scope: Scope) -> Minus:
    operand = check_scalar(expression.operand, scope)
    if not operand.type.is_numeric:
        raise TypeCheckError(
            f"- needs a number, got {operand.type}", code="T26", span=expression.operand.span
        )
    return Minus(operand, number_type([operand.type]))


def _check_function(expression: FunctionExpr, scope: Scope) -> Operand:
    if expression.name in PATH_FUNCTIONS:
        return check_path_call(expression, scope)
    if expression.name == "type":
        return _check_type(expression, scope)
    if expression.name == "coalesce":
        return _check_coalesce(expression, scope)
    require_known(expression.name, expression.span)
    arguments = [check_scalar(each, scope) for each in expression.arguments]
    spans = [each.span for each in expression.arguments]
    return check_call(expression.name, arguments, spans, expression.span)


def _check_type(expression: FunctionExpr, scope: Scope) -> Operand:
    """`type($x)`: the name of an entity's type, mostly known before any row is."""
    require_count("type", len(expression.arguments), 1, 1, expression.span)
    (argument,) = expression.arguments
    owner = type_of(argument.name, scope) if isinstance(argument, VariableExpr) else None
    if owner is None:
        raise TypeCheckError("type needs a node or edge variable", code="T26", span=argument.span)
    assert isinstance(argument, VariableExpr)
    scope.typed.add(argument.name)
    name, found = argument.name, scope.type_at(argument.name, PropertyType(Scalar.STRING))
    if isinstance(owner, InterfaceType) and name not in scope.narrowed:
        return PropertyRef(name, TYPE_PROPERTY, found)
    known = Constant(scope.node_type(name), PropertyType(Scalar.STRING))
    if name not in scope.nullable:
        return known
    return Case(((IsNull(scope.id_of(name)), Null(found)),), known, found)


def _check_coalesce(expression: FunctionExpr, scope: Scope) -> Call:
    require_count("coalesce", len(expression.arguments), 2, None, expression.span)
    values = [check_scalar(each, scope) for each in expression.arguments]
    found = _common(values, "arguments", expression.span)
    is_sure = not values[-1].type.nullable
    return Call(
        "coalesce",
        tuple(_in_type(each, found) for each in values),
        PropertyType(found.scalar, found.is_list, nullable=not is_sure, dimension=found.dimension),
    )


def _check_case(expression: CaseExpr, scope: Scope) -> Case:
    from omnigraph.compiler.check_filters import check_condition

    conditions = [check_condition(arm.condition, scope) for arm in expression.arms]
    values = [check_scalar(arm.value, scope) for arm in expression.arms]
    otherwise: Operand = Null(UNTYPED)
    if expression.otherwise is not None:
        otherwise = check_scalar(expression.otherwise, scope)
    found = _common([*values, otherwise], "branches", expression.span)
    arms = zip(conditions, (_in_type(each, found) for each in values), strict=True)
    return Case(tuple(arms), _in_type(otherwise, found), found)


def _common(values: list[Operand], what: str, span: Span) -> PropertyType:
    """The one type that all of these values have (T30); `null` has any."""
    types = [each.type for each in values if not isinstance(each, Null)]
    if not types:
        raise TypeCheckError(
            f"the {what} are all null, so they have no type",
            code="T30",
            span=span,
            hint="give one of them a value",
        )
    found = common_type(types)
    if found is None:
        shown = dict.fromkeys(_plain(each) for each in types)
        raise TypeCheckError(
            f"{what} are {' and '.join(shown)}",
            code="T30",
            span=span,
            hint="they all need one type: nothing is converted",
        )
    if found.is_duration or found.is_blob or found.is_vector:
        noun = "durations" if found.is_duration else f"{found.scalar} values"
        raise TypeCheckError(f"{what} cannot be {noun}", code="T26", span=span)
    return found


def _plain(found: PropertyType) -> str:
    return str(found).removesuffix("?")


def _in_type(value: Operand, found: PropertyType) -> Operand:
    return Null(found) if isinstance(value, Null) else value
