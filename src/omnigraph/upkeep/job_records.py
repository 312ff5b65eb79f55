"""Job records: upkeep that a server runs, written down in the graph from its start to its outcome.

    __jobs/{job_id}.json    what was asked, by whom, how far it is, and what came of it

A record is replaced as a whole, so a reader sees one state or the next. A job that has not ended
has a living process behind it, which holds a mark: the server that accepted it, or the process that
runs it and outlives the server. A record without either is of a job that was interrupted. That is
found when it is read: a reader may have no right to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, NotFoundError
from omnigraph.json_form import JsonForm
from omnigraph.storage.alive import AliveMarks
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.upkeep.progress import UpkeepProgress

DIRECTORY = "__jobs"
KEPT_MAX = 100
_ENDING = ".json"
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_ACCEPTED, _RUNNING = _HOLDERS = ("accepted", "running")


class JobKind(StrEnum):
    """What a job does: one call of a graph."""

    OPTIMIZE = "optimize"
    ENSURE_INDICES = "ensure_indices"
    CLEANUP = "cleanup"
    REPAIR = "repair"
    VERIFY = "verify"


class JobState(StrEnum):
    """Where a job is. The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def is_final(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING)


_AFTER_INTERRUPTION = {
    JobKind.OPTIMIZE: "a publish is finished or undone by recovery; start it again for the rest",
    JobKind.ENSURE_INDICES: "recovery finishes or undoes its publish; start it again for the rest",
    JobKind.CLEANUP: "what it had removed stays removed; start it again to remove the rest",
    JobKind.REPAIR: "recovery finishes or undoes its publish; start it again to see what is left",
    JobKind.VERIFY: "it changes no data; start it again",
}


@dataclass(frozen=True, slots=True)
class JobRecord(JsonForm):
    """One job. Times are microseconds since 1970; `error` is the body that HTTP answers with."""

    job_id: str
    kind: JobKind
    options: Mapping[str, Any] = field(default_factory=dict)
    state: JobState = JobState.QUEUED
    actor_id: str | None = None
    created_at: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    progress: UpkeepProgress | None = None
    report: Any = None
    error: Mapping[str, Any] | None = None

    def asks_the_same(self, other: JobRecord) -> bool:
        """Whether a repeated request means this job."""
        mine, theirs = (self.kind, self.options, self.actor_id), (other.kind, other.options)
        return mine == (*theirs, other.actor_id)

    def interrupt(self) -> JobRecord:
        """The same job, once no process is behind it any more."""
        place = ""
        if self.progress is not None:
            shown = self.progress
            place = f" at step {shown.done + 1} of {shown.total} ({shown.step})"
        when = "before it began" if self.state is JobState.QUEUED else f"while it ran{place}"
        text = f"the process behind it stopped {when}: {_AFTER_INTERRUPTION[self.kind]}"
        return replace(self, state=JobState.INTERRUPTED, error={"error": text})


def check_job_id(job_id: str) -> str:
    """Return an id that can name a file.

    Raises:
        BadRequestError: It cannot.
    """
    if not _ID.fullmatch(job_id):
        raise BadRequestError(
            f"'{job_id[:80]}' is not a job id — use 1 to 64 letters, digits, '-' and '_'"
        )
    return job_id


class JobRecords:
    """The jobs of one graph."""

    def __init__(self, texts: GraphTexts) -> None:
        self._texts = texts
        self._alive = AliveMarks(texts.root)

    def add(self, record: JobRecord) -> bool:
        """Write a new job down, durably; False when its id is taken."""
        return self._texts.write_text_if_absent(_file(record.job_id), _to_text(record))

    def replace(self, record: JobRecord) -> None:
        self._texts.write_text(_file(record.job_id), _to_text(record))

    @contextmanager
    def accept(self, job_id: str) -> Iterator[None]:
        """Be the server of a job while the block runs."""
        with self._alive.hold(_mark(job_id, _ACCEPTED)):
            yield

    @contextmanager
    def run(self, job_id: str) -> Iterator[None]:
        """Be the process that runs a job while the block runs."""
        with self._alive.hold(_mark(job_id, _RUNNING)):
            yield

    def find(self, job_id: str) -> JobRecord:
        """A job as it stands.

        Raises:
            NotFoundError: There is none, or it ended so long ago that its record is gone.
        """
        found = self._read(check_job_id(job_id))
        if found is None:
            raise NotFoundError(f"job '{job_id}' not found — the newest {KEPT_MAX} are kept")
        return found

    def list_all(self) -> list[JobRecord]:
        """Every job, newest first."""
        names = [each for each in self._texts.list_dir(DIRECTORY) if each.endswith(_ENDING)]
        read = (self._read(each.removesuffix(_ENDING)) for each in names)
        found = [each for each in read if each is not None]
        return sorted(found, key=lambda each: (each.created_at, each.job_id), reverse=True)

    def prune(self) -> None:
        """Forget the oldest jobs that have ended, beyond those that are kept."""
        ended = [each for each in self.list_all() if each.state.is_final]
        for record in ended[KEPT_MAX:]:
            self._texts.delete(_file(record.job_id))
            for holder in _HOLDERS:
                self._alive.remove(_mark(record.job_id, holder))

    def _read(self, job_id: str) -> JobRecord | None:
        record = self._read_text(job_id)
        if record is None or record.state.is_final or self._is_alive(job_id):
            return record
        # It may have ended between the two looks: its outcome is written before the mark goes.
        record = self._read_text(job_id)
        return record if record is None or record.state.is_final else record.interrupt()

    def _read_text(self, job_id: str) -> JobRecord | None:
        text = self._texts.read_text_if_exists(_file(job_id))
        return None if text is None else _from_text(job_id, text)

    def _is_alive(self, job_id: str) -> bool:
        return any(self._alive.is_held(_mark(job_id, holder)) for holder in _HOLDERS)


def _file(job_id: str) -> str:
    return f"{DIRECTORY}/{job_id}{_ENDING}"


def _mark(job_id: str, holder: str) -> str:
    return f"job-{job_id}-{holder}"


def _to_text(record: JobRecord) -> str:
    return json.dumps(record.to_json(), ensure_ascii=False)


def _from_text(job_id: str, text: str) -> JobRecord | None:
    """A record; None where the file is none: nothing depends on a job but the reader who asks."""
    try:
        members = json.loads(text)
        progress = members.pop("progress")
        return JobRecord(
            **{
                **members,
                "kind": JobKind(members["kind"]),
                "state": JobState(members["state"]),
                "progress": None if progress is None else UpkeepProgress(**progress),
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
