"""`omnigraph mcp`: the tools of a graph for an agent that starts this command itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import read_text_file
from omnigraph.config.scope import DirectScope, ServedScope

if TYPE_CHECKING:
    from omnigraph.server.settings import ServedGraph

GRAPH_ID = "default"


@command("mcp", Capability.ANY, writes=True, uri="argument", has_json=False)
def mcp(call: Call) -> None:
    """Serve the tools of a graph by the Model Context Protocol, on standard input and output."""
    from omnigraph.server.mcp_stdio import serve_remote, serve_store

    match call.scope:
        case DirectScope() as scope:
            serve_store(describe_graph(scope), call.actor)
        case ServedScope() as scope:
            serve_remote(call.target, scope.token(call.settings))


def describe_graph(scope: DirectScope) -> ServedGraph:
    """The graph in a store, as a server takes it."""
    from omnigraph.server.settings import ServedGraph
    from omnigraph.storage.location import graph_root

    file = scope.policy_file
    return ServedGraph(
        GRAPH_ID,
        scope.uri,
        policy_text=None if file is None else read_text_file(file),
        policy_name="policy" if file is None else file.name,
        policy_resource=scope.name or str(graph_root(scope.uri)),
        retention=scope.retention,
        embedding=scope.embedding,
    )
