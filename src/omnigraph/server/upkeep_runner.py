"""Upkeep runner: accept jobs, run one after another, and answer for them while the server lives.

accept   the record is written, then the caller is told: a lost reply loses no job
run      in the write process, which ends the job also when the server dies
lost     when that process dies the record says so, and the graph is recovered
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from omnigraph.errors import ConflictError, OmnigraphError
from omnigraph.server.admission import TooManyRequests
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.metrics import Metrics
from omnigraph.server.upkeep_job import RunUpkeep, now, open_records
from omnigraph.server.worker_pool import WorkerPool
from omnigraph.server.write_process import WriteProcess
from omnigraph.upkeep.job_records import JobRecord, JobState

PENDING_MAX = 32

log = logging.getLogger("omnigraph.server")


class UpkeepRunner:
    """The jobs of one server."""

    def __init__(self, write_process: WriteProcess, metrics: Metrics) -> None:
        self._write_process = write_process
        self._metrics = metrics
        self._pool = WorkerPool(1, "omnigraph-upkeep")
        self._pending: set[tuple[str, str]] = set()
        self._is_closing = False

    def start(self, opened: OpenGraph, asked: JobRecord) -> JobRecord:
        """Write a job down and queue it; a repeated request gets the job that it started.

        Raises:
            ConflictError: The id is that of another job.
            TooManyRequests: Too many jobs wait already. Nothing was started.
        """
        key = opened.graph_id, asked.job_id
        records = open_records(opened.graph)
        if len(self._pending) >= PENDING_MAX:
            raise TooManyRequests(f"{PENDING_MAX} jobs wait already — try again later")
        held = ExitStack()
        try:
            held.enter_context(records.accept(asked.job_id))
            if records.add(asked):
                records.prune()
                self._pending.add(key)
                self._pool.submit(partial(self._run, opened, asked, held.pop_all()))
                return asked
        except ConflictError:
            pass  # the same request is being accepted, or its job is under way
        finally:
            held.close()
        known = records.find(asked.job_id)
        if not known.asks_the_same(asked):
            raise ConflictError(f"job id '{asked.job_id}' is that of another job — use a new one")
        return known

    def close(self) -> None:
        """Finish the jobs that run. Those that wait stay written down as interrupted."""
        self._is_closing = True
        self._pool.close()

    def _run(self, opened: OpenGraph, record: JobRecord, held: ExitStack) -> None:
        with held:
            try:
                if not self._is_closing:
                    self._write_process.run(opened, RunUpkeep(record), b"", lambda _: None)
            except Exception as error:
                log.error("job %s did not end by itself", record.job_id, exc_info=error)
                opened.recover()
                self._write_loss(opened, record)
            finally:
                self._pending.discard((opened.graph_id, record.job_id))
        self._count(opened, record)

    def _write_loss(self, opened: OpenGraph, record: JobRecord) -> None:
        """Say in the record that the process of a job is gone, unless it had an outcome."""
        records = open_records(opened.graph)
        try:
            known = records.find(record.job_id)
            if not known.state.is_final:
                records.replace(replace(known.interrupt(), ended_at=now()))
        except OmnigraphError as error:
            log.error("job %s has no outcome", record.job_id, exc_info=error)

    def _count(self, opened: OpenGraph, record: JobRecord) -> None:
        try:
            state = open_records(opened.graph).find(record.job_id).state
        except OmnigraphError:
            state = JobState.INTERRUPTED
        self._metrics.count_job(record.kind, state)
