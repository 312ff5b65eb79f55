"""Bad rows: what is wrong with which row. All are counted, the first are kept.

A load of a million wrong rows has to say so without a million messages, so every check returns
`BadRows`: the first few, ready to be read, and how many there are in all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from omnigraph.dataclass import dataclass
from omnigraph.errors import ConstraintError

SHOWN_MAX = 100
EXCERPT_CHARACTERS_MAX = 60


@dataclass(frozen=True, slots=True)
class BadRow:
    """One reason to refuse one row. `index` counts from 0 within the batch that was checked."""

    index: int
    type_name: str
    property: str | None
    value_excerpt: str
    reason: str
    location: str | None = None

    def __str__(self) -> str:
        where = self.location if self.location is not None else f"row {self.index + 1}"
        return f"{where}: {self.describe()}"

    def describe(self) -> str:
        """What is wrong with which property, without the location."""
        subject = self.type_name if self.property is None else f"{self.type_name}.{self.property}"
        # Constraint texts name their subject already; conversion reasons do not.
        said = self.reason if subject in self.reason else f"{subject}: {self.reason}"
        return said + (f" (value {self.value_excerpt})" if self.value_excerpt else "")


@dataclass(frozen=True, slots=True)
class BadRows:
    """The first reasons found, in order, and how many there were. False when there are none."""

    first: tuple[BadRow, ...] = ()
    total: int = 0

    def __bool__(self) -> bool:
        return self.total > 0

    def __iter__(self) -> Iterator[BadRow]:
        return iter(self.first)

    @classmethod
    def at(
        cls,
        indexes: npt.NDArray[np.int64],
        describe: Callable[[int], BadRow],
        limit: int | None = SHOWN_MAX,
    ) -> BadRows:
        """Describe the rows at `indexes`, in that order, and no more of them than `limit`."""
        return cls(tuple(describe(int(index)) for index in indexes[:limit]), len(indexes))

    @classmethod
    def of_batch(cls, parts: Iterable[BadRows], limit: int | None = SHOWN_MAX) -> BadRows:
        """Join what several checks found in one batch: by row, then in the order of the checks."""
        joined = cls.in_order(parts, limit=None)
        ordered = sorted(joined.first, key=lambda row: row.index)
        return cls(tuple(ordered[:limit]), joined.total)

    @classmethod
    def in_order(cls, parts: Iterable[BadRows], limit: int | None = SHOWN_MAX) -> BadRows:
        """Join the findings of several batches, the earlier batch first."""
        first: list[BadRow] = []
        total = 0
        for part in parts:
            total += part.total
            if limit is None or len(first) < limit:
                first.extend(part.first)
        return cls(tuple(first[:limit]), total)

    def raise_if_any(self) -> None:
        """Refuse the write when there is a bad row.

        Raises:
            BadRowsError: There is one. Nothing was written.
        """
        if self:
            raise BadRowsError(self)


NO_BAD_ROWS = BadRows()


class BadRowsError(ConstraintError):
    """Rows break a rule of the schema. `bad_rows` has the first of them and the count."""

    def __init__(self, bad_rows: BadRows) -> None:
        super().__init__(_text(bad_rows))
        self.bad_rows = bad_rows


def _text(bad_rows: BadRows) -> str:
    unseen = bad_rows.total - len(bad_rows.first)
    if bad_rows.total == 1 and not unseen:
        return f"{bad_rows.first[0]} — nothing was written"
    lines = [f"{bad_rows.total} problems in the rows:"]
    lines += [f"  {row}" for row in bad_rows.first]
    if unseen:
        lines.append(f"  ... and {unseen} more")
    return "\n".join([*lines, "nothing was written"])


def excerpt(value: object) -> str:
    """Return a short, printable form of `value`, in JSON where it has one."""
    match value:
        case None:
            return ""
        case str():
            return f'"{shorten(value)}"'
        case bool():
            return "true" if value else "false"
        # Python refuses to print an integer of thousands of digits.
        case int() if value.bit_length() > 200:
            return f"an integer of {value.bit_length()} bits"
        case list() | tuple():
            shown = ", ".join(excerpt(item) or "null" for item in value[:8])
            return _cut(f"[{shown}{', ...' if len(value) > 8 else ''}]")
        case dict():
            return "an object"
        case bytes():
            return f"{len(value)} bytes"
        case _:
            return _cut(str(value))


def shorten(text: str) -> str:
    """Return the beginning of `text` on one line, without quotes around it."""
    # A lone surrogate cannot be written to a terminal or a response; its escape can.
    start = json.dumps(text[:EXCERPT_CHARACTERS_MAX], ensure_ascii=False)[1:-1]
    shown = start.encode(errors="backslashreplace").decode()
    return shown + ("..." if len(text) > EXCERPT_CHARACTERS_MAX else "")


def _cut(text: str) -> str:
    if len(text) <= EXCERPT_CHARACTERS_MAX:
        return text
    return text[:EXCERPT_CHARACTERS_MAX] + "..."
