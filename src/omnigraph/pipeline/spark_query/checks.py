"""Checks: predicates with their values filled in, decided for a batch of rows.

A task decides them by the functions of the local engine, so that both engines agree on nulls,
numbers of different types, and texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.executor.evaluate import decide
from omnigraph.executor.members import Members, make_members
from omnigraph.executor.values import searches_of, values_of
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.ir.expressions import Constant, Param, Plain, Predicate, PropertyRef, TextMatch
from omnigraph.ir.variables import predicate_refs
from omnigraph.pipeline.spark_query.columns import property_of
from omnigraph.pipeline.spark_query.texts import match_texts

if TYPE_CHECKING:
    from omnigraph.executor.values import Values

Operand: TypeAlias = str | pa.Scalar
"""The name of a column, or a value."""


@dataclass(frozen=True, slots=True)
class TextCheck:
    match: TextMatch
    target: str
    query: Operand
    max_edits: int | None
    is_never: bool

    def columns(self) -> list[str]:
        return [self.target, *([self.query] if isinstance(self.query, str) else [])]

    def holds(self, column: Callable[[str], pa.Array], rows: int) -> BoolArray:
        if self.is_never:
            return np.zeros(rows, dtype=bool)
        texts = column(self.target)
        if not isinstance(self.query, str):
            return self._match(texts, self.query.as_py())
        queries = column(self.query).dictionary_encode()
        codes = queries.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        answer = np.zeros(rows, dtype=bool)
        for code, query in enumerate(queries.dictionary.to_pylist()):
            here = np.flatnonzero(codes == code)
            answer[here] = self._match(texts.take(pa.array(here)), query)
        return answer

    def _match(self, texts: pa.Array, query: str) -> BoolArray:
        return match_texts(texts, self.match, query, self.max_edits)


@dataclass(frozen=True, slots=True)
class Filled:
    """What the literals, parameters and searches of a query stand for, as values that travel."""

    scalars: Mapping[Constant | Param, pa.Scalar]
    searches: Mapping[TextMatch, TextCheck]
    is_by_variable: bool
    _members: dict[tuple[Constant | Param, bool], Members | None] = field(
        default_factory=dict, compare=False
    )

    def scalar(self, value: Constant | Param) -> pa.Scalar:
        return self.scalars[value]

    def members(self, value: Constant | Param, *, is_narrow: bool) -> Members | None:
        """The values of a list, floats at 32 bits if `is_narrow`; None for null."""
        key = value, is_narrow
        if key not in self._members:
            self._members[key] = make_members(self.scalar(value), is_narrow=is_narrow)
        return self._members[key]

    def name(self, ref: PropertyRef) -> str:
        return column_name(ref, by_variable=self.is_by_variable)


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """The rows of a batch, for the functions of the local engine."""

    values: Filled
    column: Callable[[str], pa.Array]
    count: int

    def property(self, ref: PropertyRef) -> pa.Array:
        return self.column(self.values.name(ref))

    def search(self, match: TextMatch) -> BoolArray:
        return self.values.searches[match].holds(self.column, self.count)

    def take(self, indices: IntArray) -> BatchColumns:
        places = pa.array(indices)
        return BatchColumns(self.values, lambda name: self.column(name).take(places), len(indices))


@dataclass(frozen=True, slots=True)
class Check:
    """A predicate with its values filled in."""

    predicate: Predicate
    filled: Filled

    def columns(self) -> list[str]:
        return [self.filled.name(ref) for ref in predicate_refs(self.predicate)]

    def holds(self, column: Callable[[str], pa.Array], rows: int) -> BoolArray:
        return decide(self.predicate, BatchColumns(self.filled, column, rows))[0]


def to_check(predicate: Predicate, values: Values, *, by_variable: bool) -> Check:
    """Fill the values in. Columns are named as in rows with `by_variable`, else as in the table."""
    return Check(predicate, fill_values(predicate, values, by_variable=by_variable))


def fill_values(part: object, values: Values, *, by_variable: bool) -> Filled:
    """What a part of a query mentions, as values."""
    return Filled(
        {each: values.scalar(each) for each in values_of(part)},
        {each: _to_text_check(each, values, by_variable) for each in searches_of(part)},
        by_variable,
    )


def _to_text_check(match: TextMatch, values: Values, by_variable: bool) -> TextCheck:
    edits = None if match.max_edits is None else _edits(match.max_edits, values)
    asked: Operand
    if isinstance(match.query, PropertyRef):
        asked = column_name(match.query, by_variable=by_variable)
    else:
        asked = values.scalar(match.query)
    is_null = not isinstance(asked, str) and not asked.is_valid
    is_never = is_null or (match.max_edits is not None and edits is None)
    name = column_name(match.target, by_variable=by_variable)
    return TextCheck(match, name, asked, edits, is_never)


def column_name(ref: PropertyRef, *, by_variable: bool) -> str:
    return property_of(ref.variable, ref.property) if by_variable else ref.property


def _edits(max_edits: Plain, values: Values) -> int | None:
    if isinstance(max_edits, PropertyRef):
        raise BadRequestError(
            f"`${max_edits.variable}.{max_edits.property}` differs from row to row — "
            "give a literal or a parameter here"
        )
    found: int | None = values.scalar(max_edits).as_py()
    if found is not None and found < 0:
        raise BadRequestError(f"fuzzy needs max_edits of 0 or more, not {found}")
    return found
