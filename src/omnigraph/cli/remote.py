"""`omnigraph remote`: names for other stores of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability

app = make_group("Name other stores of a graph: `omnigraph push origin`.")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What its fetched branches begin with.")
]


@app.command()
@command("remote add", Capability.DIRECT, writes=True, uri="option")
def add(
    call: Call,
    name: NameArgument,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The other store: a path or s3:// URI.")
    ],
) -> None:
    """Name another store of the graph. Its keys are not kept."""
    call.announce()
    with call.open_store("rw") as graph:
        remote = graph.add_remote(name, other)
    call.print_result(remote.to_json(), [f"added remote {remote.name}: {remote.uri}"])


@app.command("list")
@command("remote list", Capability.DIRECT, uri="option")
def list_(call: Call) -> None:
    """List the other stores that have a name."""
    with call.open_store("r") as graph:
        found = graph.remotes()
    lines = [f"{each.name}  {each.uri}" for each in found]
    call.print_result({"remotes": [each.to_json() for each in found]}, lines or ["no remotes"])


@app.command()
@command("remote remove", Capability.DIRECT, writes=True, uri="option")
def remove(call: Call, name: NameArgument) -> None:
    """Forget another store. What was fetched from it stays."""
    call.announce()
    with call.open_store("rw") as graph:
        remote = graph.remove_remote(name)
    call.print_result(remote.to_json(), [f"removed remote {remote.name}"])
