"""Functions: arithmetic and the functions of the language, over whole columns.

What Arrow does otherwise is done here: division by zero and floats that are not finite are null,
whole numbers are exact or an error, `%` has the sign of the dividend, `round` goes away from zero,
`substring` counts from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError, ResourceLimitError
from omnigraph.index.query_memory import require_bytes
from omnigraph.syntax.query_tree import ArithmeticOp
from omnigraph.types import PropertyType, Scalar

_DAY_MS = 86_400_000
_UNITS = {"days": _DAY_MS, "hours": 3_600_000, "minutes": 60_000}
_DAY_FIRST, _DAY_LAST = -719_162, 2_932_896
"""The days of the years 1 to 9999, from 1970 on."""

TEXT_BYTES_MAX = 2**31 - 1
_CHECKED = {
    ArithmeticOp.PLUS: pc.add_checked,
    ArithmeticOp.MINUS: pc.subtract_checked,
    ArithmeticOp.TIMES: pc.multiply_checked,
}
_FLOATING: dict[ArithmeticOp, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    ArithmeticOp.PLUS: np.add,
    ArithmeticOp.MINUS: np.subtract,
    ArithmeticOp.TIMES: np.multiply,
    ArithmeticOp.OVER: np.divide,
    ArithmeticOp.MODULO: np.fmod,
}


def combine(op: ArithmeticOp, left: pa.Array, right: pa.Array, found: PropertyType) -> pa.Array:
    """`left op right` in every row; `found` is the type of the result.

    Raises:
        BadRequestError: A whole number does not fit in 64 bits, or a date in years 1 to 9999.
    """
    if found.scalar in (Scalar.DATE, Scalar.DATETIME):
        return _shift_time(op, left, right, found.scalar)
    if found.scalar is Scalar.F64:
        return _combine_floats(op, left, right)
    return _combine_integers(op, _to_integers(left), _to_integers(right))


def join_texts(parts: Sequence[pa.Array]) -> pa.Array:
    """The texts of every row behind one another, null where one is: in one pass, however many.

    Raises:
        ResourceLimitError: They are more than a column of texts holds.
    """
    size = sum(int(pc.sum(pc.binary_length(each)).as_py() or 0) for each in parts)
    if size > TEXT_BYTES_MAX:
        raise ResourceLimitError(
            "the number of bytes of texts to join",
            limit=TEXT_BYTES_MAX,
            actual=size,
            advice="join fewer texts, or join them in fewer rows: add a filter",
        )
    require_bytes(size)
    return pc.binary_join_element_wise(*parts, "")


def negate(operand: pa.Array) -> pa.Array:
    """`-operand` in every row."""
    if pa.types.is_floating(operand.type):
        return pc.negate(operand.cast(pa.float64()))
    return _exact(lambda: pc.negate_checked(_to_integers(operand)))


def call(name: str, arguments: Sequence[pa.Array], found: pa.DataType) -> pa.Array:
    """A function of the language in every row."""
    return _FUNCTIONS[name](*arguments) if name != "coalesce" else _coalesce(arguments, found)


def _combine_integers(op: ArithmeticOp, left: pa.Array, right: pa.Array) -> pa.Array:
    if op is not ArithmeticOp.MODULO:
        return _exact(lambda: _CHECKED[op](left, right))
    known = _known(left, right) & (_plain(right, 1) != 0)
    divisor = np.where(known, _plain(right, 1), 1)
    # -1 divides everything; beside the least number it would not fit.
    divisor = np.where(divisor == -1, 1, divisor)
    return pa.array(np.fmod(_plain(left, 0), divisor), mask=~known)


def _combine_floats(op: ArithmeticOp, left: pa.Array, right: pa.Array) -> pa.Array:
    with np.errstate(all="ignore"):
        numbers = _FLOATING[op](_floats(left), _floats(right))
    return _finite(numbers, _known(left, right))


def _shift_time(op: ArithmeticOp, left: pa.Array, right: pa.Array, scalar: Scalar) -> pa.Array:
    is_date = scalar is Scalar.DATE
    time_type = pa.date32() if is_date else pa.date64()
    if left.type != time_type:
        left, right = right, left
    ticks = left.cast(pa.int32() if is_date else pa.int64()).cast(pa.int64())
    span = pc.divide(right, _DAY_MS) if is_date else right
    moved = _exact(lambda: _CHECKED[op](ticks, span))
    days = _plain(moved, 0) if is_date else np.floor_divide(_plain(moved, 0), _DAY_MS)
    if ((days < _DAY_FIRST) | (days > _DAY_LAST)).any():
        raise BadRequestError("date out of range — years are 1 to 9999")
    return moved.cast(pa.int32()).cast(time_type) if is_date else moved.cast(time_type)


def _substring(text: pa.Array, start: pa.Array, count: pa.Array | None = None) -> pa.Array:
    known = _known(text, start) if count is None else _known(text, start, count)
    starts = np.maximum(_plain(start, 0), 0)
    ends = None if count is None else starts + np.minimum(np.maximum(_plain(count, 0), 0), 2**31)
    texts = text.to_pylist()
    cut = [
        texts[row][int(starts[row]) : None if ends is None else int(ends[row])]
        if known[row]
        else None
        for row in range(len(texts))
    ]
    return pa.array(cut, pa.utf8())


def _upper(text: pa.Array) -> pa.Array:
    # Arrow knows a capital of this one letter to which Unicode does not map it.
    if not pc.any(pc.match_substring(text, "ß")).as_py():
        return pc.utf8_upper(text)
    parts = pc.split_pattern(text, "ß")
    capitals = pc.utf8_upper(parts.values)
    return pc.binary_join(
        pa.ListArray.from_arrays(parts.offsets, capitals, mask=parts.is_null()), "ß"
    )


def _length(value: pa.Array) -> pa.Array:
    is_text = pa.types.is_string(value.type)
    return (pc.utf8_length(value) if is_text else pc.list_value_length(value)).cast(pa.int64())


def _absolute(value: pa.Array) -> pa.Array:
    if pa.types.is_floating(value.type):
        return pc.abs(value.cast(pa.float64()))
    return _exact(lambda: pc.abs_checked(_to_integers(value)))


def _round(value: pa.Array, digits: pa.Array | None = None) -> pa.Array:
    if not pa.types.is_floating(value.type):
        return _to_integers(value)
    scale = 1.0 if digits is None or not len(digits) else 10.0 ** digits[0].as_py()
    numbers = _floats(value)
    with np.errstate(all="ignore"):
        rounded = np.copysign(np.floor(np.abs(numbers) * scale + 0.5), numbers) / scale
    return _finite(rounded, _known(value))


def _coalesce(arguments: Sequence[pa.Array], found: pa.DataType) -> pa.Array:
    return pc.coalesce(*(argument.cast(found) for argument in arguments))


def _to_date(instant: pa.Array) -> pa.Array:
    ticks = instant.cast(pa.int64())
    days = np.floor_divide(_plain(ticks, 0), _DAY_MS).astype(np.int32)
    return pa.array(days, mask=~_known(instant)).cast(pa.date32())


def _part(function: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    # Arrow reads a part of a day, and of an instant only by its day.
    return lambda time: function(_to_date(time) if pa.types.is_date64(time.type) else time)


def _duration(unit: int) -> Callable[[pa.Array], pa.Array]:
    return lambda count: _exact(lambda: pc.multiply_checked(_to_integers(count), unit))


_FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "lower": pc.utf8_lower,
    "upper": _upper,
    "length": _length,
    "substring": _substring,
    "abs": _absolute,
    "round": _round,
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "date": _to_date,
    **{name: _duration(unit) for name, unit in _UNITS.items()},
}


def _exact(compute: Callable[[], pa.Array]) -> pa.Array:
    try:
        return compute()
    except pa.ArrowInvalid:
        raise BadRequestError("integer overflow — the result does not fit in 64 bits") from None


def _to_integers(value: pa.Array) -> pa.Array:
    return _exact(lambda: value.cast(pa.int64()))


def _floats(value: pa.Array) -> np.ndarray:
    wide = value.cast(pa.float64(), safe=False)
    return np.asarray(wide.fill_null(0.0).to_numpy(zero_copy_only=False))


def _plain(value: pa.Array, missing: int) -> np.ndarray:
    return np.asarray(value.fill_null(missing).to_numpy(zero_copy_only=False))


def _known(*values: pa.Array) -> np.ndarray:
    masks = [value.is_valid().to_numpy(zero_copy_only=False) for value in values]
    return np.asarray(np.logical_and.reduce(masks))


def _finite(numbers: np.ndarray, known: np.ndarray) -> pa.Array:
    return pa.array(numbers, mask=~(known & np.isfinite(numbers)))
