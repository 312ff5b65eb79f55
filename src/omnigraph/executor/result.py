"""Query results: Arrow inside, the exact JSON of the language outside.

I32 U32 I64 U64   a number at full width      Date       "2026-04-14"
F32 F64           a number; F32 is widened,   DateTime   "2026-04-14T09:30:00.000Z"
                  NaN and infinities are      list       an array
                  texts                       Vector     an array of numbers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import date, datetime, timedelta
from importlib import import_module
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.display import ROWS_MAX, Grid, Sheet, count_noun, show_html, show_text
from omnigraph.errors import BadRequestError, OmnigraphError

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class QueryResult:
    """The rows of one read, and the snapshot they are from."""

    table: pa.Table
    query_name: str
    branch: str
    commit_id: str | None
    manifest_version: int
    elapsed_ms: float
    make_frame: Callable[[pa.Table], Any] | None = field(default=None, repr=False)
    make_picture: Callable[[int], Any] | None = field(default=None, repr=False)
    has_entities: bool = field(default=False, repr=False)
    """Whether a column is a node or a path, so that a notebook draws the rows."""

    @property
    def columns(self) -> list[str]:
        """Column names in projected order."""
        return list(self.table.column_names)

    def rows(self) -> list[dict[str, Any]]:
        """JSON-ready rows. Of two columns of one name the last one shows."""
        return list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = self.table.column_names
        for batch in self.table.to_batches():
            columns = [json_values(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                yield dict(zip(names, row, strict=True))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __bool__(self) -> bool:
        """A result is there, also when it has no rows."""
        return True

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_pandas(self) -> Any:
        """A pandas frame, when pandas is installed."""
        _require("pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A polars frame, when polars is installed."""
        return _require("polars").from_arrow(self.table)

    def to_spark(self) -> Any:
        """A Spark DataFrame; of a read that ran on Spark, without bringing its rows here."""
        if self.make_frame is None:
            raise BadRequestError("these rows have no graph to find Spark by — use `.to_arrow()`")
        return self.make_frame(self.table)

    def graph(self, limit: int = 500) -> Any:
        """A picture of the nodes and edges that the read matched, of at most so many rows.

        A query without aggregates is drawn for the rows it returned, as the graph was then.
        """
        if self.make_picture is None:
            raise BadRequestError("these rows have no graph to draw — draw with `graph.picture`")
        return self.make_picture(limit)

    def to_networkx(self, limit: int = 500) -> Any:
        """The nodes and edges that the read matched as a `networkx.MultiDiGraph`."""
        return self.graph(limit).to_networkx()

    def to_igraph(self, limit: int = 500) -> Any:
        """The nodes and edges that the read matched as an `igraph.Graph`."""
        return self.graph(limit).to_igraph()

    def make_sheet(self) -> Sheet:
        count = len(self)
        first = self.table.slice(0, ROWS_MAX)
        columns = [json_values(column.combine_chunks()) for column in first.columns]
        rows = list(zip(*columns, strict=True))
        title = f"{count_noun(count, 'row')} of {self.query_name}, branch {self.branch}"
        return Sheet(title, grids=[Grid(self.columns, rows, count)])

    __repr__ = show_text
    _repr_html_ = show_html

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, Any]:
        """What a notebook shows: the table; of nodes and paths a picture, with the table below it
        where no widget can be shown.
        """
        shown = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if not self.has_entities or not len(self):
            return shown
        try:
            drawn = self.graph()._repr_mimebundle_()
        except OmnigraphError:
            return shown  # such as a state that was cleaned up since: the rows are still here
        html = f"{drawn['text/html']}{shown['text/html']}"
        return {**drawn, "text/plain": shown["text/plain"], "text/html": html}


def json_values(column: pa.Array) -> list[Any]:
    """The values of a column as JSON shows them."""
    data_type = column.type
    if pa.types.is_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return _json_lists(column)
    if pa.types.is_struct(data_type):
        return _json_objects(column)
    convert: Callable[[Any], Any]
    if pa.types.is_floating(data_type):
        convert = _json_float
    elif pa.types.is_date32(data_type):
        column, convert = column.cast(pa.int32()), date_text
    elif pa.types.is_date64(data_type):
        column, convert = column.cast(pa.int64()), datetime_text
    else:
        return list(column.to_pylist())
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _json_lists(column: pa.Array) -> list[Any]:
    items = json_values(column.flatten())
    lengths = pc.list_value_length(column).fill_null(0).to_pylist()
    ends = list(accumulate(lengths))
    lists = [items[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    return [
        each if is_valid else None
        for each, is_valid in zip(lists, column.is_valid().to_pylist(), strict=True)
    ]


def _json_objects(column: pa.StructArray) -> list[Any]:
    names = [field.name for field in column.type]
    columns = [json_values(column.field(place)) for place in range(len(names))]
    rows = zip(*columns, strict=True) if columns else ((),) * len(column)
    return [
        dict(zip(names, row, strict=True)) if is_valid else None
        for row, is_valid in zip(rows, column.is_valid().to_pylist(), strict=True)
    ]


def _json_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def date_text(days: int) -> str:
    """`YYYY-MM-DD` of days since the epoch."""
    return date.fromordinal(date(1970, 1, 1).toordinal() + days).isoformat()


def datetime_text(milliseconds: int) -> str:
    """RFC 3339 in UTC, always with three decimals."""
    instant = _EPOCH + timedelta(milliseconds=milliseconds)
    return instant.isoformat(timespec="milliseconds") + "Z"


def _require(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise BadRequestError(
            f"{package} is not installed — `pip install {package}`, or use `.to_arrow()`"
        ) from None
