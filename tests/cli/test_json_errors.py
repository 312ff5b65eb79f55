"""With `--json` every error of every command is JSON: what is wrong, and the code of its kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from omnigraph.cli.app import build_app
from omnigraph.wire import CODES
from tests.cli.running import Outcome, run
from tests.depth import sample


@cache
def list_commands() -> dict[str, Any]:
    """Every command by its words, the hidden ones too."""

    def walk(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, each in group.commands.items():
            if hasattr(each, "commands"):
                yield from walk(each, (*words, name))
            else:
                yield " ".join((*words, name)), each

    return dict(walk(typer.main.get_command(build_app()), ()))


def make_up(command: Any, folder: Path) -> list[str]:
    """A value for everything that a command asks for."""
    words: list[str] = []
    for each in command.params:
        if not each.required or each.is_eager:
            continue
        choices = getattr(each.type, "choices", None)
        value = str(next(iter(choices))) if choices else str(folder / "missing")
        if "integer" in each.type.name:
            value = "1"
        words += [value] if each.param_type_name == "argument" else [each.opts[0], value]
    return words


def check(failed: Outcome, codes: tuple[int, ...]) -> None:
    assert failed.code in codes, failed
    said = json.loads(failed.out)
    assert isinstance(said["error"], str)
    assert said["error"]
    assert said.get("code", "internal") in CODES.values()
    assert failed.err, "and for people it stays a text on stderr"


@pytest.mark.parametrize("words", sample([*list_commands()], 8))
def test_wrong_usage_with_json_is_json(words: str) -> None:
    check(run(*words.split(), "--no-such-flag", "--json"), codes=(2,))


@pytest.mark.parametrize("words", list_commands())
def test_a_graph_that_is_not_there_is_told_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """By every command. Where one has no use for the flag, that is what it says."""
    monkeypatch.chdir(tmp_path)
    given = make_up(list_commands()[words], tmp_path)
    check(run(*words.split(), *given, "--store", tmp_path / "nothing", "--json"), codes=(1, 2))


@pytest.mark.parametrize("words", sample([*list_commands()], 8))
def test_a_server_that_is_not_there_is_told_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    given = make_up(list_commands()[words], tmp_path)
    check(run(*words.split(), *given, "--server", "http://127.0.0.1:9", "--json"), codes=(1, 2))
