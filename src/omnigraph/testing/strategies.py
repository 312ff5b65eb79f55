"""Hypothesis strategies for every tree that the two grammars can express.

The trees are well formed as text and need not mean anything: types may be unknown, properties
missing. Names are hostile on purpose, for no word of either language is reserved. Where a strategy
holds something back, a comment names the text that would read differently.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st

from omnigraph.syntax.query_tree import (
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
    QueryTree,
    RrfExpr,
    Statement,
    TextSearchExpr,
    Traversal,
    UpdateStatement,
    Value,
    VariableExpr,
    is_text_search,
)
from omnigraph.syntax.schema_tree import (
    Annotation,
    CardinalityDecl,
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    Identifier,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    RangeBound,
    SchemaTree,
    TypeRef,
)
from omnigraph.types import VECTOR_DIMENSION_MAX, PropertyType, Scalar

_T = TypeVar("_T")

_BOOLEANS = ("true", "false")
_CONSTRAINTS = ("key", "unique", "index", "range", "check")
_LANGUAGE_WORDS = frozenset({
    "true", "false", "contains", "starts_with", "ends_with", "in", "and", "or", "is", "null",
    "case", "when", "then", "else", "end", "not", "as", "asc", "desc", "insert", "update", "delete",
})  # fmt: skip
_INFIX_WORDS = ("contains", "starts_with", "as", "asc", "desc", "insert", "update", "delete")

HOSTILE_NAMES = (
    *_BOOLEANS, *_CONSTRAINTS, *_INFIX_WORDS, "query", "match", "return", "order", "limit", "set",
    "where", "not", "now", "nearest", "search", "fuzzy", "match_text", "bm25", "rrf", "count",
    "sum", "avg", "min", "max", "date", "datetime", "from", "to", "node", "edge", "interface",
    "implements", "enum", "card", "type", "when", "blob", "null", "or", "in", "description",
    "instruction", "__", "_rowid", "camelCase", "x1",
)  # fmt: skip
"""Names that are words of one language or the other."""

HOSTILE_VARIANTS = (
    "3d", "phase-1", "t2d", "self", "date", "next", "other", "-", "--", "1e5", "0", "true", "enum",
    "String", "A_b-C",
)  # fmt: skip
"""Enum variants that look like something else."""

_HEADS = st.sampled_from("abcxyz_")
_TAILS = st.text("abcXYZ019_", max_size=6)

# Deferred: Hypothesis shows a strategy by all of its parts, which are many.
_all_names = st.sampled_from(HOSTILE_NAMES) | st.builds(str.__add__, _HEADS, _TAILS)
names: st.SearchStrategy[str] = st.deferred(lambda: _all_names)
"""Property, parameter, query, edge, annotation and alias names."""

type_names = st.sampled_from(
    ("Author", "Paper", "String", "Date", "Vector", "Blob", "I32", "A", "True")
) | st.builds(str.__add__, st.sampled_from("ABCXYZ"), _TAILS)
"""Names of node types, edge types and interfaces."""

# `true` where a literal may stand is the literal.
_words = names.filter(lambda name: name not in _BOOLEANS)
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_integers = st.integers(0, 2**63 - 1) | st.integers(0, 9)
_floats = st.floats(0, allow_nan=False, allow_infinity=False)
_literals = st.one_of(_texts, _integers, _floats, st.booleans())


def _tuples(
    elements: st.SearchStrategy[_T], *, least: int = 0, most: int = 3
) -> st.SearchStrategy[tuple[_T, ...]]:
    return st.lists(elements, min_size=least, max_size=most).map(tuple)


# ---- schemas ---------------------------------------------------------------------------------


def _annotations(*, bare: tuple[str, ...]) -> st.SearchStrategy[tuple[Annotation, ...]]:
    """Annotations of which the names in `bare` take no argument."""
    argument = _literals | st.builds(Identifier, _words)
    kwargs = _tuples(st.tuples(names, _literals), most=2)
    takes_none = st.builds(Annotation, names)
    takes_some = st.builds(Annotation, names.filter(lambda n: n not in bare), argument, kwargs)
    options = _tuples(st.tuples(names, _literals), least=1, most=2)
    takes_options = st.builds(Annotation, st.just("index"), st.none(), options)
    return _tuples(takes_none | takes_some | takes_options, most=2)


_scalars = st.sampled_from([scalar for scalar in Scalar if scalar is not Scalar.VECTOR])
_variants = st.sampled_from(HOSTILE_VARIANTS) | st.text("abAB01_-", min_size=1, max_size=5)
_scalar_types = st.builds(PropertyType, _scalars, nullable=st.booleans())
_list_types = st.builds(
    PropertyType,
    _scalars.filter(lambda scalar: scalar is not Scalar.BLOB),
    is_list=st.just(True),
    nullable=st.booleans(),
)
_vector_types = st.builds(
    PropertyType,
    st.just(Scalar.VECTOR),
    nullable=st.booleans(),
    dimension=st.integers(1, VECTOR_DIMENSION_MAX),
)
_enum_types = st.builds(
    PropertyType,
    st.just(Scalar.STRING),
    nullable=st.booleans(),
    variants=st.sets(_variants, min_size=1, max_size=4).map(sorted).map(tuple),
)

property_types = st.one_of(_scalar_types, _list_types, _vector_types, _enum_types)
"""Every type of a property."""

# Behind a property, `@key(` opens a constraint.
_properties = _tuples(
    st.builds(PropertyDecl, names, property_types, _annotations(bare=_CONSTRAINTS))
)
_signed = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_ranges = st.one_of(
    st.builds(RangeBound, _signed, _signed),
    st.builds(RangeBound, _signed, st.none()),
    st.builds(RangeBound, st.none(), _signed),
)
_constraints = _tuples(
    st.builds(
        ConstraintDecl,
        st.sampled_from(_CONSTRAINTS),
        _tuples(st.one_of(st.builds(Identifier, _words), _literals, _ranges), least=1),
    )
)
_type_refs = st.builds(TypeRef, type_names)
# In the head of a type, `@a @key(x)` stops at the constraint, and `@card(` is the cardinality.
_head_annotations = _annotations(bare=(*_CONSTRAINTS, "card"))
_bounds_32 = st.integers(0, 2**32 - 1)

declarations: st.SearchStrategy[Declaration] = st.one_of(
    st.builds(InterfaceDecl, type_names, _properties),
    st.builds(
        NodeDecl, type_names, _head_annotations, _tuples(_type_refs), _properties, _constraints
    ),
    st.builds(
        EdgeDecl,
        type_names,
        _type_refs,
        _type_refs,
        st.none() | st.builds(CardinalityDecl, _bounds_32, st.none() | _bounds_32),
        _head_annotations,
        _properties,
        _constraints,
    ),
)
"""Interfaces, nodes and edges."""

schema_trees = st.builds(SchemaTree, _tuples(declarations))
"""Every tree of a `.pg` file."""


# ---- queries ---------------------------------------------------------------------------------

_numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_literal_values: st.SearchStrategy[LiteralValue] = st.recursive(
    st.one_of(_literals, _numbers, st.builds(DateText, _texts), st.builds(DateTimeText, _texts)),
    lambda items: st.builds(ListLiteral, _tuples(items)),
    max_leaves=4,
)
_literal_exprs = st.builds(LiteralExpr, _literal_values)
_variable_exprs = st.builds(VariableExpr, names)
_property_exprs = st.builds(PropertyExpr, names, names)
_now = st.just(NowExpr())

_all_values: st.SearchStrategy[Value] = st.one_of(_literal_exprs, _variable_exprs, _now)
values: st.SearchStrategy[Value] = st.deferred(lambda: _all_values)
"""What an assignment or a predicate may hold."""

_FUNCTION_NAMES = ("lower", "length", "coalesce", "year", "days", "in", "or", "is")


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
        st.builds(AndTest, _tuples(parts, least=2)),
        st.builds(OrTest, _tuples(parts, least=2)),
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
        st.builds(AggregateExpr, st.sampled_from(AggregateFunction), inner),
        st.builds(FunctionExpr, st.sampled_from(_FUNCTION_NAMES), _tuples(inner)),
        st.builds(_chain, inner, ops, st.lists(inner, min_size=1, max_size=2)),
        st.builds(_negate, inner),
        st.builds(CaseExpr, _tuples(arms, least=1, most=2), st.none() | inner),
    )


_leaves = st.one_of(values, _property_exprs, st.just(NullExpr()))
_all_sums: st.SearchStrategy[Expr] = st.recursive(
    st.deferred(lambda: _leaves), _calls, max_leaves=4
)
_sums: st.SearchStrategy[Expr] = st.deferred(lambda: _all_sums)
_all_filters = st.recursive(_tests(_sums), _join_tests, max_leaves=3)
_filters: st.SearchStrategy[Condition] = st.deferred(lambda: _all_filters)
# A word that may follow an expression goes on with the one before it.
_aliases = st.builds(AliasExpr, names.filter(lambda name: name not in _LANGUAGE_WORDS))
_all_expressions: st.SearchStrategy[Expr] = st.one_of(
    _sums,
    _aliases,
    st.builds(TextSearchExpr, st.sampled_from(["search", "match_text"]), _sums, _sums),
    _filters.filter(lambda each: not (isinstance(each, FilterClause) and is_text_search(each))).map(
        ConditionExpr
    ),
)
expressions: st.SearchStrategy[Expr] = st.deferred(lambda: _all_expressions)
"""Every expression, calls within calls included."""


_bindings = st.builds(Binding, names, type_names, _tuples(st.builds(PropertyMatch, names, values)))
# `$_: edge` is not bound, which the tree says with None.
_edge_variables = st.none() | names.filter(lambda name: name != "_")
# `$a <true> $b` compares `$a` with a literal, and an undirected edge looks the same.
_hops = st.builds(
    Traversal, names, _words, names, undirected=st.booleans(), edge_variable=_edge_variables
)
_bounded = st.builds(
    Traversal,
    names,
    _words,
    names,
    min_hops=_bounds_32,
    max_hops=st.none() | _bounds_32,
    undirected=st.booleans(),
    edge_variable=_edge_variables,
    has_bounds=st.just(True),
)
clauses: st.SearchStrategy[Clause] = st.recursive(
    st.one_of(_bindings, _hops, _bounded, _filters),
    lambda inner: st.builds(Negation, _tuples(inner, least=1)),
    max_leaves=4,
)
"""Every clause of a `match`."""

_params = st.builds(
    ParamDecl,
    names,
    st.one_of(
        _scalars.map(str),
        _scalars.map(lambda scalar: f"[{scalar}]"),
        st.integers(1, VECTOR_DIMENSION_MAX).map(lambda size: f"Vector({size})"),
    ),
    st.booleans(),
)
_orderings = st.builds(Ordering, _sums | _aliases, st.booleans()).filter(
    lambda ordering: not (ordering.descending and isinstance(ordering.expression, NearestExpr))
)
_assignments = _tuples(st.builds(PropertyMatch, names, values), least=1)
_symbols = st.sampled_from([op for op in CompareOp if not op.is_word])
_predicates = st.builds(Predicate, names, _symbols, values)
_statements: st.SearchStrategy[Statement] = st.one_of(
    st.builds(InsertStatement, type_names, _assignments),
    st.builds(UpdateStatement, type_names, _assignments, _predicates),
    st.builds(DeleteStatement, type_names, _predicates),
)
_heads: dict[str, st.SearchStrategy[Any]] = {
    "name": names,
    "params": _tuples(_params),
    "description": st.none() | _texts,
    "instruction": st.none() | _texts,
}
_reads = st.builds(
    QueryDecl,
    **_heads,
    match=_tuples(clauses, least=1),
    returns=_tuples(st.builds(Projection, expressions, st.none() | names), least=1),
    order=_tuples(_orderings, most=2),
    limit=st.none() | _integers,
)
_mutations = st.builds(QueryDecl, **_heads, mutations=_tuples(_statements, least=1))

query_trees = st.builds(QueryTree, _tuples(_reads | _mutations, most=2))
"""Every tree of a `.gq` file."""
