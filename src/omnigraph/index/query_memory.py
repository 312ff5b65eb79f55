"""Query memory: the bytes that a query holds, refused before they are built.

    with bounded_memory():    what is held inside of the block is counted, and bounded
    with letting_go():        what is held from here on is let go of when this block ends
    hold(size)                bytes that stay until then
    require_bytes(size)       bytes that are about to be built beside them
    measure_take(…)           how many bytes some values of a column are, without taking them

A table is shared by every query that reads it, so what takes values out of it cannot know for which
query it does: the count belongs to the thread that runs the query. Outside of such a block, as in
a task of Spark, each array is held to the limit by itself.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequestError, ResourceLimitError
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.machine import measure_memory, measure_peak

BYTES_MAX = 2 * 1024**3
BYTES_VARIABLE = "OMNIGRAPH_QUERY_BYTES_MAX"
BYTES_HELD = "the number of bytes to hold"
_BYTES_MAX_LEAST = 64 * 1024**2
_SMALL = 64 * 1024
"""So little is not counted at all, and no limit is lower."""
UNMEASURED_ROWS = 16
"""So few values are taken without a look at how large they are: a text is a record's at most."""
_ROWS_PER_VALUE = 4
"""Where a column has no more values than this for each that is taken, its longest is looked for."""
_ROWS_READ_FIRST = 4_096
_BYTES_READ = 64 * 1024**2
_ADVICE = (
    "return or collect fewer properties, above all long texts and vectors, add a filter or a "
    f"limit, or return counts; {BYTES_VARIABLE} sets the limit"
)
_OVERFLOWS = re.compile(r"offset overflow|overflowed? .*capacity|would overflow", re.IGNORECASE)
_COLUMN_BYTES_MAX = 2**31 - 1


class _Memory:
    """What one query holds. The limit is read when something is not small: most queries are."""

    __slots__ = ("_limit", "held")

    def __init__(self, limit: int | None = None, held: int = 0) -> None:
        self._limit = limit
        self.held = held

    @property
    def limit(self) -> int:
        if self._limit is None:
            self._limit = bytes_max()
        return self._limit

    @property
    def room(self) -> int:
        return self.limit - self.held


_memory: ContextVar[_Memory | None] = ContextVar("query_memory", default=None)


class bounded_memory:  # noqa: N801 - a function to its callers; a generator would cost more
    """Count what a query holds, from nothing on, and tell in our words that memory ran out.

    Raises:
        ResourceLimitError: It would hold more than the limit, or than there is.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _memory.set(_Memory())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _memory.reset(self._token)
        if isinstance(error, MemoryError):
            raise _out_of_memory(error) from None
        if isinstance(error, pa.ArrowCapacityError) or (
            isinstance(error, pa.ArrowInvalid) and _OVERFLOWS.search(str(error))
        ):
            raise column_too_large(_COLUMN_BYTES_MAX + 1) from None


@contextmanager
def letting_go() -> Iterator[None]:
    """Count what the block holds no more once it has ended."""
    memory = _memory.get()
    before = 0 if memory is None else memory.held
    yield
    if memory is not None:
        memory.held = before


@contextmanager
def little_room(size: int) -> Iterator[None]:
    """Inside of the block, refuse what takes more than this: the caller has a way of less."""
    memory = _memory.get() or _Memory()
    token = _memory.set(_Memory(min(memory.limit, memory.held + size), memory.held))
    try:
        yield
    finally:
        _memory.reset(token)


def hold(size: int) -> None:
    """Count bytes that are held until the query ends.

    Raises:
        ResourceLimitError: They are too many, beside those that it holds already.
    """
    require_bytes(size)
    memory = _memory.get()
    if memory is not None:
        memory.held += size


def require_bytes(size: int) -> None:
    """Refuse to build what does not fit beside that which the query holds.

    Raises:
        ResourceLimitError: It would be more than the limit.
    """
    if size > _SMALL:
        memory = _memory.get() or _Memory()
        if size > memory.room:
            actual = memory.held + size
            raise ResourceLimitError(BYTES_HELD, limit=memory.limit, actual=actual, advice=_ADVICE)


def bytes_max() -> int:
    """How many bytes a query may hold: unless the environment says otherwise, 2 GiB, and a quarter
    of a machine that has less than 8."""
    return read_limit(BYTES_VARIABLE, _default_bytes_max())


@cache
def _default_bytes_max() -> int:
    memory = measure_memory()
    return min(BYTES_MAX, max(memory // 4, _BYTES_MAX_LEAST)) if memory else BYTES_MAX


def read_limit(variable: str, default: int) -> int:
    """The limit that the environment names, or the default.

    Raises:
        BadRequestError: It says something that is not a number.
    """
    text = os.environ.get(variable)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise BadRequestError(f"{variable} is '{text}', expected a positive number")
    return int(text)


def column_too_large(size: int) -> ResourceLimitError:
    """The error of a column of texts or lists that is beyond what Arrow's offsets can count."""
    return ResourceLimitError(
        "the number of bytes or values of one column",
        limit=_COLUMN_BYTES_MAX,
        actual=size,
        advice="no setting changes this limit: return the column in parts, by a filter or a limit",
    )


