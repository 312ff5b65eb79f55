"""Checks: predicates with their values filled in, decided for a batch of rows.

A task decides them by the functions of the local engine, so that both engines agree on nulls,
numbers of different types, and texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.executor.compare import Side, compare
from omnigraph.index.arrays import BoolArray
from omnigraph.ir.expressions import (
    Compare,
    CompareKind,
    Predicate,
    PropertyRef,
    SameNode,
    Scalar,
    TextMatch,
)
from omnigraph.pipeline.spark_query.columns import property_of
from omnigraph.pipeline.spark_query.texts import match_texts

if TYPE_CHECKING:
    from omnigraph.executor.values import Values

Operand: TypeAlias = str | pa.Scalar
"""The name of a column, or a value."""


@dataclass(frozen=True, slots=True)
class CompareCheck:
    left: Operand
    kind: CompareKind
    right: Operand

    def columns(self) -> list[str]:
        return [side for side in (self.left, self.right) if isinstance(side, str)]

    def holds(self, column: Callable[[str], pa.Array], rows: int) -> BoolArray:
        def side(operand: Operand) -> Side:
            return column(operand) if isinstance(operand, str) else operand

        return compare(side(self.left), self.kind, side(self.right), rows)


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


Check: TypeAlias = CompareCheck | TextCheck


def to_check(predicate: Predicate, values: Values, *, by_variable: bool) -> Check:
    """Fill the values in. Columns are named as in rows with `by_variable`, else as in the table."""

    def operand(side: Scalar) -> Operand:
        if isinstance(side, PropertyRef):
            return column_name(side, by_variable=by_variable)
        return values.scalar(side)

    match predicate:
        case Compare(left, kind, right):
            return CompareCheck(operand(left), kind, operand(right))
        case TextMatch(_, target, query, max_edits):
            edits = None if max_edits is None else _edits(max_edits, values)
            asked = operand(query)
            is_null = not isinstance(asked, str) and not asked.is_valid
            is_never = is_null or (max_edits is not None and edits is None)
            name = column_name(target, by_variable=by_variable)
            return TextCheck(predicate, name, asked, edits, is_never)
        case SameNode():
            raise AssertionError("the planner turns these into closing hops")
        case _:
            assert_never(predicate)


def column_name(ref: PropertyRef, *, by_variable: bool) -> str:
    return property_of(ref.variable, ref.property) if by_variable else ref.property


def _edits(max_edits: Scalar, values: Values) -> int | None:
    if isinstance(max_edits, PropertyRef):
        raise BadRequestError(
            f"`${max_edits.variable}.{max_edits.property}` differs from row to row — "
            "give a literal or a parameter here"
        )
    found: int | None = values.scalar(max_edits).as_py()
    if found is not None and found < 0:
        raise BadRequestError(f"fuzzy needs max_edits of 0 or more, not {found}")
    return found
