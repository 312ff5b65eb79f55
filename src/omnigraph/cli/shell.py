"""`omnigraph shell`: a prompt on one graph, in a store or behind a server."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.options import BranchOption
from omnigraph.version import __version__

HISTORY_FILE = "shell-history"


@command("shell", Capability.ANY, writes=True, uri="argument", has_json=False)
def shell(
    call: Call,
    branch: BranchOption = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every write of a store.")
    ] = False,
) -> None:
    """Ask and change a graph at a prompt, with completion from its schema; \\? lists commands.

    Statements that come by a pipe are run one after the other.
    """
    from omnigraph.cli.shell_session import ShellSession

    with call.open_graph("r" if read_only else "rw") as graph:
        session = ShellSession(graph, call.branch(branch))
        if not sys.stdin.isatty():
            from omnigraph.cli.shell_prompt import run_lines

            if not run_lines(session, sys.stdin):
                raise typer.Exit(1)
            return
        from omnigraph.cli.shell_prompt import run_prompt

        print(f"omnigraph {__version__} on {call.target} — \\? for help, Ctrl-D to leave")
        run_prompt(session, Path(call.target).name, _find_history(call))


def _find_history(call: Call) -> Path | None:
    """Where statements are remembered, for this user alone; None where that cannot be written."""
    path = call.settings.operator.home / HISTORY_FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return None
    return path
