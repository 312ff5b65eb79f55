"""`omnigraph schema`: check a schema file, and see what changing it would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import JsonFlag, print_json, read_text_file

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
def check(
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
def plan(
    old: Annotated[Path, typer.Option("--from", help="The schema as it is.")],
    new: Annotated[Path, typer.Option("--to", help="The schema as it should be.")],
    allow_data_loss: Annotated[
        bool, typer.Option("--allow-data-loss", help="Plan drops that erase old versions too.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print the steps from one schema to another. Nothing is changed."""
    from omnigraph.catalog import plan_migration

    migration = plan_migration(_build(old), _parse(new), allow_data_loss=allow_data_loss)
    if as_json:
        steps = [step.to_json() for step in migration.steps]
        print_json(
            {
                "from": str(old),
                "to": str(new),
                "supported": migration.supported,
                "step_count": len(steps),
                "steps": steps,
            }
        )
        return
    print(f"schema plan for {old} → {new}")
    print(f"supported: {'yes' if migration.supported else 'no'}")
    for step in migration.steps:
        print(f"- {step}")
    if not migration.steps:
        print("no schema changes")
