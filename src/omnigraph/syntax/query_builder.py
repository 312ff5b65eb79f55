"""Query builder: one method per rule of query.lark, from the children of a rule to a tree node.

Holds no state, so one builder serves every parse. A rule of the language that the grammar cannot
say (sizes, escapes, duplicates) is checked here, where the token is still at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from omnigraph.errors import ParseError
from omnigraph.source_text import Span
from omnigraph.syntax.literals import (
    UNSIGNED_32_MAX,
    from_to,
    read_dimension,
    read_float,
    read_integer,
    read_number,
    read_string,
    span_of,
)
from omnigraph.syntax.query_tree import (
    ANONYMOUS,
    AggregateExpr,
    AggregateFunction,
    AliasExpr,
    AndTest,
    ArithmeticExpr,
    ArithmeticOp,
    Binding,
    CaseArm,
    CaseExpr,
    CompareOp,
    Condition,
    ConditionExpr,
    DateText,
    DateTimeText,
    DeleteStatement,
    Expr,
    FilterClause,
    FunctionExpr,
    FuzzyExpr,
    InsertStatement,
    ListLiteral,
    LiteralExpr,
    LiteralValue,
    MinusExpr,
    NearestExpr,
    Negation,
    NotTest,
    NowExpr,
    NullExpr,
    NullTest,
    Ordering,
    OrTest,
    ParamDecl,
    Predicate,
    Projection,
    PropertyExpr,
    PropertyMatch,
    QueryDecl,
    RrfExpr,
    Statement,
    TextSearchExpr,
    Traversal,
    UpdateStatement,
    VariableExpr,
    is_text_search,
)
from omnigraph.syntax.source import NESTING_MAX

if TYPE_CHECKING:
    from lark import Token

_OPERATORS = {op.value: op for op in CompareOp}
_OPERANDS_MAX = 1_000
_LEVELS_MAX = 4 * NESTING_MAX
"""Of tree nodes and the tuples between them."""
_AGGREGATES = {function.value: function for function in AggregateFunction}


class QueryBuilder:
    """The actions of the query grammar. Lark calls each with the list of a rule's children."""

    def start(self, children: list[Any]) -> tuple[Any, ...]:
        """A rule that is a sequence of other rules."""
        return tuple(children)

    params = match_clause = return_clause = order_clause = assignments = start

    def query_decl(self, children: list[Any]) -> QueryDecl:
        name, params, annotations, body = children
        return QueryDecl(name.value, params, **annotations, **body, span=span_of(name))

    def param(self, children: list[Any]) -> ParamDecl:
        name, (type_name, nullable, end) = children
        return ParamDecl(_variable(name), type_name, nullable, span=Span(name.start_pos, end))

    def scalar_type(self, children: list[Token]) -> tuple[str, bool, int | None]:
        base, optional = children
        return base.value, optional is not None, (optional or base).end_pos

    def list_type(self, children: list[Token]) -> tuple[str, bool, int | None]:
        base, end, optional = children
        return f"[{base}]", optional is not None, (optional or end).end_pos

    def vector_type(self, children: list[Token]) -> tuple[str, bool, int | None]:
        _, size, end, optional = children
        type_name = f"Vector({read_dimension(size)})"
        return type_name, optional is not None, (optional or end).end_pos

    def query_annotations(self, annotations: list[tuple[Token, str]]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for token, text in annotations:
            name = token.value[1:].lstrip()
            if name in texts:
                raise ParseError(f"duplicate @{name}", span=span_of(token))
            texts[name] = text
        return texts

    def query_annotation(self, children: list[Token]) -> tuple[Token, str]:
        return children[0], read_string(children[1])

    def read_body(self, children: list[Any]) -> dict[str, Any]:
        match, returns, order, limit = children
        return {"match": match, "returns": returns, "order": order or (), "limit": limit}

    def mutation_body(self, statements: list[Statement]) -> dict[str, Any]:
        return {"mutations": tuple(statements)}

    def limit_clause(self, children: list[Token]) -> int:
        return read_integer(children[0], name="a limit")

    def insert_stmt(self, children: list[Any]) -> InsertStatement:
        type_name, assignments = children
        return InsertStatement(type_name.value, assignments, span=span_of(type_name))

    def update_stmt(self, children: list[Any]) -> UpdateStatement:
        type_name, assignments, where = children
        return UpdateStatement(type_name.value, assignments, where, span=span_of(type_name))

    def delete_stmt(self, children: list[Any]) -> DeleteStatement:
        type_name, where = children
        return DeleteStatement(type_name.value, where, span=span_of(type_name))

    def predicate(self, children: list[Any]) -> Predicate:
        name, op, value = children
        return Predicate(name.value, _OPERATORS[op], value, span=span_of(name))

    def negation(self, children: list[Any]) -> Negation:
        start, *clauses, end = children
        return Negation(tuple(clauses), span=from_to(start, end))

    def binding(self, children: list[Any]) -> Binding:
        variable, type_name, block = children
        matches, end = block or ((), type_name)
        return Binding(
            _variable(variable),
            type_name.value,
            matches,
            span_of(type_name),
            span=from_to(variable, end),
        )

    def prop_block(self, children: list[Any]) -> tuple[tuple[PropertyMatch, ...], Token]:
        *matches, end = children
        return tuple(matches), end

    def prop_match(self, children: list[Any]) -> PropertyMatch:
        return PropertyMatch(children[0].value, children[1], span=span_of(children[0]))

    def traversal(self, children: list[Any]) -> Traversal:
        source, edge_variable, (edge, undirected, edge_span), bounds, target = children
        min_hops, max_hops = bounds or (1, 1)
        return Traversal(
            _variable(source),
            edge,
            _variable(target),
            min_hops,
            max_hops,
            undirected,
            edge_variable,
            bounds is not None,
            edge_span,
            span_of(source),
            span_of(target),
            span=from_to(source, target),
        )

    def word_traversal(self, children: list[Any]) -> Traversal:
        source, edge, bounds, target = children
        return self.traversal([source, None, self.edge_ref([edge]), bounds, target])

    def edge_binding(self, children: list[Token]) -> str | None:
        name = _variable(children[0])
        return None if name == ANONYMOUS else name

    def edge_ref(self, children: list[Token]) -> tuple[str, bool, Span]:
        return children[0].value, False, span_of(children[0])

    def edge_ref_undirected(self, children: list[Token]) -> tuple[str, bool, Span]:
        return children[1].value, True, span_of(children[1])

    def bounds(self, children: list[Token | None]) -> tuple[int, int | None]:
        minimum, maximum = children
        assert minimum is not None
        return _hops(minimum), None if maximum is None else _hops(maximum)

    def comparison(self, children: list[Any]) -> FilterClause:
        left, op, right = children
        # A clause that starts with a bare variable may still become a traversal or a binding, so
        # the grammar leaves the token, a kind of str, as it is.
        if isinstance(left, str):
            left = self.variable(children[:1])
        return FilterClause(left, _OPERATORS[op], right, span=Span(left.span.start, right.span.end))

    def text_test(self, children: list[TextSearchExpr | FuzzyExpr]) -> FilterClause:
        call = children[0]
        return FilterClause(call, CompareOp.EQUAL, LiteralExpr(True), span=call.span)

    def null_test(self, children: list[Any]) -> NullTest:
        operand, words = children
        span = Span(operand.span.start, words.end_pos)
        return NullTest(operand, "not" in words.split(), span=span)

    def not_test(self, children: list[Any]) -> NotTest:
        start, condition, end = children
        return NotTest(condition, span=from_to(start, end))

    def and_test(self, children: list[Condition]) -> AndTest:
        return AndTest(tuple(children), span=_around(children))

    def or_test(self, children: list[Condition]) -> OrTest:
        return OrTest(tuple(children), span=_around(children))

    def condition_value(self, children: list[Condition]) -> Expr:
        (condition,) = children
        if isinstance(condition, FilterClause) and is_text_search(condition):
            return condition.left
        return ConditionExpr(condition, span=condition.span)

    def projection(self, children: list[Any]) -> Projection:
        expression, alias = children
        if alias is None:
            return Projection(expression, span=expression.span)
        return Projection(expression, alias.value, span=Span(expression.span.start, alias.end_pos))

    def ordering(self, children: list[Any]) -> Ordering:
        expression, direction = children
        if direction is None:
            return Ordering(expression, span=expression.span)
        if isinstance(expression, NearestExpr):
            raise ParseError(
                f"`{direction}` cannot follow nearest(...)",
                span=span_of(direction),
                hint="nearest always puts the smallest distance first",
            )
        span = Span(expression.span.start, direction.end_pos)
        return Ordering(expression, direction == "desc", span=span)

    def variable(self, children: list[Token]) -> VariableExpr:
        return VariableExpr(_variable(children[0]), span=span_of(children[0]))

    def prop_access(self, children: list[Token]) -> PropertyExpr:
        variable, name = children
        return PropertyExpr(
            _variable(variable), name.value, span_of(name), span=from_to(variable, name)
        )

    def alias_ref(self, children: list[Token]) -> AliasExpr:
        return AliasExpr(children[0].value, span=span_of(children[0]))

    def now_call(self, children: list[Token]) -> NowExpr:
        return NowExpr(span=from_to(children[0], children[1]))

    def nearest_call(self, children: list[Any]) -> NearestExpr:
        start, target, query, end = children
        return NearestExpr(target, query, span=from_to(start, end))

    def text_search(self, children: list[Any]) -> TextSearchExpr:
        function, target, query, end = children
        return TextSearchExpr(function.value, target, query, span=from_to(function, end))

    def fuzzy_call(self, children: list[Any]) -> FuzzyExpr:
        start, target, query, max_edits, end = children
        return FuzzyExpr(target, query, max_edits, span=from_to(start, end))

    def rrf_call(self, children: list[Any]) -> RrfExpr:
        start, first, second, k, end = children
        return RrfExpr(first, second, k, span=from_to(start, end))

    def agg_call(self, children: list[Any]) -> AggregateExpr:
        function, argument, end = children
        return AggregateExpr(_AGGREGATES[function], argument, span=from_to(function, end))

    def null(self, children: list[Token]) -> NullExpr:
        return NullExpr(span=span_of(children[0]))

    def arithmetic(self, children: list[Any]) -> ArithmeticExpr:
        left, sign, right = children
        op = ArithmeticOp(sign.value)
        chain: tuple[tuple[ArithmeticOp, Expr], ...] = ()
        first = left
        if isinstance(left, ArithmeticExpr) and left.is_additive == op.is_additive:
            first, chain = left.first, left.rest
        if len(chain) >= _OPERANDS_MAX:
            raise ParseError(f"more than {_OPERANDS_MAX} operands in a row", span=span_of(sign))
        span = Span(left.span.start, right.span.end)
        return ArithmeticExpr(first, (*chain, (op, right)), span=span)

    def minus(self, children: list[Any]) -> MinusExpr | LiteralExpr:
        sign, operand = children
        span = Span(sign.start_pos, operand.span.end)
        if isinstance(operand, LiteralExpr) and _is_unsigned(operand.value):
            return LiteralExpr(-operand.value, span=span)
        return _require_shallow(MinusExpr(operand, span=span))

    def negative(self, children: list[Token]) -> LiteralExpr:
        sign, digits = children
        value = read_number(digits.update(value=f"-{digits}"))
        return LiteralExpr(value, span=from_to(sign, digits))

    def function_call(self, children: list[Any]) -> FunctionExpr:
        name, *arguments, end = children
        return FunctionExpr(name.value, tuple(arguments), span=from_to(name, end))

    def when(self, children: list[Any]) -> CaseArm:
        return CaseArm(*children)

    def else_value(self, children: list[Expr]) -> Expr:
        return children[0]

    def case(self, children: list[Any]) -> CaseExpr:
        start, *arms, otherwise, end = children
        return _require_shallow(CaseExpr(tuple(arms), otherwise, span=from_to(start, end)))

    def string(self, children: list[Token]) -> LiteralExpr:
        return LiteralExpr(read_string(children[0]), span=span_of(children[0]))

    def int(self, children: list[Token]) -> LiteralExpr:
        return LiteralExpr(read_integer(children[0]), span=span_of(children[0]))

    def float(self, children: list[Token]) -> LiteralExpr:
        return LiteralExpr(read_float(children[0]), span=span_of(children[0]))

    def bool(self, children: list[Token]) -> LiteralExpr:
        return LiteralExpr(children[0] == "true", span=span_of(children[0]))

    def date(self, children: list[Any]) -> LiteralExpr | FunctionExpr:
        start, argument, end = children
        if isinstance(argument, LiteralExpr) and isinstance(argument.value, str):
            return LiteralExpr(DateText(argument.value), span=from_to(start, end))
        return FunctionExpr(start.value, (argument,), span=from_to(start, end))

    def datetime(self, children: list[Token]) -> LiteralExpr:
        start, text, end = children
        return LiteralExpr(DateTimeText(read_string(text)), span=from_to(start, end))

    def list(self, children: list[Any]) -> LiteralExpr:
        start, *items, end = children
        for item in items:
            if not isinstance(item, LiteralExpr):
                raise ParseError("a list literal holds literals only", span=item.span)
        return LiteralExpr(
            ListLiteral(tuple(item.value for item in items)), span=from_to(start, end)
        )


def _around(parts: list[Any]) -> Span:
    """From the start of the first of these nodes to the end of the last."""
    return Span(parts[0].span.start, parts[-1].span.end)


def _is_unsigned(value: LiteralValue) -> TypeGuard[int | float]:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and not str(value).startswith("-")


Deep = TypeVar("Deep", MinusExpr, CaseExpr)


def _require_shallow(node: Deep) -> Deep:
    """Refuse what nests too deep without a bracket that `source.admit` would have counted."""
    level: list[object] = [node]
    for _ in range(_LEVELS_MAX):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return node
    raise ParseError(
        "nested too deeply",
        span=node.span,
        hint="write it as several queries, or compute it in the caller",
    )


def _parts(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node) and not isinstance(node, Span):
        yield from (getattr(node, field.name) for field in fields(node))


def _variable(token: Token) -> str:
    """The name of `$name`."""
    name: str = token.value[1:]
    return name


def _hops(bound: Token) -> int:
    return read_integer(bound, UNSIGNED_32_MAX, "a hop bound")
