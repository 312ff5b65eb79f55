"""Query builder: one method per rule of query.lark, from the children of a rule to a tree node.

Holds no state, so one builder serves every parse. A rule of the language that the grammar cannot
say (sizes, escapes, duplicates) is checked here, where the token is still at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, TypeGuard, TypeVar

from omnigraph.errors import ParseError
from omnigraph.source_text import Span
from omnigraph.syntax.grammar import Token
from omnigraph.syntax.literals import (
    UNSIGNED_32_MAX,
    from_to,
    read_dimension,
    read_float,
    read_integer,
    read_number,
    read_string,
    span_of,
    variable_name,
)
from omnigraph.syntax.query_tree import (
    ANONYMOUS,
    ROW,
    ROW_LIST,
    AggregateExpr,
    AggregateFunction,
    AliasExpr,
    AndTest,
    ArithmeticExpr,
    ArithmeticOp,
    Binding,
    CaseArm,
    CaseExpr,
    Clause,
    CollectExpr,
    CompareOp,
    Condition,
    ConditionExpr,
    DateText,
    DateTimeText,
    EitherClause,
    Expr,
    FieldDecl,
    FilterClause,
    FunctionExpr,
    FuzzyExpr,
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
    ObjectExpr,
    OptionalClause,
    Ordering,
    OrTest,
    ParamDecl,
    Projection,
    PropertyExpr,
    PropertyMatch,
    QueryDecl,
    RrfExpr,
    Shortest,
    Stage,
    TextSearchExpr,
    Traversal,
    VariableExpr,
    is_text_search,
)
from omnigraph.syntax.source import NESTING_MAX
from omnigraph.syntax.statement_builder import StatementBuilder

_OPERATORS = {op.value: op for op in CompareOp}
_OPERANDS_MAX = 1_000
_LEVELS_MAX = 4 * NESTING_MAX
"""Of tree nodes and the tuples between them."""
_AGGREGATES = {function.value: function for function in AggregateFunction}
_Bounds: TypeAlias = "tuple[tuple[int, int | None] | None, Condition | None]"


class QueryBuilder(StatementBuilder):
    """The actions of the query grammar. Each gets the list of a rule's children."""

    def start(self, children: list[Any]) -> tuple[Any, ...]:
        """A rule that is a sequence of other rules."""
        return tuple(children)

    params = fields = match_clause = orderings = having_clause = start
    assignments = statements = stages = start

    def query_decl(self, children: list[Any]) -> QueryDecl:
        name, params, annotations, body = children
        return QueryDecl(name.value, params, **annotations, **body, span=span_of(name))

    def param(self, children: list[Any]) -> ParamDecl:
        name, (type_name, nullable, end, *fields), default = children
        end = end if default is None else default.span.end
        span = Span(name.start_pos, end)
        return ParamDecl(variable_name(name), type_name, nullable, default, *fields, span=span)

    def default(self, children: list[Any]) -> Expr:
        value: Expr = children[1]
        return value

    def field(self, children: list[Any]) -> FieldDecl:
        name, (type_name, nullable, end) = children
        return FieldDecl(name.value, type_name, nullable, span=Span(name.start_pos, end))

    def row_type(self, children: list[Any]) -> tuple[Any, ...]:
        fields, end, optional = children
        return ROW, optional is not None, (optional or end).end_pos, fields

    def row_list_type(self, children: list[Any]) -> tuple[Any, ...]:
        fields, _, end, optional = children
        return ROW_LIST, optional is not None, (optional or end).end_pos, fields

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
        stages, match, returns, having, order, limit, offset = children
        return {
            **returns,
            "stages": stages or (),
            "match": match,
            "having": having or (),
            "order": order or (),
            "limit": limit,
            "offset": offset,
        }

    def stage(self, children: list[Any]) -> Stage:
        start, count, keys, score, (clauses, end) = children
        name = None if score is None else variable_name(score)
        return Stage(count, keys, clauses, name, span=from_to(start, end))

    def return_clause(self, children: list[Any]) -> dict[str, Any]:
        distinct, *projections = children
        return {"distinct": distinct is not None, "returns": tuple(projections)}

    def mutation_body(self, children: list[Any]) -> dict[str, Any]:
        match, statements, returns = children
        return {**(returns or {}), "match": match or (), "mutations": statements}

    def order_clause(self, children: list[Any]) -> Any:
        """A rule that only adds words to another one."""
        return children[0]

    limit_clause = offset_clause = hop_filter = else_value = order_clause

    def number(self, children: list[Token]) -> int:
        return read_integer(children[0], name="a number of rows")

    def block(self, children: list[Any]) -> tuple[tuple[Clause, ...], Token]:
        *clauses, end = children
        return tuple(clauses), end

    def negation(self, children: list[Any]) -> Negation:
        start, (clauses, end) = children
        return Negation(clauses, span=from_to(start, end))

    def optional(self, children: list[Any]) -> OptionalClause:
        start, (clauses, end) = children
        return OptionalClause(clauses, span=from_to(start, end))

    def either(self, children: list[Any]) -> EitherClause:
        start, *blocks = children
        alternatives = tuple(clauses for clauses, _ in blocks)
        return EitherClause(alternatives, span=from_to(start, blocks[-1][1]))

    def binding(self, children: list[Any]) -> Binding:
        variable, type_name, block = children
        matches, end = block or ((), type_name)
        return Binding(
            variable_name(variable),
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

    assignment = prop_match

    def traversal(self, children: list[Any]) -> Traversal:
        source, edge_variable, shortest, edge, bounds, weight, target = children
        edge_name, undirected, edge_span = edge
        hops, hop_filter = bounds or (None, None)
        min_hops, max_hops = hops or (1, 1 if shortest is None else None)
        return Traversal(
            variable_name(source),
            edge_name,
            variable_name(target),
            min_hops,
            max_hops,
            undirected,
            edge_variable,
            hops is not None,
            shortest and Shortest(" ".join(shortest.split())),
            hop_filter,
            weight,
            edge_span,
            span_of(source),
            span_of(target),
            span=from_to(source, target),
        )

    def word_traversal(self, children: list[Any]) -> Traversal:
        source, edge, bounds, target = children
        return self.traversal([source, None, None, self.edge_ref([edge]), bounds, None, target])

    def edge_binding(self, children: list[Token]) -> str | None:
        name = variable_name(children[0])
        return None if name == ANONYMOUS else name

    def edge_ref(self, children: list[Token]) -> tuple[str, bool, Span]:
        return children[0].value, False, span_of(children[0])

    def edge_ref_undirected(self, children: list[Token]) -> tuple[str, bool, Span]:
        return children[1].value, True, span_of(children[1])

    def bounds(self, children: list[Any]) -> _Bounds:
        minimum, maximum, hop_filter = children
        return (_hops(minimum), None if maximum is None else _hops(maximum)), hop_filter

    def only_filter(self, children: list[Condition]) -> _Bounds:
        return None, children[0]

    def weight(self, children: list[Token]) -> str:
        name: str = children[0].value
        return name

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
        return VariableExpr(variable_name(children[0]), span=span_of(children[0]))

    def prop_access(self, children: list[Token]) -> PropertyExpr:
        variable, name = children
        return PropertyExpr(
            variable_name(variable), name.value, span_of(name), span=from_to(variable, name)
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
        function, distinct, argument, end = children
        span = from_to(function, end)
        return AggregateExpr(_AGGREGATES[function], argument, distinct is not None, span=span)

    def collect_call(self, children: list[Any]) -> CollectExpr:
        start, distinct, argument, order, end = children
        span = from_to(start, end)
        return CollectExpr(argument, distinct is not None, order or (), span=span)

    def object(self, children: list[Any]) -> ObjectExpr:
        variable, properties, end = children
        names = None if isinstance(properties, str) else properties
        return ObjectExpr(variable_name(variable), names, span=from_to(variable, end))

    def property_names(self, children: list[Token]) -> tuple[str, ...]:
        return tuple(token.value for token in children)

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
        value = read_number(Token.at(f"-{digits}", digits.start_pos, digits.end_pos))
        return LiteralExpr(value, span=from_to(sign, digits))

    def function_call(self, children: list[Any]) -> FunctionExpr:
        name, *arguments, end = children
        return FunctionExpr(name.value, tuple(arguments), span=from_to(name, end))

    def when(self, children: list[Any]) -> CaseArm:
        return CaseArm(*children)

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


def _hops(bound: Token) -> int:
    return read_integer(bound, UNSIGNED_32_MAX, "a hop bound")
