"""`omnigraph embed`: compute the vectors of a file of records, without a graph."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
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
from omnigraph.cli.output import read_text_file
from omnigraph.cli.progress import track
from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.embed import Embedder

_SEED_OUTPUT = "./build/seed.embedded.jsonl"


@command("embed", Capability.LOCAL)
def embed(
    call: Call,
    seed: Annotated[
        Path | None, typer.Option("--seed", help="A manifest that names input, output and spec.")
    ] = None,
    input_: Annotated[Path | None, typer.Option("--input", help="The file of records.")] = None,
    output: Annotated[Path | None, typer.Option("--output", help="The file to write.")] = None,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", help="A JSON file: the dimension, and the fields per type."),
    ] = None,
    reembed_all: Annotated[
        bool, typer.Option("--reembed-all", help="Compute every vector again.")
    ] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the vectors.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select", metavar="[Type:]field=value", help="Only matching records; repeatable."
        ),
    ] = None,
) -> None:
    """Compute the missing vectors of a file of records; no graph is needed."""
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

    make_embedder = cache(_make_embedder)
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


def _make_embedder() -> Embedder:
    from omnigraph.embed import embedder_from_environment
    from omnigraph.embed.embedder import require_embedder

    return require_embedder(embedder_from_environment())


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
