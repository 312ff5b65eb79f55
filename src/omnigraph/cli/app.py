"""The command tree, and the mapping from errors to messages and exit codes.

0  success
1  any error of ours; lint findings of severity error
2  usage: unknown flag, missing argument, flags that exclude each other or do not apply
4  `mutate --if-commit` named a commit that is no longer the head
"""

from __future__ import annotations

import os
import sys
from copy import copy
from typing import Annotated

import typer

from omnigraph.cli import (
    algorithm,
    bisect,
    blob,
    branch,
    changes,
    checks,
    commit,
    embed,
    entity,
    export,
    graph,
    history,
    jobs,
    language,
    lint,
    mcp,
    policy,
    profile,
    queries,
    query,
    remote,
    request,
    schema,
    servers,
    shell,
    tag,
    transfer,
    ui,
    undo,
    upkeep,
)
from omnigraph.cli.call import Call
from omnigraph.cli.command import command, deprecate, with_shared_flags
from omnigraph.cli.flags import Capability
from omnigraph.cli.help_groups import GroupedHelp
from omnigraph.cli.output import print_error, print_json, print_result, warn_deprecated
from omnigraph.collection import leave_the_end_alone
from omnigraph.errors import AddressError, OmnigraphError
from omnigraph.server.main import serve
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__
from omnigraph.wire import CODES, error_to_json

