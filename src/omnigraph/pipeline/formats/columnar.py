"""Columnar files: what Parquet and Arrow files have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pat

from omnigraph.catalog import EntityType
from omnigraph.errors import BadRequestError
from omnigraph.pipeline.binding import RowRules, bind_columns
from omnigraph.pipeline.blocks import RowsBlock
from omnigraph.pipeline.columns_of_file import rename_columns
from omnigraph.pipeline.input_files import is_compressed, reading
from omnigraph.pipeline.model import RowForm
from omnigraph.types import PropertyType, Scalar

_ROWS_MIN, _ROWS_MAX = 1024, 1 << 20


@contextmanager
def reading_columns(path: str, kind: str) -> Iterator[None]:
    """Turn an error of Arrow about a file into one that names the file."""
    damaged = BadRequestError(
        f"cannot read '{path}': it is no {kind} file, or damaged or cut off — nothing was written"
    )
    try:
        with reading(path):
            try:
                yield
            except OSError as error:
                if error.errno is not None:
                    raise
                raise damaged from error  # of Arrow, which says so of pages it cannot decode
    except (pa.ArrowException, UnicodeDecodeError, ValueError) as error:
        raise damaged from error


def refuse_packed(path: str, kind: str) -> None:
    if is_compressed(path):
        raise BadRequestError(
            f"cannot read '{path}': a {kind} file is compressed inside — unpack it; "
            "nothing was written"
        )


def bind_schema(rules: RowRules, schema: pa.Schema, path: str) -> RowForm:
    """Bind the columns of a file, whose types have to suit the properties they fill.

    Raises:
        BadRequestError: They do not; all that do not are named.
    """
    form = bind_columns(rules, schema.names, path)
    problems = [
        f"column '{name}' is {schema.field(name).type}, expected {_expected(rules, target)}"
        for name, target in form.columns
        if not _suits(rules.entity, target, schema.field(name).type)
    ]
    if problems:
        raise BadRequestError(f"{path}: {'; '.join(problems)} — nothing was written")
    return replace(form, names=())


def rows_per_batch(rows: int, size: int, part_bytes: int) -> int:
    """How many rows to read at a time, so that they take about `part_bytes`."""
    wanted = part_bytes * max(rows, 1) // max(size, 1)
    return min(max(wanted, _ROWS_MIN), _ROWS_MAX)


def to_block(batch: pa.RecordBatch | pa.Table, form: RowForm, first: int) -> RowsBlock:
    """Rows of a file under the names of what they fill."""
    rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    return RowsBlock(form.table_key, first, rename_columns(rows, form), form.constants)


def _expected(rules: RowRules, target: str) -> str:
    known = rules.entity.properties.get(target)
    return "text or whole numbers" if known is None else str(known.type)


def _suits(entity: EntityType, target: str, given: pa.DataType) -> bool:
    if pat.is_dictionary(given):
        given = given.value_type
    if pat.is_null(given):
        return True
    known = entity.properties.get(target)
    if known is None:
        return _is_text(given) or (target != "id" and pat.is_integer(given))
    return _suits_type(known.type, given)


def _suits_type(type_: PropertyType, given: pa.DataType) -> bool:
    if type_.is_list or type_.is_vector:
        is_list = pat.is_list(given) or pat.is_large_list(given) or pat.is_fixed_size_list(given)
        item = PropertyType(Scalar.F32) if type_.is_vector else type_.element()
        return bool(
            is_list and (pat.is_null(given.value_type) or _suits_type(item, given.value_type))
        )
    whole = pat.is_integer(given) or (pat.is_decimal(given) and given.scale == 0)
    match type_.scalar:
        case Scalar.STRING:
            return _is_text(given)
        case Scalar.BOOL:
            return bool(pat.is_boolean(given))
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return bool(whole)
        case Scalar.F32 | Scalar.F64:
            return bool(pat.is_integer(given) or pat.is_floating(given) or pat.is_decimal(given))
        case Scalar.DATE:
            return _is_text(given) or pat.is_date32(given) or pat.is_integer(given)
        case Scalar.DATETIME:
            return _is_text(given) or pat.is_temporal(given) or pat.is_integer(given)
        case _:
            return _is_text(given) or pat.is_binary(given) or pat.is_large_binary(given)


def _is_text(given: pa.DataType) -> bool:
    return bool(pat.is_string(given) or pat.is_large_string(given) or pat.is_string_view(given))
