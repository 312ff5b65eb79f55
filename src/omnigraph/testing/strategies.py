"""Hypothesis strategies for names, literals and every tree of the schema grammar.

The trees are well formed as text and need not mean anything: types may be unknown, properties
missing. Names are hostile on purpose, for no word of either language is reserved. Where a strategy
holds something back, a comment names the text that would read differently.
"""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

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
_INFIX_WORDS = ("contains", "starts_with", "as", "asc", "desc", "insert", "update", "delete")

HOSTILE_NAMES = (
    *_BOOLEANS, *_CONSTRAINTS, *_INFIX_WORDS, "query", "match", "return", "order", "limit", "set",
    "where", "not", "now", "nearest", "search", "fuzzy", "match_text", "bm25", "rrf", "count",
    "sum", "avg", "min", "max", "date", "datetime", "from", "to", "node", "edge", "interface",
    "implements", "enum", "card", "type", "when", "blob", "null", "or", "in", "description",
    "instruction", "top", "by", "distinct",
    "having", "offset", "optional", "either", "collect", "upsert", "for", "shortest", "all", "end",
    "__", "_rowid", "camelCase", "x1",
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
words = names.filter(lambda name: name not in _BOOLEANS)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
integers = st.integers(0, 2**63 - 1) | st.integers(0, 9)
floats = st.floats(0, allow_nan=False, allow_infinity=False)
literals = st.one_of(texts, integers, floats, st.booleans())


def tuples(
    elements: st.SearchStrategy[_T], *, least: int = 0, most: int = 3
) -> st.SearchStrategy[tuple[_T, ...]]:
    return st.lists(elements, min_size=least, max_size=most).map(tuple)


# ---- schemas ---------------------------------------------------------------------------------


def _annotations(*, bare: tuple[str, ...]) -> st.SearchStrategy[tuple[Annotation, ...]]:
    """Annotations of which the names in `bare` take no argument."""
    argument = literals | st.builds(Identifier, words)
    kwargs = tuples(st.tuples(names, literals), most=2)
    takes_none = st.builds(Annotation, names)
    takes_some = st.builds(Annotation, names.filter(lambda n: n not in bare), argument, kwargs)
    options = tuples(st.tuples(names, literals), least=1, most=2)
    takes_options = st.builds(Annotation, st.just("index"), st.none(), options)
    return tuples(takes_none | takes_some | takes_options, most=2)


scalars = st.sampled_from([scalar for scalar in Scalar if scalar is not Scalar.VECTOR])
_variants = st.sampled_from(HOSTILE_VARIANTS) | st.text("abAB01_-", min_size=1, max_size=5)
_scalar_types = st.builds(PropertyType, scalars, nullable=st.booleans())
_list_types = st.builds(
    PropertyType,
    scalars.filter(lambda scalar: scalar is not Scalar.BLOB),
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
_properties = tuples(
    st.builds(PropertyDecl, names, property_types, _annotations(bare=_CONSTRAINTS))
)
_signed = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_ranges = st.one_of(
    st.builds(RangeBound, _signed, _signed),
    st.builds(RangeBound, _signed, st.none()),
    st.builds(RangeBound, st.none(), _signed),
)
_constraints = tuples(
    st.builds(
        ConstraintDecl,
        st.sampled_from(_CONSTRAINTS),
        tuples(st.one_of(st.builds(Identifier, words), literals, _ranges), least=1),
    )
)
_type_refs = st.builds(TypeRef, type_names)
# In the head of a type, `@a @key(x)` stops at the constraint, and `@card(` is the cardinality.
_head_annotations = _annotations(bare=(*_CONSTRAINTS, "card"))
bounds_32 = st.integers(0, 2**32 - 1)

declarations: st.SearchStrategy[Declaration] = st.one_of(
    st.builds(InterfaceDecl, type_names, _properties),
    st.builds(
        NodeDecl, type_names, _head_annotations, tuples(_type_refs), _properties, _constraints
    ),
    st.builds(
        EdgeDecl,
        type_names,
        _type_refs,
        _type_refs,
        st.none() | st.builds(CardinalityDecl, bounds_32, st.none() | bounds_32),
        _head_annotations,
        _properties,
        _constraints,
    ),
)
"""Interfaces, nodes and edges."""

schema_trees = st.builds(SchemaTree, tuples(declarations))
"""Every tree of a `.pg` file."""
