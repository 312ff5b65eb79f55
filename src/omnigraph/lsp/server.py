"""The protocol: requests of an editor to the functions of this package, and their answers back.

The editor sends the whole text with every change: texts are small, and it and the server then
need not agree on what ends a line. Diagnostics are published a moment after the last change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from omnigraph.dataclass import dataclass
from omnigraph.lsp.complete import Item, ItemKind
from omnigraph.lsp.complete_query import complete_query
from omnigraph.lsp.complete_schema import complete_schema
from omnigraph.lsp.define import Definition, define_in_query, define_in_schema
from omnigraph.lsp.diagnose import Diagnostic, diagnose_queries, diagnose_schema
from omnigraph.lsp.hover import Hover, hover_query, hover_schema
from omnigraph.lsp.positions import Lines
from omnigraph.lsp.schemas import Schema, build_schema, find_schema
from omnigraph.source_text import Span
from omnigraph.version import __version__

PAUSE_SECONDS = 0.05
"""How long a text has to stay as it is before it is diagnosed."""

_Located: TypeAlias = lsp.CompletionParams | lsp.HoverParams | lsp.DefinitionParams

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
_CHANGES = (
    lsp.TEXT_DOCUMENT_DID_OPEN,
    lsp.TEXT_DOCUMENT_DID_CHANGE,
    lsp.TEXT_DOCUMENT_DID_SAVE,
    lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES,
)
_KINDS: dict[ItemKind, lsp.CompletionItemKind] = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "function": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.Struct,
    "class": lsp.CompletionItemKind.Class,
    "property": lsp.CompletionItemKind.Property,
    "variable": lsp.CompletionItemKind.Variable,
    "edge": lsp.CompletionItemKind.Reference,
    "annotation": lsp.CompletionItemKind.Property,
}


def serve() -> None:
    """Serve one editor on standard input and output, until it ends the session."""
    make_server().start_io()


def make_server() -> LanguageServer:
    """A server with every feature."""
    server = LanguageServer(
        "omnigraph", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full
    )
    session = _Session(server)
    options = lsp.CompletionOptions(trigger_characters=["$", ".", "@", "<"])
    # pygls sets attributes of what it is given, which a method does not let it.
    server.feature(lsp.INITIALIZE)(partial(session.initialize))
    for change in _CHANGES:
        server.feature(change)(partial(session.diagnose_soon))
    server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(partial(session.forget))
    server.feature(lsp.TEXT_DOCUMENT_COMPLETION, options)(partial(session.complete))
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(partial(session.hover))
    server.feature(lsp.TEXT_DOCUMENT_DEFINITION)(partial(session.define))
    return server


@dataclass(slots=True)
class _Session:
    """What one editor has open, and is set to."""

    server: LanguageServer
    setting: Path | None = None
    changes: int = field(default=0)

    def initialize(self, params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        schema = options.get("schema") if isinstance(options, dict) else None
        if isinstance(schema, str) and schema:
            self.setting = Path(self.server.workspace.root_path or ".") / schema

    async def diagnose_soon(self, _params: object) -> None:
        """Diagnose every open text: a change of a schema is one of all its queries."""
        self.changes += 1
        number = self.changes
        await asyncio.sleep(PAUSE_SECONDS)
        if number == self.changes:
            for document in list(self.server.workspace.text_documents.values()):
                self._publish(document)

    def forget(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """Take back what was said about a text that is no longer open."""
        published = lsp.PublishDiagnosticsParams(params.text_document.uri, [])
        self.server.text_document_publish_diagnostics(published)

    def complete(self, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document, lines, offset = self._locate(params)
        if _is_schema(document):
            found = complete_schema(document.source, offset)
        else:
            found = complete_query(document.source, offset, self._schema(document).catalog)
        replaced = _range(lines, Span(found.start, offset))
        return [_item(item, replaced) for item in found.items]

    def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        document, lines, offset = self._locate(params)
        catalog = self._schema(document).catalog
        answer: Callable[..., Hover | None] = hover_schema if _is_schema(document) else hover_query
        found = answer(document.source, offset, catalog)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(content, _range(lines, found.span))

    def define(self, params: lsp.DefinitionParams) -> lsp.Location | None:
        document, lines, offset = self._locate(params)
        schema = self._schema(document)
        found: Definition | None
        if _is_schema(document):
            found = define_in_schema(document.source, offset, schema.tree)
        else:
            found = define_in_query(document.source, offset, schema.catalog, schema.tree)
        if found is None:
            return None
        if not found.is_in_schema:
            return lsp.Location(document.uri, _range(lines, found.span))
        return self._location_in(schema, found.span)

    def _location_in(self, schema: Schema, span: Span) -> lsp.Location | None:
        uri = None if schema.path is None else from_fs_path(str(schema.path))
        if uri is None or schema.tree is None:
            return None
        return lsp.Location(uri, _range(self._lines(schema.tree.text), span))

    def _publish(self, document: TextDocument) -> None:
        lines = self._lines(document.source)
        found = list(map(partial(_diagnostic, lines), self._diagnose(document)))
        published = lsp.PublishDiagnosticsParams(document.uri, found, document.version)
        self.server.text_document_publish_diagnostics(published)

    def _diagnose(self, document: TextDocument) -> list[Diagnostic]:
        if _is_schema(document):
            return diagnose_schema(document.source)
        schema = self._schema(document)
        found = diagnose_queries(document.source, schema.catalog)
        if schema.problem is not None:
            found.append(Diagnostic(Span(0, 0), "info", schema.problem))
        return found

    def _locate(self, params: _Located) -> tuple[TextDocument, Lines, int]:
        document = self.server.workspace.get_text_document(params.text_document.uri)
        lines = self._lines(document.source)
        return document, lines, lines.offset(params.position.line, params.position.character)

    def _lines(self, text: str) -> Lines:
        encoding = self.server.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
        return Lines(text, lsp.PositionEncodingKind(encoding).value)

    def _schema(self, document: TextDocument) -> Schema:
        """The schema of a text; a schema is its own."""
        file = to_fs_path(document.uri)
        path = None if file is None else Path(file)
        if _is_schema(document):
            return build_schema(path or Path("schema.pg"), document.source)
        return find_schema(path, self.setting, self._read)

    def _read(self, path: Path) -> str:
        """The text of a file, as it is in the editor if it is open there."""
        return self.server.workspace.get_text_document(from_fs_path(str(path)) or "").source


def _is_schema(document: TextDocument) -> bool:
    return document.language_id == "pg" or document.uri.endswith(".pg")


def _range(lines: Lines, span: Span) -> lsp.Range:
    return lsp.Range(
        lsp.Position(*lines.position(span.start)), lsp.Position(*lines.position(span.end))
    )


def _diagnostic(lines: Lines, found: Diagnostic) -> lsp.Diagnostic:
    return lsp.Diagnostic(
        _range(lines, found.span),
        found.message,
        severity=_SEVERITIES[found.severity],
        code=found.code,
        source="omnigraph",
    )


def _item(item: Item, replaced: lsp.Range) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        item.label,
        kind=_KINDS[item.kind],
        detail=item.detail or None,
        documentation=item.doc or None,
        text_edit=lsp.TextEdit(replaced, item.label),
    )
