"""`omnigraph bisect`: find the commit that broke an assertion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.history import draw
from omnigraph.cli.output import read_text_file


@command("bisect", Capability.ANY, uri="argument")
def bisect(
    call: Call,
    assertion: Annotated[
        Path, typer.Option("--assert", help="A .gq file with one query: it finds what is wrong.")
    ],
    good: Annotated[str, typer.Option("--good", help="A revision at which it finds nothing.")],
    bad: Annotated[str, typer.Option("--bad", help="A later one at which it does.")] = "main",
) -> None:
    """Find the first commit at which a query returns rows, by halving the history."""
    text = read_text_file(assertion)
    with call.open_graph("r", doing="looking for the commit") as graph:
        found = graph.bisect(text, good=good, bad=bad)
    call.print_result(found, draw([found]))
