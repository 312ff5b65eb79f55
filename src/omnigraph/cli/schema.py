"""`omnigraph schema`: check a schema, plan a change of it, and apply the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.catalog.step_text import describe_step
from omnigraph.cli.call import Call
from omnigraph.cli.command import command, deprecate, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.options import BranchOption, MessageOption, MetaOption, parse_note
from omnigraph.cli.output import read_text_file, write_new_file

if TYPE_CHECKING:
    from omnigraph.catalog import Catalog
    from omnigraph.catalog.migration import MigrationPlan
    from omnigraph.syntax import SchemaTree

app = make_group("Check, show and change schemas.")


def parse_file(path: Path) -> SchemaTree:
    from omnigraph.syntax import parse_schema

    return parse_schema(read_text_file(path), name=str(path))


def build_file(path: Path) -> Catalog:
    from omnigraph.catalog import build_catalog

    return build_catalog(parse_file(path))


def read_valid_text(path: Path) -> str:
    """Read a schema and check it first, so that errors name the file."""
    build_file(path)
    return read_text_file(path)


@app.command()
@command("schema check", Capability.LOCAL)
def check(
    call: Call,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The .pg file to check.")],
) -> None:
    """Check a schema file and count what it declares."""
    catalog = build_file(path)
    counts = {
        "nodes": len(catalog.nodes),
        "edges": len(catalog.edges),
        "interfaces": len(catalog.interfaces),
    }
    value = {"status": "ok", "path": str(path), **counts, "shape_hash": catalog.shape_hash}
    line = (
        f"OK    {path}: {counts['nodes']} node types, {counts['edges']} edge types, "
        f"{counts['interfaces']} interfaces"
    )
    call.print_result(value, [line])


@app.command(short_help="Propose a schema for files.")
@command("schema infer", Capability.LOCAL)
def infer(
    call: Call,
    files: Annotated[
        list[str], typer.Argument(metavar="FILES...", help="Files, patterns or directories.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the schema to this file.")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option("--mapping", help="Write which file holds which type here.")
    ] = None,
) -> None:
    """Propose a schema for CSV, JSON Lines, Parquet or Arrow files, from a sample of each.

    Types, keys, enums, dates and edges are guessed, and comments say from what. Read the result
    before you use it. Without --out it is printed. A file that exists is not overwritten.
    """
    from omnigraph.infer import infer_schema

    found = infer_schema(files)
    for path, text in ((out, found.schema), (mapping, found.mapping)):
        if path is not None:
            write_new_file(path, text)
    lines = [] if out is not None else [found.schema.removesuffix("\n")]
    lines += [f"wrote {path}" for path in (out, mapping) if path is not None]
    call.print_result({"schema": found.schema, "mapping": found.mapping}, lines)


@app.command()
@command("schema show", Capability.ANY, uri="argument")
def show(call: Call, branch: BranchOption = None) -> None:
    """Print the schema of a graph, or of one of its branches."""
    with call.open_graph("r") as graph:
        source = graph.schema(branch)["schema_source"]
    call.print_result({"schema_source": source}, [source.removesuffix("\n")])


app.command("get", hidden=True)(deprecate("schema get", "schema show", show))

NewSchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="The new schema of the graph.")
]
DataLossFlag = Annotated[
    bool, typer.Option("--allow-data-loss", help="Dropping also erases old versions.")
]


@app.command(short_help="Print the steps of a schema change.")
@command("schema plan", Capability.DIRECT, uri="argument")
def plan(
    call: Call,
    schema: NewSchemaOption = None,
    old: Annotated[
        Path | None, typer.Option("--from", help="Without a graph: the present schema file.")
    ] = None,
    new: Annotated[
        Path | None, typer.Option("--to", help="Without a graph: the new schema file.")
    ] = None,
    branch: BranchOption = None,
    allow_data_loss: DataLossFlag = False,
) -> None:
    """Print the steps from one schema to another, without changing anything.

    Give a graph and its new schema (--schema), or two files (--from and --to).
    """
    if schema is None:
        if old is None or new is None:
            raise typer.BadParameter("give a graph and --schema, or --from and --to")
        _plan_files(call, old, new, allow_data_loss=allow_data_loss)
        return
    location = call.target
    text = read_valid_text(schema)
    with call.open_store("r", doing="planning") as graph:
        plan = graph.plan_schema(text, branch=branch or "main", allow_data_loss=allow_data_loss)
    _print_plan(call, plan, {"uri": location}, location, [str(plan)])


def _plan_files(call: Call, old: Path, new: Path, *, allow_data_loss: bool) -> None:
    from omnigraph.catalog import plan_migration

    plan = plan_migration(build_file(old), parse_file(new), allow_data_loss=allow_data_loss)
    lines = [f"- {step}" for step in plan.steps] or ["no schema changes"]
    _print_plan(call, plan, {"from": str(old), "to": str(new)}, f"{old} → {new}", lines)


def _print_plan(
    call: Call, plan: MigrationPlan, source: Json, title: str, lines: Iterable[str]
) -> None:
    steps = [step.to_json() for step in plan.steps]
    facts = {"supported": plan.supported, "step_count": len(steps), "steps": steps}
    supported = "yes" if plan.supported else "no"
    heading = (f"schema plan for {title}", f"supported: {supported}")
    call.print_result({**source, **facts}, [*heading, *lines])


@app.command()
@command("schema apply", Capability.ANY, writes=True, uri="argument")
def apply(
    call: Call,
    schema: Annotated[Path, typer.Option("--schema", help="The new schema of the graph.")],
    branch: BranchOption = None,
    allow_data_loss: DataLossFlag = False,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Change the schema of a branch and migrate its tables, as one commit; others stay as is."""
    text, note = read_valid_text(schema), parse_note(message, meta)
    call.announce()
    with call.open_graph("rw", doing="applying") as graph:
        result = graph.apply_schema(text, branch=branch, allow_data_loss=allow_data_loss, note=note)
    call.print_result(result, _apply_lines(result))


def _apply_lines(result: Json) -> Iterator[str]:
    for step in result["steps"]:
        yield f"- {describe_step(step)}"
    yield f"applied {result['step_count']} steps" if result["applied"] else "no schema changes"
