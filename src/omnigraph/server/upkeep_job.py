"""Upkeep job: one job of upkeep as a value, which runs here or in the write process.

It writes its own outcome into its record: the process that runs it outlives the server.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.graph import Graph
from omnigraph.graph.calls.upkeep import run_upkeep
from omnigraph.graph.graph import get_session
from omnigraph.policy import Action
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.jobs import Body, Permit
from omnigraph.upkeep.job_records import JobKind, JobRecord, JobRecords, JobState
from omnigraph.upkeep.progress import UpkeepProgress
from omnigraph.upkeep.retention import parse_duration
from omnigraph.wire import error_to_json

PROGRESS_SECONDS = 0.25
"""Progress is written down at most this often."""

ACTIONS: Mapping[JobKind, Action] = {
    JobKind.OPTIMIZE: Action.OPTIMIZE,
    JobKind.ENSURE_INDICES: Action.OPTIMIZE,
    JobKind.CLEANUP: Action.CLEANUP,
    JobKind.REPAIR: Action.REPAIR,
    JobKind.VERIFY: Action.VERIFY,
}
OPTIONS: Mapping[JobKind, tuple[str, ...]] = {
    JobKind.OPTIMIZE: (),
    JobKind.ENSURE_INDICES: ("branch",),
    JobKind.CLEANUP: ("keep", "older_than", "confirm"),
    JobKind.REPAIR: ("confirm", "force"),
    JobKind.VERIFY: ("content", "record"),
}

log = logging.getLogger("omnigraph.server")


def check_options(kind: JobKind, options: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what the job would refuse later, and options that it does not have.

    Raises:
        BadRequestError: There are such.
    """
    known = OPTIONS[kind]
    for name in options:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise BadRequestError(f"a job of kind '{kind}' has no option `{name}` — {takes}")
    if kind is JobKind.CLEANUP and not {"keep", "older_than"} & options.keys():
        raise BadRequestError("cleanup needs a policy: give `keep`, `older_than` or both")
    if options.get("older_than") is not None:
        parse_duration(options["older_than"])
    if options.get("force") and not options.get("confirm"):
        raise BadRequestError("`force` needs `confirm` as well — repair without both only looks")
    return dict(options)


def needed_actions(kind: JobKind, options: Mapping[str, Any]) -> tuple[Action, ...]:
    """What a caller has to be allowed: recording checksums writes, unlike the rest of a verify."""
    extra = (Action.OPTIMIZE,) if options.get("record") else ()
    return (ACTIONS[kind], *extra)


def open_records(graph: Graph) -> JobRecords:
    return JobRecords(get_session(graph).store.texts)


@dataclass(frozen=True, slots=True)
class RunUpkeep:
    """Run one job and write down what came of it; nothing is raised for an error of the job."""

    record: JobRecord

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return True

    def weigh(self, body: Body) -> int:
        return sys.maxsize  # worth waiting until the write process is up

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        records = open_records(opened.graph)
        with records.run(self.record.job_id):
            shown = _Shown(records, replace(self.record, state=JobState.RUNNING, started_at=now()))
            hit(Failpoint.JOB_BEFORE_RUN)
            ended = self._finish(opened.graph, shown)
            hit(Failpoint.JOB_BEFORE_OUTCOME)
            records.replace(replace(ended, ended_at=now()))
        return {}

    def _finish(self, graph: Graph, shown: _Shown) -> JobRecord:
        try:
            asked = self.record
            report = run_upkeep(
                graph, asked.kind, asked.options, actor=asked.actor_id, on_progress=shown.show
            )
        except OmnigraphError as error:
            failure = error_to_json(error)
            return replace(shown.record, state=JobState.FAILED, error=failure)
        except Exception as error:
            log.error("unexpected error in job %s", self.record.job_id, exc_info=error)
            text = "internal error — see the log of the server"
            failure = {"error": text, "code": "internal"}
            return replace(shown.record, state=JobState.FAILED, error=failure)
        return replace(shown.record, state=JobState.SUCCEEDED, progress=None, report=report)


class _Shown:
    """The record of a job that runs, as it was last written down."""

    def __init__(self, records: JobRecords, record: JobRecord) -> None:
        self._records = records
        self._written_at = time.monotonic()
        self.record = record
        records.replace(record)

    def show(self, progress: UpkeepProgress) -> None:
        """Write progress down, unless it was just now. The job goes on when it cannot be."""
        self.record = replace(self.record, progress=progress)
        if progress.done and time.monotonic() - self._written_at < PROGRESS_SECONDS:
            return
        self._written_at = time.monotonic()
        with suppress(OmnigraphError):
            self._records.replace(self.record)


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000
