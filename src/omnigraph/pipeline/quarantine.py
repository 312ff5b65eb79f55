"""Quarantine: records that were put aside, with the reasons, in a file to mend and load again.

Each line is `{"place", "reasons", "record"}`; `record` is the record as it came, as JSON where it
is JSON and as text where it is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import orjson

from omnigraph.errors import StorageError
from omnigraph.pipeline.model import Rejected


def write_quarantine(path: str, rejected: Iterable[tuple[str, Rejected]]) -> None:
    """Write the file, whole or not at all; none when nothing was put aside."""
    lines = [_line(place, each) for place, each in rejected]
    if not lines:
        return
    temporary = f"{path}.partial"
    try:
        with open(temporary, "wb") as file:
            file.writelines(lines)
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(
            f"the rejected records cannot be written to '{path}' — nothing was loaded; "
            "name another file with `quarantine`"
        ) from error


def _line(place: str, rejected: Rejected) -> bytes:
    try:
        record = orjson.loads(rejected.record)
    except orjson.JSONDecodeError:
        record = rejected.record
    value = {"place": place, "reasons": list(rejected.reasons), "record": record}
    return orjson.dumps(value) + b"\n"
