"""The typed read: frozen data, no behaviour.

A read is a pipeline of operators over rows of bindings, then projections, order and limit.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import Param, Predicate, Projected, Scalar, SortKey
from omnigraph.types import PropertyType

HIDDEN_PREFIX = "#"
"""Starts the name of a variable the compiler made: `$_`, or the far end of a closing edge.

No query can spell such a name. Hidden variables take part in joins and in nothing else: they are
never projected, and ties are not broken by them.
"""


HOP_VARIABLE = f"{HIDDEN_PREFIX}hop"
"""The edge of each hop, in a condition on the hops of a traversal."""


PATH, SCORE = f"{HIDDEN_PREFIX}path", f"{HIDDEN_PREFIX}score"
"""Stand for the type of a variable that is no entity: a path, or the score of a stage."""


class Direction(StrEnum):
    """Which way an expansion walks a stored edge."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    def reverse(self) -> Direction:
        """The way back."""
        return _REVERSED[self]


_REVERSED = {
    Direction.OUT: Direction.IN,
    Direction.IN: Direction.OUT,
    Direction.BOTH: Direction.BOTH,
}


class WalkMode(StrEnum):
    """What a walk leads to: every node within its bounds, by one shortest path or by all."""

    REACH = "reach"
    SHORTEST = "shortest"
    ALL_SHORTEST = "all shortest"


@dataclass(frozen=True, slots=True)
class RowType:
    """The type of a parameter that is an object, or a list of objects."""

    fields: tuple[Parameter, ...]
    is_list: bool = False
    nullable: bool = False

    def __str__(self) -> str:
        """The spelling of the query language."""
        fields = ", ".join(f"{each.name}: {each.type}" for each in self.fields)
        text = f"{{ {fields} }}"
        return (f"[{text}]" if self.is_list else text) + ("?" if self.nullable else "")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter, or a field of one."""

    name: str
    type: PropertyType | RowType
    default: Scalar | None = None


def is_walk(least: int, most: int | None, mode: WalkMode) -> bool:
    """Whether these bounds are those of a walk, and not of one edge."""
    return (least, most) != (1, 1) or mode is not WalkMode.REACH


@dataclass(frozen=True, slots=True)
class NodeScan:
    """Rows of a node type that satisfy every filter, joined to the rows so far by cross product.

    Of an interface the rows of all types that implement it.
    """

    variable: str
    type_name: str
    filters: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Expand:
    """For each row, the destinations of `source` along `edge`. Rows without one disappear.

    Distinct destinations when `edge_variable` is None, else one row per stored edge. Of a walk it
    is the path, and rows are the same with and without it; only `all shortest` has one per path.
    `max_hops` is None for any number. An edge exists for this expansion when `hop_filters` hold,
    which read it as `HOP_VARIABLE`. With `is_reversed` the written left end is `target`.
    """

    source: str
    target: str
    edge: str
    direction: Direction
    target_type: str
    min_hops: int = 1
    max_hops: int | None = 1
    target_filters: tuple[Predicate, ...] = ()
    edge_variable: str | None = None
    mode: WalkMode = WalkMode.REACH
    hop_filters: tuple[Predicate, ...] = ()
    weight: str | None = None
    is_reversed: bool = False

    @property
    def is_walk(self) -> bool:
        """Whether this is more than one hop, so that a variable is a path."""
        return is_walk(self.min_hops, self.max_hops, self.mode)


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows where the predicate is TRUE."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Keeps an outer row iff `inner`, seeded with that row, yields none.

    `outer_variables` are the outer variables that `inner` mentions, by name.
    """

    outer_variables: tuple[str, ...]
    inner: tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class Narrow:
    """Keeps the rows where an outer variable of an interface is bound to a node of one type."""

    variable: str
    type_name: str


@dataclass(frozen=True, slots=True)
class OptionalMatch:
    """For each row the matches of `inner`; a row without any stays once, with null variables.

    `nodes` and `edges` give the type of every variable that `inner` introduces.
    """

    outer_variables: tuple[str, ...]
    inner: tuple[Operator, ...]
    nodes: tuple[tuple[str, str], ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class EitherMatch:
    """For each row the distinct bindings of the visible variables that an alternative matches.

    `nodes` and `edges` give the types of the visible ones: those that every alternative introduces.
    """

    outer_variables: tuple[str, ...]
    alternatives: tuple[tuple[Operator, ...], ...]
    nodes: tuple[tuple[str, str], ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Top:
    """Keeps the first `count` rows in this order; `score` is bound to the first key's value.

    It ends a stage: rows are the distinct bindings of the variables that a query can spell.
    """

    count: int | Param
    order: tuple[OrderItem, ...]
    score: str | None = None


Operator: TypeAlias = (
    NodeScan | Expand | Filter | AntiJoin | Narrow | OptionalMatch | EitherMatch | Top
)


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """One result column: `column` is its name in the result."""

    expression: Projected
    column: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class OrderItem:
    expression: SortKey
    descending: bool = False


Count: TypeAlias = int | Param
"""How many rows."""


@dataclass(frozen=True, slots=True)
class Finish:
    """What is done with groups: those that `having` keeps, as rows, distinct, in order, cut.

    Expressions read a group by `GroupColumn`, or inside of what is computed as a property of
    `GROUP_VARIABLE`; both number the `columns`. `ties` decide between equal keys; distinct rows
    differ in one of them. Beside a variable of an interface they have its type: ids may be equal.
    """

    columns: tuple[Projected, ...]
    returns: tuple[ReturnItem, ...]
    having: tuple[Predicate, ...] = ()
    is_distinct: bool = False
    order: tuple[OrderItem, ...] = ()
    ties: tuple[Projected, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryIR:
    """A read. With `is_grouped` equal values of what is returned beside aggregates are one row.

    With `finish` what is returned are keys and aggregates, and only that makes rows of them.
    """

    name: str
    params: tuple[Parameter, ...]
    pipeline: tuple[Operator, ...]
    returns: tuple[ReturnItem, ...]
    order: tuple[OrderItem, ...] = ()
    limit: Count | None = None
    offset: Count | None = None
    is_grouped: bool = False
    finish: Finish | None = None

    @property
    def columns(self) -> tuple[ReturnItem, ...]:
        """What the result shows."""
        return self.returns if self.finish is None else self.finish.returns
