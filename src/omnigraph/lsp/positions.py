"""Positions: offsets of characters in a text, and the lines and units that editors count in.

A line ends with LF, CR or both, and with nothing else. Within a line an editor counts UTF-16 code
units, unless it and the server agree on another encoding.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, TypeAlias

from omnigraph.dataclass import dataclass

Position: TypeAlias = tuple[int, int]
"""A line and a unit in it, both from 0."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_UNITS: Final[Mapping[str, Callable[[str], int]]] = {
    "utf-8": lambda text: len(text.encode(errors="replace")),
    "utf-16": lambda text: len(text) + sum(each > "\uffff" for each in text),
    "utf-32": len,
}


@dataclass(frozen=True, slots=True)
class Lines:
    """A text by its lines; `encoding` says what a unit is."""

    text: str
    encoding: str = "utf-16"
    starts: tuple[int, ...] = field(init=False)
    ends: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        breaks = list(_LINE_END.finditer(self.text))
        object.__setattr__(self, "starts", (0, *(each.end() for each in breaks)))
        object.__setattr__(self, "ends", (*(each.start() for each in breaks), len(self.text)))

    def position(self, offset: int) -> Position:
        """The line and unit of a character; behind the last one, the end of the text."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.starts, offset) - 1
        return line, _UNITS[self.encoding](self.text[self.starts[line] : offset])

    def offset(self, line: int, unit: int) -> int:
        """The character at a position; a position outside of the text is the nearest inside."""
        if line >= len(self.starts):
            return len(self.text)
        start, end = self.starts[max(0, line)], self.ends[max(0, line)]
        count = _UNITS[self.encoding]
        counted, at = 0, start
        while at < end and counted < unit:
            counted += count(self.text[at])
            at += 1
        return at
