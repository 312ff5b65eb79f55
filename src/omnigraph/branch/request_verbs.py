"""What is said and done about merge requests: each verb is one event at the end of the list.

    read the events → complete the record of a merge that died → decide → write the next event
                                                                        ↳ taken? read again

An event is only written behind the events it was decided on. So what an approval, a merge or a
close was based on is what is there, however many writers there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from omnigraph.branch.merge_request import (
    ALREADY_UP_TO_DATE,
    Attempt,
    BranchPresence,
    EventKind,
    Merged,
    MergeRequest,
    RequestState,
    read_request,
)
from omnigraph.branch.request_review import find_source
from omnigraph.commit_note import MESSAGE_BYTES_MAX
from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    ConflictError,
    MergeRequestNotFound,
    MergeRequestNotOpen,
    ResourceLimitError,
    SourceMoved,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import Coordinator, ManifestState
from omnigraph.manifest.request_events import RequestEvent, RequestEvents
from omnigraph.manifest.rows import find_known_commit, row_to_commit

TITLE_CHARACTERS_MAX = 200
TEXT_BYTES_MAX = 20_000
REVIEWERS_MAX = 50
NAME_CHARACTERS_MAX = 200
EVENTS_MAX = 2_000
"""How many events a request takes; what ends it is taken beyond."""

_ENDS = (EventKind.CLOSED, EventKind.MERGING, EventKind.MERGED)


@dataclass(frozen=True, slots=True)
class Said:
    """What a verb adds to a request."""

    kind: EventKind
    facts: Mapping[str, Any]


Decide = Callable[[MergeRequest], Said | None]
"""What to add to a request as it is now; None when there is nothing to add."""


class Requests:
    """The merge requests of a graph: reading them, and adding to them."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._events: RequestEvents = coordinator.request_events

    # Reading

    def find(self, number: int) -> MergeRequest:
        """A request as it is now.

        Raises:
            MergeRequestNotFound: There is none of that number.
        """
        events = self._events.read(number) if number > 0 else []
        if not events:
            raise MergeRequestNotFound(number)
        return read_request(number, events, self._find_merge)

    def list_all(
        self, state: RequestState | None, *, before: int | None = None
    ) -> Iterator[MergeRequest]:
        """Requests in a state, or all, newest first. Few others are read."""
        hints = {} if state is None else self._events.read_hints()
        for number in reversed(self._events.numbers()):
            if before is not None and number >= before:
                continue
            # A hint of an end is true, save that a closed request can turn out to be merged.
            if state is not None and not _may_be(state, hints.get(number)):
                continue
            events = self._events.read(number)
            if events:
                found = read_request(number, events, self._find_merge)
                if state in (None, found.state):
                    yield found

    def _find_merge(self, attempt: Attempt) -> Merged | None:
        """What brought a head into a branch, if it is there."""
        try:
            target = self._coordinator.fresh(attempt.target)
        except BranchNotFound:
            return None
        is_there = find_known_commit(target, attempt.source_head) is not None
        return _find_merge_of(target, attempt.source_head) if is_there else None

    # Writing

    def open(
        self, source: ManifestState, target: str, facts: Mapping[str, Any], actor: str | None
    ) -> MergeRequest:
        """Begin a request."""
        said = {
            **facts,
            "source": source.branch,
            "source_id": source.branch_id,
            "source_head": source.head.commit_id,
            "target": target,
        }
        first = RequestEvent(1, EventKind.OPENED, _now(), actor, said)
        return self.find(self._events.claim(first))

    def add(self, number: int, actor: str | None, decide: Decide) -> MergeRequest:
        """Add what is decided on a request as it is; again when another writer was first."""
        while True:
            request = self.complete_record(number)
            said = decide(request)
            if said is None:
                return request
            if len(request.events) >= EVENTS_MAX and said.kind not in _ENDS:
                raise ResourceLimitError(
                    f"number of events of merge request {number}",
                    limit=EVENTS_MAX,
                    actual=len(request.events) + 1,
                    advice="nothing was added; merge or close it",
                )
            if self._append(request, said, actor):
                return self.find(number)

    def complete_record(self, number: int) -> MergeRequest:
        """A request; if it is merged and no event says so, its writer died: write that event."""
        while True:
            request = self.find(number)
            is_told = any(each.kind == EventKind.MERGED for each in request.events)
            if request.state is not RequestState.MERGED or is_told:
                return request
            facts = {"commit_id": request.commit_id, "outcome": request.outcome}
            self._append(request, Said(EventKind.MERGED, facts), _last_merger(request))

    def _append(self, request: MergeRequest, said: Said, actor: str | None) -> bool:
        sequence = len(request.events) + 1
        if said.kind is EventKind.REOPENED:
            self._events.note_state(request.number, sequence, RequestState.OPEN)
        event = RequestEvent(sequence, said.kind, _now(), actor, said.facts)
        if not self._events.append(request.number, event):
            return False
        if said.kind is EventKind.MERGED:
            hit(Failpoint.MERGE_REQUEST_AFTER_MERGED)
            self._events.note_state(request.number, sequence, RequestState.MERGED)
        # An attempt to merge may be under way: then the history of the target has the last word.
        if said.kind is EventKind.CLOSED and not request.attempts:
            self._events.note_state(request.number, sequence, RequestState.CLOSED)
        return True


