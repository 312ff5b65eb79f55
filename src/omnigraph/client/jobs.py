"""Jobs: start upkeep on a server and wait for its outcome, through lost replies and restarts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from omnigraph.client.http import Http, Json
from omnigraph.errors import RemoteError
from omnigraph.ulids import new_ulid

UNREACHABLE_SECONDS_MAX = 60.0
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_ENDED = frozenset({"succeeded", "failed", "interrupted"})


def run_job(http: Http, kind: str, options: Mapping[str, Any]) -> Json:
    """Run a job to its end and return its report.

    The id is chosen here, so a request whose reply was lost is sent again and finds its job.

    Raises:
        RemoteError: The job failed or was interrupted, or the server cannot be reached.
    """
    job_id = new_ulid()
    body = {"kind": kind, "job_id": job_id, **options}
    job = _insist(lambda: http.call("POST", "/jobs", body=body), job_id)
    asked = 0
    while job["state"] not in _ENDED:
        time.sleep(_PAUSES[min(asked, len(_PAUSES) - 1)])
        asked += 1
        job = _insist(lambda: http.below("jobs", job_id).call("GET", ""), job_id)
    if job["state"] != "succeeded":
        failure = dict(job["error"] or {})
        text = str(failure.get("error", "no reason is recorded"))
        lost = f"job {job_id} was interrupted: " if job["state"] == "interrupted" else ""
        raise RemoteError(f"{lost}{text}", code=failure.get("code"))
    report: Json = job["report"]
    return report


def _insist(call: Any, job_id: str) -> Json:
    """Make a call again while the server does not answer, for a minute."""
    give_up_at = time.monotonic() + UNREACHABLE_SECONDS_MAX
    while True:
        try:
            found: Json = call()
            return found
        except RemoteError as error:
            if error.status is not None:
                raise
            if time.monotonic() > give_up_at:
                hint = f"`omnigraph jobs show {job_id}` says what came of it"
                raise RemoteError(f"{error.message} — {hint}") from None
        time.sleep(_PAUSES[-1])
