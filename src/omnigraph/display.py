"""Display: an object as a sheet of facts and small tables, in a terminal and in a notebook.

As text a sheet has at most 20 lines, so that evaluating an object never floods a screen. As HTML
a table has at most 50 rows. Both say how many rows are left out, and no value in them is markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Protocol

from omnigraph.dataclass import dataclass

# Classes of every package are shown, few programs show one: `html_text` is imported by what shows.

LINES_MAX = 20
ROWS_MAX = 50
_CELL_CHARACTERS_MAX = 60
_LINE_CHARACTERS_MAX = 160
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STYLE = "text-align:left;vertical-align:top;white-space:pre-wrap"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `rows` may hold only the first of `total` rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    total: int | None = None

    def count(self) -> int:
        return len(self.rows) if self.total is None else self.total


@dataclass(frozen=True, slots=True)
class Sheet:
    """What an object shows of itself; `text` is shown as it is, below the tables."""

    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    grids: Sequence[Grid] = ()
    text: str = ""


class Displayed(Protocol):
    """An object that can be shown."""

    def make_sheet(self) -> Sheet: ...


def show_text(shown: Displayed) -> str:
    """The sheet of an object as text, for `__repr__`."""
    sheet = shown.make_sheet()
    head = [_fit_line(line) for line in [sheet.title, *_fact_lines(sheet.facts)]][:LINES_MAX]
    room = LINES_MAX - len(head)
    lines: list[str] = []
    for place, grid in enumerate(sheet.grids):
        share = (room - len(lines)) // (len(sheet.grids) - place + bool(sheet.text))
        lines += _grid_lines(grid, share)
    lines += _cut_lines(sheet.text.splitlines(), room - len(lines))
    return "\n".join([*head, *lines])


def show_html(shown: Displayed) -> str:
    """The sheet of an object as HTML, for `_repr_html_`."""
    return sheet_to_html(shown.make_sheet())


def sheet_to_html(sheet: Sheet) -> str:
    """A sheet as HTML that runs nothing and asks for nothing."""
    from omnigraph.html_text import escape_text

    facts = "".join(f"<br>{escape_text(line)}" for line in _fact_lines(sheet.facts))
    text = f"<pre>{escape_text(sheet.text)}</pre>" if sheet.text else ""
    grids = "".join(map(_grid_html, sheet.grids))
    return f"<div><p><b>{escape_text(sheet.title)}</b>{facts}</p>{grids}{text}</div>"


def to_datetime(microseconds: int) -> datetime:
    """The time of a commit, which is stored in microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=microseconds)


def format_time(microseconds: int | None) -> str:
    """A time to the second, in UTC."""
    if microseconds is None:
        return ""
    return to_datetime(microseconds).strftime("%Y-%m-%d %H:%M:%S")


def count_noun(number: int, noun: str) -> str:
    """A number with its noun, in the plural where that is due."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _fact_lines(facts: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {_to_text(value)}" for name, value in facts.items() if value is not None]


def _grid_lines(grid: Grid, lines_max: int) -> list[str]:
    """A head, a rule and rows in at most so many lines; nothing where not even a row fits."""
    if not grid.rows or lines_max < 4:
        return [] if not grid.count() or lines_max < 1 else [f"({grid.count():,} rows)"]
    fits = grid.count() <= lines_max - 2
    shown = list(islice(grid.rows, lines_max - (2 if fits else 3)))
    cells = [
        [*(_fit_cell(each) for each in row[:-1]), _fit_cell(row[-1], _LINE_CHARACTERS_MAX)]
        for row in [grid.columns, *shown]
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [" | ".join(_pad(row, widths)).rstrip() for row in cells]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    if not fits:
        lines.append(_left_out(grid.count() - len(shown)))
    return [_fit_line(line) for line in lines]


def _grid_html(grid: Grid) -> str:
    from omnigraph.html_text import escape_text

    if not grid.rows:
        return ""
    head = "".join(f'<th style="{_STYLE}">{escape_text(each)}</th>' for each in grid.columns)
    shown = list(islice(grid.rows, ROWS_MAX))
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in shown)
    rest = grid.count() - len(shown)
    more = f"<p>{_left_out(rest)}</p>" if rest > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _html_cell(value: Any) -> str:
    from omnigraph.html_text import escape_text

    return f'<td style="{_STYLE}"><bdi>{escape_text(_to_text(value))}</bdi></td>'


def _cut_lines(lines: list[str], lines_max: int) -> list[str]:
    if len(lines) <= lines_max:
        return [_fit_line(line) for line in lines]
    shown = lines[: max(lines_max - 1, 0)]
    return [*map(_fit_line, shown), f"… {len(lines) - len(shown)} more lines"][:lines_max]


def _left_out(count: int) -> str:
    return f"… and {count:,} more"


def _pad(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]


def _fit_cell(value: Any, characters_max: int = _CELL_CHARACTERS_MAX) -> str:
    from omnigraph.html_text import show_controls

    text = show_controls(_to_text(value)).replace("\n", "\\n").replace("\t", "\\t")
    return _cut(text, characters_max)


def _fit_line(line: str) -> str:
    from omnigraph.html_text import show_controls

    return _cut(show_controls(line), _LINE_CHARACTERS_MAX)


def _cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else f"{text[: characters_max - 1]}…"


def _to_text(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return "" if value is None else str(value)
