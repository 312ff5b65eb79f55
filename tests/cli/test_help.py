"""Help: every command stands in a group, and the examples are commands."""

from __future__ import annotations

import shlex

import typer

from omnigraph.cli.app import app
from omnigraph.cli.help_groups import EXAMPLES, GROUPS, OTHERS, group
from tests.cli.running import run


def list_commands() -> dict[str, bool]:
    """Every command, and whether it is hidden."""
    root = typer.main.get_command(app)
    return {name: each.hidden for name, each in root.commands.items()}  # type: ignore[attr-defined]


def test_every_command_stands_in_one_group() -> None:
    shown = [name for name, is_hidden in list_commands().items() if not is_hidden]

    assert OTHERS not in group(shown)
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))


def test_help_lists_groups_and_commands_of_examples_that_exist() -> None:
    help_ = run("--help").out

    assert [line for line in help_.splitlines() if line in ("Start:", "Upkeep:", "Examples:")]
    known = list_commands()
    for line in EXAMPLES.splitlines()[1:]:
        assert shlex.split(line)[1] in known
