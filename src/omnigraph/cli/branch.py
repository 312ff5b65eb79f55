"""`omnigraph branch`: create, list and delete branches."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.address import (
    ActorOption,
    QuietFlag,
    StoreOption,
    UriOption,
    addressed,
    announce,
    open_addressed,
)
from omnigraph.cli.output import JsonFlag, print_json

app = typer.Typer(
    help="Create, list and delete branches.", no_args_is_help=True, rich_markup_mode=None
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The branch.")]


@app.command()
def create(
    name: NameArgument,
    source: Annotated[str, typer.Option("--from", help="The branch to start from.")] = "main",
    uri: UriOption = None,
    store: StoreOption = None,
    actor: ActorOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a branch that shows what another one shows now; nothing is copied."""
    location = addressed(uri, store)
    announce("branch create", location, quiet=quiet)
    with open_addressed(location, mode="rw", actor=actor) as graph:
        made = graph.create_branch(name, from_=source)
    if as_json:
        print_json({"uri": location, "from": source, "name": made.branch, "actor_id": actor})
    else:
        print(f"created branch {made.branch} from {source}")


@app.command("list")
def list_(uri: UriOption = None, store: StoreOption = None, as_json: JsonFlag = False) -> None:
    """Print every branch, `main` first."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        branches = graph.branches()
    if as_json:
        print_json({"branches": branches})
    else:
        print("\n".join(branches))


@app.command()
def delete(
    name: NameArgument,
    uri: UriOption = None,
    store: StoreOption = None,
    actor: ActorOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove a branch and what only it holds."""
    location = addressed(uri, store)
    announce("branch delete", location, quiet=quiet)
    with open_addressed(location, mode="rw", actor=actor) as graph:
        graph.delete_branch(name)
    if as_json:
        print_json({"uri": location, "name": name, "actor_id": actor})
    else:
        print(f"deleted branch {name}")
