"""Windows: the rows that two versions of a table may differ in, a bounded number of ids at a time.

A comparison is told in the order of ids, and files have another. Sorting everything first would
hold everything. A window is the next ids in order: each pass over the streams keeps the lowest ids
that it meets and forgets the others. So memory does not depend on how much differs, and a pass
is repeated once per window; it reads ids, never whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.differences import NO_DIFFERENCES, Differences
from omnigraph.dataclass import dataclass

WINDOW_ROWS = 65_536
COMPARED_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class Source:
    """A stream of rows that can be read again. One of the columns is `id`."""

    schema: pa.Schema
    read: Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True, slots=True)
class Window:
    """Rows of each source, with every id from one up to another; `end` is None for the last."""

    tables: tuple[pa.Table, ...]
    end: str | None


def read_window(sources: Sequence[Source], start: str | None, most: int) -> Window:
    """The rows with the lowest ids from `start` on, about `most` of them, and whole per id."""
    kept = [[each.schema.empty_table()] for each in sources]
    end: str | None = None
    rows = 0
    for parts, source in zip(kept, sources, strict=True):
        for part in source.read():
            chosen = _cut(part, start, end)
            if chosen.num_rows == 0:
                continue
            parts.append(chosen)
            rows += chosen.num_rows
            if rows > 2 * most:
                end = _drop_highest(kept, most)
                rows = sum(each.num_rows for one in kept for each in one)
    if rows > most:
        end = _drop_highest(kept, most)
    return Window(tuple(pa.concat_tables(parts) for parts in kept), end)


def _cut(part: pa.Table, start: str | None, end: str | None) -> pa.Table:
    if start is not None:
        part = part.filter(pc.greater_equal(part["id"], start))
    if end is not None:
        part = part.filter(pc.less(part["id"], end))
    return part


def _drop_highest(kept: list[list[pa.Table]], most: int) -> str:
    """Leave about `most` rows with the lowest ids, and say which id is the first to be left out."""
    ids = pa.chunked_array(
        [chunk for parts in kept for each in parts for chunk in each["id"].chunks]
    )
    flat = ids.combine_chunks()
    at = pc.partition_nth_indices(flat, pivot=most)[most]
    end = str(flat[at.as_py()])
    for parts in kept:
        # Copied: a slice would hold the rows that are left out.
        parts[:] = [_cut(pa.concat_tables(parts), None, end).combine_chunks()]
    return end


class WindowedDifferences:
    """The rows in which two versions differ, found as they are read, in the order of ids.

    `find` lists the candidates of a window, `check` drops those that are equal. What was read last
    is kept for a reader that goes on from there. Thread-safe: threads may do the same work twice.
    """

    def __init__(
        self,
        find: Callable[[str | None], tuple[Differences, str | None]],
        check: Callable[[Differences], Differences],
    ) -> None:
        self._find = find
        self._check = check
        self._window: tuple[str | None, Differences, str | None] | None = None
        self._checked: tuple[str | None, Differences, str | None] | None = None
        self._counts: tuple[int, int, int] | None = None

    def list_parts(self, start: str | None = None) -> Iterator[pa.Table]:
        """The rows from an id on, a bounded number at a time; none of the parts is empty."""
        counts, begin, at = (0, 0, 0), start, start
        while True:
            found, end = self._read_part(at)
            if found:
                inserts, updates, deletes = found.counts
                counts = counts[0] + inserts, counts[1] + updates, counts[2] + deletes
                yield found.rows
            if end is None:
                break
            at = end
        if begin is None:
            self._counts = counts

    def is_whole(self) -> Differences | None:
        """Everything, if the first window is everything; None if there is more."""
        found, end = self._read_window(None)
        return self._check(found) if end is None else None

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many inserts, updates and deletes there are; reads everything the first time."""
        while self._counts is None:
            for _ in self.list_parts():
                pass
        return self._counts

    def __len__(self) -> int:
        return sum(self.counts)

    def __bool__(self) -> bool:
        return any(True for _ in islice(self.list_parts(), 1))

    def _read_part(self, start: str | None) -> tuple[Differences, str | None]:
        """The next rows that differ, and where those after them begin."""
        last = self._checked
        if last is None or not _covers(last, start):
            window, window_end = self._read_window(start)
            part = Differences(window.rows.slice(0, COMPARED_ROWS))
            is_last = len(part) == len(window)
            end = window_end if is_last else str(window.rows["id"][COMPARED_ROWS])
            last = start, self._check(part) if part else NO_DIFFERENCES, end
            self._checked = last
        return _from(last[1], start), last[2]

    def _read_window(self, start: str | None) -> tuple[Differences, str | None]:
        last = self._window
        if last is None or not _covers(last, start):
            last = start, *self._find(start)
            self._window = last
        return _from(last[1], start), last[2]


def _covers(read: tuple[str | None, Differences, str | None], start: str | None) -> bool:
    begin, _, end = read
    if start is None:
        return begin is None
    return (begin is None or begin <= start) and (end is None or start < end)


def _from(found: Differences, start: str | None) -> Differences:
    if start is None:
        return found
    return Differences(found.rows.filter(pc.greater_equal(found.rows["id"], start)))
