"""`omnigraph language` and `omnigraph lsp`: what editors need to know of the language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability

if TYPE_CHECKING:
    from omnigraph.compiler.language import Language


@command("language", Capability.LOCAL)
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
