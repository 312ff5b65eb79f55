"""`omnigraph branch`: create, list, compare, merge, reset and delete branches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.catalog.step_text import describe_step
from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.options import MessageOption, MetaOption, TypesOption, parse_note
from omnigraph.cli.output import print_error, print_json, read_text_file, report_unwritable
from omnigraph.cli.patch_text import SIGNS
from omnigraph.display import count_noun
from omnigraph.errors import BadRequestError, MergeConflicts
from omnigraph.wire import conflict_to_json, parse_conflict

app = make_group("Create, compare, merge, reset and delete branches.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The branch.")]
PreviewFlag = Annotated[
    bool, typer.Option("--preview", help="Show what would happen; write nothing.")
]
ResolveOption = Annotated[
    str | None,
    typer.Option("--resolve", help="Resolve conflicts: ours, theirs, or a JSON file."),
]


@app.command()
@command("branch create", Capability.ANY, writes=True, uri="option")
def create(
    call: Call,
    name: NameArgument,
    source: Annotated[
        str, typer.Option("--from", help="The branch, tag or commit to start from; also main~3.")
    ] = "main",
) -> None:
    """Create a branch with the present state of another one; no data is copied."""
    call.announce()
    with call.open_graph("rw") as graph:
        branch = graph.create_branch(name, source)
    call.print_result(branch, [f"created branch {branch['name']} from {branch['from']}"])


@app.command("list")
@command("branch list", Capability.ANY, uri="option")
def list_(call: Call) -> None:
    """List every branch, `main` first."""
    with call.open_graph("r") as graph:
        names = graph.branches()["branches"]
    branches = sorted(names, key=lambda name: (name != "main", name))
    call.print_result({"branches": branches}, branches)


@app.command()
@command("branch delete", Capability.ANY, writes=True, removes=True, uri="option")
def delete(call: Call, name: NameArgument) -> None:
    """Delete a branch and the data that only it uses."""
    call.announce()
    call.consent(f"delete branch {name}")
    with call.open_graph("rw") as graph:
        branch = graph.delete_branch(name)
    call.print_result(branch, [f"deleted branch {branch['name']}"])


@app.command()
@command("branch reset", Capability.ANY, writes=True, removes=True, uri="option")
def reset(
    call: Call,
    name: NameArgument,
    to: Annotated[
        str,
        typer.Argument(metavar="REVISION", help="A commit of its line; also review~3 or a tag."),
    ],
    if_commit: Annotated[
        str | None,
        typer.Option("--if-commit", help="Only if this commit is the head of the branch."),
    ] = None,
    preview: PreviewFlag = False,
) -> None:
    """Take a branch that no other branch uses back to an earlier commit; later ones are dropped."""
    if not preview:
        call.announce()
        call.consent(f"reset branch {name} to {to}")
    with call.open_graph("r" if preview else "rw") as graph:
        done = graph.reset_branch(name, to, if_commit=if_commit, preview=preview)
    call.print_result(done, _reset_lines(done))


def _reset_lines(done: Json) -> Iterator[str]:
    verb = "would be" if done["is_preview"] else "is"
    yield f"branch {done['branch']} {verb} at commit {done['commit_id']}"
    count = done["commits_dropped"]
    yield f"{count_noun(count, 'commit')} {'would be ' if done['is_preview'] else ''}dropped"
    yield from (f"- {each}" for each in done["dropped"])
    if count > len(done["dropped"]):
        yield f"- and {count - len(done['dropped'])} more"


@app.command()
@command("branch merge", Capability.ANY, writes=True, uri="option")
def merge(
    call: Call,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The branch to merge.")],
    into: Annotated[str, typer.Option("--into", help="The branch to merge into.")] = "main",
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", help="Delete SOURCE afterwards.")
    ] = False,
    preview: PreviewFlag = False,
    resolve: ResolveOption = None,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Merge the changes of one branch into another, as one commit or not at all."""
    choices, note = read_resolution(resolve), parse_note(message, meta)
    if preview:
        with call.open_graph("r", doing="comparing") as graph:
            found = graph.preview_merge(source, into, resolve=choices)
        call.print_result(found, _preview_lines(found))
        return
    call.announce()
    try:
        with call.open_graph("rw", doing="merging") as graph:
            result = graph.merge(
                source, into, delete_branch=delete_branch, resolve=choices, note=note
            )
    except MergeConflicts as error:
        print_conflicts(call, error)
        raise typer.Exit(1) from None
    call.print_result(result, merge_lines(result))
    if (reason := result.get("branch_delete_error")) is not None:
        typer.echo(f"warning: {source} is still there: {reason}", err=True)


