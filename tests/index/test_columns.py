"""Ranks order values as the language does."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.index.arrays import sort_distinct
from omnigraph.index.columns import rank_values, to_sort_keys


@pytest.mark.parametrize(
    ("array", "codes"),
    [
        (pa.array([3, None, -1, 3]), [2, 0, 1, 2]),
        (pa.array(["b", "a", None, "Z", "é", "b"]), [3, 2, 0, 1, 4, 3]),
        (pa.array([0.0, -0.0, -1.5, None], pa.float32()), [2, 2, 1, 0]),
        (pa.array([True, False, None]), [2, 1, 0]),
        (pa.array([date(2020, 1, 2), None, date(1969, 1, 1)]), [2, 0, 1]),
        (pa.array([], pa.utf8()), []),
    ],
)
def test_ranks_follow_the_values_with_null_first(array: pa.Array, codes: list[int]) -> None:
    assert rank_values(array).codes.tolist() == codes


MANY = 3_000
"""More than are sampled to find out whether values repeat."""


@pytest.mark.parametrize("repeated", [0, 1, 500])
@pytest.mark.parametrize("first", [0, 7])
@pytest.mark.parametrize(
    "make",
    [
        lambda number: f"{'é' if number % 3 else 'z'}{number}",
        lambda number: number - 1_500,
        lambda number: date.fromordinal(number + 1),
    ],
)
def test_many_values_are_ranked_as_few_are(make: Any, first: int, repeated: int) -> None:
    values = [make(number * 1_009 % MANY) for number in range(MANY)]
    values += values[:repeated]
    array = pa.array(values).slice(first)

    ranks = rank_values(array)

    kept = values[first:]
    expected = sorted(
        set(kept), key=lambda value: str(value).encode() if make(0) == "z0" else value
    )
    places = {value: place for place, value in enumerate(expected, 1)}
    assert ranks.values.to_pylist() == expected
    assert ranks.codes.tolist() == [places[value] for value in kept]


@pytest.mark.parametrize("odd", [None, float("nan")])
def test_many_values_and_one_that_equals_nothing_are_ranked(odd: float | None) -> None:
    values = [odd, *(float(number) for number in range(MANY)), odd]

    codes = rank_values(pa.array(values, pa.float64())).codes

    assert codes[0] == codes[-1] == (0 if odd is None else MANY + 1)
    assert codes[1:-1].tolist() == list(range(1, MANY + 1))


def test_ranks_turn_back_into_values() -> None:
    ranks = rank_values(pa.array(["b", None, "a"]))

    assert ranks.decode(np.array([2, 0, 1])).to_pylist() == ["b", None, "a"]


def test_equal_lists_have_equal_ranks() -> None:
    codes = rank_values(pa.array([["a", "b"], ["a"], None, ["a", "b"]])).codes

    assert codes[0] == codes[3]
    assert len({int(code) for code in codes}) == 3


@pytest.mark.parametrize("values", [[2**63 - 1, -(2**63), 0], [2.5, -1.0, 0.0]])
def test_numbers_without_nulls_sort_as_they_are(values: list[Any]) -> None:
    numbers = to_sort_keys(pa.array(values))

    assert [values[place] for place in np.argsort(numbers)] == sorted(values)


def test_sorted_distinct_agrees_with_a_set() -> None:
    numbers = np.array([5, 1, 5, 3, 1])

    assert sort_distinct(numbers).tolist() == [1, 3, 5]
    assert sort_distinct(numbers[:0]).tolist() == []
