"""`omnigraph log`, `changes`, `verify`: what happened to a graph, and whether it is whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.options import BranchOption
from omnigraph.cli.output import JsonFlag, print_json
from omnigraph.cli.progress import working
from omnigraph.wire import commit_to_json

if TYPE_CHECKING:
    from omnigraph.graph import Commit
    from omnigraph.upkeep.findings import Verification


@command("log", Capability.DIRECT, uri="argument")
def log(
    call: Call,
    branch: BranchOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many commits.")] = 30,
    as_json: JsonFlag = False,
) -> None:
    """Draw the history of a branch, newest first; merges show both of their sides."""
    with call.open_store("r") as graph:
        commits = graph.log(call.branch(branch), limit=limit)
    if as_json:
        print_json({"commits": [commit_to_json(commit) for commit in commits]})
        return
    for line in draw(commits):
        print(line)


def draw(commits: list[Commit]) -> list[str]:
    """One line a commit, with a lane for every line of history that is open there."""
    lines: list[str] = []
    lanes: list[str] = []
    for commit in commits:
        if commit.commit_id not in lanes:
            lanes.append(commit.commit_id)
        place = lanes.index(commit.commit_id)
        marks = " ".join("*" if at == place else "|" for at in range(len(lanes)))
        lines.append(f"{marks} {_described(commit)}")
        parents = [each for each in (commit.parent_id, commit.merged_parent_id) if each]
        following = lanes[:place] + parents + lanes[place + 1 :]
        lanes = list(dict.fromkeys(following))
    return lines


def _described(commit: Commit) -> str:
    when = datetime.fromtimestamp(commit.created_at / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    by = f" by {commit.actor}" if commit.actor else ""
    merged = " (merge)" if commit.merged_parent_id is not None else ""
    return f"{commit.commit_id} {when} {commit.branch} v{commit.manifest_version}{by}{merged}"


@command("changes", Capability.DIRECT, uri="argument")
def changes(
    call: Call,
    since: Annotated[str, typer.Option("--since", help="The commit to start after.")],
    branch: BranchOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print what every commit changed after another one, oldest first, a JSON line each."""
    with call.open_store("r") as graph, working("comparing", quiet=call.flags.quiet):
        feed = [each.to_json() for each in graph.changes(since, branch=call.branch(branch))]
    if as_json:
        print_json({"commits": feed})
        return
    for each in feed:
        print(json.dumps(each, ensure_ascii=False))


@command("verify", Capability.DIRECT, uri="argument")
def verify(
    call: Call,
    content: Annotated[
        bool, typer.Option("--content", help="Read every file and compare it with its checksum.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Give files without a checksum one, as they are now.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check that a graph is whole: pins, files, keys, endpoints; exit 1 when it is not."""
    with working("verifying", quiet=call.flags.quiet):
        report = _verification(call, content=content, record=record)
    if as_json:
        print_json(report.to_json())
    else:
        for finding in report.findings:
            print(finding)
        state = "whole" if report.is_clean else "damaged"
        print(
            f"{state}: {report.tables_checked} tables, {report.rows_checked} rows on "
            f"{report.branches_checked} branches checked"
        )
        if content:
            print(f"{report.files_checked} files, {report.bytes_compared} bytes compared")
    if not report.is_clean:
        raise typer.Exit(1)


def _verification(call: Call, *, content: bool, record: bool) -> Verification:
    """A graph too damaged to open is verified all the same; recording needs an open one."""
    if record:
        with call.open_store("rw") as graph:
            return graph.verify(content, record=True)
    from omnigraph.graph import verify_at

    return verify_at(call.store_scope.uri, content=content)
