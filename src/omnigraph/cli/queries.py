"""`omnigraph queries`: the stored queries that omnigraph.yaml gives a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import JsonFlag, print_error, print_json

if TYPE_CHECKING:
    from omnigraph.config.registry import Registry, StoredQuery

app = typer.Typer(help="Stored queries.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
@command("queries list", Capability.CONTROL, uri="option")
def list_(call: Call, as_json: JsonFlag = False) -> None:
    """Print the stored queries of a graph that fit its schema."""
    registry = _registry(call)
    for breakage in registry.breakages:
        print_error(f"query '{breakage.query}' cannot be served: {breakage.message}")
    if as_json:
        print_json({"queries": [_described(each) for each in registry.queries.values()]})
        return
    for each in registry.queries.values():
        params = ", ".join(
            f"${param.name}: {param.type}{'?' if param.nullable else ''}" for param in each.params
        )
        hidden = "" if each.expose else " (not listed)"
        print(f"{each.name}({params}) {'mutation' if each.mutation else 'read'}{hidden}")


@app.command()
@command("queries validate", Capability.CONTROL, uri="option")
def validate(call: Call, as_json: JsonFlag = False) -> None:
    """Check every stored query of a graph against its schema; exit 1 when one cannot run."""
    registry = _registry(call)
    if as_json:
        print_json(
            {
                "ok": registry.is_sound,
                "breakages": [
                    {"query": each.query, "message": each.message} for each in registry.breakages
                ],
                "warnings": list(registry.warnings),
            }
        )
    else:
        _print_report(registry)
    if not registry.is_sound:
        raise typer.Exit(1)


def _print_report(registry: Registry) -> None:
    for name in registry.queries:
        print(f"OK    query `{name}`")
    for breakage in registry.breakages:
        print(f"ERROR query `{breakage.query}`: {breakage.message}")
    for warning in registry.warnings:
        print(f"WARN  {warning}")


def _registry(call: Call) -> Registry:
    from omnigraph.catalog import build_catalog
    from omnigraph.config.registry import load_registry
    from omnigraph.syntax import parse_schema

    entries = call.scope.queries
    with call.open_graph("r") as graph:
        source = graph.schema()["schema_source"]
    return load_registry(entries, build_catalog(parse_schema(source)))


def _described(query: StoredQuery) -> dict[str, Any]:
    value: dict[str, Any] = {
        "name": query.name,
        "mcp_expose": query.expose,
        "tool_name": query.tool_name,
        "mutation": query.mutation,
    }
    if query.description is not None:
        value["description"] = query.description
    if query.instruction is not None:
        value["instruction"] = query.instruction
    params = [
        {"name": each.name, "type": each.type, "nullable": each.nullable} for each in query.params
    ]
    return {**value, "params": params}
