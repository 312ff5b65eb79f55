"""`omnigraph checks`: queries that have to hold, kept in the graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.options import BranchOption, MessageOption, MetaOption, parse_note

app = make_group("Keep queries in the graph that every merge has to leave true.")


@app.command("list")
@command("checks list", Capability.ANY, uri="option")
def list_(call: Call, branch: BranchOption = None) -> None:
    """List the checks of a branch."""
    with call.open_graph("r") as graph:
        found = graph.checks(call.branch(branch))
    call.print_result(found, _lines(found))


@app.command()
@command("checks apply", Capability.ANY, writes=True, uri="option")
def apply(
    call: Call,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files with queries, or a directory.")
    ],
    branch: BranchOption = None,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Make the queries of files the checks of a branch; others that it has go.

    Each query returns no rows, or those of `expect` in the checks.yaml of a directory.
    """
    from omnigraph.graph.check_files import read_checks

    wanted, note = read_checks(paths), parse_note(message, meta)
    call.announce()
    with call.open_graph("rw") as graph:
        done = graph.apply_checks(wanted, branch=call.branch(branch), note=note)
    parts = [f"{len(done[each])} {each}" for each in ("added", "changed", "removed") if done[each]]
    call.print_result(done, [f"checks of {done['branch']}: {', '.join(parts) or 'no change'}"])


@app.command()
@command("checks run", Capability.ANY, uri="option")
def run(call: Call, branch: BranchOption = None) -> None:
    """Run the checks of a branch; the exit code is 1 when one does not hold."""
    with call.open_graph("r", doing="running checks") as graph:
        found = graph.run_checks(call.branch(branch))
    call.print_result(found, _failure_lines(found))
    if found["failures"]:
        raise typer.Exit(1)


def _lines(found: Json) -> Iterator[str]:
    for check in found["checks"]:
        when = "every commit" if check["every_commit"] else "merges"
        rows = f"{len(check['expected'])} rows" if check["expected"] else "no rows"
        yield f"{check['name']}  {when}  {rows}"


def _failure_lines(found: Json) -> Iterator[str]:
    if not found["failures"]:
        yield "all checks hold"
    for failure in found["failures"]:
        yield f"{failure['name']}: {failure['row_count']} rows"
        yield from (f"  {row}" for row in failure["rows"])
