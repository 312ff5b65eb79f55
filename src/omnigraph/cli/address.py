"""Addressing: which graph a command is about, and who is acting.

A graph is named by its location, either as the first argument or with `--store`; exactly one of
the two. Writes say on stderr where they go, so that a mistake is noticed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.graph import Graph

UriArgument = Annotated[
    str | None, typer.Argument(metavar="[URI]", help="The graph: a path, file:// or s3:// URI.")
]
UriOption = Annotated[str | None, typer.Option("--uri", help="The graph: a path or URI.")]
StoreOption = Annotated[str | None, typer.Option("--store", help="The graph: a path or URI.")]
ActorOption = Annotated[str | None, typer.Option("--as", help="Who makes the change.")]
BranchOption = Annotated[str, typer.Option("--branch", help="The branch.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", help="Do not say where the write goes.")]


def addressed(uri: str | None, store: str | None) -> str:
    """The one location that was given."""
    if uri is not None and store is not None:
        raise typer.BadParameter(
            "a URI and --store are mutually exclusive — pick one way to address the graph"
        )
    location = uri if uri is not None else store
    if location is None:
        raise typer.BadParameter("no graph addressed — give its path, or --store <path or URI>")
    if location.startswith(("http://", "https://")):
        raise BadRequestError(f"'{location}' is a server, not a store — this command is direct")
    return location


def open_addressed(location: str, *, mode: Literal["r", "rw"], actor: str | None = None) -> Graph:
    """Open the graph of a command."""
    from omnigraph.graph import open as open_graph

    return open_graph(location, mode=mode, actor=actor)


def announce(verb: str, location: str, *, quiet: bool) -> None:
    """Say on stderr what is about to be written where."""
    if not quiet:
        reach = "remote" if "://" in location and not location.startswith("file:") else "local"
        print(f"omnigraph {verb} → {location} (direct, {reach})", file=sys.stderr)
