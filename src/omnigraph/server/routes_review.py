"""Operations for a reviewer: compare two states, tell how an entity came to be, explain a read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from starlette.responses import Response

from omnigraph.branch.bisect import list_between
from omnigraph.branch.entity_history import Blame, EntityHistory
from omnigraph.errors import BadRequestError
from omnigraph.graph import Graph
from omnigraph.graph.calls.changes import stream_diff_html
from omnigraph.graph.graph import get_session
from omnigraph.manifest import Snapshot
from omnigraph.pipeline.export import to_line
from omnigraph.server.call import Call, query_text
from omnigraph.server.envelope import JSON, json_response
from omnigraph.server.json_parts import encode_parts
from omnigraph.server.readable_types import permit_query, permit_selection
from omnigraph.server.request_models import BisectRequest, ExplainRequest, resolve_branch
from omnigraph.server.states import permit_state
from omnigraph.server.streaming import NDJSON_UTF8, stream
from omnigraph.server.url_parameters import (
    check_parameters,
    integer_parameter,
    list_parameter,
    one_parameter,
    require_parameter,
)
from omnigraph.wire import blame_to_json, commit_to_json, explanation_to_json, history_to_json

DIFF_PARAMETERS = ("from", "to", "kind", "type", "op", "format", "changes_max")
DIFF_FORMATS = ("json", "jsonl", "html")
HTML = "text/html; charset=utf-8"
HIDDEN = "changes on branches that the caller may not read are left out"


async def diff(call: Call) -> Response:
    """What differs between two states: branches, commits, or `branch@time`."""
    request = call.request
    check_parameters(request, DIFF_PARAMETERS)
    names = require_parameter(request, "from"), one_parameter(request, "to") or "main"
    form = one_parameter(request, "format") or "json"
    if form not in DIFF_FORMATS:
        raise BadRequestError(f"there is no format '{form}' — expected {', '.join(DIFF_FORMATS)}")
    states = [await permit_state(call, each) for each in names]
    for state in states:
        chosen, kinds = list_parameter(request, "type"), list_parameter(request, "kind")
        await permit_selection(call, state.branch, chosen, kinds=kinds)
    wanted: dict[str, Any] = {
        f"{name}s": list_parameter(request, name) for name in ("kind", "type", "op")
    }
    graph = call.graph.graph
    if form == "html":
        return await stream(call, partial(_page, graph, states, " → ".join(names), wanted), HTML)
    encode, media = (_document, JSON) if form == "json" else (_lines, NDJSON_UTF8)
    most = integer_parameter(request, "changes_max", least=0)
    return await stream(call, partial(encode, graph, states, wanted, most), media)


def _document(
    graph: Graph, states: list[Snapshot], wanted: dict[str, Any], most: int | None
) -> Iterator[bytes]:
    document = graph.diff(*states, **wanted).to_stream()
    yield from encode_parts({**document, "changes": islice(document["changes"], most)})


def _page(
    graph: Graph, states: list[Snapshot], title: str, wanted: dict[str, Any]
) -> Iterator[bytes]:
    for part in stream_diff_html(graph, *states, title=title, **wanted):
        yield part.encode()


def _lines(
    graph: Graph, states: list[Snapshot], wanted: dict[str, Any], most: int | None
) -> Iterator[bytes]:
    for each in islice(graph.diff(*states, **wanted), most):
        yield to_line(each.to_json())


async def history(call: Call) -> Response:
    """What every commit did to one node or edge, newest first.

    Changes on a branch that the caller may not read are left out, and the notes say so.
    """
    asked = await _read_entity(call)
    found = await call.run_read(call.graph.graph.history, *asked[:2], branch=asked[2])
    branches = {each.commit.branch for each in found if each.commit is not None}
    hidden = {each for each in branches if each != asked[2] and not call.may_read(each, asked[0])}
    if hidden:
        shown = [each for each in found if each.commit and each.commit.branch not in hidden]
        found = EntityHistory(shown, [*found.notes, HIDDEN])
    return json_response(history_to_json(found, asked[2]))


async def blame(call: Call) -> Response:
    """For each property of a node or edge, its value and the commit that wrote it.

    And the values that merges gave up for it, unless they are of a branch that the caller may not
    read.
    """
    type_name, entity_id, branch = await _read_entity(call)
    found = await call.run_read(call.graph.graph.blame, type_name, entity_id, branch=branch)
    shown = {name: _hide_lost(call, branch, type_name, each) for name, each in found.items()}
    return json_response(blame_to_json(shown, type_name, entity_id, branch))


def _hide_lost(call: Call, branch: str, type_name: str, blamed: Blame) -> Blame:
    lost = [
        each
        for each in blamed.lost
        if each.branch == branch or call.may_read(each.branch, type_name)
    ]
    return replace(blamed, lost=tuple(lost))


async def _read_entity(call: Call) -> tuple[str, str, str]:
    """The type, id and branch that a request names, once its caller may read there."""
    check_parameters(call.request, ("type", "id", "branch"))
    names = [require_parameter(call.request, name) for name in ("type", "id")]
    branch = resolve_branch(one_parameter(call.request, "branch"))
    call.permit(branch=branch)
    await permit_selection(call, branch, [names[0]])
    return names[0], names[1], branch


async def explain(call: Call) -> Response:
    """The typed form and the plan of a read, and with `analyze` what running it did."""
    body = await call.body(ExplainRequest)
    branch = resolve_branch(body.branch)
    call.permit(branch=branch)
    source = query_text(body.query)
    await permit_query(call, source, body.name, branch, None, "commit")
    explained = await call.run_read(
        call.graph.graph.explain,
        source,
        body.name,
        body.params,
        branch=branch,
        analyze=body.analyze,
    )
    return json_response(explanation_to_json(explained))


async def bisect(call: Call) -> Response:
    """The first commit at which a query returns rows, by halving the history between two."""
    body = await call.body(BisectRequest)
    source = query_text(body.query)
    good, bad = [(await permit_state(call, each)).head for each in (body.good, body.bad)]
    graph = call.graph.graph
    # Every state on the way may be asked, and is as readable as the branch it was made on.
    for branch in await call.run_read(_list_branches, graph, good.commit_id, bad.commit_id):
        call.permit(branch=branch)
        await permit_query(call, source, None, branch, bad.commit_id, "commit")
    # What was permitted is what is used, whatever the names stand for by then.
    found = await call.run_read(graph.bisect, source, good=good.commit_id, bad=bad.commit_id)
    return json_response(commit_to_json(found))


def _list_branches(graph: Graph, good: str, bad: str) -> list[str]:
    coordinator = get_session(graph).coordinator
    return list(dict.fromkeys(each.branch for each in list_between(coordinator, good, bad)))
