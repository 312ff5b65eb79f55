"""`omnigraph query` and `explain`: read a graph, and see how it was read."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.address import BranchOption, StoreOption, addressed, open_addressed
from omnigraph.cli.graph import (
    NameArgument,
    ParamsFileOption,
    ParamsOption,
    QueryFileOption,
    QueryStringOption,
    read_params,
    read_query,
)
from omnigraph.cli.output import JsonFlag, print_json, warn_deprecated
from omnigraph.cli.render import Format, render

BranchChoice = Annotated[
    str | None, typer.Option("--branch", help="The branch; main when nothing else is named.")
]
SnapshotOption = Annotated[
    str | None, typer.Option("--snapshot", help="A graph commit: read the graph as it left it.")
]
AtOption = Annotated[
    str | None, typer.Option("--at", help="A time: read the branch as it was then.")
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="How to print the rows; table by default.")
]


def query(
    name: NameArgument = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    store: StoreOption = None,
    branch: BranchChoice = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    format_: FormatOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a read over one snapshot and print its rows."""
    if branch is not None and snapshot is not None:
        raise typer.BadParameter("give --branch or --snapshot, not both")
    if as_json and format_ is not None:
        raise typer.BadParameter("--json and --format are mutually exclusive")
    location = addressed(None, store)
    source, _ = read_query(query_file, query_string)
    given = read_params(params, params_file)
    with open_addressed(location, mode="r") as graph:
        result = graph.query(
            query_file or source, name, given, branch=branch or "main", commit=snapshot, at=at
        )
    target = {"branch": None if snapshot else result.branch, "snapshot": snapshot}
    for line in render(result, target, Format.JSON if as_json else format_ or Format.TABLE):
        print(line)


def read(
    name: NameArgument = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    store: StoreOption = None,
    branch: BranchChoice = None,
    snapshot: SnapshotOption = None,
    format_: FormatOption = None,
    as_json: JsonFlag = False,
) -> None:
    """The old name of `query`."""
    warn_deprecated("read", "query")
    query(
        name,
        query_file,
        query_string,
        params,
        params_file,
        store,
        branch,
        snapshot,
        None,
        format_,
        as_json,
    )


def explain(
    name: NameArgument = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    store: StoreOption = None,
    branch: BranchOption = "main",
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it too, and show what that did.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show how a read would run: its typed form and its plan."""
    location = addressed(None, store)
    source, _ = read_query(query_file, query_string)
    given = read_params(params, params_file)
    with open_addressed(location, mode="r") as graph:
        explained = graph.explain(query_file or source, name, given, branch=branch, analyze=analyze)
    if as_json:
        stages = [
            {"text": stage.text, "rows": stage.rows, "elapsed_ms": stage.elapsed_ms}
            for stage in explained.stages
        ]
        print_json({"ir": explained.ir, "plan": explained.plan, "stages": stages})
    else:
        print(explained)
