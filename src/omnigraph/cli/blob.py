"""`omnigraph blob`: the bytes of one Blob property."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.options import BranchOption, MessageOption, MetaOption, parse_note
from omnigraph.cli.output import report_unwritable
from omnigraph.errors import BadRequestError
from omnigraph.wire import BlobPlace

app = make_group("Read and write the bytes of a Blob property.")

EntityArgument = Annotated[str, typer.Argument(metavar="ENTITY", help="node or edge.")]
TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="The type.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the node or edge.")]
PropertyArgument = Annotated[str, typer.Argument(metavar="PROPERTY", help="The Blob property.")]
SnapshotOption = Annotated[
    str | None, typer.Option("--snapshot", help="A graph commit, instead of a branch.")
]


@app.command()
@command("blob get", Capability.ANY, uri="option")
def get(
    call: Call,
    entity: EntityArgument,
    type_: TypeArgument,
    id_: IdArgument,
    property_: PropertyArgument,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    offset: Annotated[int, typer.Option("--offset", min=0, help="The first byte.")] = 0,
    length: Annotated[
        int | None, typer.Option("--length", min=1, help="The number of bytes; all by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write, instead of stdout.")
    ] = None,
) -> None:
    """Write the bytes, or a range of them, to standard output or a file."""
    cell = entity, type_, id_, property_
    asked = BlobPlace(*cell, *_choose_state(call, branch, snapshot), offset, length)
    with call.open_graph("r") as graph, graph.open_blob(asked) as blob:
        if offset and offset >= blob.size:
            raise BadRequestError(f"the range begins behind the last of {blob.size} bytes")
        if out is None:
            sys.stdout.buffer.writelines(blob.parts)
            sys.stdout.buffer.flush()
            return
        with report_unwritable(out), out.open("wb") as file:
            file.writelines(blob.parts)


@app.command()
@command("blob stat", Capability.ANY, uri="option")
def stat(
    call: Call,
    entity: EntityArgument,
    type_: TypeArgument,
    id_: IdArgument,
    property_: PropertyArgument,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
) -> None:
    """Print the size and the ETag of a Blob."""
    asked = BlobPlace(entity, type_, id_, property_, *_choose_state(call, branch, snapshot))
    with call.open_graph("r") as graph, graph.open_blob(asked) as blob:
        size, etag, commit_id = blob.size, blob.etag, blob.snapshot
    value = {
        "selector": {"entity": entity, "type": type_, "id": id_, "property": property_},
        "kind": "managed",
        "size": size,
        "etag": etag,
        "target": commit_id,
    }
    call.print_result(value, [f"{size} bytes, etag {etag}, at {commit_id}"])


@app.command()
@command("blob put", Capability.ANY, writes=True, uri="option")
def put(
    call: Call,
    entity: EntityArgument,
    type_: TypeArgument,
    id_: IdArgument,
    property_: PropertyArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file with the bytes; - is standard input.")
    ],
    branch: BranchOption = None,
    if_match: Annotated[
        str | None, typer.Option("--if-match", help="Write only while the Blob has this ETag.")
    ] = None,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Make the bytes of a file the Blob, as one commit, whatever their size."""
    call.announce()
    place = BlobPlace(entity, type_, id_, property_, call.branch(branch))
    source = sys.stdin.buffer if str(file) == "-" else file
    with call.open_graph("rw", doing="writing") as graph:
        done = graph.put_blob(place, source, if_match=if_match, note=parse_note(message, meta))
    call.print_result(done, [f"{done['size']} bytes, etag {done['etag']}, on {done['branch']}"])


def _choose_state(
    call: Call, branch: str | None, snapshot: str | None
) -> tuple[str | None, str | None]:
    if branch is not None and snapshot is not None:
        raise typer.BadParameter("--branch and --snapshot are mutually exclusive")
    return (None if snapshot is not None else call.branch(branch)), snapshot
