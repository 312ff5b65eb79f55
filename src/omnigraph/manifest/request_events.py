"""Events of merge requests: what was said and done about each, one immutable text per event.

    __merge_requests/{number}/{sequence:06}.json        an event, sealed by a checksum
    __merge_requests/__states/{number}-{sequence}-…     the request ended or was opened again then

An event is written in one step and only if there is none of its sequence, so of two writers one
has to look again at what the other has said. Nothing is changed afterwards. The number of a
request is claimed by its first event.

The names in `__states` spare a list the reading of requests that ended long ago. They are hints:
`…-merged` and `…-closed` are written after the event of that sequence, `…-open` before it, so the
highest sequence may call a request open that is not, and never hides one that is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.json_form import JsonForm
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__merge_requests"
OPEN = "open"
_STATES = f"{DIRECTORY}/__states"
_FORMAT = 1
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError)


@dataclass(frozen=True, slots=True)
class RequestEvent(JsonForm):
    """One event: what happened, when (microseconds since 1970), and who did it."""

    sequence: int
    kind: str
    at: int
    actor: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)


class RequestEvents:
    """The events of all merge requests of a graph."""

    def __init__(self, texts: GraphTexts) -> None:
        self._texts = texts

    def claim(self, first: RequestEvent) -> int:
        """Begin a request with its first event; returns the number that it got."""
        number = max(self.numbers(), default=0) + 1
        while not self.append(number, first):
            number += 1
        return number

    def append(self, number: int, event: RequestEvent) -> bool:
        """Write an event, durably and whole; False when its sequence is taken."""
        text = _to_text(number, event)
        return self._texts.write_text_if_absent(_file(number, event.sequence), text)

    def read(self, number: int) -> list[RequestEvent]:
        """The events of a request in their order; none when there is no such request.

        Raises:
            StorageError: A file is damaged, or missing between others.
        """
        return [self._read_event(number, each) for each in self._list_sequences(number)]

    def _list_sequences(self, number: int) -> range:
        """All up to the last one that is there: of those before it, none may be missing."""
        names = self._texts.list_dir(f"{DIRECTORY}/{number}")
        found = [int(stem) for each in names if (stem := each.removesuffix(".json")).isdecimal()]
        return range(1, max(found, default=0) + 1)

    def _read_event(self, number: int, sequence: int) -> RequestEvent:
        file = _file(number, sequence)
        text = self._texts.read_text_if_exists(file)
        try:
            return _from_text(text or "", number, sequence)
        except _UNREADABLE:
            what = "is missing" if text is None else "cannot be read"
            raise StorageError(
                f"'{file}' {what} — restore it from a backup; without it nothing can be said or "
                f"done about merge request {number}"
            ) from None

    def numbers(self) -> list[int]:
        """The numbers of all requests, in order."""
        folders = self._texts.list_folders(DIRECTORY)
        return sorted(int(each) for each in folders if each.isdecimal())

    def note_state(self, number: int, sequence: int, state: str) -> None:
        """Hint what an event of that sequence makes of a request."""
        self._texts.write_text(f"{_STATES}/{number}-{sequence}-{state}", "")

    def read_hints(self) -> dict[int, str]:
        """Number → the state that the last hint tells, of requests that have one."""
        found: dict[int, tuple[int, str]] = {}
        for each in self._texts.list_dir(_STATES):
            number, _, rest = each.partition("-")
            sequence, _, state = rest.partition("-")
            if number.isdecimal() and sequence.isdecimal():
                hint = int(sequence), state
                found[int(number)] = max(hint, found.get(int(number), hint))
        return {number: state for number, (_, state) in found.items()}

    def find_damaged(self) -> dict[str, str]:
        """File → what is wrong with it."""
        found = {}
        for number in self.numbers():
            for sequence in self._list_sequences(number):
                try:
                    self._read_event(number, sequence)
                except OmnigraphError as error:
                    found[_file(number, sequence)] = f"is damaged: {error.message}"
        return found


def _file(number: int, sequence: int) -> str:
    return f"{DIRECTORY}/{number}/{sequence:06}.json"


def _to_text(number: int, event: RequestEvent) -> str:
    value = {"format": _FORMAT, "number": number, **event.to_json()}
    return json.dumps(value | {"checksum": _checksum(value)})


def _from_text(text: str, number: int, sequence: int) -> RequestEvent:
    value: dict[str, Any] = json.loads(text)
    if value.pop("checksum") != _checksum(value):
        raise ValueError("its checksum does not match")
    if (value["number"], value["sequence"]) != (number, sequence):
        raise ValueError("it is the event of another place")
    return RequestEvent(sequence, value["kind"], value["at"], value["actor"], value["facts"])


def _checksum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
