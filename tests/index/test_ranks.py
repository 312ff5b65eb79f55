"""Ranks: a value is found by its rank, however many values there are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.index.columns import VALUES_LISTED, rank_values


def texts(count: int) -> list[str]:
    """Texts whose order by code point is not the one by UTF-16, nor by length."""
    return [f"{chr(0x61 + n % 7)}\U0001f600é{n}" if n % 3 else f"ﬀ{n}" for n in range(count)]


@pytest.mark.parametrize("count", [100, VALUES_LISTED + 100])
def test_a_text_is_found_by_its_rank(count: int) -> None:
    values = texts(count)
    ranks = rank_values(pa.array([*values, None]))

    for value in values[:: max(1, count // 50)]:
        rank = ranks.find_rank(value)
        assert rank == sorted(values).index(value) + 1
        assert ranks.values[rank - 1].as_py() == value
    for stranger in ("", "zz", "\U0010ffff", "\ud800", values[5][:-1] + "x"):
        assert ranks.find_rank(stranger) is None


@pytest.mark.parametrize("count", [100, VALUES_LISTED + 100])
def test_a_number_is_found_by_its_rank(count: int) -> None:
    ranks = rank_values(pa.array([3 * n - count for n in range(count)], pa.int64()))

    assert [ranks.find_rank(3 * n - count) for n in (0, 7, count - 1)] == [1, 8, count]
    assert [ranks.find_rank(value) for value in (1 - count, 10**30, -(10**30))] == [None] * 3
