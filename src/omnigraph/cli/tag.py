"""`omnigraph tag`: names for commits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json

app = make_group("Give commits names that stay: a cleanup leaves what a tag names.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tag.")]


@app.command()
@command("tag create", Capability.ANY, writes=True, uri="option")
def create(
    call: Call,
    name: NameArgument,
    at: Annotated[
        str,
        typer.Option("--at", help="A branch, tag or commit; also main~3 or main@{2026-11-01}."),
    ] = "main",
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="What the tag stands for.")
    ] = None,
) -> None:
    """Name a commit. It can be read as long as the tag is there."""
    call.announce()
    with call.open_graph("rw") as graph:
        tag = graph.create_tag(name, at, message)
    call.print_result(tag, [f"tagged commit {tag['commit_id']} as {tag['name']}"])


@app.command("list")
@command("tag list", Capability.ANY, uri="option")
def list_(call: Call) -> None:
    """List every tag, with its commit, time and message."""
    with call.open_graph("r") as graph:
        found = graph.tags()
    call.print_result(found, _lines(found))


@app.command()
@command("tag delete", Capability.ANY, writes=True, removes=True, uri="option")
def delete(call: Call, name: NameArgument) -> None:
    """Delete a tag; the next cleanup may remove what only it kept."""
    call.announce()
    call.consent(f"delete tag {name}")
    with call.open_graph("rw") as graph:
        tag = graph.delete_tag(name)
    call.print_result(tag, [f"deleted tag {tag['name']}"])


def _lines(found: Json) -> Iterator[str]:
    for tag in found["tags"]:
        made = datetime.fromtimestamp(tag["created_at"] / 1_000_000, UTC)
        parts = [tag["name"], tag["commit_id"], f"{made:%Y-%m-%d %H:%M}", tag["actor"] or "-"]
        yield "  ".join([*parts, tag["message"] or ""]).rstrip()
