"""Results: the exact JSON of each type, frames, and notebook tables."""

from __future__ import annotations

import math
import sys
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequestError
from omnigraph.executor import QueryResult
from omnigraph.executor.result import json_values


def result(**columns: pa.Array) -> QueryResult:
    return QueryResult(pa.table(columns), "q", "main", "01C", 7, 1.25)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array(["a", None]), ["a", None]),
        (pa.array([True, None]), [True, None]),
        (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
        (pa.array([-(2**63)], pa.int64()), [-(2**63)]),
        (pa.array([0.1, None], pa.float32()), [0.10000000149011612, None]),
        (pa.array([0.1, math.inf, -math.inf, math.nan]), [0.1, "Infinity", "-Infinity", "NaN"]),
        (pa.array([0, -1, None], pa.int32()).cast(pa.date32()), ["1970-01-01", "1969-12-31", None]),
        (
            pa.array([0, -1, 1_588_327_200_500], pa.int64()).cast(pa.date64()),
            [
                "1970-01-01T00:00:00.000Z",
                "1969-12-31T23:59:59.999Z",
                "2020-05-01T10:00:00.500Z",
            ],
        ),
        (pa.array([["a"], [], None]), [["a"], [], None]),
        (
            pa.array([[18_383], None], pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
            [["2020-05-01"], None],
        ),
        (pa.array([[1, 0.5], None], pa.list_(pa.float32(), 2)), [[1.0, 0.5], None]),
        (pa.array([[None, 1.0]], pa.list_(pa.float64())), [[None, 1.0]]),
    ],
)
def test_json_values(array: pa.Array, values: list[Any]) -> None:
    assert json_values(array) == values


def test_json_values_of_a_slice_are_those_of_its_rows() -> None:
    array = pa.array([["a"], ["b", "c"], None, ["d"]])

    assert json_values(array.slice(1, 2)) == [["b", "c"], None]


@pytest.mark.accepts("S-182")
def test_rows_columns_length_and_iteration_agree() -> None:
    found = result(x=pa.array([1, 2]), y=pa.array(["a", None]))

    assert found.columns == ["x", "y"]
    assert found.rows() == list(found) == [{"x": 1, "y": "a"}, {"x": 2, "y": None}]
    assert len(found) == 2
    assert (found.commit_id, found.branch, found.manifest_version) == ("01C", "main", 7)
    assert found.to_arrow().num_rows == 2


def test_of_two_columns_of_one_name_the_last_shows() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])

    assert QueryResult(table, "q", "main", None, 1, 0.0).rows() == [{"x": 2}]


def test_an_empty_result_keeps_its_typed_columns() -> None:
    found = result(x=pa.array([], pa.date32()))

    assert found.rows() == []
    assert found.to_arrow().schema.field("x").type == pa.date32()


def test_a_notebook_shows_escaped_values_and_says_what_it_left_out() -> None:
    found = result(**{"<b>": pa.array(["<script>alert(1)</script>"] * 60)})

    shown = found._repr_html_()

    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;" in shown
    assert "and 10 more" in shown


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_holds_the_same_rows(package: str) -> None:
    pytest.importorskip(package)

    assert len(getattr(result(x=pa.array([1, 2])), f"to_{package}")()) == 2


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package: str) -> None:
    with (
        patch.dict(sys.modules, {package: None}),
        pytest.raises(BadRequestError, match=f"pip install {package}"),
    ):
        getattr(result(x=pa.array([1])), f"to_{package}")()
