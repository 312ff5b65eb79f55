"""`omnigraph branch`: create, list, compare, merge and delete branches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import StoreOptions
from omnigraph.cli.options import TypesOption
from omnigraph.cli.output import JsonFlag, print_error, print_json, read_text_file
from omnigraph.cli.progress import working
from omnigraph.errors import BadRequestError, MergeConflicts
from omnigraph.wire import conflict_to_json

if TYPE_CHECKING:
    from omnigraph.branch.merge import MergePreview

app = typer.Typer(
    help="Create, compare, merge and delete branches.", no_args_is_help=True, rich_markup_mode=None
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The branch.")]


@app.command()
@command("branch create", Capability.ANY, writes=True, uri="option")
def create(
    call: Call,
    name: NameArgument,
    source: Annotated[str, typer.Option("--from", help="The branch to start from.")] = "main",
    as_json: JsonFlag = False,
) -> None:
    """Make a branch that shows what another one shows now; nothing is copied."""
    call.announce()
    with call.open_graph("rw") as graph:
        made = graph.create_branch(name, source)
    if as_json:
        print_json(made)
    else:
        print(f"created branch {made['name']} from {made['from']}")


@app.command("list")
@command("branch list", Capability.ANY, uri="option")
def list_(call: Call, as_json: JsonFlag = False) -> None:
    """Print every branch, `main` first."""
    with call.open_graph("r") as graph:
        listed = graph.branches()["branches"]
    branches = sorted(listed, key=lambda name: (name != "main", name))
    if as_json:
        print_json({"branches": branches})
    else:
        print("\n".join(branches))


@app.command()
@command("branch delete", Capability.ANY, writes=True, removes=True, uri="option")
def delete(call: Call, name: NameArgument, as_json: JsonFlag = False) -> None:
    """Remove a branch and what only it holds."""
    call.announce()
    call.consent(f"delete branch {name}", as_json=as_json)
    with call.open_graph("rw") as graph:
        gone = graph.delete_branch(name)
    if as_json:
        print_json(gone)
    else:
        print(f"deleted branch {gone['name']}")


@app.command()
@command("branch merge", Capability.ANY, writes=True, uri="option")
def merge(
    call: Call,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The branch to merge.")],
    into: Annotated[str, typer.Option("--into", help="The branch that takes it in.")] = "main",
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", help="Delete SOURCE afterwards.")
    ] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would happen; write nothing.")
    ] = False,
    resolve: Annotated[
        str | None,
        typer.Option("--resolve", help="Settle conflicts: ours, theirs, or a JSON file."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Bring what one branch did into another, as one commit or not at all."""
    call.refuse_served(preview=preview, resolve=resolve)
    if preview:
        _preview(call, source, into, resolve, as_json)
        return
    call.announce()
    try:
        result = _merged(call, source, into, delete_branch, resolve)
    except MergeConflicts as conflicts:
        if as_json:
            listed = [conflict_to_json(each) for each in conflicts.conflicts]
            print_json({"error": str(conflicts), "code": "conflict", "merge_conflicts": listed})
        print_error(conflicts.render())
        raise typer.Exit(1) from None
    if as_json:
        print_json(result)
    else:
        _print_merge(result)
    if (trouble := result.get("branch_delete_error")) is not None:
        typer.echo(f"warning: {source} is still there: {trouble}", err=True)


def _merged(
    call: Call, source: str, into: str, delete_branch: bool, resolve: str | None
) -> dict[str, Any]:
    options = StoreOptions(resolve=_resolution(resolve))
    with call.open_graph("rw", options) as graph, working("merging", quiet=call.flags.quiet):
        return graph.merge(source, into, delete_branch=delete_branch)


def _preview(call: Call, source: str, into: str, resolve: str | None, as_json: bool) -> None:
    with call.open_store("r") as graph:
        seen = graph.merge(source, into, preview=True, resolve=_resolution(resolve))
        if as_json:
            print_json(seen.to_json())
        else:
            _print_preview(seen)


def _resolution(text: str | None) -> Any:
    """`ours`, `theirs`, or what a JSON file says."""
    if text is None or text in ("ours", "theirs"):
        return text
    try:
        return json.loads(read_text_file(Path(text)))
    except ValueError as error:
        raise BadRequestError(f"'{text}' is not JSON: {error}") from None


def _print_merge(result: dict[str, Any]) -> None:
    print(f"merged {result['source']} into {result['target']}: {result['outcome']}")
    for key, each in sorted(result.get("tables", {}).items()):
        print(f"{key} +{each['inserted']} ~{each['updated']} -{each['deleted']}")
    if result.get("branch_deleted"):
        print(f"deleted branch {result['source']}")


def _print_preview(result: MergePreview) -> None:
    print(f"merging {result.source} into {result.target} would be: {result.outcome}")
    stats = result.changes.stats
    print(f"+{stats.inserts} ~{stats.updates} -{stats.deletes}")
    for conflict in result.conflicts:
        print(f"conflict: {conflict}: {conflict.message}")


@app.command()
@command("branch diff", Capability.DIRECT, uri="option")
def diff(
    call: Call,
    before: Annotated[
        str, typer.Argument(metavar="FROM", help="A branch, commit, or branch@time.")
    ],
    after: Annotated[str, typer.Argument(metavar="TO", help="The same, to compare with.")] = "main",
    types: TypesOption = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page to look at offline.")
    ] = None,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON line per change.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print what differs between two states of the graph."""
    with call.open_store("r") as graph, working("comparing", quiet=call.flags.quiet):
        changes = graph.diff(before, after, types=types)
        if html is not None:
            html.write_text(graph.diff_html(before, after, types=types), encoding="utf-8")
            print(f"wrote {html}")
        elif as_jsonl:
            for line in changes.to_jsonl():
                print(line)
        elif as_json:
            print_json(changes.to_json())
        else:
            stats = changes.stats
            print(f"{before} → {after}: +{stats.inserts} ~{stats.updates} -{stats.deletes}")
            for change in changes:
                named = f" ({', '.join(change.properties)})" if change.op == "update" else ""
                print(f"{_SIGNS[change.op]} {change.table_key} {change.id!r}{named}")


_SIGNS = {"insert": "+", "update": "~", "delete": "-"}
