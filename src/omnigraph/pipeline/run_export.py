"""Run an export: choose the tables, the format and the engine, and say where the result is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omnigraph.catalog import Catalog
from omnigraph.errors import BadRequestError
from omnigraph.manifest import Snapshot
from omnigraph.pipeline.engine import SparkUse, choose_runner
from omnigraph.pipeline.export import (
    ROWS_PER_SLICE,
    ExportPlan,
    export_jsonl,
    export_records,
    select_tables,
)
from omnigraph.pipeline.export_tables import export_tables, list_formats
from omnigraph.pipeline.exported_models import name_models, write_models
from omnigraph.pipeline.output_files import check_output
from omnigraph.pipeline.progress import Listener, reporting
from omnigraph.storage.tables import TableStorage

_SMALL_ROWS = 10 * ROWS_PER_SLICE


def run_export(
    tables: TableStorage,
    catalog: Catalog,
    snapshot: Snapshot,
    *,
    path: Path | None,
    types: Sequence[str] | None,
    file_format: str,
    engine: str,
    progress: Listener | bool | None,
    spark: SparkUse,
) -> Path | Iterator[dict[str, Any]]:
    """Export to `path`, or as an iterator of records when there is none.

    Raises:
        BadRequestError: A type or the format is unknown, or Parquet has nowhere to go.
    """
    formats = list_formats(("jsonl", "parquet", "csv"))
    if file_format not in formats:
        raise BadRequestError(f"format is {file_format!r}, expected one of {', '.join(formats)}")
    keys = [key for key in select_tables(catalog, types) if key in snapshot.entries]
    plan = ExportPlan(catalog, snapshot.entries, str(tables.root), tables.storage_options)
    if path is None:
        if file_format != "jsonl":
            raise BadRequestError(
                f"an export to {file_format} needs a path: a directory to write to"
            )
        return export_records(plan, tables, keys)
    check_output(str(path))
    rows = sum(snapshot.entries[key].row_count for key in keys)
    with reporting(progress) as reporter:
        # A table is one file, by one task: Spark has to be chosen for that.
        stays = rows <= _SMALL_ROWS or file_format != "jsonl"
        runner = choose_runner(engine, stays=stays, spark=spark)
        # Tasks run in other directories.
        target = str(path if runner.name == "inline" else path.absolute())
        if file_format != "jsonl":
            export_tables(plan, keys, target, file_format, runner, reporter)
        else:
            export_jsonl(plan, tables, keys, target, runner, reporter)
    write_models(str(path), name_models(catalog, snapshot.vector_models, keys))
    return path
