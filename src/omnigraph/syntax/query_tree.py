"""The tree of a `.gq` file: what was written, in order, with the place it was written at.

Spans take no part in equality, so a printed and reparsed tree equals its original. The span of a
query, a statement, an assignment or a predicate covers its name (the value has a span of its own);
every other span covers all that was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from omnigraph.errors import NO_SPAN, Span

ANONYMOUS = "_"
"""The name of `$_`, which binds nothing."""


class CompareOp(StrEnum):
    """How a filter or predicate compares its two sides."""

    EQUAL = "="
    NOT_EQUAL = "!="
    GREATER = ">"
    LESS = "<"
    GREATER_EQUAL = ">="
    LESS_EQUAL = "<="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


class AggregateFunction(StrEnum):
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class DateText:
    """`date("...")`; the text is validated when the query runs."""

    text: str


@dataclass(frozen=True, slots=True)
class DateTimeText:
    """`datetime("...")`; the text is validated when the query runs."""

    text: str


ScalarLiteral: TypeAlias = str | int | float | bool | DateText | DateTimeText


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b, ...]`. May nest in the tree; the checker refuses nesting."""

    items: tuple[LiteralValue, ...]


LiteralValue: TypeAlias = "ScalarLiteral | ListLiteral"


@dataclass(frozen=True, slots=True)
class LiteralExpr:
    value: LiteralValue
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VariableExpr:
    """`$name`, a parameter or a binding."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NowExpr:
    """`now()`."""

    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PropertyExpr:
    """`$variable.property`."""

    variable: str
    property: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    property_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NearestExpr:
    """`nearest($v.vector, query)`."""

    target: PropertyExpr
    query: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextSearchExpr:
    """`search(field, query)`, `match_text(field, query)` or `bm25(field, query)`."""

    function: Literal["search", "match_text", "bm25"]
    target: Expr
    query: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FuzzyExpr:
    """`fuzzy(field, query[, max_edits])`."""

    target: Expr
    query: Expr
    max_edits: Expr | None = None
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RrfExpr:
    """`rrf(first, second[, k])`."""

    first: NearestExpr | TextSearchExpr
    second: NearestExpr | TextSearchExpr
    k: Expr | None = None
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateExpr:
    function: AggregateFunction
    argument: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AliasExpr:
    """A bare word: the alias of a projection."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


Value: TypeAlias = LiteralExpr | VariableExpr | NowExpr
Expr: TypeAlias = (
    LiteralExpr
    | VariableExpr
    | NowExpr
    | PropertyExpr
    | NearestExpr
    | TextSearchExpr
    | FuzzyExpr
    | RrfExpr
    | AggregateExpr
    | AliasExpr
)


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`property: value` inside the braces of a binding, or in an assignment list."""

    property: str
    value: Value
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$variable: Type { property: value, ... }`."""

    variable: str
    type_name: str
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    type_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$source [$edge_variable:]edge[{min,max}] $target`; `<edge>` is undirected.

    `max_hops` is None for `{m,}`. `edge_variable` is None when the edge is not bound (`$_:` too).
    """

    source: str
    edge: str
    target: str
    min_hops: int = 1
    max_hops: int | None = 1
    undirected: bool = False
    edge_variable: str | None = None
    has_bounds: bool = False
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    edge_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    source_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    target_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FilterClause:
    """`left op right`. A text-search clause is `Filter(call, =, true)`; that `true` has no span."""

    left: Expr
    op: CompareOp
    right: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { clauses }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


Clause: TypeAlias = Binding | Traversal | FilterClause | Negation


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """`$name: Type?`. `type_name` is the spelling without `?`; the checker resolves it."""

    name: str
    type_name: str
    nullable: bool = False
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Projection:
    expression: Expr
    alias: str | None = None
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ordering:
    expression: Expr
    descending: bool = False
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Predicate:
    """`property op value`, the `where` of an update or delete."""

    property: str
    op: CompareOp
    value: Value
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InsertStatement:
    type_name: str
    assignments: tuple[PropertyMatch, ...]
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    type_name: str
    assignments: tuple[PropertyMatch, ...]
    where: Predicate
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeleteStatement:
    type_name: str
    where: Predicate
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


Statement: TypeAlias = InsertStatement | UpdateStatement | DeleteStatement
"""`span` of a statement covers its type name."""


@dataclass(frozen=True, slots=True)
class QueryDecl:
    """One `query`. It is a mutation exactly when `mutations` is not empty."""

    name: str
    params: tuple[ParamDecl, ...] = ()
    description: str | None = None
    instruction: str | None = None
    match: tuple[Clause, ...] = ()
    returns: tuple[Projection, ...] = ()
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    mutations: tuple[Statement, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def is_mutation(self) -> bool:
        return bool(self.mutations)


@dataclass(frozen=True, slots=True)
class QueryTree:
    """One `.gq` file. `text` and `name` are kept so that later errors can quote it."""

    queries: tuple[QueryDecl, ...]
    text: str = field(default="", compare=False, repr=False)
    name: str = field(default="query.gq", compare=False, repr=False)
