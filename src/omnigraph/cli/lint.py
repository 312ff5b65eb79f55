"""`omnigraph lint`: check a query file against a schema without running it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import read_text_file
from omnigraph.cli.schema import build_file
from omnigraph.errors import AddressError

if TYPE_CHECKING:
    from omnigraph.catalog import Catalog
    from omnigraph.compiler.lint import LintReport

QueryOption = Annotated[Path, typer.Option("--query", help="The .gq file to check.")]
SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="The .pg schema to check against.")
]


@command("lint", Capability.DIRECT, uri="argument")
def lint(call: Call, query: QueryOption, schema: SchemaOption = None) -> None:
    """Check every query of a file against a schema; exit 1 when one is invalid."""
    from omnigraph.compiler.lint import lint as lint_source

    catalog, source = _load_schema(call, schema)
    path = call.settings.project.query_file(str(query))
    report = lint_source(catalog, read_text_file(path), query_path=str(path), schema_source=source)
    call.print_result(report.to_json(), _report_lines(report))
    if report.status == "error":
        raise typer.Exit(1)


def _load_schema(call: Call, schema: Path | None) -> tuple[Catalog, dict[str, str]]:
    """Load the schema to check against: of a file, of a graph, or of the file the project names."""
    if schema is None and not call.flags.is_addressed:
        schema = call.settings.project.query_schema
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
    return build_file(schema), {"kind": "file", "path": str(schema)}


def _report_lines(report: LintReport) -> Iterator[str]:
    for result in report.results:
        if result.error is not None:
            yield f"ERROR query `{result.name}`: {result.error}"
        else:
            yield f"OK    query `{result.name}` ({result.kind})"
        for warning in result.warnings:
            yield f"WARN  query `{result.name}`: {warning}"
    labels = {"error": "ERROR", "warning": "WARN ", "info": "INFO "}
    for finding in report.findings:
        yield f"{labels[finding.severity]} {finding.code}: {finding.message}"
    yield (
        f"INFO  Lint complete: {report.queries_processed} queries processed "
        f"({report.errors} error(s), {report.warnings} warning(s), {report.infos} info item(s))"
    )
