"""A checked query: every name resolved, every expression typed, nothing ordered yet.

`check.py` makes these values from a tree, `lower.py` arranges them into a pipeline. A mutation
needs no arranging, so checking it yields its `MutationIR` at once.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError, TypeCheckError
from omnigraph.ir.expressions import Param, Predicate
from omnigraph.ir.mutations import MutationIR
from omnigraph.ir.query import (
    Count,
    Direction,
    Finish,
    OrderItem,
    Parameter,
    ReturnItem,
    WalkMode,
    is_walk,
)
from omnigraph.source_text import Span

Types: TypeAlias = tuple[tuple[str, str], ...]
"""Variables with the names of their types."""


@dataclass(frozen=True, slots=True)
class TypedBinding:
    """`$variable: Type {...}`; the inline matches are predicates over the variable."""

    variable: str
    type_name: str
    filters: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedTraversal:
    """One traversal with its direction inferred, as seen from `source`."""

    source: str
    target: str
    edge: str
    direction: Direction
    source_type: str
    target_type: str
    min_hops: int = 1
    max_hops: int | None = 1
    edge_variable: str | None = None
    mode: WalkMode = WalkMode.REACH
    hop_filters: tuple[Predicate, ...] = ()
    weight: str | None = None
    is_reversed: bool = False

    @property
    def is_path(self) -> bool:
        """Whether what is followed is a path, and bound."""
        is_bound = self.edge_variable is not None
        return is_bound and is_walk(self.min_hops, self.max_hops, self.mode)


@dataclass(frozen=True, slots=True)
class TypedPattern:
    """The clauses of one block, by kind, each kind in source order.

    `outer_variables` are the variables of the surrounding pattern that this one mentions, nested
    blocks included; a top-level pattern has none. `nodes` and `edges` give the types of what it
    introduces. Traversals leave the outer variables of an interface one type each, `narrowed`;
    with `is_never` they leave a variable none.
    """

    bindings: tuple[TypedBinding, ...]
    traversals: tuple[TypedTraversal, ...]
    filters: tuple[Predicate, ...]
    negations: tuple[TypedPattern, ...]
    outer_variables: tuple[str, ...] = ()
    eithers: tuple[TypedEither, ...] = ()
    optionals: tuple[TypedPattern, ...] = ()
    nodes: Types = ()
    edges: Types = ()
    narrowed: Types = ()
    is_never: bool = False


@dataclass(frozen=True, slots=True)
class TypedEither:
    """The alternatives of an `either`; `nodes` and `edges` are visible outside of it."""

    alternatives: tuple[TypedPattern, ...]
    outer_variables: tuple[str, ...]
    nodes: Types = ()
    edges: Types = ()


@dataclass(frozen=True, slots=True)
class TypedStage:
    """`top count by keys as $score { pattern }`."""

    count: int | Param
    keys: tuple[OrderItem, ...]
    pattern: TypedPattern
    score: str | None = None


RefusalCode: TypeAlias = Literal["L301", "L302", "L303", "L304"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A well-typed query that still cannot run, and why. `compile` raises it, lint lists it."""

    code: RefusalCode
    message: str
    type_name: str | None = None
    property: str | None = None
    span: Span | None = None
    hint: str | None = None

    def error(self) -> OmnigraphError:
        """The error a caller who wants to run the query gets."""
        if self.code == "L303":
            return TypeCheckError(self.message, code="T31", span=self.span, hint=self.hint)
        return BadRequestError(self.message)


@dataclass(frozen=True, slots=True)
class TypedRead:
    """A checked read. It can be lowered when `refusals` is empty."""

    name: str
    params: tuple[Parameter, ...]
    pattern: TypedPattern
    returns: tuple[ReturnItem, ...]
    order: tuple[OrderItem, ...] = ()
    limit: Count | None = None
    offset: Count | None = None
    is_grouped: bool = False
    finish: Finish | None = None
    refusals: tuple[Refusal, ...] = ()
    stages: tuple[TypedStage, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedMutation:
    """A checked mutation. It can run when `refusals` is empty."""

    ir: MutationIR
    refusals: tuple[Refusal, ...] = ()


TypedQuery: TypeAlias = TypedRead | TypedMutation
