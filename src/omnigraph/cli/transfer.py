"""`omnigraph clone`, `push`, `pull`, `fetch`, `backup`: graphs in more than one store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.options import BranchOption
from omnigraph.cli.progress import show_spinner

if TYPE_CHECKING:
    from omnigraph.transfer.result import TransferResult

backup = make_group("Keep states of a graph as files named by their hash, and restore them.")

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The graph: a path, file:// or s3:// URI.")
]
TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help="A location where nothing is yet.")
]
VaultArgument = Annotated[str, typer.Argument(metavar="BACKUPS", help="Where the backups are.")]


@command("clone", Capability.LOCAL)
def clone(call: Call, source: SourceArgument, place: TargetArgument) -> None:
    """Copy a graph with all branches, tags and commits; the source may be in use.

    The copy opens once it is whole. A clone that was interrupted goes on when it is run again.
    """
    from omnigraph.graph.transfers import clone as clone_graph

    with show_spinner("copying", is_shown=call.shows_progress):
        result = clone_graph(source, place)
    call.print_result(result.to_json(), [f"cloned {source} to {place}: {describe(result)}"])


@backup.command("create")
@command("backup create", Capability.DIRECT, uri="option")
def create_backup(call: Call, vault: VaultArgument) -> None:
    """Add a backup of the present state; only files that no earlier one has are copied."""
    with call.open_store("r", doing="copying") as graph:
        result = graph.backup(vault)
    call.print_result(result.to_json(), [f"backed up {call.target} to {vault}: {describe(result)}"])


@backup.command("list")
@command("backup list", Capability.LOCAL)
def list_backups(call: Call, vault: VaultArgument) -> None:
    """List the backups at a location, the latest last, with the head of main."""
    from omnigraph.graph.transfers import list_backups as list_

    found = list_(vault)
    lines = [f"{each['name']}  main {each['heads']['main']}" for each in found]
    call.print_result({"backups": found}, lines or ["no backups"])


@backup.command("restore")
@command("backup restore", Capability.LOCAL)
def restore_backup(
    call: Call,
    vault: VaultArgument,
    place: TargetArgument,
    name: Annotated[
        str | None, typer.Option("--name", help="The backup; the latest without it.")
    ] = None,
) -> None:
    """Make a graph of a backup. Every file is compared with its hash."""
    from omnigraph.graph.transfers import restore_backup as restore_graph

    with show_spinner("copying", is_shown=call.shows_progress):
        result = restore_graph(vault, place, name=name)
    call.print_result(result.to_json(), [f"restored {vault} to {place}: {describe(result)}"])


def describe(result: TransferResult) -> str:
    """What a transfer moved, in words."""
    said = f"{result.files} files, {result.bytes} bytes, {result.commits} commits"
    return f"{said}, {len(result.tags)} tags" if result.tags else said


def list_remarks(result: TransferResult) -> list[str]:
    """What a transfer found that its caller did not ask for, a line each."""
    return [
        *(f"{each} was reset or made again there: received anew" for each in result.renewed),
        *(f"{each} is gone there: deleted" for each in result.pruned),
        *(
            f"tag {each} was not taken: the name is in use, or its state is gone"
            for each in result.refused_tags
        ),
    ]


FarArgument = Annotated[
    str,
    typer.Argument(
        metavar="OTHER", help="Another store of the graph: a remote, a path or s3:// URI."
    ),
]
RemoteOption = Annotated[
    str | None,
    typer.Option("--name", help="What its branches begin with here; the remote, or origin."),
]


@command("push", Capability.DIRECT, uri="option")
def push(call: Call, other: FarArgument, branch: BranchOption = None) -> None:
    """Bring a branch to another store; refused when it has commits there that are not here."""
    chosen = call.branch(branch)
    with call.open_store("r", doing="pushing") as graph:
        result = graph.push(other, chosen)
    said = f"pushed {chosen} to {other}: {describe(result)}"
    call.print_result(result.to_json(), [said, *list_remarks(result)])


@command("pull", Capability.DIRECT, writes=True, uri="option")
def pull(
    call: Call, other: FarArgument, branch: BranchOption = None, name: RemoteOption = None
) -> None:
    """Bring a branch of another store here, and into the branch of that name."""
    call.announce()
    chosen = call.branch(branch)
    with call.open_store("rw", doing="pulling") as graph:
        result = graph.pull(other, chosen, name=name)
    said = f"pulled {chosen} from {other}: {describe(result)}"
    call.print_result(result.to_json(), [said, *list_remarks(result)])


@command("fetch", Capability.DIRECT, writes=True, uri="option")
def fetch(
    call: Call,
    other: FarArgument,
    branch: BranchOption = None,
    name: RemoteOption = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete fetched branches that are gone there.")
    ] = False,
) -> None:
    """Bring the branches of another store here as NAME/BRANCH; no branch of yours changes."""
    call.announce()
    with call.open_store("rw", doing="fetching") as graph:
        result = graph.fetch(other, name=name, branch=branch, prune=prune)
    said = f"fetched {other}: {describe(result)}"
    call.print_result(result.to_json(), [said, *list_remarks(result)])
