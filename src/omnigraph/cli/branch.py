"""`omnigraph branch`: create, list, compare, merge and delete branches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.address import (
    ActorOption,
    QuietFlag,
    StoreOption,
    UriOption,
    addressed,
    announce,
    open_addressed,
)
from omnigraph.cli.output import JsonFlag, print_error, print_json, read_text_file
from omnigraph.errors import BadRequestError, MergeConflicts

if TYPE_CHECKING:
    from omnigraph.branch.merge import MergePreview, MergeResult

app = typer.Typer(
    help="Create, compare, merge and delete branches.", no_args_is_help=True, rich_markup_mode=None
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The branch.")]


@app.command()
def create(
    name: NameArgument,
    source: Annotated[str, typer.Option("--from", help="The branch to start from.")] = "main",
    uri: UriOption = None,
    store: StoreOption = None,
    actor: ActorOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a branch that shows what another one shows now; nothing is copied."""
    location = addressed(uri, store)
    announce("branch create", location, quiet=quiet)
    with open_addressed(location, mode="rw", actor=actor) as graph:
        made = graph.create_branch(name, from_=source)
    if as_json:
        print_json({"uri": location, "from": source, "name": made.branch, "actor_id": actor})
    else:
        print(f"created branch {made.branch} from {source}")


@app.command("list")
def list_(uri: UriOption = None, store: StoreOption = None, as_json: JsonFlag = False) -> None:
    """Print every branch, `main` first."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        branches = graph.branches()
    if as_json:
        print_json({"branches": branches})
    else:
        print("\n".join(branches))


@app.command()
def delete(
    name: NameArgument,
    uri: UriOption = None,
    store: StoreOption = None,
    actor: ActorOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove a branch and what only it holds."""
    location = addressed(uri, store)
    announce("branch delete", location, quiet=quiet)
    with open_addressed(location, mode="rw", actor=actor) as graph:
        graph.delete_branch(name)
    if as_json:
        print_json({"uri": location, "name": name, "actor_id": actor})
    else:
        print(f"deleted branch {name}")


@app.command()
def merge(
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
    uri: UriOption = None,
    store: StoreOption = None,
    actor: ActorOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Bring what one branch did into another, as one commit or not at all."""
    from omnigraph.branch.merge import MergePreview

    location = addressed(uri, store)
    if not preview:
        announce("branch merge", location, quiet=quiet)
    with open_addressed(location, mode="r" if preview else "rw", actor=actor) as graph:
        try:
            result = graph.merge(
                source,
                into,
                delete_branch=delete_branch,
                preview=preview,
                resolve=_resolution(resolve),
            )
        except MergeConflicts as conflicts:
            if as_json:
                listed = [each.to_json() for each in conflicts.conflicts]
                print_json({"error": str(conflicts), "code": "conflict", "merge_conflicts": listed})
            print_error(conflicts.render())
            raise typer.Exit(1) from None
        if as_json:
            print_json(result.to_json())
        elif isinstance(result, MergePreview):
            _print_preview(result)
        else:
            _print_merge(result)


def _resolution(text: str | None) -> Any:
    """`ours`, `theirs`, or what a JSON file says."""
    if text is None or text in ("ours", "theirs"):
        return text
    try:
        return json.loads(read_text_file(Path(text)))
    except ValueError as error:
        raise BadRequestError(f"'{text}' is not JSON: {error}") from None


def _print_merge(result: MergeResult) -> None:
    print(f"merged {result.source} into {result.target}: {result.outcome}")
    for key, each in sorted(result.tables.items()):
        print(f"{key} +{each.inserted} ~{each.updated} -{each.deleted}")
    if result.branch_deleted:
        print(f"deleted branch {result.source}")
    if result.branch_delete_error is not None:
        typer.echo(
            f"warning: {result.source} is still there: {result.branch_delete_error}", err=True
        )


def _print_preview(result: MergePreview) -> None:
    print(f"merging {result.source} into {result.target} would be: {result.outcome}")
    stats = result.changes.stats
    print(f"+{stats.inserts} ~{stats.updates} -{stats.deletes}")
    for conflict in result.conflicts:
        print(f"conflict: {conflict}: {conflict.message}")


@app.command()
def diff(
    before: Annotated[
        str, typer.Argument(metavar="FROM", help="A branch, commit, or branch@time.")
    ],
    after: Annotated[str, typer.Argument(metavar="TO", help="The same, to compare with.")] = "main",
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page to look at offline.")
    ] = None,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON line per change.")] = False,
    uri: UriOption = None,
    store: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print what differs between two states of the graph."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
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
