"""`omnigraph language` and `omnigraph lsp`: what editors need to know of the language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.compiler.language import Language


@command("language", Capability.LOCAL, pages=True)
def language(call: Call) -> None:
    """List the keywords, functions, types, annotations and codes of the language."""
    from omnigraph.compiler.language import describe_language

    found = describe_language()
    call.print_result(found.to_json(), _lines(found))


def _lines(found: Language) -> Iterator[str]:
    for kind, words in found.keywords.items():
        yield f"keywords of .{kind}"
        yield f"  {' '.join(words)}"
    yield "functions"
    for function in found.functions:
        yield f"  {function.signature} → {function.result}: {function.doc}"
    yield "types"
    for each in found.types:
        yield f"  {each.form}: {each.doc}"
    yield "annotations"
    for note in found.annotations:
        yield f"  {note.form} on {' or '.join(note.on)} (.{note.file}): {note.doc}"
    yield "codes"
    for code in found.codes:
        yield f"  {code.code} ({code.severity}): {code.meaning}"


@command("lsp", Capability.LOCAL, has_json=False)
def lsp(call: Call) -> None:
    """Serve an editor: errors, completion, types and definitions, on standard input and output."""
    try:
        from omnigraph.lsp.server import serve
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in ("pygls", "lsprotocol"):
            raise BadRequestError(
                "the language server needs pygls — install it: pip install 'omnigraph[lsp]'"
            ) from None
        raise
    serve()
