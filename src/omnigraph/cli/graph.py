"""`omnigraph init`, `load`, `export`, `mutate`, `snapshot`: make, fill and change a graph."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.address import (
    ActorOption,
    BranchOption,
    QuietFlag,
    StoreOption,
    UriArgument,
    addressed,
    announce,
    open_addressed,
)
from omnigraph.cli.output import JsonFlag, print_json, read_text_file, warn_deprecated
from omnigraph.cli.wire import commit_to_json, load_to_json, snapshot_to_json
from omnigraph.errors import BadRequestError, PreconditionFailed
from omnigraph.version import INTERNAL_SCHEMA_VERSION

LOST_PRECONDITION_EXIT = 4

ParamsOption = Annotated[str | None, typer.Option("--params", help="Parameters as JSON.")]
ParamsFileOption = Annotated[
    Path | None, typer.Option("--params-file", help="A file with parameters as JSON.")
]
QueryFileOption = Annotated[Path | None, typer.Option("--query", help="The .gq file.")]
QueryStringOption = Annotated[
    str | None, typer.Option("--query-string", "-e", help="The query itself.")
]
NameArgument = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Which query of the file.")
]


def read_params(params: str | None, params_file: Path | None) -> Any:
    """The parameters of a call: from the one place they were given in, or none."""
    if params is not None and params_file is not None:
        raise typer.BadParameter("--params and --params-file are mutually exclusive")
    text = read_text_file(params_file) if params_file is not None else params
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadRequestError(f"params must be a JSON object: {error}") from None


def read_query(query: Path | None, query_string: str | None) -> tuple[str, str]:
    """The text of a query and the name that errors show for it."""
    if (query is None) == (query_string is None):
        raise typer.BadParameter("give the query with --query <file> or -e <text>")
    if query is not None:
        return read_text_file(query), str(query)
    assert query_string is not None
    return query_string, "-e"


def chosen_name(source: str, source_name: str, name: str | None) -> str | None:
    """The name of the query that runs: the one asked for, or the only one there is."""
    from omnigraph.syntax import parse_query

    queries = parse_query(source, name=source_name).queries
    return queries[0].name if name is None and len(queries) == 1 else name


def init(
    uri: UriArgument = None,
    schema: Annotated[Path, typer.Option("--schema", help="The .pg schema.")] = ...,  # type: ignore[assignment]
    store: StoreOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Create an empty graph with a schema."""
    from omnigraph.catalog import build_catalog
    from omnigraph.graph import init as init_graph
    from omnigraph.syntax import parse_schema

    location = addressed(uri, store)
    source = read_text_file(schema)
    build_catalog(parse_schema(source, name=str(schema)))  # so that errors name the file
    with init_graph(location, schema=source, actor=actor) as graph:
        if as_json:
            print_json({"uri": graph.uri, "commit": commit_to_json(graph.commits()[0])})
        else:
            print(f"initialized {location}")


DataOption = Annotated[
    list[str], typer.Option("--data", help="A file of records, or a glob; may be repeated.")
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="auto, spark, or inline for this process.")
]
OnErrorOption = Annotated[
    str, typer.Option("--on-error", help="reject all, or quarantine the bad records.")
]
EmbedFlag = Annotated[bool, typer.Option("--embed/--no-embed", help="Make missing @embed vectors.")]


