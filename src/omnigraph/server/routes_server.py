"""Operations on the server itself: is it up, what does it serve, what is it doing."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.http_errors import HttpError
from omnigraph.server.metrics import CONTENT_TYPE
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__

_HOME = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Omnigraph</title></head>
<body><h1>Omnigraph {__version__}</h1>
<p>This is the HTTP API of a graph. It is described by <a href="openapi.json">openapi.json</a>;
<a href="healthz">healthz</a> says that it is up, <a href="metrics">metrics</a> what it does.</p>
<p>From a terminal: <code>omnigraph query --server ADDRESS …</code>. Agents connect to
<code>mcp</code>.</p></body></html>
"""


async def health(call: Call) -> Response:
    """The server is up."""
    versions = {"version": __version__, "internal_schema_version": INTERNAL_SCHEMA_VERSION}
    return json_response({"status": "ok", **versions})


async def ready(call: Call) -> Response:
    """Whether requests should be sent here: not while the server is stopping."""
    serving = call.serving
    if serving.events.is_closing:
        raise HttpError(503, "the server is stopping")
    configuration = serving.configuration.to_json()
    graphs = len(list(serving.graphs))
    return json_response({"status": "ready", "graphs": graphs, "configuration": configuration})


async def home(call: Call) -> Response:
    """A page for a person who opens the address in a browser."""
    return Response(_HOME, media_type="text/html")


async def metrics(call: Call) -> Response:
    """Counters in the format of Prometheus."""
    return Response(call.serving.metrics.text(), media_type=CONTENT_TYPE)


async def list_graphs(call: Call) -> Response:
    """The graphs that are served, by id. A server of one graph has no list."""
    if call.serving.settings.is_single:
        raise HttpError(405, "this server serves one graph — call its operations", {"Allow": ""})
    call.permit()
    graphs = [{"graph_id": each.graph_id, "uri": each.uri} for each in call.serving.graphs]
    return json_response({"graphs": graphs})
