"""Operations on the server itself: is it up, what does it serve, what is it doing."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.policy import Action
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.graph_metrics import graph_text
from omnigraph.server.http_errors import HttpError
from omnigraph.server.metrics import CONTENT_TYPE
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__


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


async def metrics(call: Call) -> Response:
    """Counters in the format of Prometheus, with those of the graphs that the caller may verify."""
    serving = call.serving
    if "authorization" in call.request.headers:
        call.identify()
    seen = [each for each in serving.graphs if each.gate.may(call.actor, Action.VERIFY)]
    text = await call.run_read(graph_text, seen) if seen else b""
    return Response(serving.metrics.text() + text, media_type=CONTENT_TYPE)


async def list_graphs(call: Call) -> Response:
    """The graphs that are served, by id. A server of one graph has no list."""
    if call.serving.settings.is_single:
        raise HttpError(405, "this server serves one graph — call its operations", {"Allow": ""})
    call.permit()
    graphs = [{"graph_id": each.graph_id, "uri": each.uri} for each in call.serving.graphs]
    return json_response({"graphs": graphs})


async def get_permissions(call: Call) -> Response:
    """Who the caller is, and what the policy lets them do on some branch of the graph."""
    call.permit()
    allowed = [each.value for each in Action if each is not Action.GRAPH_LIST and call.may(each)]
    return json_response({"actor_id": call.actor, "actions": allowed})
