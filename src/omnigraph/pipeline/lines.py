"""Lines: the lines of a block, sorted by how they begin, without looking at each one.

Records of one type usually begin with the same bytes. The head of the first line not yet sorted is
compared with all other lines at once, so the cost is a few passes over the starts of the lines.
"""

from __future__ import annotations

import re
from dataclasses import field

import numpy as np
import numpy.typing as npt

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.documents import BROKEN, object_end

_HEAD = re.compile(rb'\s*\{\s*"(type|edge)"\s*:\s*"([^"\\]*)"')
_HEADS_MAX = 64
_NEWLINE, _BRACE = b"\n{"

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lines:
    """Where each line of `data` starts and ends, and its number."""

    data: bytes = field(repr=False)
    starts: Indexes
    ends: Indexes
    numbers: Indexes

    def text(self, index: int) -> bytes:
        return self.data[self.starts[index] : self.ends[index]]

    def join(self, indexes: Indexes) -> bytes:
        """These lines, which are in order, one after the other."""
        breaks = np.flatnonzero(np.diff(indexes) != 1)
        firsts = indexes[np.concatenate([[0], breaks + 1])]
        lasts = indexes[np.concatenate([breaks, [len(indexes) - 1]])]
        view = memoryview(self.data)
        runs = zip(self.starts[firsts].tolist(), self.ends[lasts].tolist(), strict=True)
        return b"\n".join([view[start:end] for start, end in runs])

    def may_span(self, number: int) -> bool:
        """Whether a line that is no JSON by itself may be part of a record of several lines."""
        index = int(number - self.numbers[0])
        rest = self.data[self.starts[index] :].lstrip(b" \t")
        if not rest.startswith(b"{"):
            return True
        end = object_end(rest)
        if end == BROKEN:
            return False
        # A range ends where a line ends, except at the end of the file: nothing follows there.
        return b"\n" in rest if end is None else b"\n" in rest[:end]

    def held(self) -> Indexes:
        """The lines that hold something: neither blank lines nor comments."""
        lengths = self.ends - self.starts
        raw = np.frombuffer(self.data, dtype=np.uint8)
        heads = raw[np.minimum(self.starts, max(len(raw) - 1, 0))] if len(raw) else raw
        is_object = (lengths > 0) & (heads == _BRACE)
        is_held = is_object
        for index in np.flatnonzero(~is_object).tolist():
            is_held[index] = not _is_blank(self.text(index))
        return np.flatnonzero(is_held)

    def classify(self) -> tuple[dict[tuple[str, str], Indexes], Indexes]:
        """(`type` or `edge`, its value) → the lines that begin so, in order; and the other lines.

        Of the others those that hold something: comments are left out.
        """
        heads: dict[tuple[str, str], list[Indexes]] = {}
        alone: list[Indexes] = []
        pending = np.arange(len(self.starts))
        while len(pending):
            first = int(pending[0])
            found = _HEAD.match(self.data, int(self.starts[first]), int(self.ends[first]))
            if found is None or sum(map(len, heads.values())) >= _HEADS_MAX:
                alone.append(pending[:1])
                pending = pending[1:]
                continue
            same = self._begins_with(pending, found.group())
            head = (found[1].decode(), found[2].decode(errors="replace"))
            heads.setdefault(head, []).append(pending[same])
            pending = pending[~same]
        by_head = {head: np.sort(np.concatenate(parts)) for head, parts in heads.items()}
        kept = [each for each in alone if not _is_blank(self.text(int(each[0])))]
        return by_head, np.concatenate(kept) if kept else np.empty(0, np.int64)

    def _begins_with(self, indexes: Indexes, head: bytes) -> npt.NDArray[np.bool_]:
        raw = np.frombuffer(self.data, dtype=np.uint8)
        same = self.ends[indexes] - self.starts[indexes] >= len(head)
        starts = self.starts[indexes]
        for offset, byte in enumerate(head):
            same[same] = raw[starts[same] + offset] == byte
        return same


def split_lines(data: bytes, first_line: int) -> Lines:
    """Find the lines of `data`, the first of which has the number `first_line`."""
    raw = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, len(raw))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1]) if len(ends) else ends
    return Lines(data, starts, ends, np.arange(first_line, first_line + len(ends)))


def _is_blank(line: bytes) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith(b"//")
