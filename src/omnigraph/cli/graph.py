"""`omnigraph init`, `load`, `mutate`, `snapshot`: create, fill and change a graph."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json, LoadFiles, StoreOptions
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
)
from omnigraph.cli.load_preview import preview_lines
from omnigraph.cli.options import BranchOption, EngineOption, MessageOption, MetaOption, parse_note
from omnigraph.cli.output import print_error, print_json, warn_deprecated
from omnigraph.cli.render import render_table
from omnigraph.cli.schema import read_valid_text
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, PreconditionFailed
from omnigraph.wire import commit_to_json

PRECONDITION_FAILED_EXIT = 4


@command("init", Capability.DIRECT, writes=True, uri="argument")
def init(
    call: Call,
    schema: Annotated[Path, typer.Option("--schema", help="The .pg schema.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files of an init that was interrupted.")
    ] = False,
) -> None:
    """Create an empty graph with a schema."""
    from omnigraph.graph import init as init_graph

    location = call.target
    source = read_valid_text(schema)
    if force:
        _remove_leftovers(location)
    with init_graph(location, schema=source, actor=call.actor) as graph:
        value = {"uri": graph.uri, "commit": commit_to_json(graph.commits()[0])}
    call.print_result(value, [f"initialized {location}"])


def _remove_leftovers(uri: str) -> None:
    """Remove the schema files of an interrupted `init`, unless there is a graph."""
    from omnigraph.graph.store import open_store
    from omnigraph.manifest.contract import FILES

    store = open_store(uri, None, "power")
    if store.manifest.exists():
        return  # `init` reports that a graph exists
    for name in FILES:
        if store.texts.exists(name):
            store.texts.delete(name)


DataOption = Annotated[
    list[str],
    typer.Option("--data", help="A file, a directory or a glob; may be repeated."),
]
LoadDataOption = Annotated[
    list[str] | None,
    typer.Option("--data", help="A file, a directory, a glob, or - for stdin; may be repeated."),
]
FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILES]...", help="Files to load, in place of --data."),
]
MappingOption = Annotated[
    str | None,
    typer.Option("--mapping", help="A YAML file that maps files to types, columns to properties."),
]
TypeOption = Annotated[
    list[str] | None,
    typer.Option("--type", help="The type of the rows: once for all files, or once for each."),
]
ModeOption = typer.Option("--mode", help="overwrite, append or merge.")
OnErrorOption = Annotated[
    str, typer.Option("--on-error", help="reject the load, or quarantine bad records.")
]
DryRunFlag = Annotated[
    bool, typer.Option("--dry-run", help="Check everything, show what would change, write nothing.")
]
EmbedFlag = Annotated[
    bool, typer.Option("--embed/--no-embed", help="Compute missing @embed vectors.")
]


@command("load", Capability.ANY, writes=True, removes=True, uri="argument")
def load(
    call: Call,
    mode: Annotated[str, ModeOption],
    paths: FilesArgument = None,
    data: LoadDataOption = None,
    mapping: MappingOption = None,
    types: TypeOption = None,
    branch: BranchOption = None,
    base: Annotated[
        str | None, typer.Option("--from", help="Create a missing branch from this one.")
    ] = None,
    engine: EngineOption = "auto",
    on_error: OnErrorOption = "reject",
    embed: EmbedFlag = True,
    dry_run: DryRunFlag = False,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Load records as one commit, or load nothing."""
    call.refuse_served(engine=engine != "auto", on_error=on_error != "reject")
    options = StoreOptions(engine=engine, on_error=on_error)
    call, data = _list_files(call, paths or [], data or [])
    if not data and mapping is None:
        raise BadRequestError(_describe_nothing(call.flags.address.uri))
    with _spool_stdin(data) as files:
        note = parse_note(message, meta)
        given = _LoadInput(_pair_types(files, types), mapping, dry_run, note)
        _load(call, given, mode, branch, base, options, embed=embed)


@command("ingest", Capability.ANY, writes=True, removes=True, uri="argument")
def ingest(
    call: Call,
    data: DataOption,
    branch: BranchOption = None,
    base: Annotated[
        str, typer.Option("--from", help="The branch that a missing branch starts from.")
    ] = "main",
    mode: Annotated[str, ModeOption] = "merge",
) -> None:
    """Load into a branch, which is created if it is missing."""
    warn_deprecated("ingest", "load --from")
    _load(call, _LoadInput(data), mode, branch, base)


@contextmanager
def _spool_stdin(data: list[str]) -> Iterator[list[str]]:
    """The files with one in place of `-`: a load reads its input more than once."""
    if "-" not in data:
        yield data
        return
    from omnigraph.pipeline.spooled import SpooledFiles

    spooled = SpooledFiles.make()
    try:
        with spooled.create("stdin") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [file.name if each == "-" else each for each in data]
    finally:
        spooled.remove()


def _list_files(call: Call, paths: list[str], data: list[str]) -> tuple[Call, list[str]]:
    """The files of a load, and the call without those: a flag can name the graph instead."""
    first = call.flags.uri
    elsewhere = replace(call.flags, uri=None)
    if first is not None and elsewhere.is_addressed:
        call, paths = replace(call, flags=elsewhere), [first, *paths]
    if paths and data:
        raise BadRequestError(
            f"files stand as arguments ({', '.join(paths)}) and with --data — give all of them "
            "one way; nothing was written"
        )
    return call, paths or data