def load(
    uri: UriArgument = None,
    data: DataOption = ...,  # type: ignore[assignment]
    mode: Annotated[str, typer.Option("--mode", help="overwrite, append or merge.")] = ...,  # type: ignore[assignment]
    branch: BranchOption = "main",
    base: Annotated[
        str | None, typer.Option("--from", help="Create a missing branch from this one.")
    ] = None,
    engine: EngineOption = "auto",
    on_error: OnErrorOption = "reject",
    embed: EmbedFlag = True,
    store: StoreOption = None,
    actor: ActorOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Load records as one commit, or nothing."""
    location = addressed(uri, store)
    announce("load", location, quiet=quiet)
    with open_addressed(location, mode="rw", actor=actor) as graph:
        result = graph.load(
            [Path(each) for each in data],
            mode=mode,
            branch=branch,
            base=base,
            engine=engine,
            on_error=on_error,
            embed=embed,
            progress=sys.stderr.isatty() and not quiet,
        )
        commit = graph.commit(result.commit_id) if result.commit_id else None
    report = load_to_json(result, location, commit)
    if as_json:
        print_json(report)
        return
    print(
        f"loaded {location} on branch {result.branch} with {result.mode}: "
        f"{report['total_entities']} entities across {report['node_types_loaded']} node types "
        f"and {report['edge_types_loaded']} edge types"
    )
    if result.branch_created:
        print(f"branch {result.branch} created from {result.base_branch}")
    if result.rows_embedded:
        print(f"embedded {result.rows_embedded} vectors")
    if result.rows_rejected:
        print(f"rejected {result.rows_rejected} records")


def ingest(
    uri: UriArgument = None,
    data: DataOption = ...,  # type: ignore[assignment]
    branch: BranchOption = "main",
    base: Annotated[
        str, typer.Option("--from", help="What a missing branch starts from.")
    ] = "main",
    mode: Annotated[str, typer.Option("--mode", help="overwrite, append or merge.")] = "merge",
    store: StoreOption = None,
    actor: ActorOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Load into a branch, which is created when it is missing."""
    warn_deprecated("ingest", "load --from")
    load(uri, data, mode, branch, base, "auto", "reject", True, store, actor, quiet, as_json)


def export(
    uri: UriArgument = None,
    branch: BranchOption = "main",
    snapshot: Annotated[
        str | None, typer.Option("--snapshot", help="A graph commit to export as it left it.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A file; stdout by default.")] = None,
    format_: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
    engine: EngineOption = "auto",
    store: StoreOption = None,
) -> None:
    """Write the records of a snapshot, in the form that `load` reads."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        if out is None:
            if format_ != "jsonl":
                raise BadRequestError(f"{format_} needs --out <file>")
            records = graph.export(branch=branch, commit=snapshot, types=types)
            for record in records:
                print(json.dumps(record, ensure_ascii=False, separators=(",", ":")))
            return
        graph.export(
            out, branch=branch, commit=snapshot, types=types, format=format_, engine=engine
        )
        print(f"exported to {out}", file=sys.stderr)


def mutate(
    name: NameArgument = None,
    query: QueryFileOption = None,
    query_string: QueryStringOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    store: StoreOption = None,
    branch: BranchOption = "main",
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", help="Only while this commit is the head.")
    ] = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a mutation as one commit; exit 4 when --if-commit lost the race."""
    location = addressed(None, store)
    source, source_name = read_query(query, query_string)
    given = read_params(params, params_file)
    chosen = chosen_name(source, source_name, name)
    with open_addressed(location, mode="rw", actor=actor) as graph:
        try:
            result = graph.mutate(
                query or source, chosen, given, branch=branch, if_commit=if_commit
            )
        except PreconditionFailed as failed:
            if as_json:
                failure = {"expected": failed.expected, "actual": failed.actual}
                print_json({"error": str(failed), "precondition_failure": failure})
            typer.echo(f"error: {failed}", err=True)
            raise typer.Exit(LOST_PRECONDITION_EXIT) from None
        commit = graph.commit(result.commit_id) if result.commit_id else None
    if as_json:
        print_json(
            {
                "branch": branch,
                "query_name": chosen,
                "affected_nodes": result.affected_nodes,
                "affected_edges": result.affected_edges,
                "actor_id": actor,
                "commit": commit_to_json(commit) if commit else None,
            }
        )
        return
    print(
        f"changed {branch} via {chosen}: "
        f"{result.affected_nodes} nodes, {result.affected_edges} edges"
    )
    if actor is not None:
        print(f"actor_id: {actor}")


def change(
    name: NameArgument = None,
    query: QueryFileOption = None,
    query_string: QueryStringOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    store: StoreOption = None,
    branch: BranchOption = "main",
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """The old name of `mutate`."""
    warn_deprecated("change", "mutate")
    mutate(name, query, query_string, params, params_file, store, branch, None, actor, as_json)


def snapshot(
    uri: UriArgument = None,
    branch: BranchOption = "main",
    store: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print which version of each table a branch shows."""
    with open_addressed(addressed(uri, store), mode="r") as graph:
        shown = graph.snapshot(branch)
    if as_json:
        print_json(snapshot_to_json(shown, INTERNAL_SCHEMA_VERSION))
        return
    print(f"branch: {shown.branch}\nmanifest_version: {shown.manifest_version}")
    for key in sorted(shown.entries):
        entry = shown.entries[key]
        print(
            f"{key} v{entry.version} branch={entry.table_branch or 'main'} rows={entry.row_count}"
        )
