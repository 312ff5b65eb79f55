"""Projection: which columns a read returns, and under which schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError
from omnigraph.storage.blobs import blob_columns
from omnigraph.storage.handles import TableHandle

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
IN_TURN: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 1, "io_buffer_size": 8 << 20}
"""Options of a scan that decodes one batch after another, and not fragments side by side."""


def projection(
    schema: pa.Schema, columns: Sequence[str] | None, *, include_blobs: bool
) -> list[str]:
    """The columns a scan returns; names it does not have are refused."""
    blobs = set(blob_columns(schema))
    if columns is None:
        return [name for name in schema.names if include_blobs or name not in blobs]
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise BadRequestError(f"there is no column {unknown} — the table has {schema.names}")
    if not include_blobs and blobs.intersection(columns):
        raise BadRequestError(f"{sorted(blobs.intersection(columns))} are blobs: ask for them")
    return list(columns)


def column_type(handle: TableHandle, column: str) -> pa.DataType:
    """The logical type of one column; a name the table does not have is refused."""
    projection(handle.schema, [column], include_blobs=True)
    return handle.schema.field(column).type


def result_schema(
    schema: pa.Schema,
    columns: Sequence[str],
    *,
    with_row_id: bool = False,
    with_row_address: bool = False,
) -> pa.Schema:
    """The schema of a scan's result: logical fields, then the row id or the row address."""
    fields = [schema.field(name).remove_metadata() for name in columns]
    if with_row_id:
        fields.append(pa.field(ROW_ID, pa.uint64()))
    if with_row_address:
        fields.append(pa.field(ROW_ADDRESS, pa.uint64()))
    return pa.schema(fields)


def to_schema(handle: TableHandle, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema`, in its order; those that the version does not have are null."""

    def column(field: pa.Field) -> pa.Array:
        if field.name in handle.absent:
            return pa.nulls(batch.num_rows, field.type)
        found = batch.column(field.name)
        return recast(found, field.type)[0] if field.name in handle.recast else found

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def is_number_type(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def is_narrower(type_: pa.DataType, than: pa.DataType) -> bool:
    """Whether a type of numbers has no room for some numbers of another one."""
    if type_ == than or not (is_number_type(type_) and is_number_type(than)):
        return False
    if pa.types.is_floating(type_):
        bits = 24 if type_.bit_width == 32 else 53
        return bool(than.bit_width > (type_.bit_width if pa.types.is_floating(than) else bits))
    if pa.types.is_floating(than):
        return True
    signs = pa.types.is_signed_integer(type_), pa.types.is_signed_integer(than)
    if signs == (True, False):
        return bool(than.bit_width >= type_.bit_width)
    return bool(signs == (False, True) or than.bit_width > type_.bit_width)


def recast(numbers: pa.Array, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Numbers in another type, and which of them it has no room for: those are null.

    Nothing is rounded or wrapped: a number stays the same number.
    """
    made = numbers.cast(type_, safe=False)
    differs = pc.not_equal(made.cast(numbers.type, safe=False), numbers)
    # Between signed and unsigned, what wraps on the way there wraps back on the way back.
    wrapped = pc.xor(_is_negative(made), _is_negative(numbers))
    unfit = pc.fill_null(pc.or_(differs, wrapped), False)
    return pc.if_else(unfit, pa.scalar(None, type_), made), unfit


def _is_negative(numbers: pa.Array) -> pa.Array:
    return pc.less(numbers, pa.scalar(0, numbers.type))
