"""Operations on stored queries: list them, run one by name, store one.

A query that does not exist and one that the caller may not invoke get the same answer: a caller
without permission learns nothing about it.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from omnigraph.commit_note import NO_NOTE
from omnigraph.config.registry import StoredQuery
from omnigraph.errors import BadRequestError, NotFoundError, PolicyError
from omnigraph.manifest import MAIN
from omnigraph.server import routes_reads, routes_writes
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.request_models import InvokeRequest, StoreQueryRequest, resolve_branch


async def list_queries(call: Call) -> Response:
    """The stored queries that are exposed, of which the caller may invoke each."""
    call.permit(branch=MAIN)
    shown = (
        each
        for each in call.graph.registry.queries.values()
        if each.expose and call.graph.may_invoke(each, call.actor, call.bound)
    )
    return json_response({"queries": [_item(query) for query in shown]})


async def store_query(call: Call) -> Response:
    """Store a query under its name, in the directory that the configuration names."""
    call.permit()
    body = await call.body(StoreQueryRequest)
    name = call.request.path_params["name"]
    stored = await call.run_read(call.graph.store_query, name, body.query, replaces=body.replace)
    return json_response(_item(stored))


async def invoke_query(call: Call) -> Response:
    """Run a stored query; what it is decides what comes back."""
    routes_writes.refuse_condition(call)
    return await _invoke(call, None)


async def invoke_query_if_graph_commit(call: Call) -> Response:
    """Run a stored mutation only while a commit is the head of the branch."""
    return await _invoke(call, routes_writes.read_condition(call))


async def _invoke(call: Call, if_commit: str | None) -> Response:
    stored = _find(call)
    body = await call.body(InvokeRequest, is_optional=True)
    _check_kind(stored, body, if_commit)
    if not stored.mutation:
        _refuse_note(stored, body)
        read = routes_reads.Read(
            stored.source, stored.name, body.params, body.branch, body.snapshot, body.schema_of
        )
        return await routes_reads.answer(call, read)
    branch = resolve_branch(body.branch)
    change = routes_writes.Change(
        stored.source, stored.name, body.params, branch, call.actor, if_commit, body.note
    )
    return await routes_writes.answer(call, change)


def _refuse_note(stored: StoredQuery, body: InvokeRequest) -> None:
    if body.note != NO_NOTE:
        raise BadRequestError(
            f"'{stored.name}' is a read — it makes no commit that could have a message or metadata"
        )


def _find(call: Call) -> StoredQuery:
    try:
        call.permit()
        return call.graph.registry.queries[call.request.path_params["name"]]
    except (PolicyError, KeyError):
        raise NotFoundError("stored query not found") from None


def _check_kind(stored: StoredQuery, body: InvokeRequest, if_commit: str | None) -> None:
    """Refuse a call that takes a read for a mutation, or the reverse."""
    if stored.mutation:
        if body.expect_mutation is False:
            raise BadRequestError(
                f"'{stored.name}' is a mutation — use omnigraph mutate {stored.name}"
            )
        if body.snapshot is not None:
            raise BadRequestError(
                f"'{stored.name}' is a mutation — it changes a branch, not a snapshot"
            )
    elif body.expect_mutation or if_commit is not None:
        raise BadRequestError(f"'{stored.name}' is a read — use omnigraph query {stored.name}")


def _item(query: StoredQuery) -> dict[str, Any]:
    item: dict[str, Any] = {"name": query.name, "tool_name": query.tool_name}
    if query.description is not None:
        item["description"] = query.description
    if query.instruction is not None:
        item["instruction"] = query.instruction
    item["mutation"] = query.mutation
    item["params"] = [param.to_json() for param in query.params]
    return item
