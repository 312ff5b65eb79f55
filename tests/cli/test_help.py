"""Help: every command stands in a group, and the examples are commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import typer

from omnigraph.cli import examples
from omnigraph.cli.app import build_app
from omnigraph.cli.help_groups import EXAMPLES, GROUPS, OTHERS, group
from tests.cli.running import run


def list_commands() -> dict[str, bool]:
    """Every command, and whether it is hidden."""
    root = typer.main.get_command(build_app())
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


def list_leaves(group: Any, context: Any) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(context):
        each = group.get_command(context, name)
        if each.hidden:
            continue
        if hasattr(each, "commands"):
            inner = each.context_class(each, parent=context, info_name=name)
            yield from ((f"{name} {rest}", leaf) for rest, leaf in list_leaves(each, inner))
        else:
            yield name, each


def parse(line: str, command: Any) -> None:
    """Take a command line apart as the program does, and run nothing."""
    words = list(takewhile(lambda each: each not in ("<", ">"), shlex.split(line)))
    context = command.make_context(words[0], words[1:])
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(name, rest, parent=context)


def test_every_command_has_an_example_that_it_understands() -> None:
    root: Any = typer.main.get_command(build_app())
    context = root.context_class(root, info_name="omnigraph")

    known = dict(list_leaves(root, context))

    assert set(known) <= set(examples.EXAMPLES)
    for path, command in known.items():
        assert "Example" in command.epilog
        for line in examples.EXAMPLES[path].splitlines():
            assert line.startswith(f"omnigraph {path}")
            parse(line, root)


def test_help_of_a_command_ends_with_its_examples_line_by_line() -> None:
    help_ = run("branch", "merge", "--help").out

    lines = [line.strip() for line in help_.rstrip().splitlines()]
    assert lines[-3:] == ["Examples:", *examples.EXAMPLES["branch merge"].splitlines()]
