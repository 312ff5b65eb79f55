"""CSV records: where each record of a CSV text starts and ends, by the rules of Arrow's parser.

A quote opens a field only where a field starts; inside, two quotes are one. A line break ends a
record unless it is inside quotes. Where every quote that could open a field does, which is checked,
counting quotes tells what is inside: no loop. Other texts (`5" pipe`) are read field by field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.blocks import refuse_endless

Offsets = npt.NDArray[np.int64]

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a text that are not blank: their bytes, and the line each starts on.

    `is_open` says that the last one ends inside quotes.
    """

    starts: Offsets
    ends: Offsets
    lines: Offsets
    is_open: bool


def find_records(data: bytes, delimiter: bytes, first_line: int = 1) -> Records:
    """Find the records of a text that starts with one."""
    breaks, is_open = find_breaks(data, delimiter)
    raw = np.frombuffer(data, dtype=np.uint8)
    starts = np.concatenate([np.zeros(1, np.int64), breaks + 1])
    ends = np.append(breaks, len(raw))
    # A return before the line feed is part of the break.
    has_return = (ends > starts) & (raw[np.maximum(ends, 1) - 1] == _RETURN) if len(raw) else False
    ends = ends - has_return
    lines = first_line + np.arange(len(starts))
    if np.count_nonzero(raw == _NEWLINE) > np.count_nonzero(raw[breaks] == _NEWLINE):
        newlines = np.flatnonzero(raw == _NEWLINE)
        lines = first_line + np.searchsorted(newlines, starts)
    held = ends > starts
    return Records(starts[held], ends[held], lines[held], is_open)


def find_breaks(data: bytes, delimiter: bytes) -> tuple[Offsets, bool]:
    """Where records end: the last byte of each line break; and whether the text ends in quotes."""
    raw = np.frombuffer(data, dtype=np.uint8)
    breaks = np.flatnonzero(raw == _NEWLINE)
    if b"\r" in data:
        breaks = np.sort(np.concatenate([breaks, _lone_returns(raw)]))
    quotes = _find_quotes(data, delimiter)
    if quotes is None:
        return _read_fields(data, delimiter)
    is_outside = np.searchsorted(quotes, breaks) % 2 == 0
    return breaks[is_outside], bool(len(quotes) % 2)


def _find_quotes(data: bytes, delimiter: bytes) -> Offsets | None:
    """Where the quotes are; None when one that would open a field is in the middle of it."""
    raw = np.frombuffer(data, dtype=np.uint8)
    quotes: Offsets = np.flatnonzero(raw == _QUOTE)
    starts_quoted = len(quotes) > 0 and quotes[0] == 0
    before = raw[quotes[2 if starts_quoted else 0 :: 2] - 1]
    return quotes if _may_precede_fields(delimiter)[before].all() else None


@cache
def _may_precede_fields(delimiter: bytes) -> npt.NDArray[np.bool_]:
    """By byte: whether a quote behind it opens a field, or is the second of two inside one."""
    table = np.zeros(256, np.bool_)
    table[[ord(delimiter), _NEWLINE, _RETURN, _QUOTE]] = True
    return table


def count_lines(data: bytes, end: int | None = None) -> int:
    """How many line breaks a text has, up to a byte of it."""
    raw = np.frombuffer(data, dtype=np.uint8)[:end]
    return int(np.count_nonzero(raw == _NEWLINE) or np.count_nonzero(raw == _RETURN))


def _lone_returns(raw: Any) -> Offsets:
    returns = np.flatnonzero(raw == _RETURN)
    followers = raw[np.minimum(returns + 1, len(raw) - 1)]
    # One at the very end is followed by itself, and ends a record as well.
    lone: Offsets = returns[followers != _NEWLINE]
    return lone


def _read_fields(data: bytes, delimiter: bytes) -> tuple[Offsets, bool]:
    """The same, field by field, for texts with quotes in the middle of fields."""
    breaks: list[int] = []
    is_open = False
    for field in _fields(delimiter).finditer(data):
        is_open = field["open"] is not None
        if field["break"]:
            breaks.append(field.end() - 1)
    return np.array(breaks, dtype=np.int64), is_open


@cache
def _fields(delimiter: bytes) -> re.Pattern[bytes]:
    mark = re.escape(delimiter)
    quoted = rb'"(?:[^"]|"")*(?:"|(?P<open>\Z))'
    return re.compile(rb"(?:%s)?[^%s\r\n]*(?:%s|(?P<break>\r?\n|\r)|\Z)" % (quoted, mark, mark))


def cut_blocks(
    read: Callable[[int], bytes], path: str, delimiter: bytes, part_bytes: int
) -> Iterator[bytes]:
    """Yield whole records, about `part_bytes` at a time, of what `read` gives."""
    data = read(part_bytes)
    while data:
        more = read(part_bytes)
        end = last_break(data, delimiter) if more else len(data)
        if end:
            yield data[:end]
        data = data[end:] + more
        if not end:
            refuse_endless(data, path)


def last_break(data: bytes, delimiter: bytes) -> int:
    """How many bytes of a text, which goes on, are whole records."""
    if b"\r" not in data:
        quotes = _find_quotes(data, delimiter)
        if quotes is not None:
            return _last_newline(data, quotes) + 1
    breaks, _ = find_breaks(data, delimiter)
    # A return at the end may be the first half of a break.
    kept = breaks[breaks < len(data) - 1] if data.endswith(b"\r") else breaks
    return int(kept[-1]) + 1 if len(kept) else 0


def _last_newline(data: bytes, quotes: Offsets) -> int:
    """Where the last line feed outside quotes is; -1 when there is none."""
    at = data.rfind(b"\n")
    while at >= 0 and (before := int(np.searchsorted(quotes, at))) % 2:
        # Inside quotes: go on in front of them.
        at = data.rfind(b"\n", 0, int(quotes[before - 1]))
    return at
