"""The command tree, and the mapping from errors to messages and exit codes.

0  success
1  any error of ours; lint findings of severity error
2  usage: unknown flag, missing argument, flags that exclude each other or do not apply
4  `mutate --if-commit` named a commit that is no longer the head
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from omnigraph.cli.command import with_shared_flags
from omnigraph.cli.commands import add_commands
from omnigraph.cli.help_groups import GroupedHelp
from omnigraph.cli.output import print_error, print_json, warn_deprecated
from omnigraph.cli.version import print_version
from omnigraph.collection import leave_the_end_alone, pause_collection
from omnigraph.errors import AddressError, OmnigraphError
from omnigraph.wire import CODES, error_to_json


def _handle_version_flag(is_given: bool) -> None:
    if is_given:
        print_version(as_json=False)
        raise typer.Exit


@with_shared_flags
def omnigraph(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-v",
            callback=_handle_version_flag,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """A typed, versioned, branchable property graph on plain Lance tables."""


def build_app(first: str = "") -> typer.Typer:
    """The part of the command tree that a call beginning with `first` needs; all without it."""
    app = typer.Typer(
        name="omnigraph",
        cls=GroupedHelp,
        help="A typed, versioned, branchable property graph on plain Lance tables.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Plain text looks the same in a terminal, in a log and on the reference page.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(omnigraph)
    add_commands(app, first)
    return app


def main() -> None:
    """Run the command line; an `OmnigraphError` ends it with a message and exit code 1 or 2."""
    arguments = _replace_old_names(sys.argv[1:])
    _prepare_process(arguments)
    as_json = "--json" in arguments
    try:
        with pause_collection():
            app = build_app(arguments[0] if arguments else "")
        code = app(arguments, standalone_mode=not as_json)
    except OmnigraphError as error:
        if as_json:
            print_json(error_to_json(error))
        print_error(error.render())
        sys.exit(2 if isinstance(error, AddressError) else 1)
    except typer.TyperException as error:
        said = error.format_message()
        print_json({"error": said, "code": CODES[400]})
        print_error(said)
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_process(arguments: list[str]) -> None:
    """Save a short command what only a long one needs: a search for garbage at its end, and the
    threads that NumPy starts for large matrices."""
    leave_the_end_alone()
    if arguments[:1] != ["serve"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _replace_old_names(arguments: list[str]) -> list[str]:
    """`query lint` and `query check` are old names of `lint`, `changes` one of `changes list`."""
    match arguments:
        case ["query", "lint" | "check" as old, *rest]:
            warn_deprecated(f"query {old}", "lint")
            return ["lint", *rest]
        case ["changes", first, *rest] if "--since" in (first, *rest) and first != "list":
            return ["changes", "list", first, *rest]
        case _:
            return arguments
