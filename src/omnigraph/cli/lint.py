"""`omnigraph lint`: check a query file against a schema without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import JsonFlag, print_json, read_text_file, warn_deprecated

if TYPE_CHECKING:
    from omnigraph.compiler import LintReport

QueryOption = Annotated[Path, typer.Option("--query", help="The .gq file to check.")]
SchemaOption = Annotated[Path, typer.Option("--schema", help="The .pg schema to check against.")]


def lint(query: QueryOption, schema: SchemaOption, as_json: JsonFlag = False) -> None:
    """Check every query of a file against a schema; exit 1 when one cannot run."""
    from omnigraph.catalog import build_catalog
    from omnigraph.compiler import lint as lint_source
    from omnigraph.syntax import parse_schema

    catalog = build_catalog(parse_schema(read_text_file(schema), name=str(schema)))
    report = lint_source(
        catalog,
        read_text_file(query),
        query_path=str(query),
        schema_source={"kind": "file", "path": str(schema)},
    )
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report)
    if report.status == "error":
        raise typer.Exit(1)


def check(query: QueryOption, schema: SchemaOption, as_json: JsonFlag = False) -> None:
    """The old name of `lint`."""
    warn_deprecated("check", "lint")
    lint(query, schema, as_json)


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
