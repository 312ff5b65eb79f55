"""Rooms: arrays that are added to in place, so that a version of one more row copies one row.

A room has space behind what is used of it. Versions share it, and each sees only its own length, so
that what one of them adds changes nothing for the others. Where two versions go on from the same
length, as on two branches, the second moves to a room of its own:

    >>> ages = Room.of(np.array([30, 31]))
    >>> later = ages.append(2, np.array([32]))
    >>> later is ages, later.array[:3].tolist()
    (True, [30, 31, 32])
    >>> other = ages.append(2, np.array([50]))
    >>> other is ages, other.array[:3].tolist(), ages.array[:3].tolist()
    (False, [30, 31, 50], [30, 31, 32])
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.index.arrays import AnyArray

SPARE_SHARE = 8
"""A room has space for one more in so many, and is moved to a larger one when that is used up."""
_SPARE_MIN = 256
_TEXT_BYTES_MAX = 2**31 - 1


class Room:
    """`array[:used]` is filled, and never changes."""

    __slots__ = ("_lock", "_used", "array")

    def __init__(self, array: AnyArray, used: int) -> None:
        self.array = array
        self._used = used
        self._lock = Lock()

    @classmethod
    def of(
        cls,
        values: AnyArray,
        more: AnyArray | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> Room:
        """A room that holds these values, and those after them."""
        length = len(values) + (0 if more is None else len(more))
        array = np.empty(length + max(length // SPARE_SHARE, _SPARE_MIN), dtype or values.dtype)
        array[: len(values)] = values
        if more is not None:
            array[len(values) : length] = more
        return cls(array, length)

    @classmethod
    def empty(cls, length: int) -> Room:
        """The space of a room of this length, for what comes behind values that lie elsewhere."""
        return cls(np.empty(max(length // SPARE_SHARE, _SPARE_MIN), dtype=np.int64), 0)

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)

    def append(self, length: int, more: AnyArray) -> Room:
        """The room with `more` after the first `length` values: this one, if they fit here."""
        with self._lock:
            end = length + len(more)
            if self._used == length and end <= len(self.array):
                self.array[length:end] = more
                self._used = end
                return self
        return Room.of(self.array[:length], more)


def make_rooms(array: pa.Array) -> tuple[Room, ...] | None:
    """The buffers of an Arrow array as rooms; None for a type that is copied instead."""
    width = _width(array.type)
    if width is not None:
        return (Room.of(_view(array.buffers()[1], width, array.offset, len(array))),)
    if not pa.types.is_string(array.type):
        return None
    offsets, data = _texts(array)
    return Room.of(offsets), Room.of(data)


def append_array(
    array: pa.Array, rooms: tuple[Room, ...], tail: pa.Array
) -> tuple[pa.Array, tuple[Room, ...]] | None:
    """An array that lies in rooms, with a few values after it; None when a text grows too long."""
    length, end = len(array), len(array) + len(tail)
    width = _width(array.type)
    if width is not None:
        rooms = (rooms[0].append(length, _view(tail.buffers()[1], width, tail.offset, len(tail))),)
    else:
        offsets, data = _texts(tail)
        used = int(rooms[0].array[length])
        if used + len(data) > _TEXT_BYTES_MAX:
            return None
        rooms = (
            rooms[0].append(length + 1, offsets[1:] + np.int32(used)),
            rooms[1].append(used, data),
        )
    return fill_rooms(array, rooms, tail, end), rooms


def fill_rooms(
    array: pa.Array, rooms: tuple[Room, ...], tail: pa.Array | None, length: int
) -> pa.Array:
    """The Arrow array of this length that lies in rooms; what is null comes from its two parts."""
    nulls = array.null_count + (0 if tail is None else tail.null_count)
    is_valid = None
    if nulls:
        parts = [array.is_valid()] if tail is None else [array.is_valid(), tail.is_valid()]
        is_valid = pa.concat_arrays(parts).buffers()[1]
    buffers = [is_valid, *(pa.py_buffer(room.array) for room in rooms)]
    return pa.Array.from_buffers(array.type, length, buffers, nulls)


def _width(data_type: pa.DataType) -> np.dtype[Any] | None:
    """How wide a number or an instant is stored; None for any other type."""
    is_plain = (
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_date(data_type)
        or pa.types.is_timestamp(data_type)
    )
    return np.dtype(f"u{data_type.bit_width // 8}") if is_plain else None


def _texts(array: pa.Array) -> tuple[AnyArray, AnyArray]:
    """The offsets of an array of texts, counted from 0, and its bytes."""
    _, offsets, data = array.buffers()
    if len(array) == 0:
        return np.zeros(1, dtype=np.int32), np.empty(0, dtype=np.uint8)
    ends = _view(offsets, np.dtype(np.int32), array.offset, len(array) + 1)
    first, last = int(ends[0]), int(ends[-1])
    return ends - ends[0], _view(data, np.dtype(np.uint8), first, last - first)


def _view(buffer: pa.Buffer | None, dtype: np.dtype[Any], first: int, count: int) -> AnyArray:
    if buffer is None or count == 0:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=count, offset=first * dtype.itemsize)
