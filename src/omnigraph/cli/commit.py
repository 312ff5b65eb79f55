"""`omnigraph commit`: the history of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.address import (
    BranchOption,
    StoreOption,
    UriArgument,
    UriOption,
    addressed,
    open_addressed,
)
from omnigraph.cli.output import JsonFlag, print_json
from omnigraph.cli.wire import commit_to_json

app = typer.Typer(help="Look at the history.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(
    uri: UriArgument = None,
    branch: BranchOption = "main",
    filter_: Annotated[
        str | None, typer.Option("--filter", metavar="actor=NAME", help="Only this actor's.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print the commits visible on a branch, newest first."""
    actor = _actor_of(filter_)
    with open_addressed(addressed(uri, store), mode="r") as graph:
        commits = graph.commits(branch, actor=actor)
    if as_json:
        print_json({"commits": [commit_to_json(commit) for commit in commits]})
        return
    for commit in commits:
        by = f" actor={commit.actor}" if commit.actor else ""
        print(f"{commit.commit_id} branch={commit.branch} version={commit.manifest_version}{by}")


@app.command()
def show(
    commit_id: Annotated[str, typer.Argument(metavar="COMMIT_ID", help="The commit.")],
    uri: UriOption = None,
    store: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print one commit."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        commit = graph.commit(commit_id)
    if as_json:
        print_json(commit_to_json(commit))
        return
    for name, value in commit_to_json(commit).items():
        if not name.startswith("graph_") or name == "graph_commit_id":
            print(f"{name}: {'' if value is None else value}".rstrip())


def _actor_of(filter_: str | None) -> str | None:
    if filter_ is None:
        return None
    name, separator, actor = filter_.partition("=")
    if name != "actor" or not separator or not actor:
        raise typer.BadParameter("the filter has the form actor=NAME", param_hint="--filter")
    return actor
