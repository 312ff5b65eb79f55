"""`omnigraph lsp` over its pipes, asked by the client of pygls: one process for all of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from omnigraph.version import __version__

pytestmark = pytest.mark.slow

Answer = TypeVar("Answer")
SCHEMA = """\
node Author { slug: String @key  name: String  born: I32? }
node Paper { doi: String @key  title: String }
edge Wrote: Author -> Paper
"""
TYPO = 'query typo() { match { $p: Paper { title: "🐙🐙" }  $p.titel = "🐙" } return { $p } }\n'


class Client(LanguageClient):
    """The client of pygls, which also keeps how the server ended."""

    exit_code: int | None = None

    async def server_exit(self, server: asyncio.subprocess.Process) -> None:
        self.exit_code = server.returncode


class Editor:
    """An editor with one folder: it opens texts and waits for what the server says of them."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.folder = folder
        self.loop = loop
        self.client = Client("test", "1")
        self.versions: dict[str, int] = {}
        self.published: dict[str, lsp.PublishDiagnosticsParams] = {}
        self.failures: list[str] = []
        self.news = asyncio.Event()
        self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._keep))
        self.client.feature(lsp.WINDOW_SHOW_MESSAGE)(partial(self._fail))

    def _keep(self, params: lsp.PublishDiagnosticsParams) -> None:
        self.published[params.uri] = params
        self.news.set()

    def _fail(self, params: lsp.ShowMessageParams) -> None:
        """The server speaks of itself only when a request made it fail."""
        self.failures.append(params.message)
        self.news.set()

    def run(self, work: Awaitable[Answer]) -> Answer:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def start(self) -> lsp.InitializeResult:
        return self.run(self._start())

    async def _start(self) -> lsp.InitializeResult:
        await self.client.start_io(sys.executable, "-m", "omnigraph", "lsp")
        params = lsp.InitializeParams(lsp.ClientCapabilities(), root_uri=self.folder.as_uri())
        answer = await self.client.initialize_async(params)
        self.client.initialized(lsp.InitializedParams())
        return answer

    def stop(self) -> int | None:
        async def end() -> None:
            await self.client.shutdown_async(None)
            self.client.exit(None)
            await self.client.stop()  # type: ignore[no-untyped-call]

        self.run(end())
        return self.client.exit_code

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def write(self, name: str, text: str) -> list[lsp.Diagnostic]:
        """Open a text, or change it without saving; what the server then says of it."""
        uri = self.uri(name)
        self.versions[uri] = self.versions.get(uri, 0) + 1
        if self.versions[uri] == 1:
            item = lsp.TextDocumentItem(uri, Path(name).suffix[1:], 1, text)
            self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        else:
            document = lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri)
            whole = lsp.TextDocumentContentChangeWholeDocument(text)
            self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [whole]))
        return self.await_diagnostics(name, lambda found: found.version == self.versions[uri])

    def await_diagnostics(
        self, name: str, is_it: Callable[[lsp.PublishDiagnosticsParams], bool]
    ) -> list[lsp.Diagnostic]:
        async def wait() -> list[lsp.Diagnostic]:
            while True:
                assert self.failures == []
                found = self.published.get(self.uri(name))
                if found is not None and is_it(found):
                    return list(found.diagnostics)
                self.news.clear()
                await self.news.wait()

        return self.run(wait())

    def close(self, name: str) -> None:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(document))
        self.versions.pop(self.uri(name))

    def at(self, name: str, line: int, unit: int) -> dict[str, Any]:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        return {"text_document": document, "position": lsp.Position(line, unit)}

    def complete(self, name: str, line: int, unit: int) -> list[lsp.CompletionItem]:
        params = lsp.CompletionParams(**self.at(name, line, unit))
        answer = self.run(self.client.text_document_completion_async(params))
        assert isinstance(answer, list)
        return answer

    def hover(self, name: str, line: int, unit: int) -> lsp.Hover | None:
        params = lsp.HoverParams(**self.at(name, line, unit))
        return self.run(self.client.text_document_hover_async(params))

    def define(self, name: str, line: int, unit: int) -> lsp.Location | None:
        params = lsp.DefinitionParams(**self.at(name, line, unit))
        answer = self.run(self.client.text_document_definition_async(params))
        assert answer is None or isinstance(answer, lsp.Location)
        return answer


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("lsp")
    (folder / "schema.pg").write_text(SCHEMA)
    (folder / "bare").mkdir()
    loop = asyncio.new_event_loop()
    found = Editor(folder, loop)
    answer = found.start()
    assert answer.server_info == lsp.ServerInfo("omnigraph", __version__)
    yield found
    assert found.stop() == 0
    loop.close()


