"""Help groups: the commands of `omnigraph --help`, by what they are for, and examples below."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from omnigraph.cli.examples import find_examples

GROUPS: dict[str, tuple[str, ...]] = {
    "Start": ("init", "load", "query", "mutate", "shell", "ui", "version"),
    "Data": ("export", "embed", "algorithm", "explain", "alias", "snapshot", "blob"),
    "Branches and history": (
        "branch", "log", "commit", "history", "blame", "changes", "tag", "revert", "cherry-pick",
        "restore", "bisect", "checks", "request",
    ),
    "Schemas and queries": ("schema", "lint", "language", "lsp", "queries"),
    "Copies": ("clone", "push", "pull", "fetch", "backup", "remote"),
    "Upkeep": ("doctor", "verify", "optimize", "cleanup", "repair", "index", "jobs"),
    "Servers and agents": (
        "serve", "mcp", "graphs", "login", "logout", "profile", "policy",
    ),
}  # fmt: skip
OTHERS = "More"

EXAMPLES = """\
Examples:
  omnigraph init --schema team.pg team.omni
  omnigraph load team.omni --type Person people.csv --mode merge
  omnigraph query --store team.omni -e 'query q() { match { $p: Person } return { $p.name } }'
  omnigraph branch create --uri team.omni review
  omnigraph shell team.omni
"""


class ExampleGroup(TyperGroup):
    """A group of commands, each with examples below its help."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None and found.epilog is None:
            found.epilog = find_examples(" ".join([*_list_groups(ctx), cmd_name]))
        return found


def _list_groups(ctx: Any) -> list[str]:
    """The names of the groups that lead to a context, without the program's own."""
    return [] if ctx.parent is None else [*_list_groups(ctx.parent), ctx.info_name]


class GroupedHelp(ExampleGroup):
    """The root of the commands, whose help lists them by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        known = {name: each for name, each in shown.items() if each and not each.hidden}
        width = max(map(len, known), default=0)
        limit = formatter.width - 6 - width
        for title, names in group(list(known)).items():
            with formatter.section(title):
                rows = [
                    (name.ljust(width), known[name].get_short_help_str(limit)) for name in names
                ]
                formatter.write_dl(rows)
        formatter.write(f"\n{EXAMPLES}")


def group(names: list[str]) -> dict[str, list[str]]:
    """The names by group, in the order of the groups; those of no group come last."""
    found = {title: [each for each in known if each in names] for title, known in GROUPS.items()}
    grouped = {name for known in GROUPS.values() for name in known}
    found[OTHERS] = [name for name in names if name not in grouped]
    return {title: each for title, each in found.items() if each}
