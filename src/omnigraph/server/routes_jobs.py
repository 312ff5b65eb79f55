"""Operations on jobs: start upkeep, ask how far it is, and what state the graph is in."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from omnigraph.errors import NotFoundError, PolicyError
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.request_models import JobRequest, resolve_branch
from omnigraph.server.upkeep_job import ACTIONS, check_options, needed_actions, now, open_records
from omnigraph.ulids import new_ulid
from omnigraph.upkeep.job_records import JobKind, JobRecord, check_job_id

_OWN = frozenset({"kind", "job_id"})


async def start_job(call: Call) -> Response:
    """Start upkeep; the answer is its job, which is written down before it runs."""
    body = await call.body(JobRequest)
    kind = JobKind(body.kind)
    given = {name: getattr(body, name) for name in body.model_fields_set - _OWN}
    for action in needed_actions(kind, given):
        call.permit(action=action)
    options = check_options(kind, {name: v for name, v in given.items() if v is not None})
    if "branch" in options:
        options["branch"] = resolve_branch(options["branch"])
    job_id = check_job_id(body.job_id) if body.job_id is not None else new_ulid()
    asked = JobRecord(job_id, kind, options, actor_id=call.actor, created_at=now())
    with call.admit(BRANCH_WORK_BYTES):
        started = await call.serving.writers.run(call.serving.upkeep.start, call.graph, asked)
    return json_response(started.to_json(), 202)


async def list_jobs(call: Call) -> Response:
    """The newest jobs of the kinds that the caller may start, newest first, without reports."""
    kinds = _permit_some(call)
    found = await call.run_read(open_records(call.graph.graph).list_all)
    return json_response({"jobs": [_shorten(each) for each in found if each.kind in kinds]})


async def get_job(call: Call) -> Response:
    """A job: its state, its progress, and once it has ended what came of it."""
    kinds = _permit_some(call)
    job_id = call.request.path_params["job_id"]
    found = await call.run_read(open_records(call.graph.graph).find, job_id)
    if found.kind not in kinds:
        raise NotFoundError(f"job '{job_id[:80]}' not found")
    return json_response(found.to_json())


async def doctor(call: Call) -> Response:
    """How the graph and the machine of the server stand, with advice."""
    call.permit()
    report = await call.run_read(call.graph.graph.doctor)
    return json_response(report.to_json())


def _permit_some(call: Call) -> set[JobKind]:
    """The kinds of jobs that the caller may know of.

    Raises:
        PolicyError: There is none.
    """
    kinds, refusal = set[JobKind](), None
    for kind, action in ACTIONS.items():
        try:
            call.permit(action=action)
            kinds.add(kind)
        except PolicyError as error:
            refusal = error
    if not kinds and refusal is not None:
        raise refusal
    return kinds


def _shorten(record: JobRecord) -> dict[str, Any]:
    return {**record.to_json(), "report": None}
