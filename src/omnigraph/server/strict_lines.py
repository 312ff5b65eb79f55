"""Strict lines: records by the narrow grammar of a raw load.

Each line that is not blank is one JSON object: `type` and `data`, or `edge`, `from`, `to` and
`data`, and no other member, none of them twice. What the members hold is the loader's to check.

Objects with a member twice cannot be told from others once they are parsed, and a parser that
tells is ten times slower. So the members that came out are counted against the colons that went
in; only lines with an escape or an object too deep to count are parsed the slow way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from omnigraph.errors import BadRequestError, ResourceLimitError

LINE_BYTES = "graph_batch_line_bytes"
_NODE = frozenset({"type", "data"})
_EDGE = frozenset({"edge", "from", "to", "data"})
_QUOTE, _COLON, _NEWLINE, _BACKSLASH = b'":\n\\'


def check_lines(data: bytes, line_bytes_max: int) -> str:
    """The text of a batch whose every line is one record.

    Raises:
        BadRequestError: A line is not; the first such line is named.
        ResourceLimitError: A line is too long.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1
        raise BadRequestError(f"line {place} is not UTF-8 — nothing was written") from None
    lines = data.split(b"\n")
    _refuse_long(lines, line_bytes_max)
    colons = _colons_by_line(data, len(lines))
    for number, line in enumerate(lines):
        if line and not line.isspace():
            _check_line(number + 1, line, int(colons[number]))
    return text


def _refuse_long(lines: Iterable[bytes], line_bytes_max: int) -> None:
    longest = max(map(len, lines))
    if longest > line_bytes_max:
        raise ResourceLimitError(
            LINE_BYTES, limit=line_bytes_max, actual=longest, advice="nothing was written"
        )


def _colons_by_line(data: bytes, count: int) -> npt.NDArray[np.int64]:
    """How many colons outside strings each line has; wrong for a line with a backslash or with a
    string that does not end, and those are looked at again."""
    characters = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(characters == _NEWLINE)
    starts = np.concatenate([[0], ends + 1])
    quotes = np.flatnonzero(characters == _QUOTE)
    colons = np.flatnonzero(characters == _COLON)
    line_of_colon = np.searchsorted(ends, colons)
    # A colon is inside a string when an odd number of quotes stands between it and its line start.
    before = np.searchsorted(quotes, colons) - np.searchsorted(quotes, starts[line_of_colon])
    outside = line_of_colon[before % 2 == 0]
    return np.bincount(outside, minlength=count).astype(np.int64)


def _check_line(number: int, line: bytes, colons: int) -> None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _line_error(
            number, f"is not one JSON object: {error.msg.partition(':')[0]}"
        ) from None
    if not isinstance(record, dict):
        raise _line_error(number, "is not a JSON object")
    allowed = _EDGE if "edge" in record else _NODE
    unknown = record.keys() - allowed
    if unknown:
        raise _line_error(number, f"has the member '{min(unknown)[:80]}', which no record has")
    if _BACKSLASH in line or _members(record) != colons:
        _refuse_repeated(number, line)


def _members(record: dict[str, Any]) -> int:
    """The members of a record and of its data; objects below that are not counted."""
    data = record.get("data")
    return len(record) + (len(data) if isinstance(data, dict) else 0)


def _refuse_repeated(number: int, line: bytes) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            repeated = next(name for name in names if names.count(name) > 1)
            raise _line_error(number, f"has the member '{repeated[:80]}' twice")
        return found

    json.loads(line, object_pairs_hook=unique)


def _line_error(number: int, what: str) -> BadRequestError:
    return BadRequestError(f"line {number} {what} — nothing was written")
