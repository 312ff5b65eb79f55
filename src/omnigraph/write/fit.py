"""Fit: one column of input to one column of the stored type, by Arrow kernels.

Invariant: a value that `values.to_stored` refuses is never stored; a value it takes is stored
as it says. A column is cast as a whole; only a column that Arrow refuses is read value by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from omnigraph.dataclass import dataclass
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.instants import (
    DAY_MS,
    DAYS_MAX,
    DAYS_MIN,
    MILLISECONDS_MAX,
    MILLISECONDS_MIN,
    days_of_texts,
    milliseconds_of_texts,
)
from omnigraph.write.values import Unfit, to_stored

Mask: TypeAlias = npt.NDArray[np.bool_]

_ARROW_REFUSALS = (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A column of the stored type, row for row with its input; null where the input did not fit.

    `unfit` marks those rows and is None when there are none.
    """

    values: pa.Array
    unfit: Mask | None = None


def fit_values(type_: PropertyType, values: Sequence[object]) -> Fitted:
    """Fit parsed JSON values, None for null."""
    if type_.is_vector or type_.is_list:
        return _fit_arrays(type_, values)
    if len(values) == 1:
        return _fit_each(type_, values)  # a call of Arrow costs more than the rule for one value
    natural = _natural_type(type_.scalar, set(map(type, values)) - {type(None)})
    if natural is None:
        return _fit_each(type_, values)
    try:
        column = pa.array(values, natural)
    except _ARROW_REFUSALS:
        return _fit_each(type_, values)
    return fit_column(type_, column)


def fit_column(type_: PropertyType, column: pa.Array) -> Fitted:
    """Fit an Arrow column of whatever type its reader chose."""
    column = _plain(column)
    if pat.is_null(column.type):
        return Fitted(pa.nulls(len(column), type_.arrow_type()))
    if type_.is_vector or type_.is_list:
        return _fit_list_column(type_, column)
    match type_.scalar:
        case Scalar.STRING:
            return _fit_text(column)
        case Scalar.BOOL:
            return Fitted(column) if pat.is_boolean(column.type) else _none_fits(type_, column)
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return _fit_integers(type_, column)
        case Scalar.F32 | Scalar.F64:
            return _fit_floats(type_, column)
        case Scalar.DATE:
            return _fit_dates(type_, column)
        case Scalar.DATETIME:
            return _fit_datetimes(type_, column)
        case Scalar.BLOB:
            return _fit_blobs(type_, column)
        case Scalar.VECTOR:
            raise AssertionError("vectors are fitted as lists")
    assert_never(type_.scalar)


def _natural_type(scalar: Scalar, kinds: set[type]) -> pa.DataType | None:
    """The Arrow type that takes Python values of these kinds as they are, if one does."""
    if not kinds:
        return pa.null()
    if kinds == {str} and scalar is not Scalar.BLOB:
        return pa.utf8()
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.uint64() if scalar is Scalar.U64 else pa.int64()
    if kinds <= {int, float} and scalar.is_float:
        return pa.float64()
    return None


def _plain(column: pa.Array) -> pa.Array:
    """Undo the encodings that do not change what a column says."""
    if pat.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pat.is_large_string(column.type) or pat.is_string_view(column.type):
        column = pc.cast(column, pa.utf8())
    return column


def _fit_each(type_: PropertyType, values: Sequence[object]) -> Fitted:
    """The rule itself, value by value: for columns of mixed kinds and those with a misfit."""
    stored: list[object] = []
    unfit = np.zeros(len(values), dtype=np.bool_)
    for index, value in enumerate(values):
        try:
            stored.append(None if value is None else to_stored(type_, value))
        except Unfit:
            stored.append(None)
            unfit[index] = True
    return Fitted(pa.array(stored, type_.arrow_type()), _or_none(unfit))


def _none_fits(type_: PropertyType, column: pa.Array) -> Fitted:
    """A column of a foreign type: whatever is not null in it is wrong."""
    return Fitted(pa.nulls(len(column), type_.arrow_type()), _or_none(to_mask(column.is_valid())))


def _without(values: pa.Array, unfit: Mask | None) -> Fitted:
    if unfit is None:
        return Fitted(values)
    return Fitted(pc.if_else(pa.array(unfit), pa.scalar(None, values.type), values), unfit)


