"""`omnigraph log`, `verify`: the history of a graph, and whether it is intact."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.options import (
    AfterOption,
    BranchOption,
    GrepOption,
    LogActorOption,
    LogIdOption,
    LogTypeOption,
    PatchLimitOption,
    PatchOption,
    SinceOption,
    StatOption,
    UntilOption,
)
from omnigraph.cli.patch_text import is_filtered, log_lines, read_detail
from omnigraph.cli.progress import show_spinner
from omnigraph.wire import LogPart

MESSAGE_CHARACTERS = 72


@command("log", Capability.ANY, uri="argument", pages=True)
def log(
    call: Call,
    branch: BranchOption = None,
    type_: LogTypeOption = None,
    id_: LogIdOption = None,
    by: LogActorOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    grep: GrepOption = None,
    after: AfterOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Number of commits.")] = 30,
    patch: PatchOption = False,
    stat: StatOption = False,
    changes: PatchLimitOption = None,
) -> None:
    """Draw the history of a branch, newest first; merges show both parents."""
    detail = read_detail(patch=patch, stat=stat, changes=changes)
    asked = LogPart(type_, id_, by, since, until, grep, after, limit, **detail)
    with call.open_graph("r") as graph:
        found = graph.log(call.branch(branch), asked)
    if is_filtered(asked) or asked.detail is not None:
        call.print_result(found, log_lines(found, _describe))
    else:
        call.print_result(found, draw(found["commits"]))


def draw(commits: list[Json]) -> Iterator[str]:
    """Draw one line per commit, with a column for every line of history open at that point."""
    columns: list[str] = []
    for commit in commits:
        commit_id = commit["graph_commit_id"]
        if commit_id not in columns:
            columns.append(commit_id)
        position = columns.index(commit_id)
        marks = " ".join("*" if at == position else "|" for at in range(len(columns)))
        yield f"{marks} {_describe(commit)}"
        links = commit["parent_commit_id"], commit["merged_parent_commit_id"]
        parents = [each for each in links if each]
        columns = list(dict.fromkeys(columns[:position] + parents + columns[position + 1 :]))


def _describe(commit: Json) -> str:
    when, branch = describe_time(commit["created_at"]), commit["manifest_branch"] or "main"
    by = f" by {commit['actor_id']}" if commit["actor_id"] else ""
    merged = " (merge)" if commit["merged_parent_commit_id"] is not None else ""
    facts = f"{commit['graph_commit_id']} {when} {branch} v{commit['manifest_version']}{by}{merged}"
    return facts + describe_message(commit)


def describe_message(commit: Json) -> str:
    """The first line of a commit's message, behind a colon; nothing when it has none."""
    message = commit.get("message")
    if not message:
        return ""
    first, *more = message.strip().splitlines()
    # The writer of a message must not control the terminal of its reader.
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in first)
    is_cut = more or len(shown) > MESSAGE_CHARACTERS
    return f": {shown[:MESSAGE_CHARACTERS].rstrip()}{'…' if is_cut else ''}"


def describe_time(created_at: int) -> str:
    """When a commit was made, to the second, UTC."""
    return datetime.fromtimestamp(created_at / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


@command("verify", Capability.ANY, uri="argument")
def verify(
    call: Call,
    content: Annotated[
        bool, typer.Option("--content", help="Read every file and compare it with its checksum.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Record checksums for files that have none.")
    ] = False,
) -> None:
    """Check that a graph is intact: pins, files, keys, endpoints; exit 1 when it is not."""
    with show_spinner("verifying", is_shown=call.shows_progress):
        report = _verify(call, content=content, record=record)
    call.print_result(report, _report_lines(report, content=content))
    if not report["clean"]:
        raise typer.Exit(1)


def _report_lines(report: Json, *, content: bool) -> Iterator[str]:
    yield from map(_describe_finding, report["findings"])
    yield (
        f"{'whole' if report['clean'] else 'damaged'}: {report['tables_checked']} tables, "
        f"{report['rows_checked']} rows on {report['branches_checked']} branches checked"
    )
    if content:
        yield f"{report['files_checked']} files, {report['bytes_compared']} bytes compared"


def _describe_finding(each: Json) -> str:
    where = f" on branch '{each['branch']}'" if each["branch"] is not None else ""
    return f"{each['severity']}: {each['subject']}{where}: {each['message']} — {each['fix']}"


def _verify(call: Call, *, content: bool, record: bool) -> Json:
    """Verify a graph even if it is too damaged to open; only recording needs an open one."""
    if record or call.is_served:
        with call.open_graph("rw" if record else "r") as graph:
            return graph.run_upkeep("verify", {"content": content, "record": record})
    from omnigraph.graph.verify_at import verify_at

    return verify_at(call.store_scope.uri, content=content).to_json()
