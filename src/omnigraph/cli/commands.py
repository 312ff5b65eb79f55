"""Commands: the names of every command, and the module that has each.

A module is imported when a command of it is called or when all are listed: building a command
takes a millisecond, and there are more than a hundred.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer

from omnigraph.cli.command import deprecate
from omnigraph.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the first level: a function, or a group of commands."""

    name: str
    home: str
    """The module and the name in it, below `omnigraph`."""

    short_help: str | None = None
    is_hidden: bool = False
    replaced_by: str | None = None
    """The new name of a command that is there, hidden, under its old one."""

    def find(self) -> Any:
        module, name = self.home.split(":")
        return getattr(import_module(f"omnigraph.{module}"), name)


COMMANDS = (
    Command("init", "cli.graph:init"),
    Command("clone", "cli.transfer:clone", "Copy a graph to another store."),
    Command("push", "cli.transfer:push", "Bring a branch to another store."),
    Command("pull", "cli.transfer:pull", "Bring a branch of another store here."),
    Command("fetch", "cli.transfer:fetch", "Bring the branches of another store here."),
    Command("load", "cli.graph:load"),
    Command("ingest", "cli.graph:ingest", is_hidden=True),
    Command("export", "cli.export:export"),
    Command("query", "cli.query:query", "Run a read query and print its rows."),
    Command("read", "cli.query:query", replaced_by="query"),
    Command("alias", "cli.query:alias", "Run the read query that an alias names."),
    Command("explain", "cli.query:explain", "Show the plan of a read query."),
    Command("algorithm", "cli.algorithm:algorithm", "Compute something about every node."),
    Command("mutate", "cli.graph:mutate", "Run a mutation as one commit."),
    Command("change", "cli.graph:mutate", replaced_by="mutate"),
    Command("snapshot", "cli.graph:snapshot"),
    Command("log", "cli.history:log"),
    Command("history", "cli.entity:history", "Show what every commit did to one entity."),
    Command("bisect", "cli.bisect:bisect", "Find the commit that broke an assertion."),
    Command("blame", "cli.entity:blame", "Show which commit wrote each value of an entity."),
    Command("revert", "cli.undo:revert", "Take back what commits did."),
    Command("cherry-pick", "cli.undo:cherry_pick", "Make commits again on another branch."),
    Command("restore", "cli.undo:restore", "Go back to an earlier state."),
    Command("verify", "cli.history:verify", "Check that a graph is intact."),
    Command("optimize", "cli.upkeep:optimize", "Merge small fragments, update indexes."),
    Command("cleanup", "cli.upkeep:cleanup", "Remove old versions."),
    Command("repair", "cli.upkeep:repair", "Adopt table versions that verify as safe."),
    Command("doctor", "cli.upkeep:doctor", "Report the state of a graph, and what to do."),
    Command("login", "cli.servers:login", "Store the token of a server."),
    Command("logout", "cli.servers:logout", "Remove the token of a server."),
    Command("embed", "cli.embed:embed", "Compute the vectors of a graph or a file."),
    Command("lint", "cli.lint:lint", "Check the queries of a file against a schema."),
    Command("check", "cli.lint:lint", replaced_by="lint"),
    Command("language", "cli.language:language", "List what there is to write."),
    Command("lsp", "cli.language:lsp", "Serve an editor."),
    Command("shell", "cli.shell:shell", "Ask and change a graph at a prompt."),
    Command("mcp", "cli.mcp:mcp", "Serve the tools of a graph to an agent."),
    Command("ui", "cli.ui:ui", "Open a graph in the browser."),
    Command("serve", "server.main:serve", "Serve graphs over HTTP."),
    Command("version", "cli.version:version"),
)

GROUPS = (
    Command("changes", "cli.changes:app"),
    Command("index", "cli.upkeep:index"),
    Command("jobs", "cli.jobs:app"),
    Command("branch", "cli.branch:app"),
    Command("tag", "cli.tag:app"),
    Command("backup", "cli.transfer:backup"),
    Command("remote", "cli.remote:app"),
    Command("checks", "cli.checks:app"),
    Command("request", "cli.request:app"),
    Command("commit", "cli.commit:app"),
    Command("blob", "cli.blob:app"),
    Command("schema", "cli.schema:app"),
    Command("policy", "cli.policy:app"),
    Command("queries", "cli.queries:app"),
    Command("graphs", "cli.servers:graphs"),
    Command("profile", "cli.profile:app"),
)


def add_commands(app: typer.Typer, first: str) -> None:
    """Add the command that a call begins with; help, completion and unknown ones need them all."""
    commands = [each for each in COMMANDS if each.name == first]
    groups = [each for each in GROUPS if each.name == first]
    is_known = bool(commands or groups)
    for each in commands if is_known else COMMANDS:
        _add_command(app, each)
    for each in groups if is_known else GROUPS:
        app.add_typer(each.find(), name=each.name)


def _add_command(app: typer.Typer, each: Command) -> None:
    function, is_hidden = each.find(), each.is_hidden
    if each.replaced_by is not None:
        function, is_hidden = deprecate(each.name, each.replaced_by, function), True
    app.command(each.name, short_help=each.short_help, hidden=is_hidden)(function)
