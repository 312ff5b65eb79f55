"""`omnigraph log`, `changes`, `verify`: what happened to a graph, and whether it is whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.address import (
    BranchOption,
    StoreOption,
    UriArgument,
    addressed,
    open_addressed,
)
from omnigraph.cli.output import JsonFlag, print_json
from omnigraph.cli.wire import commit_to_json

if TYPE_CHECKING:
    from omnigraph.graph import Commit


def log(
    uri: UriArgument = None,
    branch: BranchOption = "main",
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many commits.")] = 30,
    store: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Draw the history of a branch, newest first; merges show both of their sides."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        commits = graph.log(branch, limit=limit)
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


def changes(
    uri: UriArgument = None,
    since: Annotated[str, typer.Option("--since", help="The commit to start after.")] = ...,  # type: ignore[assignment]
    branch: BranchOption = "main",
    store: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print what every commit changed after another one, oldest first, a JSON line each."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        feed = [each.to_json() for each in graph.changes(since, branch=branch)]
    if as_json:
        print_json({"commits": feed})
        return
    for each in feed:
        print(json.dumps(each, ensure_ascii=False))


def verify(uri: UriArgument = None, store: StoreOption = None, as_json: JsonFlag = False) -> None:
    """Check that a graph is whole: pins, files, keys, endpoints; exit 1 when it is not."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        report = graph.verify()
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
    if not report.is_clean:
        raise typer.Exit(1)
