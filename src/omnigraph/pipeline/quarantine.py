"""Quarantine: rejected records with their reasons, in a file to correct and load again.

Each line is `{"place", "reasons", "record"}`; `record` is the record as it came, as JSON where it
is JSON, and as text where it is not or has a member twice. When the caller names no file, it is
kept with the graph until it is removed by hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field

import orjson

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.pipeline.members import find_repeated
from omnigraph.pipeline.model import Rejected
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.ulids import new_ulid

DIRECTORY = "__quarantine"


@dataclass(slots=True)
class Quarantine:
    """Where one load quarantines records: the file `path`, or one of its own below the graph."""

    texts: GraphTexts
    path: str | None
    _name: str = field(default_factory=lambda: f"{DIRECTORY}/{new_ulid()}.jsonl")
    written_to: str | None = None

    def write(self, rejected: Iterable[tuple[str, Rejected]]) -> None:
        """Write the file, whole or not at all; none when nothing was rejected.

        Raises:
            StorageError: It cannot be written.
        """
        lines = [_line(location, each) for location, each in rejected]
        if not lines:
            return
        if self.path is None:
            self.texts.write_text(self._name, b"".join(lines).decode())
            self.written_to = self.texts.root.child(self._name)
        else:
            _write_file(self.path, lines)
            self.written_to = self.path

    def withdraw(self) -> None:
        """Remove the file that a failed load kept with the graph."""
        if self.path is None and self.written_to is not None:
            # The error that made the load fail must reach the caller, not this one.
            with suppress(OmnigraphError):
                self.texts.delete(self._name)


def _write_file(path: str, lines: list[bytes]) -> None:
    temporary = f"{path}.partial"
    try:
        with open(temporary, "wb") as file:
            file.writelines(lines)
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"the rejected records cannot be written to '{path}' — nothing was loaded; "
            "name another file with `quarantine`"
        ) from error


def _line(location: str, rejected: Rejected) -> bytes:
    value = {
        "place": location,
        "reasons": list(rejected.reasons),
        "record": _read_record(rejected.record),
    }
    return orjson.dumps(value) + b"\n"


def _read_record(text: str) -> object:
    """The record as JSON, if that is all of it: of a member that is there twice, one would go."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return record if find_repeated(text.encode(), record) is None else text
