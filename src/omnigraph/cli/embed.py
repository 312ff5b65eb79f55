"""`omnigraph embed`: fill the vectors of a file of records, without a graph."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
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
    read_selector,
    read_spec,
)
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import JsonFlag, print_json, read_text_file
from omnigraph.cli.progress import counted
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
    input_: Annotated[Path | None, typer.Option("--input", help="The records.")] = None,
    output: Annotated[Path | None, typer.Option("--output", help="Where to write them.")] = None,
    spec: Annotated[
        Path | None, typer.Option("--spec", help="JSON: the dimension, and the fields by type.")
    ] = None,
    reembed_all: Annotated[
        bool, typer.Option("--reembed-all", help="Make every vector anew.")
    ] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Take the vectors out.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="[Type:]field=value", help="Only these; any matches."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Fill in the vectors of a file of records; no graph is needed."""
    if reembed_all and clean:
        raise typer.BadParameter("--reembed-all and --clean are mutually exclusive")
    source, sink, wanted = _files(seed, input_, output, spec)
    selectors = tuple(read_selector(each) for each in select or ())
    request = EmbedRequest(
        source,
        sink,
        wanted,
        _mode(reembed_all, clean, bool(selectors)),
        frozenset(types or ()),
        selectors,
    )

    def watched(lines: Iterable[str]) -> Iterable[str]:
        return counted(lines, "embedding", quiet=call.flags.quiet)

    embedder = _Lazily()
    counts = embed_file(request, embedder, watched)
    report = {
        "input": str(source),
        "output": str(sink),
        **asdict(counts),
        "mode": request.mode.value,
        "dimension": wanted.dimension,
        "model": embedder().model if counts.embedded_records else None,
    }
    if as_json:
        print_json(report)
        return
    print(
        f"embedded {counts.embedded_records} and cleaned {counts.cleaned_records} of "
        f"{counts.selected_records} selected records, {counts.records} in all: {sink}"
    )


class _Lazily:
    """The embedder of the environment, made when the first text needs it."""

    def __init__(self) -> None:
        self._made: Embedder | None = None

    def __call__(self) -> Embedder:
        if self._made is None:
            from omnigraph.embed import EmbeddingNotConfigured, embedder_from_environment
            from omnigraph.embed.config import NOT_CONFIGURED

            self._made = embedder_from_environment()
            if self._made is None:
                raise EmbeddingNotConfigured(NOT_CONFIGURED)
        return self._made


def _mode(reembed_all: bool, clean: bool, is_selective: bool) -> EmbedMode:
    if clean:
        return EmbedMode.CLEAN
    if reembed_all:
        return EmbedMode.REEMBED_ALL
    return EmbedMode.REEMBED_SELECTED if is_selective else EmbedMode.FILL_MISSING


def _files(
    seed: Path | None, input_: Path | None, output: Path | None, spec: Path | None
) -> tuple[Path, Path, EmbedSpec]:
    """Input, output and spec: from a manifest, or each by itself."""
    if seed is not None:
        if input_ is not None or spec is not None:
            raise typer.BadParameter("--seed names the input and the spec; leave those out")
        return _of_manifest(seed, output)
    if input_ is None or output is None or spec is None:
        raise typer.BadParameter("give --seed, or all of --input, --output and --spec")
    try:
        value = json.loads(read_text_file(spec))
    except ValueError as error:
        raise BadRequestError(f"{spec}: not JSON: {error}") from None
    return input_, output, read_spec(value, str(spec))


def _of_manifest(seed: Path, output: Path | None) -> tuple[Path, Path, EmbedSpec]:
    from omnigraph.config.document import parse_document

    top = parse_document(read_text_file(seed), str(seed))
    raw = top.table("sources").required("raw_seed")
    written = top.table("artifacts").text("embedded_seed") or _SEED_OUTPUT
    found = top.get("embeddings")
    wanted = read_spec(None if found is None else found.plain(), str(seed))
    return seed.parent / raw, output or seed.parent / written, wanted