def span(found: lsp.Diagnostic) -> tuple[int, int, int, int]:
    start, end = found.range.start, found.range.end
    return start.line, start.character, end.line, end.character


def test_a_mistake_of_an_unsaved_text_is_marked_in_utf_16(editor: Editor) -> None:
    (found,) = editor.write("unsaved.gq", "// 🐙\n" + TYPO)
    at = len(TYPO[: TYPO.index("titel")].encode("utf-16-le")) // 2

    assert (found.code, span(found)) == ("T6", (1, at, 1, at + 5))
    assert found.severity == lsp.DiagnosticSeverity.Error
    assert found.source == "omnigraph"
    assert not (editor.folder / "unsaved.gq").exists()

    assert editor.write("unsaved.gq", TYPO.replace("titel", "title")) == []


def test_a_half_typed_query_is_completed_hovered_and_followed(editor: Editor) -> None:
    text = 'query q() { match { $p: Paper { title: "🐙" }  $p.ti'
    (found,) = editor.write("half.gq", text)
    end = len(text) + 1

    items = {item.label: item for item in editor.complete("half.gq", 0, end)}
    hover = editor.hover("half.gq", 0, end - 5)
    location = editor.define("half.gq", 0, text.index("Paper") + 1)

    assert found.code == "Q000"
    assert set(items) == {"doi", "title"}
    edit = items["title"].text_edit
    assert isinstance(edit, lsp.TextEdit)
    assert edit.range == lsp.Range(lsp.Position(0, end - 2), lsp.Position(0, end))
    assert hover is not None
    assert isinstance(hover.contents, lsp.MarkupContent)
    assert "node $p: Paper" in hover.contents.value
    assert location == lsp.Location(
        editor.uri("schema.pg"), lsp.Range(lsp.Position(1, 5), lsp.Position(1, 10))
    )


def test_an_unsaved_schema_counts_at_once_and_a_broken_one_is_named(editor: Editor) -> None:
    """Queries are checked against what the editor shows of their schema, not what is on disk."""
    query = "query born() { match { $a: Author } return { $a.died } }"
    assert [each.code for each in editor.write("born.gq", query)] == ["T6"]

    assert editor.write("schema.pg", SCHEMA.replace("born", "died")) == []
    assert editor.await_diagnostics("born.gq", lambda found: not found.diagnostics) == []

    (wrong,) = editor.write("schema.pg", SCHEMA.replace("I32?", "Int"))
    (notice,) = editor.await_diagnostics("born.gq", lambda found: bool(found.diagnostics))
    at = SCHEMA.index("I32?")
    assert (wrong.code, span(wrong)) == ("Q000", (0, at, 0, at + 3))
    assert notice.severity == lsp.DiagnosticSeverity.Information
    assert "schema.pg, line 1 is wrong" in notice.message

    editor.close("schema.pg")
    editor.write("born.gq", query + "\n")
    (again,) = editor.await_diagnostics("born.gq", lambda found: True)
    assert again.code == "T6"


def test_without_a_schema_the_syntax_is_checked_and_the_reader_told(editor: Editor) -> None:
    (editor.folder / "bare" / "a.pg").write_text("node A { slug: String @key }")
    (editor.folder / "bare" / "b.pg").write_text("node B { slug: String @key }")

    (notice,) = editor.write("bare/people.gq", TYPO)

    assert "several schemas" in notice.message
    assert editor.hover("bare/people.gq", 0, 24) is not None


def test_a_schema_is_completed_and_hovered(editor: Editor) -> None:
    editor.write("other.pg", "node A { slug: ")

    labels = {item.label for item in editor.complete("other.pg", 0, 15)}

    assert {"String", "Vector", "enum"} <= labels
    editor.close("other.pg")


def test_a_closed_text_has_no_diagnostics_left(editor: Editor) -> None:
    assert editor.write("closed.gq", "query q( {") != []
    editor.close("closed.gq")

    assert editor.await_diagnostics("closed.gq", lambda found: not found.diagnostics) == []


def test_positions_outside_of_a_text_are_answered(editor: Editor) -> None:
    editor.write("odd.gq", "")

    assert editor.hover("odd.gq", 99, 99) is None
    assert editor.define("odd.gq", 0, 7) is None
    assert [item.label for item in editor.complete("odd.gq", 5, 0)] == ["query"]


def test_without_pygls_one_line_says_how_to_install_it() -> None:
    code = (
        "import sys; sys.modules['pygls'] = None; sys.modules['lsprotocol'] = None;"
        "sys.argv = ['omnigraph', 'lsp']; from omnigraph.cli import main; main()"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr == (
        "error: the language server needs pygls — install it: pip install 'omnigraph[lsp]'\n"
    )
