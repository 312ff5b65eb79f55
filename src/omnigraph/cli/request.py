"""`omnigraph request`: ask for a branch to be merged, discuss it, approve it, merge it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from omnigraph.cli.branch import (
    ResolveOption,
    check_lines,
    count_changes,
    merge_lines,
    print_conflicts,
    read_resolution,
    tell_outcome,
)
from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.errors import MergeConflicts, MergeRequestNotOpen, OmnigraphError
from omnigraph.html_text import show_controls
from omnigraph.wire import RequestVerb, parse_conflict

app = make_group("Ask for a branch to be reviewed and merged; comment, approve, merge.")

LIST_LIMIT = 50

NumberArgument = Annotated[
    int, typer.Argument(metavar="NUMBER", help="The number of the merge request.", min=1)
]
TextOption = Annotated[str | None, typer.Option("--text", help="Why.")]
HeadOption = Annotated[
    str | None,
    typer.Option("--head", metavar="COMMIT", help="Only while this is the head of the source."),
]
DescriptionOption = Annotated[
    str | None, typer.Option("--description", help="What there is to know.")
]
ReviewersOption = Annotated[
    list[str] | None,
    typer.Option("--reviewer", help="An actor who is asked to review it; may be repeated."),
]


@app.command("open")
@command("request open", Capability.ANY, writes=True, uri="option")
def open_(
    call: Call,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The branch to merge.")],
    title: Annotated[str, typer.Option("--title", help="One line about what it does.")],
    into: Annotated[str, typer.Option("--into", help="The branch to merge into.")] = "main",
    description: DescriptionOption = None,
    reviewers: ReviewersOption = None,
) -> None:
    """Open a merge request. Nothing is merged yet."""
    call.announce()
    asked = {"source": source, "target": into, "title": title, "description": description}
    with call.open_graph("rw") as graph:
        made = graph.open_merge_request({**asked, "reviewers": reviewers or []})
    call.print_result(made, [f"opened merge request {made['number']}: {made['title']}"])


@app.command("list")
@command("request list", Capability.ANY, uri="option", pages=True)
def list_(
    call: Call,
    state: Annotated[str, typer.Option("--state", help="open, merged, closed or all.")] = "open",
    limit: Annotated[int, typer.Option("--limit", help="How many.", min=1)] = LIST_LIMIT,
    before: Annotated[
        int | None, typer.Option("--before", help="Only those of smaller numbers.", min=1)
    ] = None,
) -> None:
    """List merge requests, newest first."""
    with call.open_graph("r") as graph:
        found = graph.merge_requests(state, limit, before)
    call.print_result(found, map(show_controls, _list_lines(found)))


@app.command()
@command("request show", Capability.ANY, uri="option", pages=True)
def show(
    call: Call,
    number: NumberArgument,
    preview: Annotated[
        bool, typer.Option("--preview/--no-preview", help="Whether to show what it would do.")
    ] = True,
) -> None:
    """Show a merge request: its approvals, what the merge would do, and all that was said."""
    with call.open_graph("r", has_policy=True, doing="comparing") as graph:
        found = graph.merge_request(number)
        if preview and found["state"] == "open":
            found |= _preview(graph, number)
    call.print_result(found, map(show_controls, _lines(found)))


def _preview(graph: Any, number: int) -> Json:
    """What the merge would do, or why that cannot be said: the rest is shown all the same."""
    try:
        return {"preview": graph.preview_merge_request(number)}
    except MergeRequestNotOpen:
        raise
    except OmnigraphError as error:
        return {"preview": None, "preview_error": error.message}


@app.command()
@command("request edit", Capability.ANY, writes=True, uri="option")
def edit(
    call: Call,
    number: NumberArgument,
    title: Annotated[str | None, typer.Option("--title", help="The new title.")] = None,
    into: Annotated[
        str | None, typer.Option("--into", help="Another target; approvals have to come again.")
    ] = None,
    description: DescriptionOption = None,
    reviewers: ReviewersOption = None,
) -> None:
    """Change the title, target, description or reviewers of an open request."""
    call.announce()
    changed = {"title": title, "target": into, "description": description}
    with call.open_graph("rw") as graph:
        done = graph.edit_merge_request(number, {**changed, "reviewers": reviewers})
    call.print_result(done, [_head_line(done)])


@app.command()
@command("request comment", Capability.ANY, writes=True, uri="option")
def comment(
    call: Call,
    number: NumberArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The comment.")],
    type_name: Annotated[
        str | None, typer.Option("--type", help="The type of nodes or edges it is about.")
    ] = None,
    entity_id: Annotated[
        str | None, typer.Option("--id", help="The node or edge it is about.")
    ] = None,
    property_name: Annotated[
        str | None, typer.Option("--property", help="The property it is about.")
    ] = None,
) -> None:
    """Comment on a request, or on a type, a node or edge, or a property of it."""
    place = {"type": type_name, "id": entity_id, "property": property_name}
    _say(call, number, RequestVerb.COMMENT, {"text": text, **place}, "commented on")


@app.command()
@command("request approve", Capability.ANY, writes=True, uri="option")
def approve(
    call: Call, number: NumberArgument, head: HeadOption = None, text: TextOption = None
) -> None:
    """Approve the source as it is now; later commits need a new approval."""
    _say(call, number, RequestVerb.APPROVE, {"head": head, "text": text}, "approved")


@app.command()
@command("request reject", Capability.ANY, writes=True, uri="option")
def reject(call: Call, number: NumberArgument, text: TextOption = None) -> None:
    """Ask for changes; where approvals are required, that holds the merge."""
    _say(call, number, RequestVerb.OBJECT, {"text": text}, "requested changes of")


@app.command()
@command("request withdraw", Capability.ANY, writes=True, uri="option")
def withdraw(call: Call, number: NumberArgument) -> None:
    """Take back what you have approved or objected to."""
    call.announce()
    with call.open_graph("rw") as graph:
        done = graph.withdraw_approval(number)
    call.print_result(done, [f"withdrew the verdict on merge request {number}"])


@app.command()
@command("request close", Capability.ANY, writes=True, uri="option")
def close(call: Call, number: NumberArgument, text: TextOption = None) -> None:
    """Close a request that is not to be merged."""
    _say(call, number, RequestVerb.CLOSE, {"text": text}, "closed")


@app.command()
@command("request reopen", Capability.ANY, writes=True, uri="option")
def reopen(call: Call, number: NumberArgument, text: TextOption = None) -> None:
    """Open a closed request again."""
    _say(call, number, RequestVerb.REOPEN, {"text": text}, "reopened")


@app.command()
@command("request merge", Capability.ANY, writes=True, uri="option")
def merge(
    call: Call,
    number: NumberArgument,
    head: HeadOption = None,
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", help="Delete the source afterwards.")
    ] = False,
    resolve: ResolveOption = None,
) -> None:
    """Merge the source of a request, as one commit or not at all."""
    asked = {"head": head, "resolve": read_resolution(resolve), "delete_branch": delete_branch}
    call.announce()
    try:
        with call.open_graph("rw", doing="merging") as graph:
            done = graph.complete_merge_request(number, asked)
    except MergeConflicts as error:
        print_conflicts(call, error)
        raise typer.Exit(1) from None
    call.print_result(done, [f"merge request {number} is merged", *merge_lines(done)])
    if (reason := done.get("branch_delete_error")) is not None:
        typer.echo(f"warning: {done['source']} is still there: {reason}", err=True)


def _say(call: Call, number: int, verb: RequestVerb, said: Json, word: str) -> None:
    call.announce()
    with call.open_graph("rw") as graph:
        done = graph.say_on_merge_request(number, verb, said)
    call.print_result(done, [f"{word} merge request {number}: {done['title']}"])


def _head_line(found: Json) -> str:
    return f"merge request {found['number']}: {found['title']}"


def _list_lines(found: Json) -> Iterator[str]:
    for each in found["merge_requests"]:
        facts = [f"{each['number']:>4}", each["state"], f"{each['source']} → {each['target']}"]
        yield "  ".join([*facts, each["author"] or "-", each["title"]])
    if (before := found["next_before"]) is not None:
        yield f"there are more: --before {before}"


def _lines(found: Json) -> Iterator[str]:
    yield _head_line(found)
    by = f" by {found['author']}" if found["author"] else ""
    yield f"{found['state']}: {found['source']} → {found['target']}{by}"
    if found["reviewers"]:
        yield f"reviewers: {', '.join(found['reviewers'])}"
    if found["commit_id"]:
        yield f"merged as commit {found['commit_id']}: {found['outcome']}"
    if found["description"]:
        yield from (f"    {line}" for line in found["description"].splitlines())
    if found["review"] is not None:
        yield from _review_lines(found["review"])
    if found.get("preview") is not None:
        yield from _preview_lines(found["preview"])
    if "preview_error" in found:
        yield f"what it would do cannot be said: {found['preview_error']}"
    yield from map(_event_line, found["events"])


def _review_lines(review: Json) -> Iterator[str]:
    for name in ("source", "target"):
        if review[f"{name}_state"] != "present":
            yield f"the {name} was {review[f'{name}_state']}"
    if review["head"]:
        yield f"head: {review['head']}"
    for each in review["verdicts"]:
        verdict = each["verdict"].replace("_", " ")
        notes = ["stale"] if each["is_stale"] else [] if each["counts"] else ["does not count"]
        yield " ".join([verdict, f"by {each['actor'] or '-'}", *(f"({note})" for note in notes)])
    if review["required"]:
        missing = f"approvals: {review['missing']} of {review['required']} missing"
        from_ = f", from {', '.join(review['approvers'])}" if review["approvers"] else ""
        yield missing + (from_ if review["missing"] else "")


def _preview_lines(preview: Json) -> Iterator[str]:
    yield f"merging would be: {tell_outcome(preview)}, {count_changes(preview['changes'])}"
    for conflict in map(parse_conflict, preview["conflicts"]):
        yield f"conflict: {conflict}: {conflict.message}"
    yield from check_lines(preview)


def _event_line(event: Json) -> str:
    at = datetime.fromtimestamp(event["at"] / 1_000_000, UTC)
    facts = event["facts"]
    place = [facts[each] for each in ("type", "id", "property") if facts.get(each)]
    about = f" ({' '.join(place)})" if place else ""
    said = str(facts.get("text") or "").replace("\n", "\n    ")
    text = f": {said}" if said else ""
    kind = event["kind"].replace("_", " ")
    return f"{at:%Y-%m-%d %H:%M}  {event['actor'] or '-'}  {kind}{about}{text}"
