"""Columns of a file: typed columns of one table, as the columns that a load checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.pipeline.model import RowForm
from omnigraph.write.convert import json_fields

_END_NAMES = (("src", "from"), ("dst", "to"))


def split_ends(
    rows: pa.Table, entity: EntityType
) -> tuple[pa.Table, tuple[pa.Array, pa.Array] | None]:
    """Take the ends of edges out of their columns; nodes have none."""
    if not isinstance(entity, EdgeType):
        return rows, None
    columns: list[pa.Array] = []
    for names in _END_NAMES:
        present = [name for name in names if name in rows.column_names]
        columns.append(
            _end_column(rows[present[0]]) if present else pa.nulls(rows.num_rows, pa.utf8())
        )
        rows = rows.drop_columns(present)
    return rows, (columns[0], columns[1])


def lacks_defaults(columns: pa.Table, entity: EntityType) -> bool:
    """Whether columns of JSON hold a null that may mean a default.

    Arrow does not tell a member that is null from one that is not there.
    """
    found = entity.properties.values()
    named = [each.name for each in found if each.type.nullable and each.default is not None]
    return any(columns[name].null_count for name in named if name in columns.column_names)


def rename_columns(rows: pa.Table, form: RowForm) -> pa.Table:
    """The columns that are used, named after what they fill."""
    columns = [rows[name] for name, _ in form.columns]
    return pa.Table.from_arrays(columns, names=[target for _, target in form.columns])


def with_constants(
    rows: pa.Table, constants: Iterable[tuple[str, Any]], entity: EntityType
) -> pa.Table:
    """Add the columns that have one value in every row."""
    for name, value in constants:
        rows = rows.append_column(name, _repeat(value, name, rows.num_rows, entity))
    return rows


def _repeat(value: Any, name: str, count: int, entity: EntityType) -> pa.Array:
    type_ = pa.utf8() if name not in entity.properties else json_fields(entity).field(name).type
    return pa.array([value] * count, type_)


def _end_column(column: pa.ChunkedArray) -> pa.Array:
    """Node ids as text. A file may hold them as the integers that the key of the node is."""
    whole = column.combine_chunks()
    if pat.is_dictionary(whole.type):
        whole = pc.cast(whole, whole.type.value_type)
    if pat.is_integer(whole.type) or pat.is_large_string(whole.type) or pat.is_string(whole.type):
        return pc.cast(whole, pa.utf8())
    if pat.is_string_view(whole.type):
        return pc.cast(whole, pa.utf8())
    return pa.nulls(len(whole), pa.utf8())
