"""Predicates: what a scan may be asked to keep, as plain typed data.

Logic is three-valued. A comparison with a null column value is unknown; `Not` of unknown is
unknown; only rows that are definitely true are kept. Floats order totally: NaN equals NaN and is
greater than every other number; -0.0 equals 0.0. Numbers compare by value across types, except
that a float literal is rounded to the width of the float column it meets. Strings compare by
their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from omnigraph.dataclass import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


LOOKED_UP_MAX = 64
"""How many values are looked up one by one."""


class CompareOp(StrEnum):
    """How a column relates to a value."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op value`. A null value keeps no row."""

    column: str
    op: CompareOp
    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class IsIn:
    """The column equals one of `values`; nulls among them are ignored."""

    column: str
    values: pa.Array


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is null. Never unknown."""

    column: str


@dataclass(frozen=True, slots=True)
class ListContains:
    """An element of the list column equals `value`; null elements never do."""

    column: str
    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class TextContains:
    """The text column has `needle` in it, byte for byte; an empty needle is in every text."""

    column: str
    needle: str


@dataclass(frozen=True, slots=True)
class TextStartsWith:
    """The text column begins with `prefix`, byte for byte."""

    column: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Known:
    """`truth` for every non-null value of the column, unknown for null (or always, for None)."""

    column: str
    truth: bool | None


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds; true when there is none."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds; false when there is none."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does definitely not hold."""

    part: Predicate


Leaf: TypeAlias = Compare | IsIn | IsNull | ListContains | TextContains | TextStartsWith | Known
Predicate: TypeAlias = Leaf | And | Or | Not


def list_equalities(predicate: Predicate) -> list[Compare]:
    """The equalities of which one has to hold, when that is all a predicate says.

    None when it says anything else, or names so many values that they are better met in one pass.
    """
    found: list[Compare] = []
    pending: list[Predicate] = [predicate]
    while pending:
        match pending.pop():
            case Compare(_, CompareOp.EQ) as equal:
                found.append(equal)
            case IsIn(column, values) if len(values) <= LOOKED_UP_MAX:
                found += [Compare(column, CompareOp.EQ, each) for each in values if each.is_valid]
            case Or(parts) if len(parts) <= LOOKED_UP_MAX:
                pending.extend(parts)
            case _:
                return []
    return found if len(found) <= LOOKED_UP_MAX else []


def columns_of(predicate: Predicate) -> list[str]:
    """The columns a predicate reads, each once, in order of first use."""
    return list(dict.fromkeys(leaf.column for leaf in leaves(predicate)))


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """The conditions on single columns that a predicate consists of, in order."""
    pending: list[Predicate] = [predicate]
    while pending:
        match pending.pop():
            case And(parts) | Or(parts):
                pending.extend(reversed(parts))
            case Not(part):
                pending.append(part)
            case leaf:
                yield leaf
