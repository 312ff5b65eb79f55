"""Parameters: every declared type against what JSON can carry."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from omnigraph.compiler import bind_params
from omnigraph.errors import BadRequestError, ParamsError
from omnigraph.ir.query import Parameter
from omnigraph.types import PropertyType, Scalar

STRING = PropertyType(Scalar.STRING)
VECTOR = PropertyType(Scalar.VECTOR, dimension=3)


def one(wanted: PropertyType, value: Any) -> Any:
    return bind_params((Parameter("n", wanted),), {"n": value})["n"]


@pytest.mark.parametrize(
    ("wanted", "value", "bound"),
    [
        (STRING, "x", "x"),
        (STRING, "", ""),
        (PropertyType(Scalar.I32), 5, 5),
        (PropertyType(Scalar.I32), "-5", -5),
        (PropertyType(Scalar.I32), 2**31 - 1, 2**31 - 1),
        (PropertyType(Scalar.I64), "9223372036854775807", 2**63 - 1),
        (PropertyType(Scalar.I64), -(2**63), -(2**63)),
        (PropertyType(Scalar.U32), "4294967295", 2**32 - 1),
        (PropertyType(Scalar.U64), 2**63 - 1, 2**63 - 1),
        (PropertyType(Scalar.F32), 1, 1.0),
        (PropertyType(Scalar.F64), 2.5, 2.5),
        (PropertyType(Scalar.BOOL), False, False),
        (PropertyType(Scalar.DATE), "not a date yet", "not a date yet"),
        (PropertyType(Scalar.DATETIME), "2026-04-14T00:00:00Z", "2026-04-14T00:00:00Z"),
        (PropertyType(Scalar.BLOB), "base64:AA==", "base64:AA=="),
        (PropertyType(Scalar.STRING, is_list=True), ["a", "b"], ["a", "b"]),
        (PropertyType(Scalar.I64, is_list=True), [1, "2"], [1, 2]),
        (PropertyType(Scalar.F64, is_list=True), [], []),
        (VECTOR, [1, 2.5, 3], [1.0, 2.5, 3.0]),
        (VECTOR, (0, 0, 1), [0.0, 0.0, 1.0]),
        (PropertyType(Scalar.STRING, nullable=True), None, None),
        (PropertyType(Scalar.DATE), date(2026, 4, 14), "2026-04-14"),
        (PropertyType(Scalar.DATETIME), datetime(2026, 4, 14, 9), "2026-04-14T09:00:00"),
        (
            PropertyType(Scalar.DATETIME),
            datetime(2026, 4, 14, 9, tzinfo=timezone(timedelta(hours=2))),
            "2026-04-14T07:00:00+00:00",
        ),
        (
            PropertyType(Scalar.DATETIME),
            datetime(2026, 1, 1, tzinfo=UTC),
            "2026-01-01T00:00:00+00:00",
        ),
    ],
)
def test_a_fitting_value_is_bound(wanted: PropertyType, value: Any, bound: Any) -> None:
    found = one(wanted, value)

    assert found == bound
    assert type(found) is type(bound)


@pytest.mark.parametrize(
    ("wanted", "value", "text"),
    [
        (STRING, 5, "param 'n': expected string, got number"),
        (STRING, True, "param 'n': expected string, got boolean"),
        (STRING, ["a"], "param 'n': expected string, got array"),
        (STRING, {"a": 1}, "param 'n': expected string, got object"),
        (STRING, None, "param 'n': null is not accepted for non-nullable parameter"),
        (PropertyType(Scalar.I32), 3_000_000_000, "param 'n': 3000000000 exceeds I32"),
        (PropertyType(Scalar.I32), "-2147483649", "exceeds I32"),
        (PropertyType(Scalar.I32), 1.0, "param 'n': expected integer, got number 1.0"),
        (PropertyType(Scalar.I32), True, "expected integer, got boolean"),
        (PropertyType(Scalar.I32), "1.5", "expected integer, got string"),
        (PropertyType(Scalar.I32), "", "expected integer, got string"),
        (PropertyType(Scalar.I32), "٣", "expected integer, got string"),
        (PropertyType(Scalar.I64), 2**63, "exceeds I64"),
        (PropertyType(Scalar.I64), "9" * 5000, "expected integer, got string"),
        (PropertyType(Scalar.U32), -1, "expected a non-negative integer"),
        (PropertyType(Scalar.U32), 2**32, "exceeds U32"),
        (PropertyType(Scalar.U64), 2**63, "exceeds U64"),
        (PropertyType(Scalar.U64), "-1", "expected a non-negative integer"),
        (PropertyType(Scalar.F64), "2.5", "expected number, got string"),
        (PropertyType(Scalar.F64), True, "expected number, got boolean"),
        (PropertyType(Scalar.F64), float("nan"), "expected a finite number"),
        (PropertyType(Scalar.F64), 10**400, "expected a finite number"),
        (PropertyType(Scalar.BOOL), 1, "expected boolean, got number"),
        (PropertyType(Scalar.BOOL), "true", "expected boolean, got string"),
        (PropertyType(Scalar.DATE), 20000, "expected string, got number"),
        (PropertyType(Scalar.DATE), datetime(2026, 1, 1), "expected string, got datetime"),
        (PropertyType(Scalar.DATETIME), 0, "expected string, got number"),
        (PropertyType(Scalar.BLOB), 0, "expected string, got number"),
        (PropertyType(Scalar.STRING, is_list=True), "a", "expected array, got string"),
        (PropertyType(Scalar.STRING, is_list=True), ["a", 1], "param 'n[1]': expected string"),
        (
            PropertyType(Scalar.STRING, is_list=True),
            [None],
            "param 'n[0]': expected string, got null",
        ),
        (VECTOR, [1, 2], "Vector(3) expects 3 dimensions, got 2"),
        (VECTOR, [1, 2, "3"], "param 'n[2]': expected number, got string"),
        (VECTOR, "x", "expected array, got string"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(wanted: PropertyType, value: Any, text: str) -> None:
    with pytest.raises(ParamsError, match=re.escape(text)):
        one(wanted, value)


@pytest.mark.parametrize("given", [[], "x", 5, [1]])
def test_parameters_come_as_an_object(given: Any) -> None:
    with pytest.raises(ParamsError, match="params must be a JSON object"):
        bind_params((), given)


def test_no_object_means_no_parameters() -> None:
    optional = Parameter("a", PropertyType(Scalar.I32, nullable=True))

    assert bind_params((), None) == {}
    assert bind_params((optional,), None) == {"a": None}
    assert bind_params((optional,), {}) == {"a": None}


def test_a_missing_required_parameter_is_named() -> None:
    with pytest.raises(
        BadRequestError, match="parameter 'd' not provided — it is declared as String"
    ):
        bind_params((Parameter("d", STRING),), {"other": 1})


def test_a_name_written_with_its_dollar_is_pointed_out() -> None:
    with pytest.raises(BadRequestError, match=r"parameter 'd' not provided — .*without the `\$`"):
        bind_params((Parameter("d", STRING),), {"$d": "x"})


def test_undeclared_parameters_are_ignored_unless_they_are_objects() -> None:
    declared = (Parameter("d", STRING),)

    assert bind_params(declared, {"d": "x", "more": [1, None, "a"]}) == {"d": "x"}
    for value in ({"a": 1}, [{"a": 1}]):
        with pytest.raises(ParamsError, match="param 'more': objects are not supported"):
            bind_params(declared, {"d": "x", "more": value})
