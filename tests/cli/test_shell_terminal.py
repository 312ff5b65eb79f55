"""The shell in a real terminal: prompt, completion, commands, pager, and a lasting history."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph as og

pytestmark = pytest.mark.slow

WAIT_SECONDS = 30
SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
ALL = "match { $p: Person } return { $p.name }"


class Terminal:
    """What a program wrote to its terminal, and the keys that it is given."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.handle, text.encode())

    def wait_for(self, pattern: str) -> str:
        """Read until a pattern is on the screen; returns what was written up to there."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            found = re.search(pattern, self.seen)
            if found:
                before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
                return before
            if select.select([self.handle], [], [], 0.2)[0]:
                part = os.read(self.handle, 65536).decode(errors="replace")
                if "\x1b[6n" in part:  # a prompt asks where the cursor is
                    self.type("\x1b[1;1R")
                self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part)
        raise AssertionError(f"{pattern!r} did not come: {self.seen[-600:]!r}")


@contextmanager
def shell(store: Path, home: Path, pager: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "HOME": str(home), "PAGER": pager}
    environment |= {"XDG_STATE_HOME": str(home), "COLUMNS": "100", "LINES": "20"}
    command = [sys.executable, "-m", "omnigraph", "shell", str(store)]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_terminal_has_a_prompt_completion_a_pager_and_a_history(tmp_path: Path) -> None:
    store = tmp_path / "team.omni"
    with og.init(store, schema=SCHEMA, durability="process") as graph:
        rows = [{"type": "Person", "data": {"name": f"n{place:03}"}} for place in range(60)]
        graph.load(rows, mode="append")
        graph.create_branch("review")
    pager = "sed -e s/^/paged-/"

    with shell(store, tmp_path, pager) as terminal:
        terminal.wait_for(r"main>")
        terminal.type("\\d\r")
        terminal.wait_for(r"node +\| Person +\| +60")
        terminal.wait_for(r"main>")
        terminal.type("match { $p: Pers\t")
        terminal.wait_for(r"Pers[\s\x08]*on")
        terminal.type(" } return { $p.name }\r")
        terminal.wait_for("paged-n059")
        terminal.wait_for(r"main>")
        terminal.type("\\c review\r")
        terminal.wait_for(r"review>")
        terminal.type("\x04")

    with shell(store, tmp_path, pager) as again:
        again.wait_for(r"main>")
        again.type("\x1b[A")  # the last line that was typed before
        again.wait_for(r"\\c review")
        again.type("\r")
        again.wait_for(r"review>")
        again.type("\x04")
