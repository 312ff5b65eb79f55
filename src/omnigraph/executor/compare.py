"""Compare: two columns, or a column and a value, row by row, by the rules of the language.

A row is kept only when the comparison is TRUE, so null on either side drops it. Numbers compare by
value across types, exactly; text compares by bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.index.arrays import BoolArray
from omnigraph.index.columns import to_comparable
from omnigraph.ir.expressions import CompareKind
from omnigraph.types import repeat

Side: TypeAlias = pa.Array | pa.Scalar

_EXACT_IN_DOUBLE = 2**53


def compare(left: Side, kind: CompareKind, right: Side, rows: int) -> BoolArray:
    """Where `left kind right` is TRUE. A scalar stands for the same value in every row."""
    match kind:
        case CompareKind.TEXT_CONTAINS:
            return _by_distinct_pair(left, right, rows, lambda text, part: part in text)
        case CompareKind.STARTS_WITH:
            return _by_distinct_pair(left, right, rows, lambda text, part: text.startswith(part))
        case CompareKind.ENDS_WITH:
            return _by_distinct_pair(left, right, rows, lambda text, part: text.endswith(part))
        case CompareKind.LIST_CONTAINS:
            return _list_contains(_array(left, rows), _array(right, rows))
        case _:
            return _compare_values(_array(left, rows), kind, _array(right, rows))


def _array(side: Side, rows: int) -> pa.Array:
    return repeat(side, rows) if isinstance(side, pa.Scalar) else side


def _by_distinct_pair(
    left: Side, right: Side, rows: int, holds: Callable[[str, str], bool]
) -> BoolArray:
    """Decide once for each distinct pair of texts: Arrow only searches for constant texts."""
    texts = _array(left, rows).dictionary_encode()
    parts = _array(right, rows).dictionary_encode()
    known = pc.and_(texts.is_valid(), parts.is_valid()).to_numpy(zero_copy_only=False)
    text_codes = texts.indices.fill_null(0).to_numpy().astype(np.int64)
    part_codes = parts.indices.fill_null(0).to_numpy().astype(np.int64)
    width = max(len(parts.dictionary), 1)
    pairs, index = np.unique((text_codes * width + part_codes)[known], return_inverse=True)
    left_texts, right_texts = texts.dictionary.to_pylist(), parts.dictionary.to_pylist()
    verdicts = [holds(left_texts[pair // width], right_texts[pair % width]) for pair in pairs]
    answer = np.zeros(rows, dtype=bool)
    answer[known] = np.array(verdicts, dtype=bool)[index]
    return answer


def _list_contains(lists: pa.Array, members: pa.Array) -> BoolArray:
    parents = pc.list_parent_indices(lists)
    elements = pc.list_flatten(lists)
    wanted = members.take(parents)
    if pa.types.is_float32(elements.type) and pa.types.is_float64(wanted.type):
        wanted = wanted.cast(pa.float32(), safe=False)
    equal = _compare_values(elements, CompareKind.EQUAL, wanted)
    answer = np.zeros(len(lists), dtype=bool)
    answer[parents.to_numpy()[equal]] = True
    return answer


def _compare_values(left: pa.Array, kind: CompareKind, right: pa.Array) -> BoolArray:
    known = pc.and_(left.is_valid(), right.is_valid()).to_numpy(zero_copy_only=False)
    if pa.types.is_string(left.type):
        function = _ARROW_COMPARISONS[kind]
        return np.asarray(function(left, right).fill_null(False).to_numpy(zero_copy_only=False))
    answer = np.zeros(len(left), dtype=bool)
    answer[known] = _compare_numbers(to_numbers(left)[known], kind, to_numbers(right)[known])
    return answer


def to_numbers(array: pa.Array) -> np.ndarray:
    """The values as numbers that compare as they do; 0 for null."""
    plain = to_comparable(array)
    return np.asarray(plain.fill_null(0).to_numpy(zero_copy_only=False))


def _compare_numbers(left: np.ndarray, kind: CompareKind, right: np.ndarray) -> BoolArray:
    function = _NUMBER_COMPARISONS[kind]
    answer = np.asarray(function(left, right), dtype=bool)
    if (left.dtype.kind == "f") == (right.dtype.kind == "f"):
        return answer
    # One side is whole and one is not: beyond 2^53 a double cannot tell neighbours apart.
    whole = right if left.dtype.kind == "f" else left
    doubtful = (whole > _EXACT_IN_DOUBLE) | (whole < -_EXACT_IN_DOUBLE)
    if doubtful.any():
        exact = function(left[doubtful].astype(object), right[doubtful].astype(object))
        answer[doubtful] = exact.astype(bool)
    return answer


_NUMBER_COMPARISONS: dict[CompareKind, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    CompareKind.EQUAL: np.equal,
    CompareKind.NOT_EQUAL: np.not_equal,
    CompareKind.LESS: np.less,
    CompareKind.LESS_EQUAL: np.less_equal,
    CompareKind.GREATER: np.greater,
    CompareKind.GREATER_EQUAL: np.greater_equal,
}

_ARROW_COMPARISONS = {
    CompareKind.EQUAL: pc.equal,
    CompareKind.NOT_EQUAL: pc.not_equal,
    CompareKind.LESS: pc.less,
    CompareKind.LESS_EQUAL: pc.less_equal,
    CompareKind.GREATER: pc.greater,
    CompareKind.GREATER_EQUAL: pc.greater_equal,
}
