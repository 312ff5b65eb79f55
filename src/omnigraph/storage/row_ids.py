"""Row ids: which row id every place of a fragment has, as the fragment itself says.

Lance keeps them in its manifest, as ranges with few exceptions, in the `RowIdSequence` message of
its format. To find a row by its id Lance expands all of them and takes deleted rows out, which for
a million rows costs more than all else in a small change. Expanding them without that is cheap.

A place that is deleted keeps its row id here, and a row that moved has it in two places: the one in
the later fragment counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

RowIds = npt.NDArray[np.uint64]

_RANGE, _HOLES, _BITMAP, _SORTED, _ARRAY = 1, 2, 3, 4, 5
_WIDTHS = {1: "<u2", 2: "<u4", 3: "<u8"}
_NO_IDS: RowIds = np.empty(0, dtype=np.uint64)


class UnknownSequence(Exception):
    """The fragment says it in a form that is not known here."""


def physical_row_ids(metadata: Any) -> RowIds:
    """The row id of every place of a fragment, deleted ones too.

    Raises:
        UnknownSequence: It cannot be read here.
    """
    said = metadata.to_json().get("row_id_meta") or {}
    if "Inline" not in said:
        raise UnknownSequence
    parts = [_segment(value) for number, value in _fields(bytes(said["Inline"])) if number == 1]
    found = np.concatenate([_NO_IDS, *parts])
    if len(found) != metadata.physical_rows:
        raise UnknownSequence
    return found


def _segment(message: bytes | int) -> RowIds:
    ((kind, body),) = _fields(_bytes(message))
    if kind in (_SORTED, _ARRAY):
        return _encoded(_bytes(body))
    members = dict(_fields(_bytes(body)))
    start, end = _number(members.get(1, 0)), _number(members.get(2, 0))
    ids = np.arange(start, end, dtype=np.uint64)
    if kind == _RANGE:
        return ids
    if kind == _HOLES:
        holes = _encoded(_bytes(members.get(3, b"")))
        return np.delete(ids, (holes - np.uint64(start)).astype(np.int64))
    if kind == _BITMAP:
        bits = np.frombuffer(_bytes(members.get(3, b"")), dtype=np.uint8)
        is_there = np.unpackbits(bits, count=len(ids), bitorder="little").astype(bool)
        return np.compress(is_there, ids)
    raise UnknownSequence


def _encoded(message: bytes) -> RowIds:
    """Numbers as a base and what is added to it, in two, four or eight bytes each."""
    if not message:
        return _NO_IDS
    ((width, body),) = _fields(message)
    members = dict(_fields(_bytes(body)))
    data = _bytes(members.get(2, b""))
    if width not in _WIDTHS or len(data) % int(_WIDTHS[width][-1]):
        raise UnknownSequence
    added: npt.NDArray[np.unsignedinteger[Any]] = np.frombuffer(data, dtype=_WIDTHS[width])
    return added.astype(np.uint64) + np.uint64(_number(members.get(1, 0)))


# Protocol buffers, as far as these messages go


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        match tag & 7:
            case 0:
                value, place = _varint(data, place)
                yield tag >> 3, value
            case 2:
                size, place = _varint(data, place)
                if place + size > len(data):
                    raise UnknownSequence
                yield tag >> 3, data[place : place + size]
                place += size
            case _:
                raise UnknownSequence


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data):
            raise UnknownSequence
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise UnknownSequence
    return value


def _number(value: bytes | int) -> int:
    if isinstance(value, bytes):
        raise UnknownSequence
    return value