def print_conflicts(call: Call, error: MergeConflicts) -> None:
    """Print what stands in the way; with --json every side of every conflict."""
    if call.as_json:
        conflicts = [conflict_to_json(each) for each in error.conflicts]
        print_json({"error": str(error), "code": "conflict", "merge_conflicts": conflicts})
    print_error(error.render())


def read_resolution(text: str | None) -> Any:
    """Read `ours`, `theirs`, or a JSON file of decisions."""
    if text is None or text in ("ours", "theirs"):
        return text
    try:
        return json.loads(read_text_file(Path(text)))
    except ValueError as error:
        raise BadRequestError(f"'{text}' is not JSON: {error}") from None


def merge_lines(result: Json) -> Iterator[str]:
    """What a merge did."""
    yield f"merged {result['source']} into {result['target']}: {result['outcome']}"
    yield from describe_tables(result)
    if result.get("branch_deleted"):
        yield f"deleted branch {result['source']}"


def describe_tables(result: Json) -> Iterator[str]:
    """How many rows of each table were changed."""
    for key, each in sorted(result.get("tables", {}).items()):
        yield f"{key} +{each['inserted']} ~{each['updated']} -{each['deleted']}"


def _preview_lines(result: Json) -> Iterator[str]:
    yield f"merging {result['source']} into {result['target']} would be: {tell_outcome(result)}"
    yield count_changes(result["changes"])
    for conflict in map(parse_conflict, result["conflicts"]):
        yield f"conflict: {conflict}: {conflict.message}"
    yield from check_lines(result)


def check_lines(preview: Json) -> Iterator[str]:
    """What is known of the checks that a merge is held to."""
    words = {True: "holds", False: "does not hold", None: "is run at the merge"}
    for check in preview["checks"]:
        yield f"check {check['name']} {words[check['holds']]}"


def tell_outcome(preview: Json) -> str:
    """What would come of it if it were done now."""
    count = len(preview["conflicts"])
    return f"refused, by {count_noun(count, 'conflict')}" if count else str(preview["outcome"])


def count_changes(changes: Json) -> str:
    """How many inserts, updates and deletes there are."""
    stats = changes["stats"]
    return f"+{stats['inserts']} ~{stats['updates']} -{stats['deletes']}"


@app.command()
@command("branch diff", Capability.ANY, uri="option", pages=True)
def diff(
    call: Call,
    before: Annotated[
        str, typer.Argument(metavar="FROM", help="A branch, tag, commit, main~3, or main@{time}.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="TO", help="The state to compare it with.")
    ] = "main",
    types: TypesOption = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write an HTML page that works offline.")
    ] = None,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON line per change.")] = False,
) -> None:
    """Print the differences between two states of the graph."""
    with call.open_graph("r", doing="comparing") as graph:
        if html is not None:
            page = graph.diff_html(before, after, types=types)
            with report_unwritable(html):
                html.write_text(page, encoding="utf-8")
            print(f"wrote {html}")
        elif as_jsonl:
            for line in graph.diff_lines(before, after, types=types):
                print(line)
        else:
            found = graph.diff(before, after, types=types)
            counts = f"{before} → {after}: {count_changes(found)}"
            steps = [f"schema: {describe_step(step)}" for step in found.get("schema_steps", ())]
            lines = [counts, *steps, *map(_describe_change, found["changes"])]
            call.print_result(found, lines)


def _describe_change(change: Json) -> str:
    properties = f" ({', '.join(change.get('changed', ()))})" if change["op"] == "update" else ""
    return f"{SIGNS[change['op']]} {change['kind']}:{change['type']} {change['id']!r}{properties}"