def require_open(request: MergeRequest) -> None:
    """Refuse what is only done to an open request.

    Raises:
        MergeRequestNotOpen: It is merged or closed.
    """
    if request.state is not RequestState.OPEN:
        raise MergeRequestNotOpen(request.number, request.state, request.commit_id)


def require_source(
    coordinator: Coordinator, request: MergeRequest, head: str | None
) -> ManifestState:
    """The branch to merge; with `head`, as the caller has looked at it.

    Raises:
        ConflictError: It was deleted, or deleted and made again.
        SourceMoved: It has other commits by now.
    """
    found = find_source(coordinator, request)
    if isinstance(found, BranchPresence):
        what = "deleted" if found is BranchPresence.DELETED else "deleted and made again"
        raise ConflictError(
            f"branch '{request.source}' of merge request {request.number} was {what} — nothing "
            "was done; close the request, and open another one for what there is to merge"
        )
    if head is not None and head != found.head.commit_id:
        raise SourceMoved(found.branch, expected=head, actual=found.head.commit_id)
    return found


# What callers say, checked


def check_title(title: str) -> str:
    """The title, in one line."""
    checked = title.strip()
    if not checked or not checked.isprintable():
        raise BadRequestError(
            f"the title is {title[:60]!r}, expected one line of printable text — nothing was done"
        )
    if len(checked) > TITLE_CHARACTERS_MAX:
        raise ResourceLimitError(
            "title in characters",
            limit=TITLE_CHARACTERS_MAX,
            actual=len(checked),
            advice="nothing was done; say the rest in the description",
        )
    assert len(checked.encode()) <= MESSAGE_BYTES_MAX  # it becomes the message of the commit
    return checked


def check_text(what: str, text: str | None) -> str | None:
    """A text of some length, or none."""
    if text is None or not text.strip():
        return None
    size = len(text.encode())
    if size > TEXT_BYTES_MAX:
        raise ResourceLimitError(
            f"{what} in bytes", limit=TEXT_BYTES_MAX, actual=size, advice="nothing was done"
        )
    return text


def check_reviewers(reviewers: Sequence[str]) -> list[str]:
    """Names of actors, each once."""
    found = list(dict.fromkeys(each.strip() for each in reviewers))
    if len(found) > REVIEWERS_MAX:
        raise ResourceLimitError(
            "number of reviewers", limit=REVIEWERS_MAX, actual=len(found), advice="name fewer"
        )
    for name in found:
        if not name or not name.isprintable() or len(name) > NAME_CHARACTERS_MAX:
            raise BadRequestError(f"a reviewer is {name[:60]!r}, expected the name of an actor")
    return found


def _may_be(state: RequestState, hint: str | None) -> bool:
    """Whether a request with this hint has to be read to know."""
    return hint in (None, RequestState.OPEN, state)


def _last_merger(request: MergeRequest) -> str | None:
    return next(
        (each.actor for each in reversed(request.events) if each.kind == EventKind.MERGING), None
    )


def _find_merge_of(target: ManifestState, head: str) -> Merged:
    """The first commit of a branch that merged a head which it has."""
    rows = target.commit_rows
    near = rows.filter(pc.match_substring(pc.fill_null(rows["metadata"], ""), head))
    merges = [
        each for each in map(row_to_commit, near.to_pylist()) if each.merged_parent_id == head
    ]
    if not merges:  # it came with later commits of the source
        return Merged(None, ALREADY_UP_TO_DATE)
    first = min(merges, key=lambda each: each.order)
    return Merged(first.commit_id, str(first.properties.get("merge_outcome", "merged")))


def _now() -> int:
    return time.time_ns() // 1_000
