"""Export: a snapshot as load records, so that loading them again gives the same graph.

Tables come in the order of their keys, rows by id. Only ids are sorted in memory; rows are fetched
in that order, a slice at a time. A slice is a task, so a large graph is exported by Spark in
parallel and put together in order.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.images import plain_values
from omnigraph.catalog import Catalog, EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.manifest import TableEntry
from omnigraph.pipeline.input_files import plain_name
from omnigraph.pipeline.output_files import open_output, open_packed, writing
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.runner import Runner
from omnigraph.storage.location import graph_root
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin

ROWS_PER_SLICE = 50_000
ROWS_PER_FETCH = 5_000


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What every task of an export has to know."""

    catalog: Catalog
    entries: Mapping[str, TableEntry]
    root: str
    storage_options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows of one table, in the order of their ids; `number` orders the slices."""

    number: int
    table_key: str
    row_ids: pa.Array = field(repr=False, compare=False)


def select_tables(catalog: Catalog, types: Sequence[str] | None) -> list[str]:
    """The table keys to export, in order: by type name or table key; everything by default.

    Raises:
        BadRequestError: There is no such type.
    """
    known = {entity.table_key: entity for entity in catalog.entities()}
    if not types:
        return sorted(known)
    chosen: set[str] = set()
    for name in types:
        found = {key for key, entity in known.items() if name in (key, entity.name)}
        if not found:
            names = [entity.name for entity in known.values()]
            raise BadRequestError(with_suggestion(f"unknown type '{name}'", name, names))
        chosen |= found
    return sorted(chosen)


def slices(plan: ExportPlan, tables: TableStorage, keys: Iterable[str]) -> Iterator[Slice]:
    """Cut tables into slices by id."""
    number = 0
    for key in keys:
        handle = open_pin(tables, plan.entries[key])
        ids = tables.reads.scan(handle, ["id"], with_row_id=True)
        order = pc.sort_indices(ids["id"].combine_chunks())
        row_ids = ids["_rowid"].combine_chunks().take(order)
        for start in range(0, len(row_ids), ROWS_PER_SLICE):
            yield Slice(number, key, row_ids.slice(start, ROWS_PER_SLICE))
            number += 1


def slice_rows(plan: ExportPlan, tables: TableStorage, part: Slice) -> Iterator[pa.Table]:
    """Fetch the rows of a slice, blobs included, a few thousand at a time."""
    handle = open_pin(tables, plan.entries[part.table_key])
    blobs = [each.name for each in handle.schema if pa.types.is_large_binary(each.type)]
    plain = [name for name in handle.schema.names if name not in blobs]
    for start in range(0, len(part.row_ids), ROWS_PER_FETCH):
        row_ids = part.row_ids.slice(start, ROWS_PER_FETCH).to_pylist()
        rows = tables.reads.take_rows(handle, row_ids, plain)
        for name in blobs:
            values = pa.array(tables.reads.read_blobs(handle, name, row_ids), pa.large_binary())
            rows = rows.append_column(name, values)
        yield rows


def records_of(entity: EntityType, rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows as load records."""
    columns = {name: plain_values(rows.column(name).combine_chunks()) for name in rows.column_names}
    names = ["id", *entity.properties]
    data = zip(*(columns[name] for name in names), strict=True)
    if not isinstance(entity, EdgeType):
        for values in data:
            yield {"type": entity.name, "data": dict(zip(names, values, strict=True))}
        return
    for source, target, values in zip(columns["src"], columns["dst"], data, strict=True):
        yield {
            "edge": entity.name,
            "from": source,
            "to": target,
            "data": dict(zip(names, values, strict=True)),
        }


def export_records(
    plan: ExportPlan, tables: TableStorage, keys: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """Every record, in order, in bounded memory."""
    for part in slices(plan, tables, keys):
        entity = plan.catalog.entity(part.table_key)
        for rows in slice_rows(plan, tables, part):
            yield from records_of(entity, rows)


def export_jsonl(
    plan: ExportPlan,
    tables: TableStorage,
    keys: Iterable[str],
    path: str,
    runner: Runner,
    reporter: Reporter,
) -> None:
    """Write load records to a file, which appears when it is whole."""
    parts = list(slices(plan, tables, keys))
    directory = f"{path}.parts"
    ending = f".jsonl{path.removeprefix(plain_name(path))}"
    with writing(path):
        try:
            os.makedirs(directory, exist_ok=True)
            reporter.stage("exporting", len(parts))
            write = partial(_write_part, plan, directory, ending)
            written = runner.map(write, parts, reporter)
            temporary = f"{path}.partial"
            with open(temporary, "wb") as whole:
                if not parts:
                    with open_packed(path, whole):
                        pass  # compressed, nothing is not no bytes
                for each in written:
                    # Compressed files, one after the other, are a compressed file.
                    with open(each, "rb") as file:
                        shutil.copyfileobj(file, whole)
            os.replace(temporary, path)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _write_part(plan: ExportPlan, directory: str, ending: str, part: Slice) -> str:
    tables = TableStorage(graph_root(plan.root), plan.storage_options)
    entity = plan.catalog.entity(part.table_key)
    path = os.path.join(directory, f"{part.number:08d}{ending}")
    temporary = f"{path}.{os.getpid()}"
    with open_output(path, temporary) as file:
        for rows in slice_rows(plan, tables, part):
            file.writelines(to_line(record) for record in records_of(entity, rows))
    os.replace(temporary, path)
    return path


def to_line(record: Mapping[str, Any]) -> bytes:
    """One record as one line of JSON."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