def to_mask(flags: pa.BooleanArray) -> Mask:
    """Flags as NumPy; null counts as False."""
    mask: Mask = flags.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _or_none(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


def _fit_text(column: pa.Array) -> Fitted:
    if not pat.is_string(column.type):
        return _none_fits(PropertyType(Scalar.STRING), column)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        # A reader let bytes through that are not UTF-8. No text kernel may see them.
        raw = column.view(pa.binary()).to_pylist()
        unfit = np.array([value is not None and not _is_utf8(value) for value in raw])
        texts = [None if bad else value for value, bad in zip(raw, unfit, strict=True)]
        return Fitted(pa.array(texts, pa.binary()).cast(pa.utf8()), unfit)
    return Fitted(column)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fit_integers(type_: PropertyType, column: pa.Array) -> Fitted:
    if column.type == type_.arrow_type():
        return Fitted(column)
    # Spark has no unsigned integers: a whole decimal is how a DataFrame carries U64.
    whole = pat.is_integer(column.type) or (pat.is_decimal(column.type) and column.type.scale == 0)
    if not whole:
        return _none_fits(type_, column)
    try:
        return Fitted(pc.cast(column, type_.arrow_type()))
    except pa.ArrowInvalid:
        return _fit_each(type_, column.to_pylist())


def _fit_floats(type_: PropertyType, column: pa.Array) -> Fitted:
    source = column.type
    if not (pat.is_integer(source) or pat.is_floating(source) or pat.is_decimal(source)):
        return _none_fits(type_, column)
    # Through double in every case, so that an integer rounds the same way however it is read.
    values = pc.cast(column, pa.float64(), safe=False)
    values = pc.cast(values, type_.arrow_type(), safe=False)
    is_finite = pc.is_finite(values)
    if pc.all(is_finite, min_count=0).as_py():
        return Fitted(values)
    return _without(values, _or_none(to_mask(pc.invert(is_finite))))


def _fit_dates(type_: PropertyType, column: pa.Array) -> Fitted:
    source = column.type
    if pat.is_string(source):
        days = days_of_texts(column)
    elif pat.is_date32(source):
        days = pc.cast(pc.cast(column, pa.int32()), pa.int64())
    elif pat.is_integer(source):
        try:
            days = pc.cast(column, pa.int64())
        except pa.ArrowInvalid:
            return _fit_each(type_, column.to_pylist())
    else:
        return _none_fits(type_, column)
    return _fit_span(column, days, DAYS_MIN, DAYS_MAX, pa.int32(), pa.date32())


def _fit_datetimes(type_: PropertyType, column: pa.Array) -> Fitted:
    source = column.type
    if pat.is_string(source):
        milliseconds = milliseconds_of_texts(column)
    elif pat.is_timestamp(source):
        milliseconds = _milliseconds_of_timestamps(column)
    elif pat.is_date32(source):
        days = pc.cast(pc.cast(column, pa.int32()), pa.int64())
        milliseconds = pc.multiply(days, DAY_MS)
    elif pat.is_date64(source) or pat.is_integer(source):
        try:
            milliseconds = pc.cast(column, pa.int64())
        except pa.ArrowInvalid:
            return _fit_each(type_, column.to_pylist())
    else:
        return _none_fits(type_, column)
    low, high = MILLISECONDS_MIN, MILLISECONDS_MAX
    return _fit_span(column, milliseconds, low, high, pa.int64(), pa.date64())


def _milliseconds_of_timestamps(column: pa.Array) -> pa.Array:
    """Timestamps in milliseconds; finer digits are cut off, as they are in texts."""
    ticks = column.view(pa.int64())
    unit = column.type.unit
    if unit == "ms":
        return ticks
    if unit == "s":
        # Beyond what can be shown anyway, kept from overflowing on its way to be refused.
        bound = MILLISECONDS_MAX
        return pc.multiply(pc.max_element_wise(pc.min_element_wise(ticks, bound), -bound), 1000)
    per_ms = {"us": 1_000, "ns": 1_000_000}[unit]
    floored = np.floor_divide(ticks.fill_null(0).to_numpy(), per_ms)
    return pa.array(floored, mask=to_mask(column.is_null()))


def _fit_span(
    column: pa.Array,
    numbers: pa.Array,
    low: int,
    high: int,
    width: pa.DataType,
    stored: pa.DataType,
) -> Fitted:
    """Keep the numbers from `low` to `high`, as `stored`; the others, and texts without, misfit."""
    inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    unfit = None
    if numbers.null_count != column.null_count or not pc.all(inside, min_count=0).as_py():
        unfit = _or_none(to_mask(column.is_valid()) & ~to_mask(inside))
        numbers = pc.if_else(inside, numbers, None)
    # `view`, not a cast: Arrow's casts to date64 cut the time of day off.
    return Fitted(pc.cast(numbers, width).view(stored), unfit)


def _fit_blobs(type_: PropertyType, column: pa.Array) -> Fitted:
    source = column.type
    if pat.is_binary(source) or pat.is_large_binary(source) or pat.is_fixed_size_binary(source):
        return Fitted(pc.cast(column, pa.large_binary()))
    if pat.is_string(source):
        # No kernel reads base64; the decoder's own loop over the payload is the cost here.
        return _fit_each(type_, column.to_pylist())
    return _none_fits(type_, column)


def _fit_list_column(type_: PropertyType, column: pa.Array) -> Fitted:
    source = column.type
    if not (pat.is_list(source) or pat.is_large_list(source) or pat.is_fixed_size_list(source)):
        return _none_fits(type_, column)
    lengths = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    missing = to_mask(column.is_null())
    return _assemble(type_, lengths, missing, fit_column(_element(type_), pc.list_flatten(column)))


def _fit_arrays(type_: PropertyType, values: Sequence[object]) -> Fitted:
    missing = np.fromiter((value is None for value in values), np.bool_, len(values))
    kinds = set(map(type, values)) - {type(None), list}
    foreign = np.zeros(len(values), dtype=np.bool_)
    if kinds:
        foreign = np.fromiter((not isinstance(v, list) for v in values), np.bool_) & ~missing
    arrays: list[list[Any]] = [value if isinstance(value, list) else [] for value in values]
    lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
    elements = fit_values(_element(type_), list(chain.from_iterable(arrays)))
    fitted = _assemble(type_, lengths, missing | foreign, elements)
    unfit = foreign if fitted.unfit is None else fitted.unfit | foreign
    return Fitted(fitted.values, _or_none(unfit))


def _element(type_: PropertyType) -> PropertyType:
    return PropertyType(Scalar.F32) if type_.is_vector else type_.element()


def _assemble(
    type_: PropertyType, lengths: npt.NDArray[np.int64], missing: Mask, elements: Fitted
) -> Fitted:
    """Build a list or vector column from its elements; a list with a bad element is unfit."""
    bad = to_mask(elements.values.is_null())
    unfit = np.zeros(len(lengths), dtype=np.bool_)
    if bad.any():
        unfit[np.repeat(np.arange(len(lengths)), lengths)[bad]] = True
    if type_.is_vector:
        unfit |= ~missing & (lengths != type_.dimension)
    absent = missing | unfit
    kept = elements.values
    if unfit.any():
        kept = kept.filter(pa.array(np.repeat(~unfit, lengths)))
        lengths = np.where(unfit, 0, lengths)
    build = _vectors if type_.is_vector else _lists
    return Fitted(build(type_.arrow_type(), kept, lengths, absent), _or_none(unfit))


def _lists(
    stored: pa.DataType, elements: pa.Array, lengths: npt.NDArray[np.int64], absent: Mask
) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = pa.array(absent) if absent.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), elements, type=stored, mask=mask)


def _vectors(
    stored: pa.DataType, elements: pa.Array, _lengths: npt.NDArray[np.int64], absent: Mask
) -> pa.Array:
    if not absent.any():
        return pa.FixedSizeListArray.from_arrays(elements, type=stored)
    # A null vector still takes its width in the column of elements.
    widened = np.zeros((len(absent), stored.list_size), dtype=np.float32)
    widened[~absent] = elements.to_numpy().reshape(-1, stored.list_size)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(widened.reshape(-1)), type=stored, mask=pa.array(absent)
    )
