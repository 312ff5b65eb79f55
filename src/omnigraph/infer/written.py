"""Written: dates and numbers of a CSV file that are written otherwise than a load reads them.

A mapping has one setting of each kind for a file, so a file that mixes two ways keeps its texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass

_PATTERNS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
_DATE_SHAPE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{2,4}$"
_DECIMAL_SHAPE = r"^[+-]?\d+(,\d+)?$"


@dataclass(frozen=True, slots=True)
class Written:
    """How a file is written, as settings of a mapping; None where it is as usual."""

    dates: str | None = None
    decimal: str | None = None

    def list_settings(self) -> Iterator[tuple[str, str]]:
        if self.dates is not None:
            yield "dates", self.dates
        if self.decimal is not None:
            yield "decimal", self.decimal


USUAL = Written()


def read_written(rows: pa.Table) -> tuple[pa.Table, Written]:
    """The rows with such dates and numbers as what they mean, and how they are written."""
    types = rows.schema.types
    dates = None if any(map(pa.types.is_temporal, types)) else _find_pattern(rows)
    has_points = any(map(pa.types.is_floating, types))
    decimal = "," if not has_points and any(map(_is_decimal, rows.columns)) else None
    for number, name in enumerate(rows.column_names):
        column = rows.column(number)
        if dates is not None and dates in _patterns_of(column):
            read = _read_dates(column, dates)
        elif decimal is not None and _is_decimal(column):
            read = pc.replace_substring(column, ",", ".").cast(pa.float64())
        else:
            continue
        rows = rows.set_column(number, name, read)
    return rows, Written(dates, decimal)


def _find_pattern(rows: pa.Table) -> str | None:
    """The one way that all dates of a file can be read; None when there are several, or none."""
    found = [patterns for each in rows.columns if (patterns := _patterns_of(each))]
    common = [each for each in _PATTERNS if all(each in patterns for patterns in found)]
    return common[0] if found and len(common) == 1 else None


def _patterns_of(column: pa.ChunkedArray) -> list[str]:
    """The patterns that every value of a column follows."""
    if not _has_shape(column, _DATE_SHAPE):
        return []
    texts = pc.unique(column.drop_null()).to_pylist()
    return [each for each in _PATTERNS if _are_dates(texts, each)]


def _are_dates(texts: Iterable[str], pattern: str) -> bool:
    try:
        # As a load reads them: Arrow takes the 31st of February for the 2nd of March.
        return all(datetime.strptime(text, pattern) for text in texts)
    except ValueError:
        return False


def _read_dates(column: pa.ChunkedArray, pattern: str) -> pa.Array:
    coded = column.combine_chunks().dictionary_encode()
    days = [datetime.strptime(text, pattern).date() for text in coded.dictionary.to_pylist()]
    return pa.array(days, pa.date32()).take(coded.indices)


def _is_decimal(column: pa.ChunkedArray) -> bool:
    return _has_shape(column, _DECIMAL_SHAPE)


def _has_shape(column: pa.ChunkedArray, shape: str) -> bool:
    """Whether there are values, all of them texts of a shape."""
    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return False
    return bool(pc.all(pc.match_substring_regex(column, shape)).as_py())