def _describe_nothing(uri: str | None) -> str:
    """What is missing; a file in the place of the graph was most likely to be loaded."""
    if uri is None or not Path(uri).is_file():
        return "nothing to load — name files, or give --mapping"
    return (
        f"nothing to load: '{uri}' stands where the graph is named — write "
        f"`omnigraph load GRAPH {uri}`"
    )


def _pair_types(data: list[str], types: list[str] | None) -> LoadFiles:
    """The files by type, when types are given."""
    if not types:
        return data
    if len(types) not in (1, len(data)):
        raise BadRequestError(
            f"{len(types)} times --type for {len(data)} files — give one type for all files, or "
            "one for each"
        )
    by_type: dict[str, list[str]] = {}
    for index, path in enumerate(data):
        by_type.setdefault(types[index % len(types)], []).append(path)
    return by_type


@dataclass(frozen=True, slots=True)
class _LoadInput:
    """What to load, whether only to look at it, and what to note on the commit."""

    files: LoadFiles
    mapping: str | None = None
    is_preview: bool = False
    note: CommitNote = NO_NOTE


def _load(
    call: Call,
    given: _LoadInput,
    mode: str,
    branch: str | None,
    base: str | None,
    options: StoreOptions = StoreOptions(),
    *,
    embed: bool = True,
) -> None:
    call.announce()
    if mode == "overwrite" and not given.is_preview:
        call.consent("replace what is there")
    # A load in a store draws a progress bar of its own.
    doing = "loading" if call.is_served else None
    with call.open_graph("rw", options, doing=doing) as graph:
        report = graph.load(
            given.files,
            mode=mode,
            branch=call.branch(branch),
            base=base,
            embed=embed,
            mapping=given.mapping,
            dry_run=given.is_preview,
            note=given.note,
        )
    for note in [] if call.flags.quiet else report.get("notes", []):
        print(f"note: {note}", file=sys.stderr)
    call.print_result(report, (preview_lines if given.is_preview else _load_lines)(report))
    if given.is_preview and report["problems"]:
        raise typer.Exit(1)


def _load_lines(report: Json) -> Iterator[str]:
    yield (
        f"loaded {report['uri']} on branch {report['branch']} with {report['mode']}: "
        f"{report['total_entities']} entities across {report['node_types_loaded']} node types "
        f"and {report['edge_types_loaded']} edge types"
    )
    if report["commit"] is None:
        yield "nothing changed: no commit"
    if report["branch_created"]:
        yield f"branch {report['branch']} created from {report['base_branch']}"
    if report.get("rows_embedded"):
        yield f"embedded {report['rows_embedded']} vectors"
    if report.get("rows_unembedded"):
        yield f"left {report['rows_unembedded']} vectors empty"
    if report.get("rows_rejected"):
        yield f"rejected {report['rows_rejected']} records, kept in {report['quarantine']}"


@command("mutate", Capability.ANY, writes=True, uri="option")
def mutate(
    call: Call,
    positionals: Positionals = None,
    query_file: QueryFileOption = None,
    query_string: QueryStringOption = None,
    alias: AliasOption = None,
    name: NameOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", help="Only if this commit is still the head.")
    ] = None,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Run a mutation as one commit; exit 4 if --if-commit is no longer the head."""
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
    try:
        report = _run(invocation, branch, if_commit, parse_note(message, meta))
    except PreconditionFailed as error:
        if call.as_json:
            failure = {"expected": error.expected, "actual": error.actual}
            print_json({"error": str(error), "precondition_failure": failure})
        print_error(str(error))
        raise typer.Exit(PRECONDITION_FAILED_EXIT) from None
    call.print_result(report, _change_lines(report))


def _run(
    invocation: QueryInvocation, branch: str | None, if_commit: str | None, note: CommitNote
) -> Json:
    """Run an ad hoc or stored mutation."""
    call = invocation.call
    chosen = call.branch(branch or invocation.query.branch)
    query = replace(invocation.query, name=invocation.resolve_name(), branch=chosen)
    with call.open_graph("rw", doing="changing") as graph:
        if query.source is None:
            call.refuse_served(if_commit=if_commit)
        return graph.mutate(query, if_commit=if_commit, note=note)


def _change_lines(report: Json) -> Iterator[str]:
    yield (
        f"changed {report['branch']} via {report['query_name']}: "
        f"{report['affected_nodes']} nodes, {report['affected_edges']} edges"
    )
    if report.get("actor_id") is not None:
        yield f"actor_id: {report['actor_id']}"
    if "columns" in report:
        yield from render_table(report["columns"], report["rows"])


@command("snapshot", Capability.ANY, uri="argument")
def snapshot(call: Call, branch: BranchOption = None) -> None:
    """Print the version of each table on a branch."""
    with call.open_graph("r") as graph:
        found = graph.snapshot(call.branch(branch))
    call.print_result(found, _snapshot_lines(found))


def _snapshot_lines(found: Json) -> Iterator[str]:
    yield f"branch: {found['branch']}\nmanifest_version: {found['manifest_version']}"
    for table in found["tables"]:
        yield (
            f"{table['table_key']} v{table['table_version']} "
            f"branch={table['table_branch'] or 'main'} rows={table['row_count']}"
        )
