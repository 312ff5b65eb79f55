"""`omnigraph algorithm`: compute something about every node of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph import wire
from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.invocation import ParamsFileOption, ParamsOption, read_params
from omnigraph.cli.options import (
    BranchOption,
    MessageOption,
    MetaOption,
    ReadEngineOption,
    parse_note,
)
from omnigraph.cli.query import FormatOption, SnapshotOption, choose_format, print_rows
from omnigraph.commit_note import NO_NOTE


@command("algorithm", Capability.DIRECT, uri="option", pages=True)
def algorithm(
    call: Call,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="pagerank, components, communities, degrees, triangles or distances.",
        ),
    ],
    node: Annotated[str, typer.Option("--node", help="The node type.")],
    edge: Annotated[str, typer.Option("--edge", help="An edge type that joins its nodes.")],
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    engine: ReadEngineOption = "auto",
    write_to: Annotated[
        str | None,
        typer.Option("--write-to", help="Also write the values to this property, as one commit."),
    ] = None,
    message: MessageOption = None,
    meta: MetaOption = None,
    format_: FormatOption = None,
) -> None:
    """Run a graph algorithm and print a row for every node."""
    chosen_format, note = choose_format(call, format_), parse_note(message, meta)
    if write_to is None and note != NO_NOTE:
        raise typer.BadParameter("--message and --meta are for --write-to")
    with call.open_store("r" if write_to is None else "rw", doing="computing") as graph:
        found = graph.algorithm(
            name,
            node=node,
            edge=edge,
            params=read_params(params, params_file),
            engine=engine,
            branch=call.branch(branch),
            commit=snapshot,
            write_to=write_to,
            message=note.message,
            metadata=note.metadata,
        )
        shown = wire.read_to_json(found, wire.read_target(found, snapshot))
    print_rows(call, shown, chosen_format)
