"""`omnigraph schema`: check a schema, see what changing it would do, and change it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, deprecated
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import JsonFlag, print_json, read_text_file
from omnigraph.cli.progress import working
from omnigraph.cli.step_text import describe_step

if TYPE_CHECKING:
    from omnigraph.catalog import Catalog
    from omnigraph.syntax import SchemaTree

app = typer.Typer(
    help="Check schemas and plan their changes.", no_args_is_help=True, rich_markup_mode=None
)


def _parse(path: Path) -> SchemaTree:
    from omnigraph.syntax import parse_schema

    return parse_schema(read_text_file(path), name=str(path))


def _build(path: Path) -> Catalog:
    from omnigraph.catalog import build_catalog

    return build_catalog(_parse(path))


@app.command()
@command("schema check", Capability.LOCAL)
def check(
    call: Call,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The .pg file to check.")],
    as_json: JsonFlag = False,
) -> None:
    """Parse and check a schema file; print what it declares."""
    catalog = _build(path)
    counts = {
        "nodes": len(catalog.nodes),
        "edges": len(catalog.edges),
        "interfaces": len(catalog.interfaces),
    }
    if as_json:
        print_json({"status": "ok", "path": str(path), **counts, "shape_hash": catalog.shape_hash})
        return
    print(
        f"OK    {path}: {counts['nodes']} node types, {counts['edges']} edge types, "
        f"{counts['interfaces']} interfaces"
    )


@app.command()
@command("schema show", Capability.ANY, uri="argument")
def show(call: Call, as_json: JsonFlag = False) -> None:
    """Print the schema of a graph."""
    with call.open_graph("r") as graph:
        shown = graph.schema()
    source = shown["schema_source"]
    if as_json:
        print_json({"schema_source": source})
    else:
        print(source, end="" if source.endswith("\n") else "\n")


app.command("get", hidden=True)(deprecated("schema get", "schema show", show))

NewSchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="The schema the graph should have.")
]
DataLossFlag = Annotated[
    bool, typer.Option("--allow-data-loss", help="Drops erase old versions too.")
]


@app.command(short_help="Print the steps from one schema to another.")
@command("schema plan", Capability.DIRECT, uri="argument")
def plan(
    call: Call,
    schema: NewSchemaOption = None,
    old: Annotated[
        Path | None, typer.Option("--from", help="Without a graph: the schema as it is.")
    ] = None,
    new: Annotated[
        Path | None, typer.Option("--to", help="Without a graph: the schema as it should be.")
    ] = None,
    allow_data_loss: DataLossFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Print the steps from one schema to another. Nothing is changed.

    Either of a graph and a new schema (--schema), or of two files (--from and --to).
    """
    if schema is None:
        if old is None or new is None:
            raise typer.BadParameter("give a graph and --schema, or --from and --to")
        _plan_files(old, new, allow_data_loss=allow_data_loss, as_json=as_json)
        return
    location = call.target
    text = _checked_text(schema)
    with call.open_store("r") as graph, working("planning", quiet=call.flags.quiet):
        planned = graph.plan_schema(text, allow_data_loss=allow_data_loss)
    if as_json:
        steps = [step.to_json() for step in planned.steps]
        facts = {"supported": planned.supported, "step_count": len(steps), "steps": steps}
        print_json({"uri": location, **facts})
        return
    print(f"schema plan for {location}")
    print(f"supported: {'yes' if planned.supported else 'no'}")
    print(planned)


def _plan_files(old: Path, new: Path, *, allow_data_loss: bool, as_json: bool) -> None:
    from omnigraph.catalog import plan_migration

    migration = plan_migration(_build(old), _parse(new), allow_data_loss=allow_data_loss)
    if as_json:
        steps = [step.to_json() for step in migration.steps]
        facts = {"supported": migration.supported, "step_count": len(steps), "steps": steps}
        print_json({"from": str(old), "to": str(new), **facts})
        return
    print(f"schema plan for {old} → {new}")
    print(f"supported: {'yes' if migration.supported else 'no'}")
    for step in migration.steps:
        print(f"- {step}")
    if not migration.steps:
        print("no schema changes")


@app.command()
@command("schema apply", Capability.ANY, writes=True, uri="argument")
def apply(
    call: Call,
    schema: Annotated[Path, typer.Option("--schema", help="The schema the graph should have.")],
    allow_data_loss: DataLossFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Change the schema of a graph, and its tables with it, as one commit."""
    text = _checked_text(schema)
    call.announce()
    with call.open_graph("rw") as graph, working("applying", quiet=call.flags.quiet):
        result = graph.apply_schema(text, allow_data_loss=allow_data_loss)
    if as_json:
        print_json(result)
        return
    for step in result["steps"]:
        print(f"- {describe_step(step)}")
    print(f"applied {result['step_count']} steps" if result["applied"] else "no schema changes")


def _checked_text(path: Path) -> str:
    """The text of a schema that is right in itself; errors name the file."""
    _build(path)
    return read_text_file(path)
