"""Exchange of ids: the first round of the checks of a large load, with the results of check.py.

    mode               loaded ids travel as     a bucket returns
    append, overwrite  occurrences              repeated ids; ids that are there already
    merge              the last row of each     files: rows that lose, rows that are replaced

Only the first violations and the names of files come back to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import uuid4

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.buckets import bucket_numbers
from omnigraph.pipeline.columns import ROW_NUMBER, CheckPlan, KeyColumns
from omnigraph.pipeline.exchange import Block, cut_blocks, encode_table, join_blocks
from omnigraph.pipeline.key_items import (
    CommittedRows,
    KeyItem,
    LoadedRows,
    list_committed,
    list_loaded,
    open_columns,
    read_item,
)
from omnigraph.pipeline.model import LoadMode
from omnigraph.pipeline.occurrences import FIRST, KEY, Numbers, Occurrences, to_array
from omnigraph.pipeline.suspects import Suspects
from omnigraph.storage.projection import ROW_ADDRESS
from omnigraph.storage.scratch import write_scratch
from omnigraph.write.convert import ID
from omnigraph.write.integrity import is_among

REPEATED, TAKEN = "repeated", "taken"
LOST = "lost"
ROW, TABLE, ADDRESS = "row", "table", "address"


def list_id_items(columns: KeyColumns) -> list[KeyItem]:
    """The ids to compare: loaded ones that were given, and those of the tables they go to."""
    plan = columns.plan
    keys = [key for key in plan.list_table_keys() if not plan.has_made_ids(key)]
    items: list[KeyItem] = [item for key in keys for item in list_loaded(plan, key)]
    if plan.mode is not LoadMode.OVERWRITE:
        items += [item for key in keys for item in list_committed(columns, key)]
    return items


@dataclass(frozen=True, slots=True)
class IdsOfBucket:
    """What the ids of one bucket say. `lost` and `replaced` are files, when there is such a row."""

    suspects: tuple[Suspects, ...] = ()
    lost: str | None = None
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class IdExchange:
    """The two functions of the exchange. `scratch` is where buckets put their files."""

    plan: CheckPlan
    count: int
    limit: int | None
    scratch: str

    def emit(self, item: KeyItem) -> Iterator[Block]:
        columns = open_columns(self.plan)
        for chunk in read_item(columns, item, [ID]):
            ids = to_array(chunk[ID])
            match item:
                case CommittedRows(table_key=key):
                    rows = pa.table({KEY: ids, ADDRESS: chunk[ROW_ADDRESS]})
                    yield from cut_blocks(f"old {key}", rows, bucket_numbers(ids, self.count))
                case LoadedRows(table_key=key, parts=parts):
                    yield from self._emit_loaded(key, parts, ids, chunk[ROW_NUMBER].to_numpy())

    def _emit_loaded(
        self, key: str, parts: tuple[int, ...], ids: pa.StringArray, rows: Numbers
    ) -> Iterator[Block]:
        found = Occurrences.of(ids, rows)
        if self.plan.mode is LoadMode.MERGE:
            lost = np.setdiff1d(rows, found.last, assume_unique=True)
            # By row, not by id: an id that half of all rows have would fill its bucket.
            yield from cut_blocks(LOST, pa.table({ROW: lost}), lost % self.count)
            found = Occurrences.of_distinct(found.keys, found.last)
        yield from cut_blocks(
            f"new {key}", found.to_table(), bucket_numbers(found.keys, self.count)
        )

    def reduce(self, blocks: Iterable[Block]) -> IdsOfBucket:
        tables = join_blocks(blocks)
        keys = self.plan.list_table_keys()
        if self.plan.mode is LoadMode.MERGE:
            return self._reduce_merge(tables, keys)
        suspects = [each for key in keys for each in self._find_suspects(tables, key)]
        return IdsOfBucket(tuple(suspects))

    def _find_suspects(self, tables: dict[str, pa.Table], key: str) -> Iterator[Suspects]:
        found = Occurrences.read(tables.get(f"new {key}"))
        repeats = found.count - 1
        picked = Suspects.pick(
            (key, REPEATED), found, repeats > 0, found.second, repeats, self.limit
        )
        if picked is not None:
            yield picked
        old = tables.get(f"old {key}")
        if old is not None:
            is_taken = is_among(found.keys, to_array(old[KEY]))
            picked = Suspects.pick(
                (key, TAKEN), found, is_taken, found.first, found.count, self.limit
            )
            if picked is not None:
                yield picked

    def _reduce_merge(self, tables: dict[str, pa.Table], keys: list[str]) -> IdsOfBucket:
        lost = [tables[LOST][ROW].to_numpy()] if LOST in tables else []
        replaced: list[pa.Table] = []
        for number, key in enumerate(keys):
            new, old = tables.get(f"new {key}"), tables.get(f"old {key}")
            if new is None:
                continue
            found = Occurrences.read(new)
            lost.append(np.setdiff1d(new[FIRST].to_numpy(), found.last, assume_unique=True))
            if old is not None:
                addresses = old[ADDRESS].filter(pa.array(is_among(to_array(old[KEY]), found.keys)))
                table = pa.array(np.full(len(addresses), number, np.int32))
                replaced.append(pa.table({TABLE: table, ADDRESS: addresses}))
        rows = np.concatenate([np.empty(0, np.int64), *lost])
        return IdsOfBucket(
            lost=self._keep("lost", pa.table({ROW: rows})),
            replaced=self._keep("replaced", pa.concat_tables(replaced)) if replaced else None,
        )

    def _keep(self, name: str, rows: pa.Table) -> str | None:
        """Put rows into a file of their own; None, and no file, when there are none."""
        if rows.num_rows == 0:
            return None
        return keep_file(self.plan, self.scratch, name, rows)


def keep_file(plan: CheckPlan, scratch: str, name: str, rows: pa.Table) -> str:
    """Put rows into a new file of the scratch, which a task that runs again does not touch."""
    uri = f"{scratch}/checks/{name}-{uuid4().hex}"
    write_scratch(scratch, uri, encode_table(rows), plan.storage_options)
    return uri
