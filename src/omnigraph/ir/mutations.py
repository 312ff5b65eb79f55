"""The statements of a mutation, typed: frozen data, no behaviour.

Statements run in order over one snapshot. What a value is computed from depends on where the
statement stands:

    SELF        the row that an `update … where` changes: bare words read it
    MATCHED     a row of `match`, solved once before any statement; its columns are projections
    $row        an element of `for`: columns where the statements of the body run in batches,
                parameters `row.field` where they run element by element
"""

from __future__ import annotations

from typing import TypeAlias

from omnigraph.catalog.model import EntityKind
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import Predicate, Scalar
from omnigraph.ir.query import HIDDEN_PREFIX, Parameter, QueryIR, ReturnItem

SELF = f"{HIDDEN_PREFIX}self"
MATCHED = f"{HIDDEN_PREFIX}matched"


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property` gets `value`. For an edge insert the endpoints are the columns `src` and `dst`."""

    property: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Insert:
    """One row per row that the statement runs over; with a key it replaces the row of that key."""

    entity_kind: EntityKind
    type_name: str
    assignments: tuple[Assignment, ...]
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Upsert:
    """As an insert, but of a row that is there only the assigned properties change.

    A row is there by its key; an edge without a key by both of its ends.
    """

    entity_kind: EntityKind
    type_name: str
    assignments: tuple[Assignment, ...]
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Assigns to the rows where `predicate`, over SELF, is TRUE; all at once."""

    entity_kind: EntityKind
    type_name: str
    assignments: tuple[Assignment, ...]
    predicate: Predicate
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    entity_kind: EntityKind
    type_name: str
    predicate: Predicate
    label: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateBound:
    """Assigns to the entities in the column `target` of the matched rows."""

    entity_kind: EntityKind
    type_name: str
    target: str
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class DeleteBound:
    """Deletes the entities in the column `target` of the matched rows."""

    entity_kind: EntityKind
    type_name: str
    target: str


PlainOp: TypeAlias = Insert | Upsert | Update | Delete | UpdateBound | DeleteBound


@dataclass(frozen=True, slots=True)
class ForEach:
    """The body for each element of a list of rows, in order.

    `is_batched`: no statement reads what another one writes, so each may run over all elements.
    """

    variable: str
    rows: Parameter
    body: tuple[PlainOp, ...]
    is_batched: bool


MutationOp: TypeAlias = PlainOp | ForEach


@dataclass(frozen=True, slots=True)
class ReturnedEntity:
    """A variable whose properties are read when all statements have run.

    Its ids are in `column` of the matched rows, or (None) those that the labelled statement wrote.
    For an interface, `type_name` is its name and `type_column` says which type a row has.
    """

    variable: str
    entity_kind: EntityKind
    type_name: str
    column: str | None = None
    type_column: str | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """What a mutation gives back: one row per matched row, or per entity of its label."""

    items: tuple[ReturnItem, ...]
    distinct: bool
    entities: tuple[ReturnedEntity, ...]


@dataclass(frozen=True, slots=True)
class MutationIR:
    name: str
    params: tuple[Parameter, ...]
    ops: tuple[MutationOp, ...]
    match: QueryIR | None = None
    returned: Returned | None = None

    def list_plain_ops(self) -> list[PlainOp]:
        """Every statement, those inside `for` too."""
        found: list[PlainOp] = []
        for op in self.ops:
            found.extend(op.body if isinstance(op, ForEach) else (op,))
        return found

    @property
    def is_insert_only(self) -> bool:
        """Whether nothing that is there decides what is written."""
        return self.match is None and all(isinstance(op, Insert) for op in self.list_plain_ops())
