"""Parameters: JSON values to the declared types, before anything runs.

    String, Blob, Date, DateTime   a string; what a date says is checked when it is used
    I32 I64 U32 U64                a whole number, or its decimal digits in a string
    F32 F64                        any number
    Bool                           true or false
    [T], Vector(N)                 an array; a vector has exactly N numbers
    { f: T, … }, [{ f: T, … }]     an object, an array of objects; a field that is not declared is
                                   refused: rows come from files, where a slip would lose data

An object is bound with each of its fields as a parameter of its own, `name.field`. An omitted
parameter has its default, or is null if it is optional. Undeclared ones are ignored, unless they
are objects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, TypeAlias

from omnigraph.errors import BadRequestError, ParamsError, with_suggestion
from omnigraph.ir.query import Parameter, RowType
from omnigraph.nonblocking import may_block
from omnigraph.types import INTEGER_BOUNDS, PropertyType, Scalar, is_unicode

ParamValue: TypeAlias = "str | int | float | bool | list[ParamValue] | dict[str, ParamValue] | None"

# Signed 64-bit is what the engine computes with, so the upper half of U64 cannot be a parameter.
_U64_MAX: Final = 2**63 - 1
FEW_ITEMS: Final = 256
"""An array of up to so many items is checked without blocking."""
_SHOWN_BITS_MAX: Final = 200
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,40}")


def bind_params(
    params: tuple[Parameter, ...], given: Mapping[str, Any] | None
) -> dict[str, ParamValue]:
    """Return a value for every declared parameter that is given or may be null.

    One that is left to its default has none here: `bind_all` of the graph computes it.

    Raises:
        ParamsError: A value has the wrong shape, type or range.
        BadRequestError: A required parameter is missing.
    """
    if given is not None and not isinstance(given, Mapping):
        raise ParamsError(f"params must be a JSON object, got {_kind(given)}")
    given = given or {}
    bound = {
        param.name: _bind(param, given)
        for param in params
        if param.default is None or param.name in given
    }
    declared = {param.name for param in params}
    for param in params:
        if isinstance(param.type, RowType) and not param.type.is_list:
            bound |= _bind_fields(param.name, param.type, bound[param.name])
    for name, value in given.items():
        if name not in declared:
            _refuse_objects(name, value)
    return bound


def coerce_param(name: str, wanted: PropertyType | RowType, value: Any) -> ParamValue:
    """A value that was computed for a parameter, checked like one that is given."""
    return None if value is None else _coerce(name, wanted, value)


def _bind(param: Parameter, given: Mapping[str, Any]) -> ParamValue:
    if param.name not in given:
        if param.type.nullable:
            return None
        raise BadRequestError(_missing(param, given))
    value = given[param.name]
    if value is None:
        if param.type.nullable:
            return None
        raise _error(
            param.name,
            f"null is not accepted for non-nullable parameter; declare it as {param.type}?",
        )
    return _coerce(param.name, param.type, value)


def _bind_fields(name: str, row: RowType, value: ParamValue) -> dict[str, ParamValue]:
    """The fields of an object as parameters; a null object has null fields."""
    members = value if isinstance(value, dict) else {}
    return {f"{name}.{field.name}": members.get(field.name) for field in row.fields}


def _missing(param: Parameter, given: Mapping[str, Any]) -> str:
    if f"${param.name}" in given:
        return f"parameter '{param.name}' not provided — write its name without the `$`"
    return f"parameter '{param.name}' not provided — it is declared as {param.type}"


def _coerce(name: str, wanted: PropertyType | RowType, value: Any) -> ParamValue:
    if isinstance(wanted, RowType):
        return _coerce_rows(name, wanted, value)
    if wanted.is_vector:
        return _vector(name, wanted, value)
    if wanted.is_list:
        items = _array(name, value)
        try:
            return [_scalar(name, wanted.scalar, item) for item in items]
        except ParamsError:
            # Places are named only now: a million texts for nothing would take a second.
            for index, item in enumerate(items):
                _scalar(f"{name}[{index}]", wanted.scalar, item)
            raise
    return _scalar(name, wanted.scalar, value)


def _coerce_rows(name: str, wanted: RowType, value: Any) -> ParamValue:
    if not wanted.is_list:
        return _coerce_row(name, wanted, value)
    return [
        _coerce_row(f"{name}[{index}]", wanted, item)
        for index, item in enumerate(_array(name, value))
    ]


def _coerce_row(name: str, wanted: RowType, value: Any) -> dict[str, ParamValue]:
    if not isinstance(value, Mapping):
        raise _error(name, f"expected object, got {_kind(value)}")
    row = {field.name: _coerce_field(name, field, value) for field in wanted.fields}
    for member in value:
        if member not in row:
            raise _error(name, with_suggestion(f"unknown field '{member}'", member, row))
    return row


def _coerce_field(name: str, field: Parameter, row: Mapping[str, Any]) -> ParamValue:
    value = row.get(field.name)
    if value is not None:
        return _coerce(f"{name}.{field.name}", field.type, value)
    if field.type.nullable:
        return None
    if field.name in row:
        raise _error(f"{name}.{field.name}", f"null is not accepted for {field.type}")
    raise _error(name, f"field '{field.name}' not provided — it is declared as {field.type}")


def _scalar(name: str, wanted: Scalar, value: Any) -> ParamValue:
    if wanted.is_integer:
        return _integer(name, wanted, value)
    if wanted.is_float:
        return _number(name, value)
    if wanted is Scalar.BOOL:
        if not isinstance(value, bool):
            raise _error(name, f"expected boolean, got {_kind(value)}")
        return value
    if wanted is Scalar.DATE and type(value) is date:
        return value.isoformat()
    if wanted is Scalar.DATETIME and isinstance(value, datetime):
        return _instant_text(value)
    if not isinstance(value, str):
        raise _error(name, f"expected string, got {_kind(value)}")
    if not is_unicode(value):
        raise _error(name, "is not valid Unicode: it has a lone surrogate")
    return value


def _integer(name: str, wanted: Scalar, value: Any) -> int:
    number: int
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and _DIGITS.fullmatch(value):
        number = int(value)
    elif isinstance(value, float):
        raise _error(name, f"expected integer, got number {value} — write it without a fraction")
    else:
        raise _error(name, f"expected integer, got {_kind(value)}")
    lower, upper = INTEGER_BOUNDS[wanted]
    upper = min(upper, _U64_MAX)
    if lower == 0 and number < 0:
        raise _error(name, f"expected a non-negative integer for {wanted}, got {_show(number)}")
    if not lower <= number <= upper:
        raise _error(name, f"{_show(number)} exceeds {wanted} range ({lower} to {upper})")
    return number


def _show(number: int) -> str:
    """An integer; Python refuses to print one of thousands of digits."""
    bits = number.bit_length()
    return str(number) if bits <= _SHOWN_BITS_MAX else f"an integer of {bits} bits"


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _error(name, f"expected number, got {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _error(name, "expected a finite number")
    return number


def _vector(name: str, wanted: PropertyType, value: Any) -> list[ParamValue]:
    items = _array(name, value)
    if len(items) != wanted.dimension:
        raise _error(name, f"{wanted} expects {wanted.dimension} dimensions, got {len(items)}")
    return [_number(f"{name}[{index}]", item) for index, item in enumerate(items)]


def _array(name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise _error(name, f"expected array, got {_kind(value)}")
    if len(value) > FEW_ITEMS:
        may_block()
    return value


def _instant_text(value: datetime) -> str:
    """RFC 3339 text of an instant; one without a zone is UTC, as in text."""
    return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()


def _refuse_objects(name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        raise _error(name, "objects are not supported; pass each value as its own parameter")
    if isinstance(value, (list, tuple)):
        if len(value) > FEW_ITEMS:
            may_block()
        for item in value:
            _refuse_objects(name, item)


def _error(name: str, problem: str) -> ParamsError:
    return ParamsError(f"param '{name}': {problem}")


def _kind(value: Any) -> str:
    """The JSON kind of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
        case _:
            return type(value).__name__
