"""`omnigraph init`, `load`, `mutate`, `snapshot`: make, fill and change a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.aliases import of_alias
from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import StoreOptions
from omnigraph.cli.options import BranchOption, EngineOption
from omnigraph.cli.output import JsonFlag, print_json, read_text_file, warn_deprecated
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
from omnigraph.errors import PreconditionFailed
from omnigraph.wire import commit_to_json

LOST_PRECONDITION_EXIT = 4


@command("init", Capability.DIRECT, writes=True, uri="argument")
def init(
    call: Call,
    schema: Annotated[Path, typer.Option("--schema", help="The .pg schema.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an init that died has left.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create an empty graph with a schema."""
    from omnigraph.catalog import build_catalog
    from omnigraph.graph import init as init_graph
    from omnigraph.syntax import parse_schema

    location = call.target
    source = read_text_file(schema)
    build_catalog(parse_schema(source, name=str(schema)))  # so that errors name the file
    if force:
        from omnigraph.cli.leftovers import remove_leftovers

        remove_leftovers(location)
    with init_graph(location, schema=source, actor=call.actor) as graph:
        if as_json:
            print_json({"uri": graph.uri, "commit": commit_to_json(graph.commits()[0])})
        else:
            print(f"initialized {location}")


DataOption = Annotated[
    list[str], typer.Option("--data", help="A file of records, or a glob; may be repeated.")
]
OnErrorOption = Annotated[
    str, typer.Option("--on-error", help="reject all, or quarantine the bad records.")
]
EmbedFlag = Annotated[bool, typer.Option("--embed/--no-embed", help="Make missing @embed vectors.")]


@command("load", Capability.ANY, writes=True, removes=True, uri="argument")
def load(
    call: Call,
    data: DataOption,
    mode: Annotated[str, typer.Option("--mode", help="overwrite, append or merge.")],
    branch: BranchOption = None,
    base: Annotated[
        str | None, typer.Option("--from", help="Create a missing branch from this one.")
    ] = None,
    engine: EngineOption = "auto",
    on_error: OnErrorOption = "reject",
    embed: EmbedFlag = True,
    as_json: JsonFlag = False,
) -> None:
    """Load records as one commit, or nothing."""
    call.refuse_served(engine=engine != "auto", on_error=on_error != "reject")
    report = _loaded(call, data, mode, branch, base, engine, on_error, embed, as_json)
    if as_json:
        print_json(report)
    else:
        _print_load(report)


@command("ingest", Capability.ANY, writes=True, removes=True, uri="argument")
def ingest(
    call: Call,
    data: DataOption,
    branch: BranchOption = None,
    base: Annotated[
        str, typer.Option("--from", help="What a missing branch starts from.")
    ] = "main",
    mode: Annotated[str, typer.Option("--mode", help="overwrite, append or merge.")] = "merge",
    as_json: JsonFlag = False,
) -> None:
    """Load into a branch, which is created when it is missing."""
    warn_deprecated("ingest", "load --from")
    report = _loaded(call, data, mode, branch, base, "auto", "reject", True, as_json)
    if as_json:
        print_json(report)
    else:
        _print_load(report)


def _loaded(
    call: Call,
    data: list[str],
    mode: str,
    branch: str | None,
    base: str | None,
    engine: str,
    on_error: str,
    embed: bool,
    as_json: bool,
) -> dict[str, Any]:
    call.announce()
    if mode == "overwrite":
        call.consent("replace what is there", as_json=as_json)
    # A load in a store draws a progress bar of its own.
    quiet = call.flags.quiet or not call.is_served
    options = StoreOptions(engine=engine, on_error=on_error)
    with call.open_graph("rw", options) as graph, working("loading", quiet=quiet):
        return graph.load(data, mode=mode, branch=call.branch(branch), base=base, embed=embed)


def _print_load(report: dict[str, Any]) -> None:
    print(
        f"loaded {report['uri']} on branch {report['branch']} with {report['mode']}: "
        f"{report['total_entities']} entities across {report['node_types_loaded']} node types "
        f"and {report['edge_types_loaded']} edge types"
    )
    if report["branch_created"]:
        print(f"branch {report['branch']} created from {report['base_branch']}")
    if report.get("rows_embedded"):
        print(f"embedded {report['rows_embedded']} vectors")
    if report.get("rows_rejected"):
        print(f"rejected {report['rows_rejected']} records, kept in {report['quarantine']}")


@command("mutate", Capability.ANY, writes=True, uri="option")
def mutate(
    call: Call,
    words: Words = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    alias: AliasOption = None,
    name: NameOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", help="Only while this commit is the head.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a mutation as one commit; exit 4 when --if-commit lost the race."""
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
    try:
        report = _changed(asked, branch, if_commit)
    except PreconditionFailed as failed:
        if as_json:
            failure = {"expected": failed.expected, "actual": failed.actual}
            print_json({"error": str(failed), "precondition_failure": failure})
        typer.echo(f"error: {failed}", err=True)
        raise typer.Exit(LOST_PRECONDITION_EXIT) from None
    if as_json:
        print_json(report)
    else:
        _print_change(report)


def _changed(asked: Asked, branch: str | None, if_commit: str | None) -> dict[str, Any]:
    """The answer of a mutation: ad hoc or stored, in storage or served."""
    call, named = asked.call, asked.call.branch(branch or asked.branch)
    chosen = asked.chosen_name()
    with call.open_graph("rw") as graph, working("changing", quiet=call.flags.quiet):
        if asked.source is None:
            call.refuse_served(if_commit=if_commit)
            assert asked.name is not None
            return graph.invoke(asked.name, asked.params, branch=named, is_mutation=True)
        return graph.mutate(
            asked.source.text,
            chosen,
            asked.params,
            path=asked.source.path,
            branch=named,
            if_commit=if_commit,
        )


def _print_change(report: dict[str, Any]) -> None:
    print(
        f"changed {report['branch']} via {report['query_name']}: "
        f"{report['affected_nodes']} nodes, {report['affected_edges']} edges"
    )
    if report.get("actor_id") is not None:
        print(f"actor_id: {report['actor_id']}")


@command("snapshot", Capability.ANY, uri="argument")
def snapshot(call: Call, branch: BranchOption = None, as_json: JsonFlag = False) -> None:
    """Print which version of each table a branch shows."""
    with call.open_graph("r") as graph:
        shown = graph.snapshot(call.branch(branch))
    if as_json:
        print_json(shown)
        return
    print(f"branch: {shown['branch']}\nmanifest_version: {shown['manifest_version']}")
    for table in shown["tables"]:
        print(
            f"{table['table_key']} v{table['table_version']} "
            f"branch={table['table_branch'] or 'main'} rows={table['row_count']}"
        )
