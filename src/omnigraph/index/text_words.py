"""Words: many texts as one array of bytes and where each one ends, in memory or mapped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import AnyArray
from omnigraph.index.sealed_file import Section


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Texts in UTF-8, whose bytes compare like the texts themselves."""

    ends: Section
    data: Section

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def nbytes(self) -> int:
        return self.ends.nbytes + self.data.nbytes

    def find(self, word: str) -> range:
        """Where a word stands, if the words are sorted; some may occur more than once."""
        wanted = word.encode()
        first = last = self._bisect(wanted)
        while last < len(self) and self._word(last) == wanted:
            last += 1
        return range(first, last)

    def take(self, places: AnyArray) -> pa.LargeStringArray:
        """The words at these places."""
        starts, stops = self.ends.at(places), self.ends.at(places + 1)
        lengths = stops - starts
        ends = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)
        return _to_array(ends, self.data.at(np.repeat(starts, lengths) + within))

    def to_array(self) -> pa.LargeStringArray:
        return _to_array(self.ends.all(), self.data.all())

    def to_list(self) -> list[str]:
        texts: list[str] = self.to_array().to_pylist()
        return texts

    def _bisect(self, wanted: bytes) -> int:
        """How many words come before one."""
        first, last = 0, len(self)
        while first < last:
            middle = (first + last) // 2
            if self._word(middle) < wanted:
                first = middle + 1
            else:
                last = middle
        return first

    def _word(self, place: int) -> bytes:
        start, stop = self.ends.run(place, place + 2).tolist()
        return self.data.run(start, stop).tobytes()


def pack_words(words: Sequence[str] | pa.Array | pa.ChunkedArray) -> Words:
    """Pack texts, none of which is null."""
    if isinstance(words, pa.ChunkedArray):
        words = words.combine_chunks()
    array = pa.array(words, pa.large_utf8()) if not isinstance(words, pa.Array) else words
    array = array.cast(pa.large_utf8())
    if len(array) == 0:
        return Words(Section(np.zeros(1, np.int64)), Section(np.zeros(0, np.uint8)))
    _, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int64, len(array) + 1, array.offset * 8)
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Words(Section(offsets - offsets[0]), Section(content[offsets[0] : offsets[-1]]))


def _to_array(ends: AnyArray, data: AnyArray) -> pa.LargeStringArray:
    buffers = (
        pa.py_buffer(np.ascontiguousarray(ends, np.int64)),
        pa.py_buffer(np.ascontiguousarray(data)),
    )
    return pa.LargeStringArray.from_buffers(len(ends) - 1, *buffers)
