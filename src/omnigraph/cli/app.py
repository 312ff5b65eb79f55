"""The command tree, and the one place where an error becomes a message and an exit code.

0  success
1  any error of ours; lint findings of severity error
2  usage: unknown flag, missing argument, flags that do not go together or do not apply
4  `mutate --if-commit` lost the race
"""

from __future__ import annotations

import sys
from copy import copy
from typing import Annotated

import typer

from omnigraph.cli import (
    branch,
    commit,
    embed,
    export,
    graph,
    history,
    lint,
    policy,
    profile,
    queries,
    query,
    schema,
    servers,
    upkeep,
)
from omnigraph.cli.call import Call
from omnigraph.cli.command import command, deprecated, with_shared_flags
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import JsonFlag, print_error, print_json, warn_deprecated
from omnigraph.errors import AddressError, OmnigraphError
from omnigraph.server.main import serve
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
app.command("export")(export.export)
app.command("query", short_help="Run a read and print its rows.")(query.query)
app.command("read", hidden=True)(deprecated("read", "query", query.query))
app.command("alias", short_help="Run the read that an alias stands for.")(query.alias)
app.command("explain", short_help="Show how a read would run.")(query.explain)
app.command("mutate", short_help="Run a mutation as one commit.")(graph.mutate)
app.command("change", hidden=True)(deprecated("change", "mutate", graph.mutate))
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
app.add_typer(policy.app, name="policy")
app.add_typer(queries.app, name="queries")
app.add_typer(servers.graphs, name="graphs")
app.add_typer(profile.app, name="profile")
app.command("login", short_help="Keep the token of a server.")(servers.login)
app.command("logout", short_help="Forget the token of a server.")(servers.logout)
app.command("embed", short_help="Fill in the vectors of a file.")(embed.embed)
app.command("lint", short_help="Check the queries of a file against a schema.")(lint.lint)
app.command("check", hidden=True)(deprecated("check", "lint", lint.lint))
app.command("serve", short_help="Serve graphs over HTTP.")(serve)


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
@with_shared_flags
def omnigraph(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", callback=_version_flag, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A typed, versioned, branchable property graph on plain Lance tables."""


@app.command("version")
@command("version", Capability.LOCAL)
def version(call: Call, as_json: JsonFlag = False) -> None:
    """Print the version of the package and of the storage format."""
    _print_version(as_json)


def main() -> None:
    """Run the command line; an error of ours ends it with a message and exit code 1 or 2."""
    arguments = _in_new_words(sys.argv[1:])
    try:
        _app_for(arguments)(arguments)
    except AddressError as error:
        print_error(error.render())
        sys.exit(2)
    except OmnigraphError as error:
        print_error(error.render())
        sys.exit(1)


def _in_new_words(arguments: list[str]) -> list[str]:
    """`query lint` and `query check` are old names of `lint`."""
    match arguments:
        case ["query", "lint" | "check" as old, *rest]:
            warn_deprecated(f"query {old}", "lint")
            return ["lint", *rest]
        case _:
            return arguments


def _app_for(arguments: list[str]) -> typer.Typer:
    """The command tree, only as far as the call needs it: all of it takes a while to put together.

    Help, completion and words that are no command need all of it.
    """
    first = arguments[0] if arguments else ""
    commands = [each for each in app.registered_commands if each.name == first]
    groups = [each for each in app.registered_groups if each.name == first]
    if not commands and not groups:
        return app
    needed = copy(app)
    needed.registered_commands, needed.registered_groups = commands, groups
    return needed
