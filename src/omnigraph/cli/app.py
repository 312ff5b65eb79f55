"""The command tree, and the one place where an error becomes a message and an exit code.

0  success
1  any error of ours; lint findings of severity error
2  usage: unknown flag, missing argument
4  `mutate --if-commit` lost the race
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli import branch, commit, graph, history, lint, query, schema, upkeep
from omnigraph.cli.output import JsonFlag, print_error, print_json
from omnigraph.errors import OmnigraphError
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__

app = typer.Typer(
    name="omnigraph",
    help="A typed, versioned, branchable property graph on plain Lance tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain text: the same in a terminal, in a log and in the reference page.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(graph.init)
app.command("load")(graph.load)
app.command("ingest", hidden=True)(graph.ingest)
app.command("export")(graph.export)
app.command("query", short_help="Run a read and print its rows.")(query.query)
app.command("read", hidden=True)(query.read)
app.command("explain", short_help="Show how a read would run.")(query.explain)
app.command("mutate", short_help="Run a mutation as one commit.")(graph.mutate)
app.command("change", hidden=True)(graph.change)
app.command("snapshot")(graph.snapshot)
app.command("log")(history.log)
app.command("changes")(history.changes)
app.command("verify", short_help="Check that a graph is whole.")(history.verify)
app.command("optimize", short_help="Merge fragments, bring indexes up to date.")(upkeep.optimize)
app.command("cleanup", short_help="Remove old versions.")(upkeep.cleanup)
app.command("repair", short_help="Publish drift that is safe.")(upkeep.repair)
app.command("doctor", short_help="Say how a graph is, and what to do.")(upkeep.doctor)
app.add_typer(upkeep.index, name="index")
app.add_typer(branch.app, name="branch")
app.add_typer(commit.app, name="commit")
app.add_typer(schema.app, name="schema")
app.command("lint", short_help="Check the queries of a file against a schema.")(lint.lint)
app.command("check", hidden=True)(lint.check)


def _print_version(as_json: bool) -> None:
    if as_json:
        print_json({"version": __version__, "internal_schema_version": INTERNAL_SCHEMA_VERSION})
    else:
        print(f"omnigraph {__version__}\ninternal-schema {INTERNAL_SCHEMA_VERSION}")


def _version_flag(asked: bool) -> None:
    if asked:
        _print_version(as_json=False)
        raise typer.Exit


@app.callback()
def omnigraph(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", callback=_version_flag, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A typed, versioned, branchable property graph on plain Lance tables."""


@app.command()
def version(as_json: JsonFlag = False) -> None:
    """Print the version of the package and of the storage format."""
    _print_version(as_json)


def main() -> None:
    """Run the command line; an error of ours ends it with a message and exit code 1."""
    try:
        app()
    except OmnigraphError as error:
        print_error(error.render())
        sys.exit(1)
