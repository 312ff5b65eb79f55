"""The tree of a `.gq` file: what was written, in order, with the span it was written at.

Spans take no part in equality, so a printed and reparsed tree equals its original. The span of a
query, a statement or an assignment covers its name (the value has a span of its own); every other
span covers all that was written.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.source_text import NO_SPAN, Span
from omnigraph.syntax.spanned import Spanned
from omnigraph.syntax.statement_tree import Statement

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
    ENDS_WITH = "ends_with"
    IN = "in"

    @property
    def is_word(self) -> bool:
        """Whether it is spelled as an edge could be: between two bare variables it is one."""
        return self.value.isidentifier()


class ArithmeticOp(StrEnum):
    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    OVER = "/"
    MODULO = "%"

    @property
    def is_additive(self) -> bool:
        return self in (ArithmeticOp.PLUS, ArithmeticOp.MINUS)


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
class LiteralExpr(Spanned):
    value: LiteralValue


@dataclass(frozen=True, slots=True)
class VariableExpr(Spanned):
    """`$name`, a parameter or a binding."""

    name: str


@dataclass(frozen=True, slots=True)
class NowExpr(Spanned):
    """`now()`."""


@dataclass(frozen=True, slots=True)
class PropertyExpr(Spanned):
    """`$variable.property`."""

    variable: str
    property: str
    property_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NearestExpr(Spanned):
    """`nearest($v.vector, query)`."""

    target: PropertyExpr
    query: Expr


@dataclass(frozen=True, slots=True)
class TextSearchExpr(Spanned):
    """`search(field, query)`, `match_text(field, query)` or `bm25(field, query)`."""

    function: Literal["search", "match_text", "bm25"]
    target: Expr
    query: Expr


@dataclass(frozen=True, slots=True)
class FuzzyExpr(Spanned):
    """`fuzzy(field, query[, max_edits])`."""

    target: Expr
    query: Expr
    max_edits: Expr | None = None


@dataclass(frozen=True, slots=True)
class RrfExpr(Spanned):
    """`rrf(first, second[, k])`."""

    first: NearestExpr | TextSearchExpr
    second: NearestExpr | TextSearchExpr
    k: Expr | None = None


@dataclass(frozen=True, slots=True)
class AggregateExpr(Spanned):
    """`function([distinct] argument)`."""

    function: AggregateFunction
    argument: Expr
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class ObjectExpr(Spanned):
    """`$variable { * }` or `$variable { property, … }`; `properties` is None for `*`."""

    variable: str
    properties: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CollectExpr(Spanned):
    """`collect([distinct] argument [order key, …])`."""

    argument: Expr
    distinct: bool = False
    order: tuple[Ordering, ...] = ()


@dataclass(frozen=True, slots=True)
class AliasExpr(Spanned):
    """A bare word: the alias of a projection."""

    name: str


@dataclass(frozen=True, slots=True)
class NullExpr(Spanned):
    """`null`."""


@dataclass(frozen=True, slots=True)
class ArithmeticExpr(Spanned):
    """`first op operand op operand …`, from left to right; all operators bind equally strong.

    A chain is one node, so that a long one is not a deep one. Parentheses around its start change
    nothing and are not kept.
    """

    first: Expr
    rest: tuple[tuple[ArithmeticOp, Expr], ...]

    @property
    def is_additive(self) -> bool:
        return self.rest[0][0].is_additive


@dataclass(frozen=True, slots=True)
class MinusExpr(Spanned):
    """`-operand`. Before an unsigned number it is part of the literal instead."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class FunctionExpr(Spanned):
    """`name(argument, …)`; the checker knows the functions."""

    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class CaseArm:
    """`when condition then value`."""

    condition: Condition
    value: Expr


@dataclass(frozen=True, slots=True)
class CaseExpr(Spanned):
    """`case when … then … else … end`."""

    arms: tuple[CaseArm, ...]
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class ConditionExpr(Spanned):
    """A condition as a value: a Bool, or null when it is unknown."""

    condition: Condition


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
    | CollectExpr
    | ObjectExpr
    | AliasExpr
    | NullExpr
    | ArithmeticExpr
    | MinusExpr
    | FunctionExpr
    | CaseExpr
    | ConditionExpr
)


@dataclass(frozen=True, slots=True)
class PropertyMatch(Spanned):
    """`property: value` inside the braces of a binding, or in an assignment list.

    A binding holds a `Value`; an assignment any expression.
    """

    property: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Binding(Spanned):
    """`$variable: Type { property: value, ... }`."""

    variable: str
    type_name: str
    matches: tuple[PropertyMatch, ...] = ()
    type_span: Span = field(default=NO_SPAN, compare=False, repr=False)


