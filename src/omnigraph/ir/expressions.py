"""Typed expressions and predicates: what a checked query computes and what it requires.

Predicates have three values: true, false, and unknown where a null keeps them from being either.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.languages import DEFAULT_LANGUAGE
from omnigraph.syntax.query_tree import AggregateFunction, ArithmeticOp, LiteralValue
from omnigraph.types import PropertyType

NOW_PARAMETER = "__nanograph_now"
"""The reserved parameter that carries `now()`: one instant per execution."""

TYPE_PROPERTY = "#type"
"""Reads as a property of an interface variable and holds the name of the entity's own type."""
GROUP_VARIABLE = "#group"
"""Where expressions over groups are computed, its properties are their keys and aggregates."""
SCORE_PROPERTY = "#value"
"""Reads as a property of a score variable and holds the score."""
PATH_PROPERTIES = ("#hops", "#nodes", "#edges", "#cost")
"""Read as properties of a path variable; `#nodes/name` is a property of each of its nodes."""
PATH_ENTITIES = ("#nodes", "#edges")
"""Those that are ids."""
ID_PROPERTY = "id"
"""Every entity has one, so it is null exactly where a variable is."""


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
    ENDS_WITH = "ends_with"


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
    """A bare node variable; its value is the node's id, null where the variable is."""

    variable: str
    type_name: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Null:
    """The literal `null`, in the type that its place asks for."""

    type: PropertyType


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`first op operand op operand …`, from left to right."""

    first: Scalar
    rest: tuple[tuple[ArithmeticOp, Scalar], ...]
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Minus:
    operand: Scalar
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language, with as many arguments as it takes."""

    function: str
    arguments: tuple[Scalar, ...]
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first arm whose predicate is TRUE; no other arm is computed."""

    arms: tuple[tuple[Predicate, Scalar], ...]
    otherwise: Scalar
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Truth:
    """A predicate as a Bool, null where it is unknown."""

    predicate: Predicate
    type: PropertyType


Computed: TypeAlias = Null | Arithmetic | Minus | Call | Case | Truth


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`type` is the type of the result: I64 for count, F64 for sum and avg, else the argument's.

    With `is_distinct` equal values count once.
    """

    function: AggregateFunction
    argument: Scalar | NodeRef
    type: PropertyType
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """`$variable { … }`: some of its properties as one value; null where the variable is."""

    variable: str
    fields: tuple[PropertyRef, ...]
    id: PropertyRef
    """What is null exactly where the object is."""


@dataclass(frozen=True, slots=True)
class Collect:
    """The values of a group that are not null, as a list.

    In the order of the keys (each with whether it descends), then of the ids of all variables.
    """

    argument: Scalar | NodeRef | ObjectRef
    order: tuple[tuple[Scalar, bool], ...] = ()
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """A key or an aggregate of a group, by its place among them."""

    place: int
    shows: Scalar | NodeRef | ObjectRef | Aggregate | Collect


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


Plain: TypeAlias = Constant | Param | PropertyRef
Scalar: TypeAlias = Plain | Computed
Ranking: TypeAlias = Nearest | Bm25 | Rrf
Grouped: TypeAlias = Aggregate | Collect
Projected: TypeAlias = Scalar | NodeRef | ObjectRef | Grouped | Ranking | GroupColumn
SortKey: TypeAlias = Scalar | NodeRef | AliasRef | Ranking | Grouped | GroupColumn


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
    query: Plain
    max_edits: Plain | None = None
    language: str = DEFAULT_LANGUAGE


@dataclass(frozen=True, slots=True)
class SameNode:
    """TRUE where both variables are bound to one node: closes a cycle."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class IsIn:
    """TRUE where `operand` equals a member of the list; unknown where either is null."""

    operand: Scalar
    values: Constant | Param


@dataclass(frozen=True, slots=True)
class IsNull:
    """TRUE where there is no value; never unknown."""

    operand: Scalar


@dataclass(frozen=True, slots=True)
class Not:
    """TRUE where the part is FALSE."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Predicate, ...]


Predicate: TypeAlias = Compare | TextMatch | SameNode | IsIn | IsNull | Not | And | Or
