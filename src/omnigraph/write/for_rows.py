"""The elements of `for $row in $rows`: as columns, or one after the other as parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ParamsError
from omnigraph.executor.values import Values
from omnigraph.ir.mutations import ForEach
from omnigraph.ir.query import Parameter, RowType
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.fit import fit_values
from omnigraph.write.given_rows import GivenRows
from omnigraph.write.values import unfit_reason

Params = Mapping[str, Any]


def make_row_columns(op: ForEach, params: Params) -> GivenRows:
    """All elements as rows, one column per field. A null list has no elements."""
    elements = params[op.rows.name] or []
    fields = {
        each.name: _column(op.rows.name, each, [element[each.name] for element in elements])
        for each in _fields(op)
    }
    return GivenRows(Values((), params), len(elements), {op.variable: fields})


def element_params(op: ForEach, params: Params) -> Iterator[dict[str, Any]]:
    """For each element the parameters, with its fields among them as `row.field`."""
    for element in params[op.rows.name] or []:
        yield {
            **params,
            **{f"{op.variable}.{name}": value for name, value in element.items()},
        }


def _fields(op: ForEach) -> tuple[Parameter, ...]:
    assert isinstance(op.rows.type, RowType)
    return op.rows.type.fields


def _column(rows: str, field: Parameter, values: list[Any]) -> pa.Array:
    assert isinstance(field.type, PropertyType)
    type_ = _wide(field.type)
    fitted = fit_values(type_, values)
    if fitted.unfit is not None:
        row = int(np.flatnonzero(fitted.unfit)[0])
        reason = unfit_reason(type_, values[row])
        raise ParamsError(f"param '{rows}[{row}].{field.name}': {reason}")
    return fitted.values


def _wide(type_: PropertyType) -> PropertyType:
    """The type in which a parameter is computed with: numbers at full width, blobs as text."""
    scalar = type_.scalar
    if scalar.is_integer:
        scalar = Scalar.I64
    elif scalar.is_float:
        scalar = Scalar.F64
    elif scalar is Scalar.BLOB:
        scalar = Scalar.STRING
    return PropertyType(scalar, type_.is_list, True, type_.dimension)
