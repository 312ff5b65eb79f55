"""Documents: records in JSON that does not keep to one record a line.

Pretty-printed records, records side by side, and arrays of records are read from front to back.
Comment lines and the brackets and commas of an outer array are skipped between records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from omnigraph.dataclass import dataclass

RECORD_BYTES_MAX = 128 * 1024 * 1024
CHUNK_BYTES = 1 << 20

_BETWEEN = re.compile(rb"(?:[\s,\[\]]+|//[^\n]*(?:\n|\Z))*")
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[{}\[\]"]', re.DOTALL)
_OBJECT_ON_LINE = re.compile(rb'\n[ \t]*\{(\s*"(?:type|edge)"\s*:)?')
_DATA_BEFORE = re.compile(rb'"data"\s*:\s*\Z')
_DATA_BYTES = 64

BROKEN = -1


@dataclass(frozen=True, slots=True)
class RawRecord:
    """The text of one record and the line it starts on."""

    line: int
    text: bytes


def scan_records(read: Callable[[int], bytes]) -> Iterator[RawRecord]:
    """Yield every top-level JSON object that `read` delivers, chunk by chunk.

    What is no object comes as it is, to be reported; reading goes on at the next record.
    """
    buffer, line, at_end = read(CHUNK_BYTES).removeprefix(b"\xef\xbb\xbf"), 1, False
    while True:
        skipped = _between(buffer, at_end)
        line += buffer.count(b"\n", 0, skipped)
        buffer = buffer[skipped:]
        end = object_end(buffer)
        # What is no record ends with its line, and a comment may have just begun.
        is_open = end is None or (not buffer.startswith(b"{") and b"\n" not in buffer)
        if is_open and not at_end and len(buffer) <= RECORD_BYTES_MAX:
            more = read(max(CHUNK_BYTES, len(buffer)))
            at_end = not more
            buffer += more
            continue
        if not buffer:
            return
        if end is None or end == BROKEN:
            end = _resumption(buffer)
        yield RawRecord(line, buffer[:end])
        line += buffer.count(b"\n", 0, end)
        buffer = buffer[end:]


def object_end(buffer: bytes) -> int | None:
    """Where the object at the start of the buffer ends; None when more of it may follow.

    BROKEN when it cannot end well: a string that does not close on its line, or the head of another
    record inside this one, which no property can hold.
    """
    if not buffer:
        return None
    if not buffer.startswith(b"{"):
        return BROKEN
    intruder = _find_head(buffer)
    limit = len(buffer) if intruder is None else intruder
    depth = 0
    for token in _TOKEN.finditer(buffer, 0, limit):
        match token.group():
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
                if depth == 0:
                    return token.end()
            case b'"':
                is_cut = b"\n" not in buffer[token.end() : limit] and intruder is None
                return None if is_cut else BROKEN
    return None if intruder is None else BROKEN


def _find_head(buffer: bytes) -> int | None:
    """The line break before the next line that starts a record.

    No property holds an object: one that starts a line is a record, unless it is a `data`.
    """
    for found in _OBJECT_ON_LINE.finditer(buffer):
        start = found.start()
        if found[1] or not _DATA_BEFORE.search(buffer[max(0, start - _DATA_BYTES) : start]):
            return start
    return None


def _between(buffer: bytes, at_end: bool) -> int:
    """How much of the buffer lies between records for certain."""
    found = _BETWEEN.match(buffer)
    assert found is not None
    last_line = buffer.rfind(b"\n") + 1
    # A comment in the last line of a chunk may go on in the next chunk.
    if not at_end and found.end() >= last_line and buffer[last_line:].lstrip().startswith(b"/"):
        return last_line
    return found.end()


def _resumption(buffer: bytes) -> int:
    """Where to go on after what is no record: at the next line that starts one, or the next."""
    found = _find_head(buffer)
    if found is not None:
        return found
    newline = buffer.find(b"\n")
    return newline if newline > 0 and not buffer.startswith(b"{") else len(buffer)