def _out_of_memory(error: MemoryError) -> ResourceLimitError:
    had = measure_peak()
    return ResourceLimitError(
        "the number of bytes that this process needs for the query",
        limit=had,
        actual=had + _asked_for(error),
        advice=f"the system gave no more: return less, or set {BYTES_VARIABLE} below what is free",
    )


def _asked_for(error: MemoryError) -> int:
    """The bytes of the array that found no room, where the error says so."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and dtype is not None:
        return int(math.prod(shape) * dtype.itemsize)
    found = re.search(r"of size (\d+)", str(error))
    return int(found[1]) if found else 1


# Measuring


def measure(arrays: Iterable[pa.Array]) -> int:
    """How many bytes the values of these arrays are."""
    return sum(each.nbytes for each in arrays)


def take(column: pa.Array, positions: IntArray, indices: pa.Array) -> pa.Array:
    """The values at these positions, `indices` as Arrow has them, if they may be held."""
    count = len(positions)
    if count > UNMEASURED_ROWS and count * column.nbytes > _SMALL:
        _require_taken(column, positions)
    return column.take(indices)


def _require_taken(column: pa.Array, positions: IntArray) -> None:
    count = len(positions)
    room = min((_memory.get() or _Memory()).room, _COLUMN_BYTES_MAX)
    # What is quick to know first: a look at each text takes a sixth of the time to take it.
    if count * column.nbytes <= room:
        return
    is_text = pa.types.is_string(column.type)
    if is_text and count * _ROWS_PER_VALUE >= len(column):
        longest = int(np.max(np.diff(_offsets(column)), initial=0))
        if count * (longest + 4) <= room:
            return
    size = measure_take(column, positions)
    require_bytes(size)
    if size > _COLUMN_BYTES_MAX and is_text:
        raise column_too_large(size)


def read_in_parts(read: Callable[[IntArray], pa.Table], positions: IntArray) -> pa.Table:
    """What `read` gives for these positions: of many some first, and then about so many bytes."""
    rows = _ROWS_READ_FIRST
    if len(positions) <= rows:
        return read(positions)
    parts: list[pa.Table] = []
    size = first = 0
    while first < len(positions):
        part = read(positions[first : first + rows])
        size += part.nbytes
        require_bytes(size)
        parts.append(part)
        first += rows
        rows = max(1, min(2 * rows, rows * _BYTES_READ // max(part.nbytes, 1)))
    return pa.concat_tables(parts)


def measure_take(column: pa.Array, positions: IntArray) -> int:
    """How many bytes the values at these positions are, each as often as it is named."""
    width = _width(column.type)
    if width is not None:
        return len(positions) * width
    return _measure(column, positions, positions + 1)


def _measure(array: pa.Array, starts: IntArray, ends: IntArray) -> int:
    """How many bytes the values of these runs are."""
    kind = array.type
    width = _width(kind)
    if width is not None:
        return int(np.sum(ends - starts, dtype=np.int64)) * width
    if pa.types.is_fixed_size_list(kind):
        first = starts + array.offset
        return _measure(
            array.values, first * kind.list_size, (ends + array.offset) * kind.list_size
        )
    if pa.types.is_struct(kind):
        fields = (array.field(place) for place in range(kind.num_fields))
        return sum(_measure(field, starts, ends) for field in fields)
    own = 4 * int(np.sum(ends - starts, dtype=np.int64))
    if pa.types.is_list(kind):
        offsets = _offsets(array)
        return own + _measure(array.values, offsets[starts], offsets[ends])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = _offsets(array)
        return own + int(np.sum(offsets[ends] - offsets[starts], dtype=np.int64))
    return own + int(array.nbytes)


def _offsets(array: pa.Array) -> AnyArray:
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array) + 1, dtype=np.int32)
    return np.frombuffer(buffer, np.int32)[array.offset : array.offset + len(array) + 1]


def _width(kind: pa.DataType) -> int | None:
    """The bytes of each value where all have as many."""
    if pa.types.is_fixed_size_list(kind):
        width = _width(kind.value_type)
        return None if width is None else width * kind.list_size
    return kind.bit_width // 8 or 1 if pa.types.is_primitive(kind) else None
