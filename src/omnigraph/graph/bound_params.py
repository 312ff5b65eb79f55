"""Bound parameters: every value that an execution runs with, `now()` and defaults included."""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns
from typing import Any

from omnigraph.compiler import bind_params
from omnigraph.compiler.params import coerce_param
from omnigraph.executor.evaluate import evaluate
from omnigraph.executor.filters import NoColumns
from omnigraph.executor.result import json_values
from omnigraph.executor.values import Values
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.query import Parameter


def bind_all(params: tuple[Parameter, ...], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The given values, checked; defaults where there is none; and now.

    Raises:
        ParamsError: A value has the wrong shape, type or range.
        BadRequestError: A required parameter is missing.
    """
    bound: dict[str, Any] = bind_params(params, given)
    bound[NOW_PARAMETER] = time_ns() // 1_000_000
    for param in params:
        if param.default is not None and param.name not in bound:
            bound[param.name] = _compute_default(param, bound)
    return bound


def _compute_default(param: Parameter, bound: Mapping[str, Any]) -> Any:
    assert param.default is not None
    (value,) = json_values(evaluate(param.default, NoColumns(Values((), bound))))
    return coerce_param(param.name, param.type, value)
