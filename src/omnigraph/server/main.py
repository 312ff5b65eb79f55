"""`omnigraph-server`, and `omnigraph serve`: the same command under two names.

Light to import: the command line registers it, and most commands never serve anything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.errors import OmnigraphError


def serve(
    uri: Annotated[
        str | None, typer.Argument(metavar="[URI]", help="The graph: a path, file:// or s3:// URI.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="A graph of the project file, by name.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="The project file; ./omnigraph.yaml if there.")
    ] = None,
    bind: Annotated[
        str | None, typer.Option("--bind", help="host:port; port 0 picks a free one.")
    ] = None,
    unauthenticated: Annotated[
        bool,
        typer.Option("--unauthenticated", help="Let every client that can connect do everything."),
    ] = False,
    require_all_graphs: Annotated[
        bool,
        typer.Option("--require-all-graphs", help="Do not start while a graph cannot be opened."),
    ] = False,
    cluster: Annotated[str | None, typer.Option("--cluster", hidden=True)] = None,
) -> None:
    """Serve a graph, or all graphs of a project file, over HTTP."""
    from omnigraph.server.boot import Arguments
    from omnigraph.server.run import run
    from omnigraph.server.source import Source

    arguments = Arguments(uri, target, config, cluster, bind, unauthenticated, require_all_graphs)
    source = Source(arguments, os.environ)
    run(source.read(), source)


app = typer.Typer(
    name="omnigraph-server",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)


def main() -> None:
    """Run the server; an error of ours ends it with a message and exit code 1."""
    try:
        app()
    except OmnigraphError as error:
        print(f"error: {error.render()}", file=sys.stderr)
        sys.exit(1)
