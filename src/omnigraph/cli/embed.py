"""`omnigraph embed`: compute the vectors of a graph, or of a file of records without a graph."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.embed_files import (
    EmbedMode,
    EmbedRequest,
    EmbedSpec,
    embed_file,
    parse_selector,
    read_spec,
)
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import StoreOptions
from omnigraph.cli.options import BranchOption, EngineOption, MessageOption, MetaOption, parse_note
from omnigraph.cli.output import read_text_file
from omnigraph.cli.progress import track
from omnigraph.commit_note import CommitNote
from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.embed import Embedder

_SEED_OUTPUT = "./build/seed.embedded.jsonl"


_FILES = "--seed, --input, --output, --spec, --clean and --select"


@command("embed", Capability.ANY, writes=True, uri="argument")
def embed(
    call: Call,
    branch: BranchOption = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    reembed_all: Annotated[
        bool, typer.Option("--reembed-all", "--all", help="Compute every vector again.")
    ] = False,
    engine: EngineOption = "auto",
    seed: Annotated[
        Path | None,
        typer.Option("--seed", help="For a file: a manifest that names input, output and spec."),
    ] = None,
    input_: Annotated[Path | None, typer.Option("--input", help="The file of records.")] = None,
    output: Annotated[Path | None, typer.Option("--output", help="The file to write.")] = None,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", help="A JSON file: the dimension, and the fields per type."),
    ] = None,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the vectors of the file.")] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select", metavar="[Type:]field=value", help="Only matching records; repeatable."
        ),
    ] = None,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Compute the missing vectors of a graph, or of a file of records without a graph."""
    is_file = any(each is not None for each in (seed, input_, output, spec))
    if not is_file and (clean or select):
        raise typer.BadParameter(
            f"{_FILES} are for files; give --seed, or --input, --output, --spec"
        )
    if not is_file:
        note = parse_note(message, meta)
        _embed_graph(call, call.branch(branch), types, engine, note, reembed_all=reembed_all)
        return
    is_about_graph = call.flags.is_addressed or branch is not None or engine != "auto"
    if is_about_graph or message is not None or meta:
        raise typer.BadParameter(f"{_FILES} are for files: leave out the graph, or leave out these")
    if reembed_all and clean:
        raise typer.BadParameter("--reembed-all and --clean are mutually exclusive")
    source, sink, embed_spec = _find_files(seed, input_, output, spec)
    selectors = tuple(parse_selector(each) for each in select or ())
    request = EmbedRequest(
        source,
        sink,
        embed_spec,
        _choose_mode(reembed_all, clean, bool(selectors)),
        frozenset(types or ()),
        selectors,
    )

    def watch(lines: Iterable[str]) -> Iterable[str]:
        return track(lines, "embedding", is_shown=call.shows_progress)

    make_embedder = cache(partial(_make_embedder, embed_spec.dimension))
    counts = embed_file(request, make_embedder, watch)
    report = {
        "input": str(source),
        "output": str(sink),
        **asdict(counts),
        "mode": request.mode.value,
        "dimension": embed_spec.dimension,
        "model": make_embedder().model if counts.embedded_records else None,
    }
    line = (
        f"embedded {counts.embedded_records} and cleaned {counts.cleaned_records} of "
        f"{counts.selected_records} selected records, {counts.records} in all: {sink}"
    )
    call.print_result(report, [line])


def _embed_graph(
    call: Call,
    branch: str,
    types: list[str] | None,
    engine: str,
    note: CommitNote,
    *,
    reembed_all: bool,
) -> None:
    call.refuse_served(engine=engine != "auto")
    call.announce()
    doing = "embedding" if call.is_served else None
    with call.open_graph("rw", StoreOptions(engine=engine), doing=doing) as graph:
        report = graph.embed(branch=branch, types=types, reembed_all=reembed_all, note=note)
    for remark in report["notes"]:
        print(f"note: {remark}", file=sys.stderr)
    unembedded = report["rows_unembedded"]
    left = f", left {unembedded} empty" if unembedded else ""
    line = (
        f"embedded {report['rows_embedded']} vectors on branch {report['branch']} in "
        f"{len(report['commit_ids'])} commits{left}"
    )
    call.print_result(report, [line])
    if unembedded:
        raise typer.Exit(1)


def _make_embedder(dimension: int) -> Embedder:
    from omnigraph.embed import embedder_from_environment
    from omnigraph.embed.config import LOCAL_DIMENSIONS
    from omnigraph.embed.embedder import require_embedder
    from omnigraph.embed.source import local_embedder

    chosen = embedder_from_environment()
    if chosen is None and dimension in LOCAL_DIMENSIONS:
        return local_embedder()
    return require_embedder(chosen)


def _choose_mode(reembed_all: bool, clean: bool, is_selective: bool) -> EmbedMode:
    if clean:
        return EmbedMode.CLEAN
    if reembed_all:
        return EmbedMode.REEMBED_ALL
    return EmbedMode.REEMBED_SELECTED if is_selective else EmbedMode.FILL_MISSING


def _find_files(
    seed: Path | None, input_: Path | None, output: Path | None, spec: Path | None
) -> tuple[Path, Path, EmbedSpec]:
    """Find input, output and spec, from a manifest or from their own flags."""
    if seed is not None:
        if input_ is not None or spec is not None:
            raise typer.BadParameter("--seed names the input and the spec; leave those out")
        return _read_manifest(seed, output)
    if input_ is None or output is None or spec is None:
        raise typer.BadParameter("give --seed, or all of --input, --output and --spec")
    try:
        value = json.loads(read_text_file(spec))
    except ValueError as error:
        raise BadRequestError(f"{spec}: not JSON: {error}") from None
    return input_, output, read_spec(value, str(spec))


def _read_manifest(seed: Path, output: Path | None) -> tuple[Path, Path, EmbedSpec]:
    from omnigraph.config.document import Table, parse_document
    from omnigraph.yaml_fields import to_plain

    def read(top: Table) -> tuple[Path, Path, EmbedSpec]:
        raw = top.table("sources").require("raw_seed")
        written = top.table("artifacts").text("embedded_seed") or _SEED_OUTPUT
        found = top.entries.get("embeddings")
        spec = read_spec(None if found is None else to_plain(found), str(seed))
        return seed.parent / raw, output or seed.parent / written, spec

    return parse_document(read_text_file(seed), str(seed), read)
