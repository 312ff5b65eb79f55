"""Row ids: the row id of every position of a fragment, as the fragment itself records them.

Lance keeps them in its manifest, as ranges with few exceptions, in the `RowIdSequence` message of
its format. To find a row by its id Lance expands all of them and takes deleted rows out, which for
a million rows costs more than all else in a small change. Where a row lies within a range is
arithmetic, however long the range is.

A position whose row is deleted keeps its row id here, and a row that moved has it at two positions:
the one in the later fragment counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.storage.protobuf import LENGTH_DELIMITED, VARINT, Value, encode, read_fields

RowIds = npt.NDArray[np.uint64]

_RANGE, _HOLES, _BITMAP, _SORTED, _ARRAY = 1, 2, 3, 4, 5
_WIDTHS = {1: "<u2", 2: "<u4", 3: "<u8"}
_PLAIN = 3
"""Numbers in full, which have no base."""
_NO_IDS: RowIds = np.empty(0, dtype=np.uint64)


class UnknownSequence(Exception):
    """The fragment records its row ids in a form that is not known here."""


def physical_row_ids(metadata: Any, offsets: npt.NDArray[np.int64] | None = None) -> RowIds:
    """The row id of every position of a fragment, deleted ones too; or of some positions.

    Raises:
        UnknownSequence: They are recorded in another form.
    """
    recorded = metadata.to_json().get("row_id_meta") or {}
    if "Inline" not in recorded:
        raise UnknownSequence
    segments = [value for number, value in _fields(bytes(recorded["Inline"])) if number == 1]
    if offsets is not None and len(segments) == 1:
        first = _start_of_range(segments[0], metadata.physical_rows)
        if first is not None:
            return (offsets + first).astype(np.uint64)
    found = np.concatenate([_NO_IDS, *map(_segment, segments)])
    if len(found) != metadata.physical_rows:
        raise UnknownSequence
    return found if offsets is None else found[offsets]


def locate_row_ids(
    recorded: Value, rows: int, wanted: RowIds
) -> tuple[npt.NDArray[np.int64], RowIds]:
    """Which of some row ids a fragment of so many rows records, and the position of each.

    `recorded` is its sequence; `wanted` are in order, each of them once. Both answers go together.

    Raises:
        UnknownSequence: They are recorded in another form.
    """
    found, positions = [np.empty(0, dtype=np.int64)], [_NO_IDS]
    first = 0
    for number, segment in _fields(recorded):
        if number == 1:
            which, here, count = _locate(segment, wanted)
            found.append(which)
            positions.append(here + np.uint64(first))
            first += count
    if first != rows:
        raise UnknownSequence
    return np.concatenate(found), np.concatenate(positions)


def encode_row_ids(row_ids: RowIds) -> bytes:
    """The sequence of these row ids, which are in order, each of them once."""
    start, end = int(row_ids[0]), int(row_ids[-1]) + 1
    if end - start == len(row_ids):
        segment = _encode(_RANGE, encode(1, VARINT, start) + encode(2, VARINT, end))
    else:
        width, form = next(
            each for each in _WIDTHS.items() if (end - start - 1) >> (8 * int(each[1][-1])) == 0
        )
        base = 0 if width == _PLAIN else start
        added = (row_ids - np.uint64(base)).astype(form).tobytes()
        numbers = (encode(1, VARINT, base) if base else b"") + _encode(2, added)
        segment = _encode(_SORTED, _encode(width, numbers))
    return _encode(1, segment)


def _encode(number: int, message: bytes) -> bytes:
    return encode(number, LENGTH_DELIMITED, message)


def _locate(message: Value, wanted: RowIds) -> tuple[npt.NDArray[np.int64], RowIds, int]:
    """The same for one segment, and how many positions that has."""
    ((kind, body),) = _fields(message)
    if kind in (_RANGE, _HOLES):
        members = dict(_fields(body))
        start, end = _number(members.get(1, 0)), _number(members.get(2, 0))
        low, high = np.searchsorted(wanted, np.array([start, end], dtype=np.uint64))
        which, inside = np.arange(low, high), wanted[low:high]
        holes = _decode_numbers(_bytes(members.get(3, b""))) if kind == _HOLES else _NO_IDS
        earlier = np.searchsorted(holes, inside)
        is_there = earlier == np.searchsorted(holes, inside, side="right")
        positions = inside - np.uint64(start) - earlier.astype(np.uint64)
        return which[is_there], positions[is_there], end - start - len(holes)
    ids = _segment(message)
    if len(wanted) == 0:
        return np.empty(0, dtype=np.int64), _NO_IDS, len(ids)
    which = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
    at = np.flatnonzero(wanted[which] == ids)
    return which[at], at.astype(np.uint64), len(ids)


def _start_of_range(message: Value, length: int) -> int | None:
    """The first of the ids of a segment that is one range of this length; None of any other."""
    ((kind, body),) = _fields(message)
    members = dict(_fields(body)) if kind == _RANGE else {}
    first, end = _number(members.get(1, 0)), _number(members.get(2, 0))
    return first if kind == _RANGE and end - first == length else None


def _segment(message: Value) -> RowIds:
    ((kind, body),) = _fields(message)
    if kind in (_SORTED, _ARRAY):
        return _decode_numbers(_bytes(body))
    members = dict(_fields(body))
    start, end = _number(members.get(1, 0)), _number(members.get(2, 0))
    ids = np.arange(start, end, dtype=np.uint64)
    if kind == _RANGE:
        return ids
    if kind == _HOLES:
        holes = _decode_numbers(_bytes(members.get(3, b"")))
        return np.delete(ids, (holes - np.uint64(start)).astype(np.int64))
    if kind == _BITMAP:
        bits = np.frombuffer(_bytes(members.get(3, b"")), dtype=np.uint8)
        is_there = np.unpackbits(bits, count=len(ids), bitorder="little").astype(bool)
        return np.compress(is_there, ids)
    raise UnknownSequence


def _decode_numbers(message: bytes) -> RowIds:
    """Numbers as a base and what is added to it, in two, four or eight bytes each."""
    if not message:
        return _NO_IDS
    ((width, body),) = _fields(message)
    members = dict(_fields(body))
    data = _bytes(members.get(2, b""))
    if width not in _WIDTHS or len(data) % int(_WIDTHS[width][-1]):
        raise UnknownSequence
    added: npt.NDArray[np.unsignedinteger[Any]] = np.frombuffer(data, dtype=_WIDTHS[width])
    return added.astype(np.uint64) + np.uint64(_number(members.get(1, 0)))


def _fields(message: Value) -> Iterator[tuple[int, Value]]:
    try:
        for number, wire_type, value in read_fields(message):
            if wire_type not in (VARINT, LENGTH_DELIMITED):
                raise UnknownSequence
            yield number, value
    except ValueError:
        raise UnknownSequence from None


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise UnknownSequence
    return value


def _number(value: Value) -> int:
    if isinstance(value, bytes):
        raise UnknownSequence
    return value
