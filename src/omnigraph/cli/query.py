"""`omnigraph query`, `alias` and `explain`: read a graph, and see how the read runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from omnigraph.cli.aliases import from_alias
from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json, StoreOptions
from omnigraph.cli.invocation import (
    AliasOption,
    NameOption,
    ParamsFileOption,
    ParamsOption,
    Positionals,
    QueryFileOption,
    QueryInvocation,
    QueryStringOption,
    parse_invocation,
    read_params,
)
from omnigraph.cli.options import ReadEngineOption, SchemaOfOption
from omnigraph.cli.render import COLUMN_WIDTH_MAX, Format, Look, render
from omnigraph.errors import BadRequestError

BranchChoice = Annotated[
    str | None,
    typer.Option("--branch", help="The branch; main unless the alias or project names one."),
]
SnapshotOption = Annotated[
    str | None, typer.Option("--snapshot", help="A graph commit: read the graph as of it.")
]
AtOption = Annotated[
    str | None, typer.Option("--at", help="A time: read the branch as it was then.")
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="How to print the rows; table by default.")
]


@command("query", Capability.ANY, uri="option", pages=True)
def query(
    call: Call,
    positionals: Positionals = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    alias: AliasOption = None,
    name: NameOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchChoice = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    schema_of: SchemaOfOption = None,
    engine: ReadEngineOption = "local",
    format_: FormatOption = None,
) -> None:
    """Run a read query over one snapshot and print its rows."""
    if branch is not None and snapshot is not None:
        raise typer.BadParameter("give --branch or --snapshot, not both")
    chosen_format = choose_format(call, format_)
    invocation = parse_invocation(
        call,
        positionals,
        alias=alias,
        name=name,
        query=query_file,
        query_string=query_string,
        params=params,
        params_file=params_file,
    )
    result = _run(invocation, branch, snapshot, at, schema_of, engine)
    _print_rows(result, invocation, chosen_format)


@command("alias", Capability.LOCAL, pages=True)
def alias(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The alias.")],
    positionals: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="Its arguments, in order.")
    ] = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    format_: FormatOption = None,
) -> None:
    """Run the read query that an alias names."""
    chosen_format = choose_format(call, format_)
    reading = replace(call, verb="query", capability=Capability.ANY)
    given = read_params(params, params_file)
    invocation = from_alias(reading, name, positionals or [], given, operator_first=True)
    _print_rows(_run(invocation), invocation, chosen_format)


@command("explain", Capability.ANY, uri="option", pages=True)
def explain(
    call: Call,
    positionals: Positionals = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchChoice = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Also run the query; show rows and times per stage.")
    ] = False,
    engine: ReadEngineOption = "local",
) -> None:
    """Show the typed form and the plan of a read query."""
    invocation = parse_invocation(
        call,
        positionals,
        query=query_file,
        query_string=query_string,
        params=params,
        params_file=params_file,
    )
    if invocation.query.source is None:
        raise BadRequestError("explain needs the text of a query — give --query or -e")
    call.refuse_served(engine=engine != "local")
    asked = replace(invocation.query, branch=call.branch(branch))
    with call.open_graph("r", StoreOptions(engine=engine), doing="explaining") as graph:
        found = graph.explain(asked, analyze=analyze)
    call.print_result(found, _explanation_lines(found))


def _explanation_lines(found: Json) -> Iterator[str]:
    from omnigraph.executor.explain import Explanation
    from omnigraph.executor.run import Stage

    stages = tuple(Stage(**each) for each in found["stages"])
    yield str(Explanation(**{**found, "stages": stages}))


def choose_format(call: Call, format_: Format | None) -> Format | None:
    """The format of the option; `--json` is another name of one."""
    if call.as_json and format_ is not None:
        raise typer.BadParameter("--json and --format are mutually exclusive")
    return Format.JSON if call.as_json else format_


def _run(
    invocation: QueryInvocation,
    branch: str | None = None,
    snapshot: str | None = None,
    at: str | None = None,
    schema_of: str | None = None,
    engine: str = "local",
) -> Json:
    """Run an ad hoc or stored query."""
    call, query = invocation.call, invocation.query
    call.refuse_served(at=at, engine=engine != "local")
    chosen = None if snapshot is not None else call.branch(branch or query.branch)
    with call.open_graph("r", StoreOptions(at=at, engine=engine), doing="reading") as graph:
        return graph.query(replace(query, branch=chosen, snapshot=snapshot, schema_of=schema_of))


def _print_rows(result: Json, invocation: QueryInvocation, format_: Format | None) -> None:
    if "rows" not in result:
        raise BadRequestError(
            f"'{invocation.query.name}' did not answer with rows — is it a mutation?"
        )
    print_rows(invocation.call, result, format_, invocation.format)


def print_rows(
    call: Call, result: Json, format_: Format | None, default_format: str | None = None
) -> None:
    """Print the rows of a result, in the format that was asked for or else is usual."""
    settings = call.settings
    operator, project = settings.operator.defaults, settings.project.cli
    default = operator.output or project.output_format or Format.TABLE
    look = Look(
        operator.table_max_column_width or project.table_max_column_width or COLUMN_WIDTH_MAX,
        (operator.table_cell_layout or project.table_cell_layout) == "wrap",
    )
    for line in render(result, format_ or Format(default_format or default), look):
        print(line)
