"""Operations that change rows: `mutate`, its old name, and its conditional form."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import orjson
from starlette.responses import Response

from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.compiler import compile_query, require_mutation
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ExpectedVersionMismatch
from omnigraph.graph import Graph, MutationResult
from omnigraph.graph.graph import get_session
from omnigraph.graph.mutations import mutate as run_mutation
from omnigraph.manifest import GraphCommit, Snapshot
from omnigraph.policy import Action
from omnigraph.server.call import Call, query_text
from omnigraph.server.envelope import json_response
from omnigraph.server.fence import mutate_as_seen, with_heads
from omnigraph.server.readable_types import permit_mutation
from omnigraph.server.request_models import ChangeRequest, resolve_branch
from omnigraph.server.routes_reads import mark_deprecated
from omnigraph.wire import change_to_json
from omnigraph.write.touched import find_decisive_tables

IF_COMMIT_HEADER = "Omnigraph-If-Graph-Commit"
_COMMIT_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Change:
    """A mutation to run. `if_commit` has to be the head of the branch, when it is given."""

    source: str
    name: str | None
    params: dict[str, Any] | None
    branch: str
    actor: str | None
    if_commit: str | None = None
    note: CommitNote = NO_NOTE


async def mutate(call: Call) -> Response:
    """Run a mutation as one commit, or change nothing."""
    refuse_condition(call)
    return await _mutate(call, None)


async def change(call: Call) -> Response:
    """The old name of `mutate`."""
    refuse_condition(call)
    return mark_deprecated(await _mutate(call, None), "mutate")


async def mutate_if_graph_commit(call: Call) -> Response:
    """Run a mutation only while a commit is the head of the branch."""
    return await _mutate(call, read_condition(call))


async def _mutate(call: Call, if_commit: str | None) -> Response:
    body = await call.body(ChangeRequest)
    branch = resolve_branch(body.branch)
    source = query_text(body.query)
    change = Change(source, body.name, body.params, branch, call.actor, if_commit, body.note)
    return await answer(call, change)


async def answer(call: Call, wanted: Change) -> Response:
    """Check that the caller may change the branch and has room, and change it.

    A caller who may not read the branch cannot have it read by a change.
    """
    call.permit(branch=wanted.branch, action=Action.CHANGE)
    graph = call.graph.graph
    query_key = hash(("mutate", wanted.source, wanted.name, wanted.branch))
    seen = await call.run_query(query_key, partial(_look, graph, wanted))
    if seen.reads_rows:
        call.permit(branch=wanted.branch, action=Action.READ)
        await permit_mutation(call, wanted.source, wanted.name, wanted.branch)
    with call.admit(len(wanted.source) + len(orjson.dumps(wanted.params))):
        return json_response(await call.run_write(_run_change, graph, wanted, seen))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a mutation is, and what its branch showed, when the request arrived.

    `reads_rows` says whether rows of the graph decide what is written, or come back; `decisive` are
    the tables whose rows do, of an update or a delete.
    """

    query_name: str
    reads_rows: bool
    decisive: frozenset[str]
    snapshot: Snapshot


def _look(graph: Graph, wanted: Change) -> _Seen:
    catalog, snapshot = get_session(graph).read((wanted.branch, None, None, None))
    compiled = compile_query(wanted.source, catalog, wanted.name)
    ir = require_mutation(compiled)
    reads_rows = ir.match is not None or ir.returned is not None
    return _Seen(compiled.name, reads_rows, find_decisive_tables(ir, catalog), snapshot)


def _run_change(graph: Graph, wanted: Change, seen: _Seen) -> dict[str, Any]:
    """Mutate, held to what the branch showed when the request arrived."""

    def run(if_commit: str | None) -> tuple[MutationResult, GraphCommit | None]:
        return run_mutation(
            get_session(graph),
            wanted.source,
            wanted.name,
            wanted.params,
            branch=wanted.branch,
            actor=wanted.actor,
            if_commit=if_commit,
            message=wanted.note.message,
            metadata=wanted.note.metadata,
        )

    try:
        if wanted.if_commit is not None:
            result, commit = run(wanted.if_commit)
        else:
            result, commit = mutate_as_seen(graph, seen.decisive, seen.snapshot, run)
    except ExpectedVersionMismatch as error:
        raise with_heads(error, graph, seen.snapshot) from error
    return change_to_json(
        result,
        branch=wanted.branch,
        query_name=seen.query_name,
        actor=wanted.actor,
        commit=commit,
    )


def refuse_condition(call: Call) -> None:
    """Refuse the header of a conditional write where it would be ignored.

    Raises:
        BadRequestError: It is there.
    """
    if IF_COMMIT_HEADER in call.request.headers:
        raise BadRequestError(
            f"{IF_COMMIT_HEADER} has no effect here — call the same path with `/if-graph-commit`"
        )


def read_condition(call: Call) -> str:
    """The one commit id that the header of a conditional write names.

    Raises:
        BadRequestError: There is no such header, or it is anything but one plain id.
    """
    values = call.request.headers.getlist(IF_COMMIT_HEADER)
    if len(values) != 1 or not _COMMIT_ID.fullmatch(values[0]):
        raise BadRequestError(
            f"{IF_COMMIT_HEADER} should be there once and name one graph commit id"
        )
    return values[0]
