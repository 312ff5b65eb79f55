"""`omnigraph changes`: what commits changed, to be followed by another program."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import GraphCommands, Json
from omnigraph.cli.options import BranchOption, KindsOption, OpsOption, TypesOption
from omnigraph.cli.output import report_unwritable
from omnigraph.errors import RemoteError
from omnigraph.wire import FeedPart

app = make_group("Follow the changes of a branch.")

NAMES = ("list", "poll", "baseline")


@app.command("list")
@command("changes list", Capability.DIRECT, uri="argument", pages=True)
def list_(
    call: Call,
    since: Annotated[str, typer.Option("--since", help="The commit or revision to start after.")],
    branch: BranchOption = None,
) -> None:
    """Print the changes of every later commit, oldest first, one JSON line per commit."""
    with call.open_store("r", doing="comparing") as graph:
        feed = [each.to_json() for each in graph.changes(since, branch=call.branch(branch))]
    call.print_result({"commits": feed}, map(_to_line, feed))


@app.command()
@command("changes poll", Capability.ANY, uri="option")
def poll(
    call: Call,
    branch: BranchOption = None,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="The cursor that the poll before ended with.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--start", help="now (default), beginning, or after:COMMIT."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Number of changes per page.")
    ] = None,
    kinds: KindsOption = None,
    types: TypesOption = None,
    ops: OpsOption = None,
) -> None:
    """Print what changed since a cursor, one JSON line per commit, then the next cursor."""
    asked = FeedPart(cursor=cursor, start=start, limit=limit, kinds=kinds, types=types, ops=ops)
    with call.open_graph("r") as graph:
        for page in _read_pages(graph, call.branch(branch), asked):
            for block in page["blocks"]:
                print(_to_line(block))
    print(_to_line({"cursor": page["cursor"], "caught_up": page["caught_up"]}))


def _read_pages(graph: GraphCommands, branch: str, asked: FeedPart) -> Iterator[Json]:
    """The pages of one poll."""
    page = graph.poll_changes(branch, asked)
    yield page
    while (token := page.get("next_page_token")) is not None:
        rest = FeedPart(page_token=token, limit=asked.limit, **asked.filters)
        page = graph.poll_changes(branch, rest)
        yield page


@app.command()
@command("changes baseline", Capability.ANY, uri="option")
def baseline(
    call: Call,
    out: Annotated[Path, typer.Option("--out", help="The file to write the records to.")],
    branch: BranchOption = None,
    kinds: KindsOption = None,
    types: TypesOption = None,
    ops: OpsOption = None,
) -> None:
    """Write the records of a branch to a file, and print the cursor of what comes after them."""
    asked = FeedPart(kinds=kinds, types=types, ops=ops)
    with call.open_graph("r", doing="exporting") as graph:
        facts = _write_records(out, graph.change_baseline(call.branch(branch), asked))
    said = f"wrote {out} as of {facts['snapshot_commit_id']}"
    call.print_result({"out": str(out), **facts}, [said, facts["resume_cursor"]])


def _write_records(out: Path, lines: Iterator[str]) -> Json:
    """Write all lines but the last, and return what that says of them.

    The file is there, whole and durable, before its cursor is printed, or not at all.
    """
    part = out.with_name(f"{out.name}.part")
    last = "{}"
    try:
        with report_unwritable(out), part.open("w", encoding="utf-8") as file:
            for number, line in enumerate(lines):
                if number:
                    file.write(f"{last}\n")
                last = line
            file.flush()
            os.fsync(file.fileno())
        facts: Json | None = json.loads(last).get("baseline")
        if facts is None:
            raise RemoteError("the baseline broke off — nothing was written, take it again")
        with report_unwritable(out):
            part.replace(out)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return facts


def _to_line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
