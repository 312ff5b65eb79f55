"""`omnigraph commit`: the history of a graph."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.history import describe_message
from omnigraph.cli.options import (
    AfterOption,
    BranchOption,
    GrepOption,
    KindsOption,
    LogActorOption,
    LogIdOption,
    LogTypeOption,
    OpsOption,
    PatchLimitOption,
    PatchOption,
    SinceOption,
    StatOption,
    TypesOption,
    UntilOption,
)
from omnigraph.cli.output import print_json
from omnigraph.cli.patch_text import log_lines, read_detail
from omnigraph.wire import FeedPart, LogPart

app = make_group("List and show commits.")


@app.command("list")
@command("commit list", Capability.ANY, uri="argument", pages=True)
def list_(
    call: Call,
    branch: BranchOption = None,
    filter_: Annotated[
        str | None,
        typer.Option("--filter", metavar="actor=NAME", help="Only commits by this actor."),
    ] = None,
    type_: LogTypeOption = None,
    id_: LogIdOption = None,
    by: LogActorOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    grep: GrepOption = None,
    after: AfterOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Number of commits; all by default.")
    ] = None,
    patch: PatchOption = False,
    stat: StatOption = False,
    changes: PatchLimitOption = None,
) -> None:
    """List the commits visible on a branch, newest first."""
    detail = read_detail(patch=patch, stat=stat, changes=changes)
    by = by or _parse_filter(filter_)
    asked = LogPart(type_, id_, by, since, until, grep, after, limit, **detail)
    with call.open_graph("r") as graph:
        found = graph.commits(call.branch(branch), asked)
    call.print_result(found, log_lines(found, _describe))


def _describe(commit: Json) -> str:
    by = f" actor={commit['actor_id']}" if commit["actor_id"] else ""
    return (
        f"{commit['graph_commit_id']} branch={commit['manifest_branch'] or 'main'} "
        f"version={commit['manifest_version']}{by}{describe_message(commit)}"
    )


@app.command()
@command("commit show", Capability.ANY, uri="option", pages=True)
def show(
    call: Call,
    commit_id: Annotated[str, typer.Argument(metavar="COMMIT_ID", help="The commit.")],
) -> None:
    """Print one commit."""
    with call.open_graph("r") as graph:
        commit = graph.commit(commit_id)
    lines = (
        f"{name}: {_show(value)}".rstrip()
        for name, value in commit.items()
        if not name.startswith("graph_") or name == "graph_commit_id"
    )
    call.print_result(commit, lines)


def _show(value: Any) -> str:
    """A fact of a commit on one line."""
    if value is None or value == {}:
        return ""
    is_plain = isinstance(value, int) or (isinstance(value, str) and value.isprintable())
    return str(value) if is_plain else json.dumps(value, ensure_ascii=True)


@app.command("changes")
@command("commit changes", Capability.ANY, uri="option", pages=True)
def changes(
    call: Call,
    commit_id: Annotated[str, typer.Argument(metavar="COMMIT_ID", help="The commit.")],
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Number of changes per page.")
    ] = None,
    page_token: Annotated[
        str | None, typer.Option("--page-token", help="Go on after the page that named it.")
    ] = None,
    kinds: KindsOption = None,
    types: TypesOption = None,
    ops: OpsOption = None,
) -> None:
    """Print what one commit changed; with --json a page, otherwise every change as a line."""
    asked = FeedPart(page_token=page_token, limit=limit, kinds=kinds, types=types, ops=ops)
    with call.open_graph("r") as graph:
        page = graph.commit_changes(commit_id, asked)
        if call.as_json:
            print_json(page)
            return
        print_changes(page)
        while (token := page.get("next_page_token")) is not None:
            page = graph.commit_changes(commit_id, replace(asked, page_token=token))
            print_changes(page)


def print_changes(page: Json) -> None:
    for change in page["changes"]:
        print(json.dumps(change, ensure_ascii=False))


def _parse_filter(filter_: str | None) -> str | None:
    if filter_ is None:
        return None
    name, _, actor = filter_.partition("=")
    if name != "actor" or not actor:
        raise typer.BadParameter("the filter has the form actor=NAME", param_hint="--filter")
    return actor
