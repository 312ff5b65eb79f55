"""Key items: the loaded and the committed rows of a check, cut into parts for tasks to read.

A loaded row is named by its row number. A committed row is named by how many rows come before it
in its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.columns import ROW_NUMBER, CheckPlan, KeyColumns
from omnigraph.pipeline.exchange import decode_table
from omnigraph.pipeline.occurrences import to_array
from omnigraph.storage.location import graph_root
from omnigraph.storage.objects import read_object
from omnigraph.storage.projection import ROW_ADDRESS
from omnigraph.storage.tables import TableStorage
from omnigraph.write.integrity import UniqueGroup, tuple_keys

ADDRESS = "address"

Each = TypeVar("Each")


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """Some staged parts of one table."""

    table_key: str
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """Some fragments of one table; `first` rows come before them.

    `replaced` is a file with the addresses of those rows that a merge replaces.
    """

    table_key: str
    fragments: tuple[int, ...]
    first: int
    replaced: str | None = None
    replaced_count: int = 0


KeyItem: TypeAlias = LoadedRows | CommittedRows


def list_loaded(plan: CheckPlan, table_key: str) -> list[LoadedRows]:
    """The loaded rows of a table, in input order."""
    parts = plan.list_parts(table_key)
    groups = _group(parts, lambda number: plan.parts[number].row_count, plan.item_rows)
    return [LoadedRows(table_key, tuple(group)) for group in groups]


def list_committed(columns: KeyColumns, table_key: str) -> list[CommittedRows]:
    """The committed rows of a table, in table order."""
    items: list[CommittedRows] = []
    first = 0
    fragments = columns.tables.reads.fragments(columns.open(table_key))
    for group in _group(fragments, lambda fragment: fragment.rows, columns.plan.item_rows):
        ids = tuple(fragment.fragment_id for fragment in group)
        items.append(CommittedRows(table_key, ids, first))
        first += sum(fragment.rows for fragment in group)
    return items


def _group(
    items: Iterable[Each], rows_of: Callable[[Each], int], rows_max: int
) -> Iterator[list[Each]]:
    """Neighbours together, up to so many rows."""
    group: list[Each] = []
    rows = 0
    for item in items:
        if group and rows + rows_of(item) > rows_max:
            yield group
            group, rows = [], 0
        group.append(item)
        rows += rows_of(item)
    if group:
        yield group


def open_columns(plan: CheckPlan) -> KeyColumns:
    """The key columns of a check, in whatever process this is."""
    return KeyColumns(plan, TableStorage(graph_root(plan.root), plan.storage_options))


def read_item(columns: KeyColumns, item: KeyItem, names: Sequence[str]) -> Iterator[pa.Table]:
    """Columns of an item with the name of each row, a bounded number of rows at a time."""
    match item:
        case LoadedRows(parts=parts):
            rows = pa.concat_tables(columns.read_parts(parts, names))
            for start in range(0, rows.num_rows, columns.plan.item_rows):
                yield rows.slice(start, columns.plan.item_rows)
        case CommittedRows(table_key=table_key, fragments=fragments, first=first):
            for chunk in columns.scan_committed(table_key, names, fragments):
                numbers = np.arange(first, first + chunk.num_rows)
                first += chunk.num_rows
                yield chunk.append_column(ROW_NUMBER, pa.array(numbers))


def find_keys(plan: CheckPlan, item: KeyItem, members: Sequence[str], rows: pa.Table) -> pa.Array:
    """One text per row for its values of some columns; null where one of them is null."""
    entity = plan.catalog.entity(item.table_key)
    keys = tuple_keys(entity, UniqueGroup(entity.name, tuple(members)), rows)
    return to_array(keys) if isinstance(keys, pa.ChunkedArray) else keys


def read_addresses(plan: CheckPlan, item: CommittedRows) -> np.ndarray:
    """The addresses of the rows of an item that a merge replaces, ascending."""
    if item.replaced is None:
        return np.empty(0, np.uint64)
    data = read_object(item.replaced, plan.storage_options)
    assert data is not None, item.replaced
    return np.asarray(decode_table(data)[ADDRESS].to_numpy(), dtype=np.uint64)


def split_replaced(chunk: pa.Table, addresses: np.ndarray) -> tuple[pa.Table, pa.Table]:
    """The rows of a chunk that stay, and those that a merge replaces."""
    if len(addresses) == 0:
        return chunk, chunk.slice(0, 0)
    is_replaced = np.isin(chunk[ROW_ADDRESS].to_numpy(), addresses)
    return chunk.filter(pa.array(~is_replaced)), chunk.filter(pa.array(is_replaced))
