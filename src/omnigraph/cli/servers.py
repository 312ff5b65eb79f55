"""`omnigraph graphs`, `login`, `logout`: servers and their tokens."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.config.credentials import remove_token, write_token
from omnigraph.config.scope import ServedScope
from omnigraph.errors import AddressError, BadRequestError

graphs = make_group("List the graphs of a server.")

ServerArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The server's name in the operator config.")
]


@graphs.command("list")
@command("graphs list", Capability.SERVED)
def list_(call: Call) -> None:
    """List the graphs of a server."""
    from omnigraph.client.remote import list_graphs

    scope = call.scope
    if not isinstance(scope, ServedScope):
        raise AddressError(
            f"graphs list is a served command; '{scope.uri}' addresses one graph's storage and "
            "does not apply. Use --server <name or URL>."
        )
    found = list_graphs(scope.url, scope.token(call.settings))
    call.print_result(found, (f"{each['graph_id']}\t{each['uri']}" for each in found["graphs"]))


@command("login", Capability.LOCAL)
def login(
    call: Call,
    name: ServerArgument,
    token: Annotated[
        str | None, typer.Option("--token", help="The token; read from stdin by default.")
    ] = None,
) -> None:
    """Store the token of a server, in a file that only you can read."""
    given = token if token is not None else _read_line(name)
    write_token(call.settings.operator.credentials_path, name, given.strip())
    _print_credentials(call, name, "kept the token of")


@command("logout", Capability.LOCAL)
def logout(call: Call, name: ServerArgument) -> None:
    """Remove the stored token of a server, if there is one."""
    remove_token(call.settings.operator.credentials_path, name)
    _print_credentials(call, name, "no token is kept for")


def _read_line(name: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(f"Token of {name}", hide_input=True, err=True))
    line = sys.stdin.readline()
    if not line.strip():
        raise BadRequestError("no token was given — use --token, or write it to stdin")
    return line


def _print_credentials(call: Call, name: str, what: str) -> None:
    operator = call.settings.operator
    path, is_declared = str(operator.credentials_path), name in operator.servers
    value = {"server": name, "credentials_path": path, "declared": is_declared}
    call.print_result(value, [f"{what} {name} in {path}"])
    if not (is_declared or call.as_json):
        print(
            f"warning: there is no server '{name}' in {operator.config_path} — "
            "its token is used once there is one",
            file=sys.stderr,
        )
