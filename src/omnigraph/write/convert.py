"""Convert: JSON records or Arrow columns to columns of the stored types, with what does not fit.

Three kinds of input, one rule (`values.py`): records parsed from JSON, columns that a reader or a
DataFrame typed already, and the single value of a mutation. Nothing wraps, truncates or is guessed:
a value that is not of its type is a bad row, nullable or not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType, Property
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConstraintError, with_suggestion
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.bad_rows import NO_BAD_ROWS, SHOWN_MAX, BadRow, BadRows, excerpt
from omnigraph.write.fit import Fitted, Mask, fit_column, fit_values, to_mask
from omnigraph.write.values import Unfit, hint_text_form, to_stored, unfit_reason

ID = "id"
_ID_TYPE = PropertyType(Scalar.STRING, nullable=True)


@dataclass(frozen=True, slots=True)
class Columns:
    """Converted properties, row for row with the input.

    `table` has the properties in stored order and type; a cell that did not fit is null there and
    named in `bad`, so the table may be stored only when `bad` is empty. `explicit_ids` holds the
    `id` of each row that brought one.
    """

    table: pa.Table
    explicit_ids: pa.StringArray
    bad: BadRows


@dataclass(frozen=True, slots=True)
class _Source:
    """A batch to convert: fits one of its columns, looks up a value, says which rows lack a member.

    A member that is there and null is not lacking.
    """

    fit: Callable[[str, PropertyType], Fitted]
    value_at: Callable[[str, int], object]
    lacks: Callable[[str], Mask]


def columns_from_records(
    entity: EntityType,
    records: Sequence[Mapping[str, object]],
    *,
    deferred: Collection[str] = (),
    limit: int | None = SHOWN_MAX,
) -> Columns:
    """Convert the `data` objects of load records, as `json` or `orjson` parses them.

    A required property named in `deferred` may be missing: it is filled in later, as the embedding
    step does for vectors.
    """
    source = _Source(
        lambda name, type_: fit_values(type_, _values_of(records, name)),
        lambda name, index: records[index].get(name),
        lambda name: np.array([name not in record for record in records], dtype=np.bool_),
    )
    unknown = set().union(*records) - entity.properties.keys() - {ID}
    rows_with = {
        name: np.flatnonzero([name in record for record in records]) for name in sorted(unknown)
    }
    return _columns(entity, source, rows_with, deferred, limit)


def columns_from_arrow(
    entity: EntityType,
    table: pa.Table | pa.RecordBatch,
    *,
    deferred: Collection[str] = (),
    limit: int | None = SHOWN_MAX,
) -> Columns:
    """Convert typed columns: one per property, an optional `id`, and no other.

    Meant for one batch of a load: a column has to fit in one Arrow array (2 GiB of text).
    """
    whole = {name: _whole(table.column(name)) for name in table.column_names}
    source = _Source(
        lambda name, type_: (
            fit_column(type_, whole[name])
            if name in whole
            else Fitted(pa.nulls(table.num_rows, type_.arrow_type()))
        ),
        lambda name, index: python_value(whole[name][index]) if name in whole else None,
        lambda name: np.full(table.num_rows, name not in whole),
    )
    unknown = whole.keys() - entity.properties.keys() - {ID}
    # A reader gives every row the column; only where it holds something was the field there.
    rows_with = {name: np.flatnonzero(to_mask(whole[name].is_valid())) for name in sorted(unknown)}
    return _columns(entity, source, rows_with, deferred, limit)


def scalar_from_value(type_: PropertyType, value: object, *, name: str = "value") -> pa.Scalar:
    """Convert one value of a mutation: a literal, a parameter, or None for null.

    Raises:
        ConstraintError: The value does not fit the type of property `name`.
    """
    if value is None:
        if not type_.nullable:
            raise ConstraintError(null_reason(name))
        return pa.scalar(None, type_.arrow_type())
    try:
        return pa.array([to_stored(type_, value)], type_.arrow_type())[0]
    except Unfit as unfit:
        raise ConstraintError(f"property '{name}': {unfit.reason}") from None


def json_fields(entity: EntityType) -> pa.StructType:
    """The types to read a `data` object with, so that no spelling is lost before it is checked.

    Left to infer, Arrow's JSON reader turns date-like strings into timestamps and integers beside
    a fraction into floats. Integers are read at full width and checked here.
    """
    fields = [pa.field(ID, pa.utf8())]
    fields += [pa.field(each.name, _json_type(each.type)) for each in entity.properties.values()]
    return pa.struct(fields)


def _json_type(type_: PropertyType) -> pa.DataType:
    if type_.is_vector:
        return pa.list_(pa.float64())
    if type_.is_list:
        return pa.list_(_json_type(type_.element()))
    if type_.scalar.is_float:
        return pa.float64()
    if type_.scalar.is_integer:
        return pa.uint64() if type_.scalar is Scalar.U64 else pa.int64()
    return pa.bool_() if type_.scalar is Scalar.BOOL else pa.utf8()


def _columns(
    entity: EntityType,
    source: _Source,
    rows_with: Mapping[str, Any],
    deferred: Collection[str],
    limit: int | None,
) -> Columns:
    ids = source.fit(ID, _ID_TYPE)
    unknown = _unknown_fields(entity, source, rows_with, limit)
    parts = [unknown, _misfits(entity, ID, _ID_TYPE, ids, source, limit)]
    arrays: list[pa.Array] = []
    for each in entity.properties.values():
        fitted = _with_default(each, source.fit(each.name, each.type), source)
        arrays.append(fitted.values)
        parts.append(_misfits(entity, each.name, each.type, fitted, source, limit))
        if not each.type.nullable and each.name not in deferred:
            parts.append(_nulls(entity, each, fitted, limit))
    schema = pa.schema([each.type.arrow_field(each.name) for each in entity.properties.values()])
    # Without columns a table cannot say how many rows it has, so the ids ride along.
    table = pa.Table.from_arrays(
        [ids.values, *arrays], schema=schema.insert(0, pa.field(ID, pa.utf8()))
    )
    return Columns(table.drop_columns([ID]), ids.values, BadRows.of_batch(parts, limit))


def _with_default(each: Property, fitted: Fitted, source: _Source) -> Fitted:
    """Give rows without a value the default; null is a value only of an optional property."""
    if each.default is None or fitted.values.null_count == 0:
        return fitted
    value = scalar_from_value(each.type, each.default, name=each.name)
    lacking = source.lacks(each.name) if each.type.nullable else to_mask(fitted.values.is_null())
    return Fitted(pc.if_else(pa.array(lacking), value, fitted.values), fitted.unfit)


def _misfits(
    entity: EntityType,
    name: str,
    type_: PropertyType,
    fitted: Fitted,
    source: _Source,
    limit: int | None,
) -> BadRows:
    if fitted.unfit is None:
        return NO_BAD_ROWS

    def describe(index: int) -> BadRow:
        value = source.value_at(name, index)
        reason = unfit_reason(type_, value) + hint_text_form(type_, value)
        return BadRow(index, entity.name, name, excerpt(value), reason)

    return BadRows.at(np.flatnonzero(fitted.unfit), describe, limit)


def _nulls(entity: EntityType, each: Property, fitted: Fitted, limit: int | None) -> BadRows:
    if fitted.values.null_count == 0:
        return NO_BAD_ROWS
    absent = to_mask(fitted.values.is_null())
    if fitted.unfit is not None:
        absent = absent & ~fitted.unfit
    return BadRows.at(
        np.flatnonzero(absent),
        lambda index: BadRow(index, entity.name, each.name, "", null_reason(each.name)),
        limit,
    )


def null_reason(name: str) -> str:
    return f"non-nullable property '{name}' has null or invalid values"


def _unknown_fields(
    entity: EntityType, source: _Source, rows_with: Mapping[str, Any], limit: int | None
) -> BadRows:
    def report(name: str, rows: Any) -> BadRows:
        problem = f"{entity.name} has no property {excerpt(name)}"
        reason = with_suggestion(problem, name, entity.properties)
        return BadRows.at(
            rows,
            lambda index: BadRow(
                index, entity.name, name, excerpt(source.value_at(name, index)), reason
            ),
            limit,
        )

    return BadRows.of_batch((report(name, rows) for name, rows in rows_with.items()), limit)


def _values_of(records: Sequence[Mapping[str, object]], name: str) -> list[object]:
    try:
        return list(map(itemgetter(name), records))
    except KeyError:
        return [record.get(name) for record in records]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def python_value(scalar: pa.Scalar) -> object:
    """A value as Python has it; a date beyond its calendar as text, others as their type."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        match scalar:
            case pa.Date32Scalar():
                return str(np.datetime64(scalar.value, "D"))
            case pa.Date64Scalar():
                return str(np.datetime64(scalar.value, "ms"))
            case pa.TimestampScalar():
                return str(np.datetime64(scalar.value, scalar.type.unit))
            case _:  # bytes that are not text
                return str(scalar.type)
