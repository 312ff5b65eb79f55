"""Export of tables: one file per table, as Parquet or CSV, which `load` reads back equal.

Files are named after table keys (`node.Person.parquet`), rows are by id. CSV spells null as an
empty value and the empty text as `""`, lists and vectors as JSON, blobs in base64.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pyarrow.types as pat

from omnigraph.branch.images import plain_values
from omnigraph.errors import BadRequestError
from omnigraph.pipeline.export import ExportPlan, slice_rows, slices
from omnigraph.pipeline.input_files import COMPRESSIONS, plain_name
from omnigraph.pipeline.output_files import open_output, writing
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.runner import Runner
from omnigraph.storage.location import graph_root
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin

_TIMESTAMP = pa.timestamp("ms", "UTC")
_CSV_NAMES = {"src": "from", "dst": "to"}


class RowWriter(Protocol):
    """Writes the rows of one table to one file."""

    def write(self, rows: pa.Table) -> None: ...


def export_tables(
    plan: ExportPlan,
    keys: list[str],
    path: str,
    file_format: str,
    runner: Runner,
    reporter: Reporter,
) -> None:
    """Write a directory with one file per table, each by one task; or one file, if it is named so.

    Raises:
        BadRequestError: A single file is named for several tables.
    """
    if is_file_name(path, file_format):
        if len(keys) != 1:
            raise BadRequestError(
                f"'{path}' is one file, and a {file_format} file holds one type — choose one type, "
                "or name a directory"
            )
        wanted = [(keys[0], path)]
    else:
        with writing(path):
            os.makedirs(path, exist_ok=True)
        names = [f"{key.replace(':', '.', 1)}.{file_format}" for key in keys]
        files = [os.path.join(path, name) for name in names]
        wanted = list(zip(keys, files, strict=True))
    reporter.stage("exporting", len(wanted))
    runner.map(partial(_export_table, plan), wanted, reporter)


def is_file_name(path: str, file_format: str) -> bool:
    """Whether a path is named as one file of a format."""
    return plain_name(path).endswith(f".{plain_name(file_format)}")


def _export_table(plan: ExportPlan, wanted: tuple[str, str]) -> None:
    key, path = wanted
    tables = TableStorage(graph_root(plan.root), plan.storage_options)
    schema = open_pin(tables, plan.entries[key]).schema
    temporary = f"{path}.{os.getpid()}.partial"
    is_parquet = path.endswith(".parquet")
    opening = _writing_parquet if is_parquet else _writing_csv
    with writing(path):
        try:
            with opening(path, temporary, schema) as writer:
                for rows in _rows(plan, tables, key):
                    writer.write(rows.select(schema.names))
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def _rows(plan: ExportPlan, tables: TableStorage, key: str) -> Iterator[pa.Table]:
    for part in slices(plan, tables, [key]):
        yield from slice_rows(plan, tables, part)


class _ParquetWriter:
    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema

    def write(self, rows: pa.Table) -> None:
        arrays = [_to_parquet(rows[each.name].combine_chunks(), each) for each in self._schema]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))


@contextmanager
def _writing_parquet(path: str, temporary: str, schema: pa.Schema) -> Iterator[RowWriter]:
    stored = pa.schema([_parquet_field(each) for each in schema])
    with pq.ParquetWriter(temporary, stored) as writer:
        yield _ParquetWriter(writer, stored)


def _parquet_field(each: pa.Field) -> pa.Field:
    # Parquet has no date64: it would be stored as days, without the time.
    type_ = _TIMESTAMP if pat.is_date64(each.type) else each.type
    if pat.is_list(each.type) and pat.is_date64(each.type.value_type):
        type_ = pa.list_(_TIMESTAMP)
    return pa.field(each.name, type_, nullable=each.nullable)


def _to_parquet(column: pa.Array, wanted: pa.Field) -> pa.Array:
    if pat.is_date64(column.type):
        return column.view(pa.timestamp("ms")).cast(_TIMESTAMP)
    if pat.is_list(column.type) and pat.is_date64(column.type.value_type):
        items = column.values.view(pa.timestamp("ms")).cast(_TIMESTAMP)
        return pa.ListArray.from_arrays(column.offsets, items, mask=column.is_null())
    return column.cast(wanted.type)


class _CsvWriter:
    def __init__(self, writer: pv.CSVWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema

    def write(self, rows: pa.Table) -> None:
        arrays = [_to_csv(rows[name].combine_chunks()) for name in rows.column_names]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))


@contextmanager
def _writing_csv(path: str, temporary: str, schema: pa.Schema) -> Iterator[RowWriter]:
    fields = [
        pa.field(_csv_name(each.name, schema), _to_csv(pa.array([], each.type)).type)
        for each in schema
    ]
    spelled = pa.schema(fields)
    with (
        open_output(path, temporary) as file,
        pv.CSVWriter(
            file, spelled, write_options=pv.WriteOptions(quoting_style="needed")
        ) as writer,
    ):
        yield _CsvWriter(writer, spelled)


def _csv_name(name: str, schema: pa.Schema) -> str:
    is_edge = schema.names[: len(_CSV_NAMES) + 1] == ["id", *_CSV_NAMES]
    return _CSV_NAMES.get(name, name) if is_edge else name


def _to_csv(column: pa.Array) -> pa.Array:
    """A column in a type that the writer spells as `load` reads it."""
    type_ = column.type
    if pat.is_date64(type_):
        texts = pc.cast(column.view(pa.timestamp("ms")), pa.utf8())
        return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")
    if pat.is_date32(type_):
        return pc.cast(column, pa.utf8())
    if pat.is_nested(type_) or pat.is_large_binary(type_):
        return pa.array(list(map(_to_text, plain_values(column))), pa.utf8())
    return column


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def list_formats(names: Iterable[str]) -> list[str]:
    """The formats, and those that are compressed text."""
    return [*names, *(f"csv{ending}" for ending in COMPRESSIONS)]
