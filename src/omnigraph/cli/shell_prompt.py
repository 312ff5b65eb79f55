"""Shell prompt: what the keys do in a terminal: history, completion, lines until brackets close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from omnigraph.cli.output import print_error
from omnigraph.cli.pager import paged
from omnigraph.cli.render import Format
from omnigraph.cli.shell_session import PREFIX, Quit, ShellSession, declare, is_complete
from omnigraph.errors import OmnigraphError
from omnigraph.lsp.complete_query import complete_query


class ShellCompleter(Completer):
    """Completes commands, and statements from the schema of the graph."""

    def __init__(self, session: ShellSession) -> None:
        self._session = session

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        text = document.text
        try:
            if text.startswith("\\"):
                yield from self._complete_command(text[1 : document.cursor_position])
            else:
                yield from self._complete_statement(text, document.cursor_position)
        except OmnigraphError:
            return  # what cannot be read completes nothing; running it says why

    def _complete_command(self, typed: str) -> Iterator[Completion]:
        word, space, argument = typed.partition(" ")
        known: Iterable[str] = self._session.commands
        if space and word == "c":
            known = self._session.graph.branches()["branches"]
        elif space and word == "d":
            known = [each.name for each in self._session.catalog.entities()]
        elif space and word == "format":
            known = list(Format)
        elif space:
            return
        start = argument if space else word
        yield from (
            Completion(each, -len(start))
            for each in known
            if each.lower().startswith(start.lower())
        )

    def _complete_statement(self, text: str, offset: int) -> Iterator[Completion]:
        whole = declare(text)
        at = offset + (len(PREFIX) if whole != text else 0)
        found = complete_query(whole, at, self._session.catalog)
        typed = whole[found.start : at]
        yield from (
            Completion(each.label, -len(typed), display_meta=each.detail)
            for each in found.items
            if each.label.lower().startswith(typed.lower())
        )


def run_prompt(session: ShellSession, title: str, history: Path | None, **terminal: Any) -> None:
    """Ask for statements until the user leaves. Ctrl-C drops a line, Ctrl-D leaves."""
    kept: History = InMemoryHistory() if history is None else FileHistory(str(history))
    prompt: PromptSession[str] = PromptSession(
        history=kept,
        completer=ShellCompleter(session),
        complete_while_typing=False,
        key_bindings=_bind_keys(),
        multiline=True,
        prompt_continuation="... ",
        **terminal,
    )
    while True:
        try:
            text = prompt.prompt(f"{title} {session.prompt}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not answer(session, text, page=_page):
            return


def run_lines(session: ShellSession, lines: Iterable[str]) -> bool:
    """Run the statements of a text that is not typed; whether none of them failed."""
    pending, is_right = "", True
    for line in lines:
        pending += line
        if not pending.strip() or not is_complete(pending):
            continue
        try:
            for each in session.run(pending):
                print(each)
        except Quit:
            return is_right
        except OmnigraphError as error:
            is_right = False
            print_error(error.render())
        pending = ""
    if pending.strip():
        print_error("the input ends within a statement; it was not run")
        return False
    return is_right


def answer(session: ShellSession, text: str, page: Any) -> bool:
    """Run what was typed and show the answer; whether to go on."""
    try:
        page(list(session.run(text)))
    except Quit:
        return False
    except OmnigraphError as error:
        print_error(error.render())
    except KeyboardInterrupt:
        print_error("interrupted")
    return True


def _page(lines: list[str]) -> None:
    """Print an answer; one that is longer than the screen through the user's pager."""
    with paged():
        for line in lines:
            print(line)


def _bind_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        """Run what is complete; otherwise begin a line. An empty line ends any statement."""
        buffer = event.current_buffer
        if is_complete(buffer.text) or buffer.document.current_line.strip() == "":
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
