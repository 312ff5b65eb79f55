"""`omnigraph commit`: the history of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.options import BranchOption
from omnigraph.cli.output import JsonFlag, print_json

app = typer.Typer(help="Look at the history.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
@command("commit list", Capability.ANY, uri="argument")
def list_(
    call: Call,
    branch: BranchOption = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", metavar="actor=NAME", help="Only this actor's.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print the commits visible on a branch, newest first."""
    actor = _actor_of(filter_)
    with call.open_graph("r") as graph:
        listed = graph.commits(call.branch(branch))["commits"]
    commits = [each for each in listed if actor is None or each["actor_id"] == actor]
    if as_json:
        print_json({"commits": commits})
        return
    for each in commits:
        by = f" actor={each['actor_id']}" if each["actor_id"] else ""
        print(
            f"{each['graph_commit_id']} branch={each['manifest_branch'] or 'main'} "
            f"version={each['manifest_version']}{by}"
        )


@app.command()
@command("commit show", Capability.ANY, uri="option")
def show(
    call: Call,
    commit_id: Annotated[str, typer.Argument(metavar="COMMIT_ID", help="The commit.")],
    as_json: JsonFlag = False,
) -> None:
    """Print one commit."""
    with call.open_graph("r") as graph:
        commit = graph.commit(commit_id)
    if as_json:
        print_json(commit)
        return
    for name, value in commit.items():
        if not name.startswith("graph_") or name == "graph_commit_id":
            print(f"{name}: {'' if value is None else value}".rstrip())


def _actor_of(filter_: str | None) -> str | None:
    if filter_ is None:
        return None
    name, separator, actor = filter_.partition("=")
    if name != "actor" or not separator or not actor:
        raise typer.BadParameter("the filter has the form actor=NAME", param_hint="--filter")
    return actor
