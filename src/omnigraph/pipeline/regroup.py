"""Regroup: rows that an exchange of ids found, brought to where they are needed.

Rows that lose to a later record of their id go by range: a range is read again without them. Rows
that a merge replaces go by fragments: a task marks them deleted there. Both are files of the
scratch; the driver knows their names only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.columns import CheckPlan, split_row_number
from omnigraph.pipeline.exchange import Block, cut_blocks, decode_table, join_blocks
from omnigraph.pipeline.exchange_ids import ADDRESS, LOST, ROW, TABLE, keep_file
from omnigraph.pipeline.key_items import CommittedRows
from omnigraph.pipeline.model import StagedPart
from omnigraph.pipeline.occurrences import Numbers
from omnigraph.storage.objects import read_object

_REPLACED = "replaced"
_ITEM = "item"


@dataclass(frozen=True, slots=True)
class Regrouped:
    """Range → file of its rows that lose; committed rows with files of those that are replaced."""

    lost: Mapping[int, str] = field(default_factory=dict)
    replaced: tuple[CommittedRows, ...] = ()


@dataclass(frozen=True, slots=True)
class Regroup:
    """The two functions of the exchange, over the files of `IdExchange`."""

    plan: CheckPlan
    count: int
    scratch: str
    committed: tuple[CommittedRows, ...]

    def emit(self, uri: str) -> Iterator[Block]:
        data = read_object(uri, self.plan.storage_options)
        assert data is not None, uri
        rows = decode_table(data)
        if ROW in rows.column_names:
            numbers = split_row_number(rows[ROW].to_numpy())[0]
            ranges = np.array([part.range_index for part in self.plan.parts])[numbers]
            yield from cut_blocks(LOST, rows, ranges % self.count)
            return
        items = self._find_items(rows[TABLE].to_numpy(), rows[ADDRESS].to_numpy())
        placed = pa.table({_ITEM: items, ADDRESS: rows[ADDRESS]})
        yield from cut_blocks(_REPLACED, placed, items % self.count)

    def _find_items(self, tables: np.ndarray, addresses: np.ndarray) -> Numbers:
        """Which of the committed items holds each address of each table."""
        places = {
            (item.table_key, fragment): number
            for number, item in enumerate(self.committed)
            for fragment in item.fragments
        }
        keys = self.plan.list_table_keys()
        # One look-up per fragment, not per row.
        fragments = (addresses >> np.uint64(32)).astype(np.int64)
        pairs, codes = np.unique(tables.astype(np.int64) << 32 | fragments, return_inverse=True)
        items = [places[keys[pair >> 32], pair & 0xFFFFFFFF] for pair in pairs.tolist()]
        return np.array(items, dtype=np.int64)[codes]

    def reduce(self, blocks: Iterable[Block]) -> Regrouped:
        tables = join_blocks(blocks)
        lost: dict[int, str] = {}
        if LOST in tables:
            lost = dict(self._keep_lost(np.sort(tables[LOST][ROW].to_numpy())))
        replaced = tuple(self._keep_replaced(tables[_REPLACED])) if _REPLACED in tables else ()
        return Regrouped(lost, replaced)

    def _keep_lost(self, rows: Numbers) -> Iterator[tuple[int, str]]:
        numbers, places = split_row_number(rows)
        by_range: dict[int, list[pa.Table]] = {}
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            part = self.plan.parts[number]
            ordinals = part.find_ordinals(places[numbers == number])
            by_range.setdefault(part.range_index, []).append(_name_records(part, ordinals))
        for range_index, records in by_range.items():
            table = pa.concat_tables(records)
            yield range_index, keep_file(self.plan, self.scratch, "dropped", table)

    def _keep_replaced(self, rows: pa.Table) -> Iterator[CommittedRows]:
        items, addresses = rows[_ITEM].to_numpy(), rows[ADDRESS].to_numpy()
        for number in np.flatnonzero(np.bincount(items)).tolist():
            chosen = np.sort(addresses[items == number])
            kept = keep_file(self.plan, self.scratch, "deleted", pa.table({ADDRESS: chosen}))
            item = self.committed[number]
            yield replace(item, replaced=kept, replaced_count=len(chosen))


def _name_records(part: StagedPart, ordinals: Numbers) -> pa.Table:
    keys = pa.DictionaryArray.from_arrays(np.zeros(len(ordinals), np.int32), [part.table_key])
    return pa.table({"table_key": keys.cast(pa.utf8()), "ordinal": ordinals})
