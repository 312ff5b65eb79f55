"""`omnigraph query`, `alias` and `explain`: read a graph, and see how it was read."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from omnigraph.cli.aliases import of_alias
from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import StoreOptions
from omnigraph.cli.options import SchemaOfOption
from omnigraph.cli.output import JsonFlag, print_json
from omnigraph.cli.progress import working
from omnigraph.cli.query_call import (
    AliasOption,
    Asked,
    NameOption,
    ParamsFileOption,
    ParamsOption,
    QueryFileOption,
    QueryStringOption,
    Words,
    read_asked,
    read_params,
)
from omnigraph.cli.render import Format, Look, render
from omnigraph.config.scope import Settings
from omnigraph.errors import BadRequestError

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


@command("query", Capability.ANY, uri="option")
def query(
    call: Call,
    words: Words = None,
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
    format_: FormatOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a read over one snapshot and print its rows."""
    if branch is not None and snapshot is not None:
        raise typer.BadParameter("give --branch or --snapshot, not both")
    _refuse_two_formats(format_, as_json)
    if alias is not None:
        if query_file is not None or query_string is not None or name is not None:
            raise typer.BadParameter("--alias has its query already; leave the other one out")
        asked = of_alias(call, alias, words or [], read_params(params, params_file))
    else:
        asked = read_asked(
            call,
            words,
            name=name,
            query=query_file,
            query_string=query_string,
            params=params,
            params_file=params_file,
        )
    envelope = _read(asked, branch, snapshot, at, schema_of)
    _print_rows(envelope, asked, Format.JSON if as_json else format_)


@command("alias", Capability.LOCAL)
def alias(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The alias.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="Its arguments, in order.")
    ] = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    format_: FormatOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run the read that an alias stands for."""
    _refuse_two_formats(format_, as_json)
    reading = Call("query", Capability.ANY, False, call.flags)
    given = read_params(params, params_file)
    asked = of_alias(reading, name, words or [], given, operator_first=True)
    _print_rows(_read(asked, None, None, None), asked, Format.JSON if as_json else format_)


@command("explain", Capability.DIRECT, uri="option")
def explain(
    call: Call,
    words: Words = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchChoice = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it too, and show what that did.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show how a read would run: its typed form and its plan."""
    asked = read_asked(
        call,
        words,
        query=query_file,
        query_string=query_string,
        params=params,
        params_file=params_file,
    )
    assert asked.source is not None  # a direct graph has no others
    with call.open_store("r") as graph:
        explained = graph.explain(
            asked.source.path or asked.source.text,
            asked.name,
            asked.params,
            branch=call.branch(branch),
            analyze=analyze,
        )
    if as_json:
        stages = [
            {"text": stage.text, "rows": stage.rows, "elapsed_ms": stage.elapsed_ms}
            for stage in explained.stages
        ]
        print_json({"ir": explained.ir, "plan": explained.plan, "stages": stages})
    else:
        print(explained)


def _refuse_two_formats(format_: Format | None, as_json: bool) -> None:
    if as_json and format_ is not None:
        raise typer.BadParameter("--json and --format are mutually exclusive")


def _read(
    asked: Asked,
    branch: str | None,
    snapshot: str | None,
    at: str | None,
    schema_of: str | None = None,
) -> dict[str, Any]:
    """The answer of a read: ad hoc or stored, in storage or served."""
    call = asked.call
    call.refuse_served(at=at)
    named = None if snapshot is not None else call.branch(branch or asked.branch)
    options = StoreOptions(at=at)
    with call.open_graph("r", options) as graph, working("reading", quiet=call.flags.quiet):
        if asked.source is None:
            assert asked.name is not None
            return graph.invoke(
                asked.name,
                asked.params,
                branch=named,
                snapshot=snapshot,
                schema_of=schema_of,
                is_mutation=False,
            )
        return graph.query(
            asked.source.text,
            asked.name,
            asked.params,
            path=asked.source.path,
            branch=named,
            snapshot=snapshot,
            schema_of=schema_of,
        )


def _print_rows(envelope: dict[str, Any], asked: Asked, format_: Format | None) -> None:
    if "rows" not in envelope:
        raise BadRequestError(f"'{asked.name}' did not answer with rows — is it a mutation?")
    settings = asked.call.settings
    chosen = format_ or Format(asked.format or _configured_format(settings))
    for line in render(envelope, chosen, _look(settings)):
        print(line)


def _configured_format(settings: Settings) -> str:
    return settings.operator.defaults.output or settings.project.cli.output_format or Format.TABLE


def _look(settings: Settings) -> Look:
    """How tables look: as the operator wants, then as the project does."""
    mine, ours = settings.operator.defaults, settings.project.cli
    default = Look()
    return Look(
        mine.table_max_column_width or ours.table_max_column_width or default.column_width_max,
        (mine.table_cell_layout or ours.table_cell_layout) == "wrap",
    )
