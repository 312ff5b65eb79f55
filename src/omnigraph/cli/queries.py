"""`omnigraph queries`: the stored queries that omnigraph.yaml lists for a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import print_error

if TYPE_CHECKING:
    from omnigraph.config.registry import Registry, StoredQuery

app = make_group("List and check stored queries.")


@app.command("list")
@command("queries list", Capability.CONTROL, uri="option")
def list_(call: Call) -> None:
    """List the stored queries of a graph that are valid under its schema."""
    registry = _load_registry(call)
    for breakage in registry.breakages:
        print_error(f"query '{breakage.query}' cannot be served: {breakage.message}")
    queries = registry.queries.values()
    call.print_result({"queries": list(map(_to_json, queries))}, map(_describe, queries))


@app.command()
@command("queries validate", Capability.CONTROL, uri="option")
def validate(call: Call) -> None:
    """Check every stored query of a graph against its schema; exit 1 when one is invalid."""
    registry = _load_registry(call)
    breakages = [{"query": each.query, "message": each.message} for each in registry.breakages]
    report = {
        "ok": registry.is_sound,
        "breakages": breakages,
        "warnings": list(registry.warnings),
    }
    call.print_result(report, _report_lines(registry))
    if not registry.is_sound:
        raise typer.Exit(1)


def _report_lines(registry: Registry) -> Iterator[str]:
    for name in registry.queries:
        yield f"OK    query `{name}`"
    for breakage in registry.breakages:
        yield f"ERROR query `{breakage.query}`: {breakage.message}"
    for warning in registry.warnings:
        yield f"WARN  {warning}"


def _load_registry(call: Call) -> Registry:
    from omnigraph.catalog import build_catalog
    from omnigraph.config.registry import load_registry
    from omnigraph.syntax import parse_schema

    entries = call.scope.queries
    with call.open_graph("r") as graph:
        source = graph.schema()["schema_source"]
    return load_registry(entries, build_catalog(parse_schema(source)))


def _describe(query: StoredQuery) -> str:
    params = ", ".join(
        f"${each.name}: {each.type}{'?' if each.nullable else ''}" for each in query.params
    )
    hidden = "" if query.expose else " (not listed)"
    return f"{query.name}({params}) {'mutation' if query.mutation else 'read'}{hidden}"


def _to_json(query: StoredQuery) -> dict[str, Any]:
    texts = {"description": query.description, "instruction": query.instruction}
    return {
        "name": query.name,
        "mcp_expose": query.expose,
        "tool_name": query.tool_name,
        "mutation": query.mutation,
        **{name: text for name, text in texts.items() if text is not None},
        "params": [
            {"name": each.name, "type": each.type, "nullable": each.nullable}
            for each in query.params
        ],
    }
