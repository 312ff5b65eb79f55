"""The tree of the statements of a mutation.

`span` of a statement covers what it is about: the type, the variable, or the variable of the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.syntax.spanned import Spanned

if TYPE_CHECKING:
    from omnigraph.syntax.query_tree import Condition, PropertyMatch


@dataclass(frozen=True, slots=True)
class InsertStatement(Spanned):
    """`insert Type { property: value, … } [as $label]`."""

    type_name: str
    assignments: tuple[PropertyMatch, ...]
    label: str | None = None


@dataclass(frozen=True, slots=True)
class UpsertStatement(Spanned):
    """`upsert Type { property: value, … } [as $label]`."""

    type_name: str
    assignments: tuple[PropertyMatch, ...]
    label: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateStatement(Spanned):
    """`update Type set { … } where condition [as $label]`; bare words are properties."""

    type_name: str
    assignments: tuple[PropertyMatch, ...]
    where: Condition
    label: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteStatement(Spanned):
    """`delete Type where condition [as $label]`; bare words are properties."""

    type_name: str
    where: Condition
    label: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateBound(Spanned):
    """`update $variable set { … }`, for every row of the `match`."""

    variable: str
    assignments: tuple[PropertyMatch, ...]


@dataclass(frozen=True, slots=True)
class DeleteBound(Spanned):
    """`delete $variable`, for every row of the `match`."""

    variable: str


@dataclass(frozen=True, slots=True)
class ForStatement(Spanned):
    """`for $variable in $rows { statements }`."""

    variable: str
    rows: str
    body: tuple[Statement, ...]


Statement: TypeAlias = (
    InsertStatement
    | UpsertStatement
    | UpdateStatement
    | DeleteStatement
    | UpdateBound
    | DeleteBound
    | ForStatement
)
