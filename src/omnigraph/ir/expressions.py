"""Typed expressions and predicates: what a checked query computes and what it requires.

Predicates are a closed union, so that `or`, `in` and null tests can join it as new members.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.languages import DEFAULT_LANGUAGE
from omnigraph.syntax.query_tree import AggregateFunction, LiteralValue
from omnigraph.types import PropertyType

NOW_PARAMETER = "__nanograph_now"
"""The reserved parameter that carries `now()`: one instant per execution."""


class CompareKind(StrEnum):
    """What a comparison does; `contains` is split by the type of its left side."""

    EQUAL = "="
    NOT_EQUAL = "!="
    GREATER = ">"
    LESS = "<"
    GREATER_EQUAL = ">="
    LESS_EQUAL = "<="
    LIST_CONTAINS = "list_contains"
    TEXT_CONTAINS = "text_contains"
    STARTS_WITH = "starts_with"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal with its type. Date and DateTime texts are parsed when the query runs."""

    value: LiteralValue
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Param:
    """A declared parameter, or `now()` under its reserved name."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """`$variable.property` of a bound node or edge."""

    variable: str
    property: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A bare node variable; its value is the node's id."""

    variable: str
    type_name: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`type` is the type of the result: I64 for count, F64 for sum and avg, else the argument's."""

    function: AggregateFunction
    argument: Constant | Param | PropertyRef | NodeRef
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Nearest:
    """Ascending distance of a vector property to `query` (a vector, or text to embed)."""

    target: PropertyRef
    query: Constant | Param | PropertyRef


@dataclass(frozen=True, slots=True)
class Bm25:
    """Descending full-text relevance of a String property."""

    target: PropertyRef
    query: Constant | Param | PropertyRef
    language: str = DEFAULT_LANGUAGE


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion of two rankings. `k` is None for the default."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: Constant | Param | PropertyRef | None = None


@dataclass(frozen=True, slots=True)
class AliasRef:
    """The projection with this alias."""

    alias: str


Scalar: TypeAlias = Constant | Param | PropertyRef
Ranking: TypeAlias = Nearest | Bm25 | Rrf
Projected: TypeAlias = Constant | Param | PropertyRef | NodeRef | Aggregate
SortKey: TypeAlias = PropertyRef | AliasRef | Ranking


@dataclass(frozen=True, slots=True)
class Compare:
    """TRUE where `left kind right` holds; null on either side is not TRUE."""

    left: Scalar
    kind: CompareKind
    right: Scalar


@dataclass(frozen=True, slots=True)
class TextMatch:
    """TRUE where the text of `target`, which is in `language`, matches `query`.

    `max_edits` is for fuzzy only.
    """

    function: Literal["search", "match_text", "fuzzy"]
    target: PropertyRef
    query: Scalar
    max_edits: Scalar | None = None
    language: str = DEFAULT_LANGUAGE


@dataclass(frozen=True, slots=True)
class SameNode:
    """TRUE where both variables are bound to one node: closes a cycle."""

    left: str
    right: str


Predicate: TypeAlias = Compare | TextMatch | SameNode
