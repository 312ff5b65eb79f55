"""Long results go through a pager on a terminal, and nowhere else."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli import main
from omnigraph.cli.pager import find_pager, paged
from tests.cli.running import EXAMPLES, run

SMALL = {"LINES": "2", "COLUMNS": "80", "TERM": "xterm"}
CHANGE = 'query c() { update Person set { title: "x" } where name = "Ada" }'
ALL = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
Paged = Callable[..., tuple[str, str | None]]


class Terminal(io.StringIO):
    """A screen that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Paged:
    """Print lines on a screen of 10: what the screen got, and what the pager got."""

    def show(
        lines: int, *, width: int = 10, is_wanted: bool = True, **variables: str
    ) -> tuple[str, str | None]:
        file = tmp_path / "paged"
        monkeypatch.setenv("LINES", "10")
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.delenv("TERM", raising=False)
        monkeypatch.setenv("PAGER", f"sh -c 'cat > {shlex.quote(str(file))}'")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        with paged(is_wanted=is_wanted):
            for line in range(lines):
                print(f"{line} ".ljust(width, "x"))
        return screen.getvalue(), file.read_text() if file.exists() else None

    return show


def text(lines: int, width: int = 10) -> str:
    return "".join(f"{line} ".ljust(width, "x") + "\n" for line in range(lines))


def test_what_fits_on_the_screen_is_printed(show: Paged) -> None:
    assert show(9) == (text(9), None)


def test_what_is_longer_goes_to_the_pager_whole(show: Paged) -> None:
    assert show(500) == ("", text(500))


def test_lines_that_wrap_count_as_several(show: Paged) -> None:
    assert show(4, width=100) == ("", text(4, 100))


@pytest.mark.parametrize(
    "off",
    [
        {"is_wanted": False},
        {"OMNIGRAPH_PAGER": ""},
        {"OMNIGRAPH_PAGER": "cat"},
        {"OMNIGRAPH_PAGER": "no-such-program -x"},
        {"TERM": "dumb"},
    ],
)
def test_without_a_pager_everything_is_printed(show: Paged, off: dict[str, Any]) -> None:
    assert show(50, **off) == (text(50), None)


def test_the_own_variable_comes_before_the_common_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", "sh -c b")
    monkeypatch.setenv("OMNIGRAPH_PAGER", "sh -c 'a b'")
    assert find_pager() == ["sh", "-c", "a b"]
    monkeypatch.delenv("OMNIGRAPH_PAGER")
    assert find_pager() == ["sh", "-c", "b"]


def test_a_pager_that_is_left_early_ends_nothing(show: Paged) -> None:
    assert show(200_000, PAGER="sh -c 'head -c 10 > /dev/null'") == ("", None)


def test_what_was_printed_before_an_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)

    def fail() -> None:
        with paged():
            print("before")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert screen.getvalue() == "before\n"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of the docs, and a branch with one change."""
    path = tmp_path_factory.mktemp("pager") / "graph"
    run("init", path, "--schema", EXAMPLES / "team.pg")
    run("load", path, "--data", EXAMPLES / "people.jsonl", "--mode", "merge")
    run("branch", "create", "b", "--store", path)
    run("mutate", "-e", CHANGE, "--store", path, "--branch", "b")
    return path


@pytest.mark.parametrize(
    ("command", "is_paged"),
    [
        (["query", "-e", ALL], True),
        (["--no-pager", "query", "-e", ALL], False),
        (["query", "-e", ALL, "--no-pager"], False),
        (["query", "-e", ALL, "--json"], False),
        (["log"], True),
        (["branch", "diff", "main", "b"], True),
        (["branch", "list"], False),
    ],
)
def test_commands_page_on_a_terminal(
    command: list[str], is_paged: bool, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "paged"
    monkeypatch.setenv("OMNIGRAPH_PAGER", f"sh -c 'cat > {shlex.quote(str(file))}'")
    for name, value in SMALL.items():
        monkeypatch.setenv(name, value)
    plain = run(*command, "--store", graph).out
    assert plain, "a pipe gets it without a pager"
    assert not file.exists()

    screen = Terminal()
    monkeypatch.setattr(sys, "argv", ["omnigraph", *command, "--store", str(graph)])
    with pytest.raises(SystemExit) as ended, redirect_stdout(screen):
        main()

    assert not ended.value.code
    assert (
        (file.read_text(), screen.getvalue()) == (plain, "")
        if is_paged
        else (not file.exists() and screen.getvalue() == plain)
    )


@pytest.mark.slow
def test_the_program_finds_a_terminal_by_itself(graph: Path, tmp_path: Path) -> None:
    import pty

    file = tmp_path / "paged"
    pager = f"sh -c 'cat > {shlex.quote(str(file))}'"
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "omnigraph", "query", "-e", ALL, "--store", str(graph)]
    environment = {**os.environ, **SMALL, "OMNIGRAPH_PAGER": pager}
    subprocess.run(arguments, stdout=theirs, env=environment, check=True)
    os.close(theirs)
    os.close(ours)

    assert "Ada" in file.read_text()
