"""`omnigraph export`: write a snapshot as the records that `load` reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import StoreOptions
from omnigraph.cli.options import BranchOption, EngineOption, SchemaOfOption, TypesOption
from omnigraph.cli.progress import track
from omnigraph.errors import BadRequestError

_IN_FILES = ("parquet", "csv")
"""The formats that standard output does not take: a file per type."""


@command("export", Capability.ANY, uri="argument", has_json=False)
def export(
    call: Call,
    branch: BranchOption = None,
    snapshot: Annotated[
        str | None, typer.Option("--snapshot", help="A graph commit: export the graph as of it.")
    ] = None,
    schema_of: SchemaOfOption = None,
    types: TypesOption = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table key; may be repeated.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A file, or a directory of tables; stdout by default."),
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="jsonl, parquet or csv.")] = "jsonl",
    engine: EngineOption = "auto",
    jsonl: Annotated[bool, typer.Option("--jsonl", hidden=True)] = False,
) -> None:
    """Write the records of a snapshot, in the form that `load` reads."""
    if jsonl:
        print("warning: --jsonl has no effect; export writes JSON lines", file=sys.stderr)
    if out is None and format_ in _IN_FILES:
        raise BadRequestError(f"{format_} needs --out <file>")
    if out is None and format_ != "jsonl":
        known = ", ".join(("jsonl", *_IN_FILES))
        raise BadRequestError(f"format is '{format_}', expected one of {known}")
    call.refuse_served(
        snapshot=snapshot,
        schema_of=schema_of,
        format=format_ != "jsonl",
        engine=engine != "auto",
    )
    chosen = call.branch(branch)
    if out is not None and not call.is_served:
        with call.open_store("r") as graph:
            graph.export(
                out,
                branch=chosen,
                commit=snapshot,
                schema=schema_of or "commit",
                types=[*(types or []), *(tables or [])] or None,
                format=format_,
                engine=engine,
                progress=call.shows_progress,
            )
    else:
        options = StoreOptions(snapshot=snapshot, schema_of=schema_of)
        with call.open_graph("r", options) as graph:
            lines = graph.export(branch=chosen, types=types or [], table_keys=tables or [])
            if out is None:
                for line in lines:
                    print(line)
            else:
                _write_file(out, track(lines, "exporting", is_shown=call.shows_progress))
    if out is not None:
        print(f"exported to {out}", file=sys.stderr)


def _write_file(out: Path, lines: Iterator[str]) -> None:
    """Write the file under a temporary name, so that an interrupted export leaves none."""
    from omnigraph.pipeline.output_files import check_output, open_output, writing

    check_output(str(out))
    temporary = out.with_name(f"{out.name}.tmp")
    try:
        with writing(str(out)):
            with open_output(str(out), str(temporary)) as file:
                for line in lines:
                    file.write(f"{line}\n".encode())
            os.replace(temporary, out)
    finally:
        temporary.unlink(missing_ok=True)
