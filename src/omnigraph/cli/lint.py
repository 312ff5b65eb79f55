"""`omnigraph lint`: check a query file against a schema without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import JsonFlag, print_json, read_text_file
from omnigraph.errors import AddressError

if TYPE_CHECKING:
    from omnigraph.catalog import Catalog
    from omnigraph.compiler import LintReport

QueryOption = Annotated[Path, typer.Option("--query", help="The .gq file to check.")]
SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="The .pg schema to check against.")
]


@command("lint", Capability.DIRECT, uri="argument")
def lint(
    call: Call, query: QueryOption, schema: SchemaOption = None, as_json: JsonFlag = False
) -> None:
    """Check every query of a file against a schema; exit 1 when one cannot run."""
    from omnigraph.compiler import lint as lint_source

    catalog, source = _schema_of(call, schema)
    path = call.settings.project.query_file(str(query))
    report = lint_source(catalog, read_text_file(path), query_path=str(path), schema_source=source)
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report)
    if report.status == "error":
        raise typer.Exit(1)


def _schema_of(call: Call, schema: Path | None) -> tuple[Catalog, dict[str, str]]:
    """The schema to check against: that of a file, or of a graph."""
    if schema is None:
        try:
            location = call.target
        except AddressError:
            if call.flags.is_addressed:
                raise
            raise typer.BadParameter("give --schema <file.pg>, or a graph that has one") from None
        with call.open_store("r") as graph:
            return graph.catalog, {"kind": "graph", "uri": location}
    if call.flags.is_addressed:
        raise typer.BadParameter("give --schema or a graph, not both")
    from omnigraph.catalog import build_catalog
    from omnigraph.syntax import parse_schema

    catalog = build_catalog(parse_schema(read_text_file(schema), name=str(schema)))
    return catalog, {"kind": "file", "path": str(schema)}


def _print_report(report: LintReport) -> None:
    for result in report.results:
        if result.error is not None:
            print(f"ERROR query `{result.name}`: {result.error}")
        else:
            print(f"OK    query `{result.name}` ({result.kind})")
        for warning in result.warnings:
            print(f"WARN  query `{result.name}`: {warning}")
    labels = {"error": "ERROR", "warning": "WARN ", "info": "INFO "}
    for finding in report.findings:
        print(f"{labels[finding.severity]} {finding.code}: {finding.message}")
    print(
        f"INFO  Lint complete: {report.queries_processed} queries processed "
        f"({report.errors} error(s), {report.warnings} warning(s), {report.infos} info item(s))"
    )
