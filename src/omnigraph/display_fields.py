"""Fields: how a data class without a form of its own shows itself: facts, and small tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

from omnigraph.display import ROWS_MAX, Grid, Sheet, format_time


def make_field_sheet(shown: Any) -> Sheet:
    """The fields of a data class as a sheet, under the name of its class in words."""
    facts: dict[str, Any] = {}
    grids: list[Grid] = []
    for name, value in _list_fields(shown):
        grid = _make_grid(name, value)
        if grid is None:
            facts[_to_words(name)] = _to_fact(name, value)
        elif grid.rows:
            grids.append(grid)
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(shown).__name__).lower()
    return Sheet(title, facts, grids)


def _list_fields(value: Any) -> list[tuple[str, Any]]:
    return [
        (each.name, getattr(value, each.name))
        for each in fields(value)
        if not each.name.startswith("_")
    ]


def _make_grid(name: str, value: Any) -> Grid | None:
    """A mapping or a sequence as a table; None for what is one value."""
    if isinstance(value, Mapping):
        return _tabulate(_to_words(name), value.items(), len(value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return _tabulate(_to_words(name), ((None, each) for each in value), len(value))
    return None


def _tabulate(title: str, items: Iterable[tuple[Any, Any]], total: int) -> Grid:
    """One row per item; the fields of data classes are columns. Keys of None make no column."""
    shown = list(islice(items, ROWS_MAX))
    has_keys = any(key is not None for key, _ in shown)
    first = shown[0][1] if shown else None
    names = [each for each, _ in _list_fields(first)] if _is_instance(first) else []
    columns = [*([title] if has_keys else []), *map(_to_words, names)]
    columns = columns if names else [*columns, "" if has_keys else title]
    rows = [[*([key] if has_keys else []), *_to_cells(value, names)] for key, value in shown]
    return Grid(columns, rows, total)


def _to_cells(value: Any, names: Sequence[str]) -> list[Any]:
    if not names:
        return [_to_fact("", value)]
    return [_to_fact(name, getattr(value, name, None)) for name in names]


def _to_fact(name: str, value: Any) -> Any:
    if name.endswith("_at") and isinstance(value, int):
        return format_time(value)
    if hasattr(value, "make_sheet"):
        return value.make_sheet().title
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value


def _is_instance(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _to_words(name: str) -> str:
    return name.replace("_", " ")
