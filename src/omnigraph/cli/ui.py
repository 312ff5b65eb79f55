"""`omnigraph ui`: the workbench in the browser, over a graph in a store."""

from __future__ import annotations

import secrets
import sys
import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.mcp import describe_graph
from omnigraph.config.scope import DirectScope
from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.server.settings import ServedGraph, ServerSettings

LOCAL_ACTOR = "workbench"
"""Who makes the commits of a workbench, where no `--as` says so."""


@command("ui", Capability.DIRECT, writes=True, uri="argument", has_json=False)
def ui(
    call: Call,
    port: Annotated[int, typer.Option("--port", help="The port; 0 picks a free one.")] = 0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Let the page read, and change nothing.")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address only.")
    ] = False,
) -> None:
    """Open a graph in the browser: query, explore, compare, review, load.

    Serves the graph to this machine until it is stopped. The address has a token of its own, which
    no other program has.
    """
    from omnigraph.server.run import run

    assert isinstance(call.scope, DirectScope)
    token = secrets.token_urlsafe(24)
    graph = replace(
        describe_graph(call.scope),
        queries=call.scope.queries,
        query_directory=call.scope.query_directory,
    )
    settings = make_settings(graph, call.actor, token, port, is_read_only=read_only)

    def announce(address: str) -> None:
        url = f"http://{address}/#token={token}"
        print(f"workbench of {call.target} at {url}", flush=True)
        print("stop it with Ctrl-C", file=sys.stderr)
        if not no_browser:
            webbrowser.open(url)

    run(settings, announce=announce, log_level="warning")


def make_settings(
    graph: ServedGraph, actor: str | None, token: str, port: int, *, is_read_only: bool
) -> ServerSettings:
    """A server of one graph for one caller, who may do what `actor` may in the store.

    Without a policy that is everything, or with `is_read_only` only to read.

    Raises:
        BadRequestError: There is a policy, and no actor to decide about.
    """
    from omnigraph.server.auth import Tokens
    from omnigraph.server.settings import ServerSettings

    if graph.policy_text is not None:
        if actor is None:
            raise BadRequestError("this graph has a policy — say who you are with --as <actor>")
        if is_read_only:
            raise BadRequestError(
                "this graph has a policy, which decides what the page may do — leave out "
                "--read-only, or give --as an actor who may only read"
            )
    holder = actor or LOCAL_ACTOR
    if graph.policy_text is None and not is_read_only:
        graph = replace(graph, policy_text=_allow_everything(holder), policy_name="local policy")
    tokens = Tokens.from_pairs([(holder, token)])
    return ServerSettings((graph,), bind=f"127.0.0.1:{port}", tokens=tokens)


def _allow_everything(actor: str) -> str:
    """A policy under which the owner of a store may do over HTTP what the command line does."""
    import json

    from omnigraph.policy import Action
    from omnigraph.policy.model import Kind

    actions = [each.value for each in Action if each.kind is Kind.GRAPH]
    rule = {"id": "owner", "allow": {"actors": {"group": "owners"}, "actions": actions}}
    return json.dumps({"version": 1, "groups": {"owners": [actor]}, "rules": [rule]})
