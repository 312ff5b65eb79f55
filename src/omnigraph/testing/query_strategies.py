"""Hypothesis strategies for every tree that the query grammar can express.

As in strategies.py, the trees are well formed as text and need not mean anything.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st

from omnigraph.syntax.query_tree import (
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
    QueryTree,
    RrfExpr,
    Shortest,
    Stage,
    TextSearchExpr,
    Traversal,
    Value,
    VariableExpr,
    is_text_search,
)
from omnigraph.syntax.statement_tree import (
    DeleteBound,
    DeleteStatement,
    ForStatement,
    InsertStatement,
    Statement,
    UpdateBound,
    UpdateStatement,
    UpsertStatement,
)
from omnigraph.testing.strategies import (
    bounds_32,
    integers,
    literals,
    names,
    scalars,
    texts,
    tuples,
    type_names,
    words,
)
from omnigraph.types import VECTOR_DIMENSION_MAX

_LANGUAGE_WORDS = frozenset({
    "true", "false", "contains", "starts_with", "ends_with", "in", "and", "or", "is", "null",
    "case", "when", "then", "else", "end", "not", "as", "asc", "desc", "insert", "update", "delete",
    "collect", "distinct", "order", "where", "return", "top", "by", "upsert", "for", "optional",
    "either", "match",
})  # fmt: skip

_T = TypeVar("_T")


def _hide(strategy: st.SearchStrategy[_T]) -> st.SearchStrategy[_T]:
    """The same strategy, shown without its parts: Hypothesis shows all of them, which are many."""

    @st.composite
    def hidden(draw: st.DrawFn) -> _T:
        return draw(strategy)

    return hidden()


_numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_literal_values: st.SearchStrategy[LiteralValue] = st.recursive(
    st.one_of(literals, _numbers, st.builds(DateText, texts), st.builds(DateTimeText, texts)),
    lambda items: st.builds(ListLiteral, tuples(items)),
    max_leaves=4,
)
_literal_exprs = st.builds(LiteralExpr, _literal_values)
_variable_exprs = st.builds(VariableExpr, names)
_property_exprs = st.builds(PropertyExpr, names, names)
_now = st.just(NowExpr())

_all_values: st.SearchStrategy[Value] = st.one_of(_literal_exprs, _variable_exprs, _now)
values: st.SearchStrategy[Value] = _hide(_all_values)
"""What an assignment or a predicate may hold."""

_FUNCTION_NAMES = ("lower", "length", "coalesce", "year", "days", "is", "type")


def _negate(operand: Expr) -> Expr:
    """`-operand`; before an unsigned number the sign is part of the literal."""
    match operand:
        case LiteralExpr(bool()):
            return MinusExpr(operand)
        case LiteralExpr(int() | float() as number) if not str(number).startswith("-"):
            return LiteralExpr(-number)
    return MinusExpr(operand)


def _chain(first: Expr, ops: list[ArithmeticOp], operands: list[Expr]) -> ArithmeticExpr:
    """A chain of operators of one strength; a start that goes on with it is part of it."""
    rest = tuple(zip(ops, operands, strict=False))
    if isinstance(first, ArithmeticExpr) and first.is_additive == ops[0].is_additive:
        return ArithmeticExpr(first.first, (*first.rest, *rest))
    return ArithmeticExpr(first, rest)


_objects = st.builds(ObjectExpr, names, st.none() | tuples(names, least=1))


def _ordered(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Ordering]:
    # `nearest` has one direction, so none is written.
    return st.builds(Ordering, inner, st.booleans()).filter(
        lambda ordering: not (ordering.descending and isinstance(ordering.expression, NearestExpr))
    )


def _tests(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Condition]:
    search = st.builds(TextSearchExpr, st.sampled_from(["search", "match_text"]), inner, inner)
    fuzzy = st.builds(FuzzyExpr, inner, inner, st.none() | inner)
    is_true = st.just(CompareOp.EQUAL), st.just(LiteralExpr(True))
    return st.one_of(
        st.builds(FilterClause, inner, st.sampled_from(CompareOp), inner),
        st.builds(FilterClause, search | fuzzy, *is_true),
        st.builds(NullTest, inner, st.booleans()),
    )


def _join_tests(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    return st.one_of(
        st.builds(NotTest, parts),
        st.builds(AndTest, tuples(parts, least=2)),
        st.builds(OrTest, tuples(parts, least=2)),
    )


def _calls(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    nearest = st.builds(NearestExpr, _property_exprs, inner)
    bm25 = st.builds(TextSearchExpr, st.just("bm25"), inner, inner)
    sums = [op for op in ArithmeticOp if op.is_additive]
    products = [op for op in ArithmeticOp if not op.is_additive]
    ops = st.one_of(
        *(st.lists(st.sampled_from(each), min_size=2, max_size=2) for each in (sums, products))
    )
    arms = st.builds(CaseArm, _join_tests(_tests(inner)) | _tests(inner), inner)
    return st.one_of(
        nearest,
        bm25,
        st.builds(RrfExpr, nearest | bm25, nearest | bm25, st.none() | inner),
        st.builds(AggregateExpr, st.sampled_from(AggregateFunction), inner, st.booleans()),
        st.builds(CollectExpr, inner | _objects, st.booleans(), tuples(_ordered(inner), most=2)),
        st.builds(FunctionExpr, st.sampled_from(_FUNCTION_NAMES), tuples(inner)),
        st.builds(_chain, inner, ops, st.lists(inner, min_size=1, max_size=2)),
        st.builds(_negate, inner),
        st.builds(CaseExpr, tuples(arms, least=1, most=2), st.none() | inner),
    )


# A word that may follow an expression goes on with the one before it.
_aliases = st.builds(AliasExpr, names.filter(lambda name: name not in _LANGUAGE_WORDS))
_leaves = st.one_of(values, _property_exprs, st.just(NullExpr()), _aliases)
_all_sums: st.SearchStrategy[Expr] = st.recursive(_hide(_leaves), _calls, max_leaves=4)
_sums: st.SearchStrategy[Expr] = _hide(_all_sums)
_all_filters = st.recursive(_hide(_tests(_sums)), _join_tests, max_leaves=3)
_filters: st.SearchStrategy[Condition] = _hide(_all_filters)
_all_expressions: st.SearchStrategy[Expr] = st.one_of(
    _sums,
    _objects,
    st.builds(TextSearchExpr, st.sampled_from(["search", "match_text"]), _sums, _sums),
    _filters.filter(lambda each: not (isinstance(each, FilterClause) and is_text_search(each))).map(
        ConditionExpr
    ),
)
expressions: st.SearchStrategy[Expr] = _hide(_all_expressions)
"""Every expression, calls within calls included."""


_bindings = st.builds(Binding, names, type_names, tuples(st.builds(PropertyMatch, names, values)))
# `$_: edge` is not bound, which the tree says with None.
_edge_variables = st.none() | names.filter(lambda name: name != "_")
# `$a <true> $b` compares `$a` with a literal, and an undirected edge looks the same.
_hops = st.builds(
    Traversal, names, words, names, undirected=st.booleans(), edge_variable=_edge_variables
)
_bounded = st.builds(
    Traversal,
    names,
    words,
    names,
    min_hops=bounds_32,
    max_hops=st.none() | bounds_32,
    undirected=st.booleans(),
    edge_variable=_edge_variables,
    has_bounds=st.just(True),
)
_filtered = st.builds(Traversal, names, words, names, undirected=st.booleans(), hop_filter=_filters)
_shortest = st.builds(
    Traversal,
    names,
    words,
    names,
    max_hops=st.none(),
    undirected=st.booleans(),
    edge_variable=_edge_variables,
    shortest=st.sampled_from(Shortest),
    hop_filter=st.none() | _filters,
    weight=st.none() | names,
)


def _blocks(inner: st.SearchStrategy[Clause]) -> st.SearchStrategy[Clause]:
    block = tuples(inner, least=1)
    return st.one_of(
        st.builds(Negation, block),
        st.builds(OptionalClause, block),
        st.builds(EitherClause, tuples(block, least=2)),
    )


_all_clauses: st.SearchStrategy[Clause] = st.recursive(
    _hide(st.one_of(_bindings, _hops, _bounded, _filtered, _shortest, _filters)),
    _blocks,
    max_leaves=4,
)
clauses = _hide(_all_clauses)
"""Every clause of a `match`."""

_field_types = st.one_of(
    scalars.map(str),
    scalars.map(lambda scalar: f"[{scalar}]"),
    st.integers(1, VECTOR_DIMENSION_MAX).map(lambda size: f"Vector({size})"),
)
_fields = st.builds(FieldDecl, names, _field_types, st.booleans())
_defaults = st.none() | _sums
_params = st.one_of(
    st.builds(ParamDecl, names, _field_types, st.booleans(), _defaults),
    st.builds(
        ParamDecl,
        names,
        st.sampled_from((ROW, ROW_LIST)),
        st.booleans(),
        _defaults,
        tuples(_fields, least=1),
    ),
)
_orderings = _ordered(_sums)
_assignments = tuples(
    # A list of properties stands in `return` only.
    st.builds(PropertyMatch, names, expressions.filter(lambda e: not isinstance(e, ObjectExpr))),
    least=1,
)
_labels = st.none() | names
_simple: st.SearchStrategy[Statement] = st.one_of(
    st.builds(InsertStatement, type_names, _assignments, _labels),
    st.builds(UpsertStatement, type_names, _assignments, _labels),
    st.builds(UpdateStatement, type_names, _assignments, _filters, _labels),
    st.builds(DeleteStatement, type_names, _filters, _labels),
    st.builds(UpdateBound, names, _assignments),
    st.builds(DeleteBound, names),
)
_statements = _hide(
    st.recursive(
        _simple,
        lambda inner: st.builds(ForStatement, names, names, tuples(inner, least=1)),
        max_leaves=3,
    )
)
_counts = integers | _variable_exprs
_stages = st.builds(
    Stage, _counts, tuples(_orderings, least=1, most=2), tuples(clauses, least=1), _labels
)
_projections = tuples(st.builds(Projection, expressions, st.none() | names), least=1)
_heads: dict[str, st.SearchStrategy[Any]] = {
    "name": names,
    "params": tuples(_params, most=2),
    "description": st.none() | texts,
    "instruction": st.none() | texts,
}
_reads = st.builds(
    QueryDecl,
    **_heads,
    match=tuples(clauses, least=1),
    returns=_projections,
    order=tuples(_orderings, most=2),
    limit=st.none() | _counts,
    stages=tuples(_stages, most=1),
    distinct=st.booleans(),
    having=tuples(_filters, most=2),
    offset=st.none() | _counts,
)
_writes: dict[str, st.SearchStrategy[Any]] = {
    **_heads,
    "match": tuples(clauses),
    "mutations": tuples(_statements, least=1),
}
_mutations = st.one_of(
    st.builds(QueryDecl, **_writes),
    st.builds(QueryDecl, **_writes, returns=_projections, distinct=st.booleans()),
)

query_trees = st.builds(QueryTree, tuples(_reads | _mutations, most=2))
"""Every tree of a `.gq` file."""
