"""Groups: aggregates, the keys beside them, and expressions and conditions over both.

a projection with an aggregate in it   every bound variable stands inside an aggregate    T9
any other one beside it                is a grouping key: it mentions something to vary   T9
`having`                               sees what is projected, by alias or the same words T6 T8 T31
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import assert_never

from omnigraph.compiler.check_expressions import check_scalar
from omnigraph.compiler.check_objects import check_object
from omnigraph.compiler.scope import Scope, aggregate_word
from omnigraph.compiler.walk import walk
from omnigraph.dataclass import dataclass
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import (
    GROUP_VARIABLE,
    Aggregate,
    Collect,
    GroupColumn,
    Grouped,
    NodeRef,
    Null,
    ObjectRef,
    Param,
    PropertyRef,
)
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    AggregateFunction,
    AliasExpr,
    CollectExpr,
    Expr,
    NullExpr,
    ObjectExpr,
    Ordering,
    Projection,
    PropertyExpr,
    VariableExpr,
)
from omnigraph.types import PropertyType, Scalar

_EXTREMES = (AggregateFunction.MIN, AggregateFunction.MAX)


def has_aggregate(expression: Expr) -> bool:
    """Whether an aggregate is part of an expression."""
    return any(isinstance(node, (AggregateExpr, CollectExpr)) for node in walk(expression))


def check_aggregate(expression: AggregateExpr | CollectExpr, scope: Scope) -> Grouped:
    """Type an aggregate; its argument is a value of each row."""
    if isinstance(expression, CollectExpr):
        return _collect(expression, scope)
    argument = _argument(expression.argument, scope, aggregate_word(expression))
    if expression.distinct and expression.function is not AggregateFunction.COUNT:
        raise TypeCheckError(
            f"{expression.function} takes no `distinct`; count and collect do",
            code="T8",
            span=expression.span,
        )
    found = None if isinstance(argument, NodeRef) else argument.type
    result = _result_type(expression, found)
    return Aggregate(expression.function, argument, result, expression.distinct)


def _argument(expression: Expr, scope: Scope, word: str) -> Operand | NodeRef:
    if has_aggregate(expression):
        raise TypeCheckError(
            "aggregates do not nest",
            code="T8",
            span=expression.span,
            hint="aggregates of one level are joined by arithmetic: `sum($p.x) / count($p)`",
        )
    if isinstance(expression, VariableExpr):
        found = scope.given(expression) or scope.bare_variable(expression)
    elif isinstance(expression, (AliasExpr, ObjectExpr, NullExpr)):
        raise TypeCheckError(
            f"{word} takes a property, a variable, a literal or what is computed of them",
            code="T8",
            span=expression.span,
        )
    else:
        found = check_scalar(expression, scope)
    if not isinstance(found, NodeRef) and (found.type.is_blob or found.type.is_duration):
        raise TypeCheckError(
            f"{word} does not work on {found.type}",
            code="T24" if found.type.is_blob else "T8",
            span=expression.span,
        )
    return found


def _collect(expression: CollectExpr, scope: Scope) -> Collect:
    argument: Operand | NodeRef | ObjectRef
    if isinstance(expression.argument, ObjectExpr):
        argument = check_object(expression.argument, scope)
    else:
        argument = _argument(expression.argument, scope, "collect")
        found = None if isinstance(argument, NodeRef) else argument.type
        if found is not None and (found.is_list or found.is_vector):
            raise TypeCheckError(
                f"collect makes a list of single values, and this is {found}",
                code="T8",
                span=expression.argument.span,
            )
    keys = tuple((_collect_key(each, scope), each.descending) for each in expression.order)
    return Collect(argument, keys, expression.distinct)


def _collect_key(ordering: Ordering, scope: Scope) -> Operand:
    found = check_scalar(ordering.expression, scope)
    if found.type.is_list or found.type.is_vector or found.type.is_duration:
        raise TypeCheckError(f"cannot order by {found.type}", code="T33", span=ordering.span)
    return found


def _result_type(expression: AggregateExpr, argument: PropertyType | None) -> PropertyType:
    """The type of the result. `argument` is None for a node, which can only be counted."""
    function = expression.function
    match function:
        case AggregateFunction.COUNT:
            return PropertyType(Scalar.I64, nullable=True)
        case AggregateFunction.SUM | AggregateFunction.AVG:
            if argument is not None and argument.is_numeric:
                return PropertyType(Scalar.F64, nullable=True)
            wanted = "numbers"
        case AggregateFunction.MIN | AggregateFunction.MAX:
            if argument is not None and _is_ordered(argument):
                return PropertyType(argument.scalar, nullable=True, variants=argument.variants)
            wanted = "numbers, Strings or dates"
        case _:
            assert_never(function)
    found = "a node" if argument is None else str(argument)
    raise TypeCheckError(
        f"{function} works on {wanted}, and this is {found}",
        code="T8",
        span=expression.argument.span,
    )


def _is_ordered(found: PropertyType) -> bool:
    is_time = found.scalar in (Scalar.DATE, Scalar.DATETIME) and not found.is_list
    return found.is_numeric or found.is_text or is_time


def check_key(projection: Projection, scope: Scope) -> None:
    """Refuse a projection beside an aggregate that is the same for every group (T9)."""
    varies = (VariableExpr, PropertyExpr, ObjectExpr)
    if not any(isinstance(node, varies) for node in walk(projection.expression)):
        raise TypeCheckError(
            "beside an aggregate every projection is something to group by: "
            "it mentions a variable or a parameter",
            code="T9",
            span=projection.span,
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """The keys and aggregates that groups have, each once, in the order they were met."""

    places: dict[Operand | NodeRef | ObjectRef | Grouped, int] = field(default_factory=dict)

    def place(self, expression: Operand | NodeRef | ObjectRef | Grouped) -> int:
        return self.places.setdefault(expression, len(self.places))

    def show(self, expression: Operand | NodeRef | ObjectRef | Grouped) -> GroupColumn:
        return GroupColumn(self.place(expression), expression)


@dataclass(frozen=True, slots=True)
class GroupScope(Scope):
    """What an expression over groups sees: parameters, and aggregates over `of_rows`."""

    of_rows: Scope = field(kw_only=True)
    columns: Columns = field(kw_only=True)

    def aggregate(self, expression: AggregateExpr | CollectExpr) -> Operand:
        found = check_aggregate(expression, self.of_rows)
        return as_operand(self.columns.show(found), expression)

    def property_ref(self, expression: PropertyExpr) -> Param | PropertyRef:
        self._refuse_rows(expression.variable, expression)
        return self.of_rows.property_ref(expression)

    def bare_variable(self, expression: VariableExpr) -> NodeRef | Operand:  # type: ignore[override]
        if expression.name not in self.params:
            self._refuse_rows(expression.name, expression)
        return self.of_rows.bare_variable(expression)

    def _refuse_rows(self, variable: str, expression: PropertyExpr | VariableExpr) -> None:
        if variable not in self.of_rows.bound_names():
            return
        from omnigraph.syntax.print_query import print_expression

        raise TypeCheckError(
            f"{print_expression(expression)} stands outside the aggregate",
            code="T9",
            span=expression.span,
            hint="project it on its own, or aggregate it",
        )


def group_scope(scope: Scope, columns: Columns) -> GroupScope:
    """The scope of an expression with aggregates in it."""
    return GroupScope(scope.catalog, scope.params, rows=scope.rows, of_rows=scope, columns=columns)


def as_operand(column: GroupColumn, expression: Expr) -> PropertyRef:
    """A column of groups as a value to compute with."""
    found = _value_type(column)
    if found is None:
        raise TypeCheckError(
            "an object, or a list of objects, stands alone", code="T26", span=expression.span
        )
    return PropertyRef(GROUP_VARIABLE, str(column.place), found)


def _value_type(column: GroupColumn) -> PropertyType | None:
    match column.shows:
        case NodeRef():
            return PropertyType(Scalar.STRING, nullable=True)
        case ObjectRef() | Collect(ObjectRef()):
            return None
        case Collect(NodeRef()):
            return PropertyType(Scalar.STRING, is_list=True)
        case Collect(argument):
            assert not isinstance(argument, (NodeRef, ObjectRef))
            return PropertyType(argument.type.scalar, is_list=True, variants=argument.type.variants)
        case Null(found):
            return found
        case other:
            return other.type


@dataclass(frozen=True, slots=True)
class Shown:
    """A projection: what was written, what it is called, and what it is over groups."""

    tree: Expr
    alias: str | None
    value: GroupColumn | Operand


@dataclass(frozen=True, slots=True)
class HavingScope(Scope):
    """What `having` sees: the projections, by their alias or spelled the same way."""

    of_rows: Scope = field(kw_only=True)
    shown: Sequence[Shown] = field(kw_only=True)

    def given(self, expression: Expr) -> Operand | None:
        found = find_shown(expression, self.shown)
        if found is not None:
            value = found.value
            return as_operand(value, expression) if isinstance(value, GroupColumn) else value
        if isinstance(expression, AliasExpr):
            raise unknown_word(expression, self.shown)
        return None

    def aggregate(self, expression: AggregateExpr | CollectExpr) -> Operand:
        raise TypeCheckError(
            f"this `{aggregate_word(expression)}` is not projected",
            code="T8",
            span=expression.span,
            hint="name it in return",
        )

    def property_ref(self, expression: PropertyExpr) -> Param | PropertyRef:
        found = self.of_rows.property_ref(expression)
        if isinstance(found, PropertyRef):
            raise self._not_projected(expression)
        return found

    def bare_variable(self, expression: VariableExpr) -> NodeRef | Operand:  # type: ignore[override]
        found = self.of_rows.bare_variable(expression)
        if not isinstance(found, Param):
            raise self._not_projected(expression)
        return found

    def _not_projected(self, expression: PropertyExpr | VariableExpr) -> TypeCheckError:
        from omnigraph.syntax.print_query import print_expression

        return TypeCheckError(
            f"{print_expression(expression)} is not projected, so groups have no such value",
            code="T6",
            span=expression.span,
            hint="move the condition into match, or project it",
        )


def having_scope(scope: Scope, shown: Sequence[Shown]) -> HavingScope:
    """The scope of `having` over these projections."""
    return HavingScope(scope.catalog, scope.params, rows=scope.rows, of_rows=scope, shown=shown)


def find_shown(expression: Expr, shown: Iterable[Shown]) -> Shown | None:
    """The projection that an expression names: by its alias, or spelled the same way."""
    word = None
    if isinstance(expression, AliasExpr):
        word = expression.name
    elif isinstance(expression, NullExpr):
        # A word like any other where an alias has it.
        word = "null"
    for each in shown:
        if each.alias == word if word is not None else each.tree == expression:
            return each
    return None


def unknown_word(expression: AliasExpr, shown: Iterable[Shown]) -> TypeCheckError:
    """A word that is no alias (T31)."""
    aliases = [each.alias for each in shown if each.alias is not None]
    return TypeCheckError(
        f"bare word '{expression.name}' names no projection",
        code="T31",
        span=expression.span,
        hint=did_you_mean(expression.name, aliases) or f"name one with `as {expression.name}`",
    )