class Shortest(StrEnum):
    """Which of the shortest paths a traversal follows."""

    ANY = "shortest"
    ALL = "all shortest"


@dataclass(frozen=True, slots=True)
class Traversal(Spanned):
    """`$source [$edge_variable:][shortest ]edge[{min,max where filter}][ by weight] $target`.

    `<edge>` is undirected. `max_hops` is None for `{m,}`, and for `shortest` without bounds.
    `edge_variable` is None when what is followed is not bound (`$_:` too).
    """

    source: str
    edge: str
    target: str
    min_hops: int = 1
    max_hops: int | None = 1
    undirected: bool = False
    edge_variable: str | None = None
    has_bounds: bool = False
    shortest: Shortest | None = None
    hop_filter: Condition | None = None
    weight: str | None = None
    edge_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    source_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    target_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FilterClause(Spanned):
    """`left op right`. A text-search clause is `Filter(call, =, true)`; that `true` has no span."""

    left: Expr
    op: CompareOp
    right: Expr


def is_text_search(clause: FilterClause) -> bool:
    """Whether a comparison only says that a text search finds something."""
    match clause:
        case FilterClause(
            TextSearchExpr(function="search" | "match_text") | FuzzyExpr(),
            CompareOp.EQUAL,
            LiteralExpr(True),
        ):
            return True
    return False


@dataclass(frozen=True, slots=True)
class NullTest(Spanned):
    """`operand is null`, or `is not null`."""

    operand: Expr
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class NotTest(Spanned):
    """`not (condition)`: the truth value turned around, unknown stays unknown."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AndTest(Spanned):
    """`a and b and …`."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class OrTest(Spanned):
    """`a or b or …`."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = FilterClause | NullTest | NotTest | AndTest | OrTest


@dataclass(frozen=True, slots=True)
class Negation(Spanned):
    """`not { clauses }`."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class OptionalClause(Spanned):
    """`optional { clauses }`."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class EitherClause(Spanned):
    """`either { clauses } or { clauses } …`."""

    alternatives: tuple[tuple[Clause, ...], ...]


Clause: TypeAlias = Binding | Traversal | Condition | Negation | OptionalClause | EitherClause


@dataclass(frozen=True, slots=True)
class FieldDecl(Spanned):
    """`name: Type?` in the type of a row."""

    name: str
    type_name: str
    nullable: bool = False


ROW, ROW_LIST = "Row", "[Row]"
"""What `type_name` says of a parameter that is an object, or a list of objects."""


@dataclass(frozen=True, slots=True)
class ParamDecl(Spanned):
    """`$name: Type? = default`. `type_name` is the spelling without `?`; the checker resolves it.

    Of a row, `{ name: Type, … }`, it is `ROW` or `ROW_LIST`, and `fields` say which.
    """

    name: str
    type_name: str
    nullable: bool = False
    default: Expr | None = None
    fields: tuple[FieldDecl, ...] = ()


@dataclass(frozen=True, slots=True)
class Projection(Spanned):
    expression: Expr
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Ordering(Spanned):
    expression: Expr
    descending: bool = False


Count: TypeAlias = int | VariableExpr
"""How many rows: written, or given by a parameter."""


@dataclass(frozen=True, slots=True)
class Stage(Spanned):
    """`top count by keys [as $score] { clauses }`."""

    count: Count
    keys: tuple[Ordering, ...]
    clauses: tuple[Clause, ...]
    score: str | None = None


@dataclass(frozen=True, slots=True)
class QueryDecl(Spanned):
    """One `query`. It is a mutation exactly when `mutations` is not empty.

    A mutation may have a `match`, whose rows its statements run over, and `returns`.
    """

    name: str
    params: tuple[ParamDecl, ...] = ()
    description: str | None = None
    instruction: str | None = None
    match: tuple[Clause, ...] = ()
    returns: tuple[Projection, ...] = ()
    order: tuple[Ordering, ...] = ()
    limit: Count | None = None
    mutations: tuple[Statement, ...] = ()
    stages: tuple[Stage, ...] = ()
    distinct: bool = False
    having: tuple[Condition, ...] = ()
    offset: Count | None = None

    @property
    def is_mutation(self) -> bool:
        return bool(self.mutations)


@dataclass(frozen=True, slots=True)
class QueryTree:
    """One `.gq` file. `text` and `name` are kept so that later errors can quote it."""

    queries: tuple[QueryDecl, ...]
    text: str = field(default="", compare=False, repr=False)
    name: str = field(default="query.gq", compare=False, repr=False)
