"""`omnigraph graphs`, `login`, `logout`: the servers somebody works with."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import JsonFlag, print_json
from omnigraph.config.credentials import remove_token, write_token
from omnigraph.config.scope import ServedScope
from omnigraph.errors import AddressError, BadRequestError

graphs = typer.Typer(help="The graphs of a server.", no_args_is_help=True, rich_markup_mode=None)

ServerArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The server, as the operator config names it.")
]


@graphs.command("list")
@command("graphs list", Capability.SERVED)
def list_(call: Call, as_json: JsonFlag = False) -> None:
    """Print the graphs that a server has."""
    from omnigraph.client.remote import list_graphs

    scope = call.scope
    if not isinstance(scope, ServedScope):
        raise AddressError(
            f"graphs list is a served command; '{scope.uri}' addresses one graph's storage and "
            "does not apply. Use --server <name or URL>."
        )
    listed = list_graphs(scope.url, scope.token(call.settings))
    if as_json:
        print_json(listed)
        return
    for each in listed["graphs"]:
        print(f"{each['graph_id']}\t{each['uri']}")


@command("login", Capability.LOCAL)
def login(
    call: Call,
    name: ServerArgument,
    token: Annotated[
        str | None, typer.Option("--token", help="The token; else one line of stdin.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Keep the token of a server, in a file that only you can read."""
    given = token if token is not None else _read_line(name)
    operator = call.settings.operator
    write_token(operator.credentials_path, name, given.strip())
    _print_kept(call, name, as_json, "kept the token of")


@command("logout", Capability.LOCAL)
def logout(call: Call, name: ServerArgument, as_json: JsonFlag = False) -> None:
    """Forget the token of a server; nothing happens when there is none."""
    remove_token(call.settings.operator.credentials_path, name)
    _print_kept(call, name, as_json, "no token is kept for")


def _read_line(name: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(f"Token of {name}", hide_input=True, err=True))
    line = sys.stdin.readline()
    if not line.strip():
        raise BadRequestError("no token was given — use --token, or write it to stdin")
    return line


def _print_kept(call: Call, name: str, as_json: bool, what: str) -> None:
    operator = call.settings.operator
    is_declared = name in operator.servers
    if as_json:
        path = str(operator.credentials_path)
        print_json({"server": name, "credentials_path": path, "declared": is_declared})
        return
    print(f"{what} {name} in {operator.credentials_path}")
    if not is_declared:
        print(
            f"warning: there is no server '{name}' in {operator.config_path} — "
            "its token is used once there is one",
            file=sys.stderr,
        )