app = typer.Typer(
    name="omnigraph",
    cls=GroupedHelp,
    help="A typed, versioned, branchable property graph on plain Lance tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain text looks the same in a terminal, in a log and on the reference page.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(graph.init)
app.command("clone", short_help="Copy a graph to another store.")(transfer.clone)
app.command("push", short_help="Bring a branch to another store.")(transfer.push)
app.command("pull", short_help="Bring a branch of another store here.")(transfer.pull)
app.command("fetch", short_help="Bring the branches of another store here.")(transfer.fetch)
app.command("load")(graph.load)
app.command("ingest", hidden=True)(graph.ingest)
app.command("export")(export.export)
app.command("query", short_help="Run a read query and print its rows.")(query.query)
app.command("read", hidden=True)(deprecate("read", "query", query.query))
app.command("alias", short_help="Run the read query that an alias names.")(query.alias)
app.command("explain", short_help="Show the plan of a read query.")(query.explain)
app.command("algorithm", short_help="Compute something about every node.")(algorithm.algorithm)
app.command("mutate", short_help="Run a mutation as one commit.")(graph.mutate)
app.command("change", hidden=True)(deprecate("change", "mutate", graph.mutate))
app.command("snapshot")(graph.snapshot)
app.command("log")(history.log)
app.command("history", short_help="Show what every commit did to one entity.")(entity.history)
app.command("bisect", short_help="Find the commit that broke an assertion.")(bisect.bisect)
app.command("blame", short_help="Show which commit wrote each value of an entity.")(entity.blame)
app.command("revert", short_help="Take back what commits did.")(undo.revert)
app.command("cherry-pick", short_help="Make commits again on another branch.")(undo.cherry_pick)
app.command("restore", short_help="Go back to an earlier state.")(undo.restore)
app.add_typer(changes.app, name="changes")
app.command("verify", short_help="Check that a graph is intact.")(history.verify)
app.command("optimize", short_help="Merge small fragments, update indexes.")(upkeep.optimize)
app.command("cleanup", short_help="Remove old versions.")(upkeep.cleanup)
app.command("repair", short_help="Adopt table versions that verify as safe.")(upkeep.repair)
app.command("doctor", short_help="Report the state of a graph, and what to do.")(upkeep.doctor)
app.add_typer(upkeep.index, name="index")
app.add_typer(jobs.app, name="jobs")
app.add_typer(branch.app, name="branch")
app.add_typer(tag.app, name="tag")
app.add_typer(transfer.backup, name="backup")
app.add_typer(remote.app, name="remote")
app.add_typer(checks.app, name="checks")
app.add_typer(request.app, name="request")
app.add_typer(commit.app, name="commit")
app.add_typer(blob.app, name="blob")
app.add_typer(schema.app, name="schema")
app.add_typer(policy.app, name="policy")
app.add_typer(queries.app, name="queries")
app.add_typer(servers.graphs, name="graphs")
app.add_typer(profile.app, name="profile")
app.command("login", short_help="Store the token of a server.")(servers.login)
app.command("logout", short_help="Remove the token of a server.")(servers.logout)
app.command("embed", short_help="Compute the vectors of a graph or a file.")(embed.embed)
app.command("lint", short_help="Check the queries of a file against a schema.")(lint.lint)
app.command("check", hidden=True)(deprecate("check", "lint", lint.lint))
app.command("language", short_help="List what there is to write.")(language.language)
app.command("lsp", short_help="Serve an editor.")(language.lsp)
app.command("shell", short_help="Ask and change a graph at a prompt.")(shell.shell)
app.command("mcp", short_help="Serve the tools of a graph to an agent.")(mcp.mcp)
app.command("ui", short_help="Open a graph in the browser.")(ui.ui)
app.command("serve", short_help="Serve graphs over HTTP.")(serve)


def _print_version(as_json: bool) -> None:
    value = {"version": __version__, "internal_schema_version": INTERNAL_SCHEMA_VERSION}
    lines = (f"omnigraph {__version__}", f"internal-schema {INTERNAL_SCHEMA_VERSION}")
    print_result(as_json, value, lines)


def _handle_version_flag(is_given: bool) -> None:
    if is_given:
        _print_version(as_json=False)
        raise typer.Exit


@app.callback()
@with_shared_flags
def omnigraph(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-v",
            callback=_handle_version_flag,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """A typed, versioned, branchable property graph on plain Lance tables."""


@app.command("version")
@command("version", Capability.LOCAL)
def version(call: Call) -> None:
    """Print the version of the package and of the storage format."""
    _print_version(call.as_json)


def main() -> None:
    """Run the command line; an `OmnigraphError` ends it with a message and exit code 1 or 2."""
    arguments = _replace_old_names(sys.argv[1:])
    _prepare_process(arguments)
    as_json = "--json" in arguments
    try:
        code = _build_app(arguments)(arguments, standalone_mode=not as_json)
    except OmnigraphError as error:
        if as_json:
            print_json(error_to_json(error))
        print_error(error.render())
        sys.exit(2 if isinstance(error, AddressError) else 1)
    except typer.TyperException as error:
        said = error.format_message()
        print_json({"error": said, "code": CODES[400]})
        print_error(said)
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_process(arguments: list[str]) -> None:
    """Save a short command what only a long one needs: a search for garbage at its end, and the
    threads that NumPy starts for large matrices."""
    leave_the_end_alone()
    if arguments[:1] != ["serve"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _replace_old_names(arguments: list[str]) -> list[str]:
    """`query lint` and `query check` are old names of `lint`, `changes` one of `changes list`."""
    match arguments:
        case ["query", "lint" | "check" as old, *rest]:
            warn_deprecated(f"query {old}", "lint")
            return ["lint", *rest]
        case ["changes", first, *rest] if "--since" in (first, *rest) and first != "list":
            return ["changes", "list", first, *rest]
        case _:
            return arguments


def _build_app(arguments: list[str]) -> typer.Typer:
    """Return the part of the command tree that the call needs, since building all of it is slow.

    Help, completion and unknown commands need all of it.
    """
    first = arguments[0] if arguments else ""
    commands = [each for each in app.registered_commands if each.name == first]
    groups = [each for each in app.registered_groups if each.name == first]
    if not commands and not groups:
        return app
    needed = copy(app)
    needed.registered_commands, needed.registered_groups = commands, groups
    return needed
