"""Paging: on a terminal, a result that is longer than the screen goes through the user's pager.

`OMNIGRAPH_PAGER` names the program, then `PAGER`, then it is `less`; an empty one or `cat` means
none. What fits on the screen is printed as it is, and a pipe or a file never meets a pager.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

_LESS = "FRX"
"""As git has it: end at once if all fits, leave colours and the screen alone."""


@contextmanager
def paged(*, is_wanted: bool = True) -> Iterator[None]:
    """Page what the block prints."""
    program = find_pager() if is_wanted and sys.stdout.isatty() else None
    if program is None:
        yield
        return
    output = _PagedOutput(sys.stdout, program)
    try:
        with redirect_stdout(output):
            yield
    finally:
        output.finish()


def find_pager() -> list[str] | None:
    """The program with its arguments; None when there is none to use."""
    if os.environ.get("TERM") == "dumb":
        return None
    named = os.environ.get("OMNIGRAPH_PAGER", os.environ.get("PAGER", "less"))
    words = shlex.split(named)
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return words


class _PagedOutput(io.TextIOBase):
    """Keeps a screen of text; what is more than that starts the pager, which gets all of it."""

    def __init__(self, screen: TextIO, program: list[str]) -> None:
        self._screen = screen
        self._program = program
        self._size = shutil.get_terminal_size()
        self._kept: list[str] = []
        self._lines = 0
        self._pager: subprocess.Popen[str] | None = None
        self._is_left = False

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._pager is not None:
            self._send(text)
            return len(text)
        self._kept.append(text)
        wrapped = sum(len(each) // max(self._size.columns, 1) for each in text.split("\n"))
        self._lines += text.count("\n") + wrapped
        if self._lines >= self._size.lines:
            self._start()
        return len(text)

    def _start(self) -> None:
        # What waits to be written would come after what the pager shows.
        self._screen.flush()
        environment = {"LESS": _LESS, **os.environ}
        self._pager = subprocess.Popen(
            self._program, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment
        )
        for each in self._kept:
            self._send(each)
        self._kept.clear()

    def _send(self, text: str) -> None:
        if self._is_left or self._pager is None or self._pager.stdin is None:
            return
        try:
            self._pager.stdin.write(text)
        except BrokenPipeError:  # the reader has seen enough
            self._is_left = True

    def finish(self) -> None:
        """Print what was kept, or wait until the reader leaves the pager."""
        if self._pager is None:
            self._screen.write("".join(self._kept))
            self._screen.flush()
            return
        if self._pager.stdin is not None:
            with suppress(BrokenPipeError):
                self._pager.stdin.close()
        while self._pager.poll() is None:
            # Ctrl-C is the pager's: it stops a search there, and not the command.
            with suppress(KeyboardInterrupt):
                self._pager.wait()
