"""TableView: one table of a snapshot, addressed by position.

A position is a row's place in the order of a full scan, which a version never changes. Columns are
decoded into the cache when that pays; otherwise single rows are fetched, and filters are pushed
down to the scan. The answers are the same either way.

    a column is decoded   when the table is small, most rows are wanted, or it is used again
    and never             when it would take more than a quarter of the budget
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.cache import RuntimeCache, TableId
from omnigraph.index.columns import (
    Column,
    Lookup,
    Numbers,
    Postings,
    Ranks,
    RowIds,
    lookup,
    numbers_to_sum,
    postings,
    ranked,
    row_ids_of,
)
from omnigraph.index.earlier import Earlier, Kept, carried_column
from omnigraph.index.live import Live
from omnigraph.index.notes import note
from omnigraph.index.number_masks import number_mask
from omnigraph.manifest.model import TableEntry
from omnigraph.nonblocking import may_block
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.masks import to_mask
from omnigraph.storage.predicates import (
    And,
    Compare,
    CompareOp,
    IsIn,
    Predicate,
    columns_of,
)
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.tables import TableStorage

SMALL_TABLE_ROWS = 16_384
FEW_ROWS = 256
"""So few are compared with one value as quickly as it is found by rank."""
NEW_ROWS_RANKED_MAX = 65_536
"""How many rows that came since a column was ranked are ranked themselves, with every commit."""
FEW_IDS = 1_024
BATCH_ROWS = 8_192
_USES_BEFORE_DECODING = 2
_USES_BEFORE_RANKING = 16
_ROWS_DECODED_PER_LOOKUP = 2_000
"""How many rows are decoded and ranked in the time of one look-up by an index."""
_TEXT_BYTES_GUESS = 32
_ROWS_RANKED_AT_ONCE = 131_072
_RANKS_FOR_POSTINGS = 16
"""With fewer distinct values each of them is so common that a mask is as good."""


class TableView:
    """One table at one version. Shared by every query of it; what it keeps is in the cache."""

    def __init__(
        self,
        tables: TableStorage,
        entry: TableEntry,
        cache: RuntimeCache,
    ) -> None:
        self._tables = tables
        self._cache = cache
        self.table_key = entry.table_key
        self.id = TableId(
            tables.root.child(entry.table_path),
            entry.table_branch,
            entry.version,
            entry.transaction_uuid,
            entry.shown,
        )
        location = tables.root.table(entry.table_path, entry.table_branch)
        self.handle: TableHandle = tables.open_at(
            location, entry.version, incarnation=entry.transaction_uuid, shown=entry.shown
        )
        self.size = self.handle.row_count
        self._types = {field.name: field.type for field in self.handle.schema}
        self._unindexed: dict[str, int] | None = None
        self.earlier = Earlier(self.id, self.handle, tables, cache)

    # Positions

    def row_ids(self) -> RowIds:
        """The stable row id of every position."""
        return self._cache.get(("row ids", self.id), self._read_row_ids)

    def positions_of_rows(self, row_ids: np.ndarray) -> IntArray:
        """Where rows with these ids stand; every one has to be in the table."""
        known = self.row_ids()
        if known.order is None:
            return np.searchsorted(known.ids, row_ids)
        return known.order[np.searchsorted(known.ids[known.order], row_ids)]

    def positions_of_ids(self, ids: pa.Array) -> IntArray:
        """Where the entities with these ids stand, -1 for one that is not there."""
        is_at_hand = self._is_at_hand("id")
        if not is_at_hand and self.size > SMALL_TABLE_ROWS and len(ids) <= FEW_IDS:
            return self._positions_by_lookup(ids)
        found = pc.index_in(ids, value_set=self.column("id"))
        return np.asarray(found.fill_null(-1).to_numpy(), dtype=np.int64)

    def _positions_by_lookup(self, ids: pa.Array) -> IntArray:
        rows = self.select(["id"], IsIn("id", ids.unique()), with_row_id=True)
        place = pc.index_in(ids, value_set=rows.column("id").combine_chunks())
        known = self.positions_of_rows(rows.column(ROW_ID).to_numpy())
        found = np.full(len(ids), -1, dtype=np.int64)
        is_there = place.is_valid().to_numpy(zero_copy_only=False)
        found[is_there] = known[place.drop_null().to_numpy()]
        return found

    # Values

    def select(
        self, names: Sequence[str], predicate: Predicate, *, with_row_id: bool = False
    ) -> pa.Table:
        """The rows a predicate keeps, straight from the scan; nothing is kept."""
        return self._tables.reads.scan(self.handle, names, predicate, with_row_id=with_row_id)

    def has_index(self, name: str) -> bool:
        """Whether a scalar index covers every row of a column."""
        return self._rows_unindexed().get(name) == 0

    def _rows_unindexed(self) -> dict[str, int]:
        """Column → how many rows its scalar index does not cover."""
        if self._unindexed is None:
            self._unindexed = {
                index.column: index.rows_unindexed
                for index in self._tables.indexes.describe(self.handle)
                if index.kind.upper() == "BTREE"
            }
        return self._unindexed

    def column(self, name: str) -> pa.Array:
        """All values of a column, decoded and kept."""
        return self._cache.get(("column", self.id, name), lambda: self._decode(name)).array

    def read(self, name: str) -> pa.Array:
        """All values of a column, kept only if they are already."""
        kept = self._cache.peek(("column", self.id, name))
        return kept.array if isinstance(kept, Column) else self._decode(name).array

    def ranks(self, name: str) -> Ranks:
        """The ranks of all values of a column, kept."""
        return self._cache.get(("ranks", self.id, name), lambda: self._ranked(name))

    def numbers(self, name: str) -> AnyArray:
        """All values of a column as doubles to sum, null as zero; kept."""
        key = ("numbers", self.id, name)
        return self._cache.get(key, lambda: Numbers(numbers_to_sum(self.column(name)))).array

    def has_ranks(self, name: str) -> bool:
        """Whether the ranks of a column are at hand."""
        return self._cache.peek(("ranks", self.id, name)) is not None

    def prefers_ranks(self, name: str, rows_wanted: int) -> bool:
        """Whether to rank the whole column rather than the values of some rows; counts as a use."""
        if self.has_ranks(name):
            return True
        if self.is_too_wide(name):
            return False
        return rows_wanted * 4 >= self.size or self._is_ranked_by_now(name)

    def values(self, names: Sequence[str], positions: IntArray) -> dict[str, pa.Array]:
        """The values of some columns at these positions, which may repeat."""
        wanted = len(positions)
        found: dict[str, pa.Array] = {}
        for name in names:
            if self.is_worth_decoding(name, wanted):
                found[name] = _picked(self.column(name), positions)
            elif wanted * 4 >= self.size:
                # Too wide to keep, and most of it is wanted: one pass beats so many fetches.
                found[name] = self._gathered(name, positions)
        fetched = [name for name in names if name not in found]
        if fetched:
            found |= self._fetch(fetched, positions)
        return found

    def matching(self, predicates: Sequence[Predicate]) -> Live:
        """The positions whose rows every predicate keeps."""
        live = Live(self.size)
        pushed: list[Predicate] = []
        for predicate in predicates:
            equal = self._equal(predicate)
            if equal is not None:
                live = live.meet(equal)
                continue
            names = columns_of(predicate)
            uses = self._uses_before_decoding(predicate)
            if all(self.is_worth_decoding(name, 1, uses=uses) for name in names):
                live = live.meet(Live(self.size, mask=self._mask(predicate, names)))
            else:
                pushed.append(predicate)
        return live.meet(self._scanned(And(tuple(pushed)))) if pushed else live

    def _scanned(self, predicate: Predicate) -> Live:
        rows = self._tables.reads.scan(self.handle, [], predicate, with_row_id=True)
        names = ", ".join(columns_of(predicate))
        note(f"pushed the filter on {names} to the scan of {self.table_key}", rows.num_rows)
        positions = self.positions_of_rows(rows.column(ROW_ID).to_numpy())
        return Live(self.size, positions=np.sort(positions))

    def _uses_before_decoding(self, predicate: Predicate) -> int:
        """How often a filter has to be asked before its column is held.

        An index finds one value quickly, and the next commit makes a version of which nothing is
        held: a large table that is written to is better looked up many times than decoded often.
        """
        is_lookup = isinstance(predicate, Compare) and predicate.op is CompareOp.EQ
        if not is_lookup or self.size <= SMALL_TABLE_ROWS:
            return _USES_BEFORE_DECODING
        lacking = self._rows_unindexed().get(columns_of(predicate)[0])
        if lacking is None or lacking > SMALL_TABLE_ROWS:
            return _USES_BEFORE_DECODING
        return _USES_BEFORE_DECODING + self.size // _ROWS_DECODED_PER_LOOKUP

    def is_worth_decoding(
        self, name: str, rows_wanted: int, *, uses: int = _USES_BEFORE_DECODING
    ) -> bool:
        """Whether to hold the column in memory; counts as one use of it."""
        key = ("column", self.id, name)
        if self._cache.peek(key) is not None:
            return True
        if self.is_too_wide(name):
            return False
        if self.size <= SMALL_TABLE_ROWS or rows_wanted * 4 >= self.size:
            return True
        return self._is_at_hand(name) or self._cache.touch(key) >= uses

    def is_too_wide(self, name: str) -> bool:
        """Whether a column is never held: it would take more than a quarter of the budget."""
        return self.size * self.row_bytes(name) * 4 > self._cache.budget_bytes

    def batches(
        self, names: Sequence[str], predicates: Sequence[Predicate], *, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows that every predicate keeps, a batch of at most `rows` at a time, none kept."""
        predicate = And(tuple(predicates)) if predicates else None
        return self._tables.reads.scan_stream(self.handle, names, predicate, batch_rows=rows)

    def derive_ahead(self) -> None:
        """Derive what is kept of earlier versions, before a query has to wait for it."""
        kept = self._cache.kept_of(self.id)
        for name in self._types:
            if ("column", name) in kept and not self.is_too_wide(name):
                self.column(name)
                self._rank_ahead(name, kept)
        if ("row ids",) in kept:
            self.row_ids()

    def _rank_ahead(self, name: str, kept: set[tuple[Hashable, ...]]) -> None:
        """Rank a column again, unless single values are found by the ranks that are there."""
        if ("ranks", name) not in kept:
            return
        earlier = self.earlier.find("ranks", name)
        if earlier is None or self._carried_ranks(name) is not None:
            self.ranks(name)
            if ("postings", name) in kept:
                self._postings(name)
        elif (
            FEW_ROWS < self.size - earlier.changes.kept <= NEW_ROWS_RANKED_MAX
            and ("lookup since", (self.id.path, self.id.branch, self.id.shown), name) in kept
        ):
            self._lookup_since(earlier, name)

    # Inside

    def _equal(self, predicate: Predicate) -> Live | None:
        """The positions of one text or whole number, by rank; None when that is not to be had."""
        if not isinstance(predicate, Compare) or predicate.op is not CompareOp.EQ:
            return None
        name, value = predicate.column, predicate.value.as_py()
        if not self._is_ranked_as(name, value):
            return None
        # The column is in use as long as its ranks are, of this version or an earlier one.
        column = self._cache.peek(("column", self.id, name))
        ranks = self._cache.peek(("ranks", self.id, name))
        if ranks is None:
            carried = self._equal_by_earlier(name, predicate)
            if carried is not None:
                return carried
            if column is not None:
                ranks = self.ranks(name) if self._is_looked_up_often(name) else None
        if not isinstance(ranks, Ranks):
            return None
        rank = ranks.rank_of(value)
        if rank is None:
            return Live.none(self.size)
        if ranks.count < _RANKS_FOR_POSTINGS:
            return Live(self.size, mask=ranks.codes == rank)
        return Live(self.size, positions=self._postings(name).of(rank))

    def _equal_by_earlier(self, name: str, predicate: Compare) -> Live | None:
        """The same by the ranks of an earlier version, and a look at the rows that came since."""
        kept = self.earlier.find("ranks", name)
        if kept is None or not isinstance(kept.entry, Ranks):
            return None
        ranks, changes = kept.entry, kept.changes
        if ranks.count < _RANKS_FOR_POSTINGS:
            return None
        rank = ranks.rank_of(predicate.value.as_py())
        staying = new = np.empty(0, dtype=np.int64)
        if rank is not None:
            key = ("postings", kept.base, name)
            moved = changes.moved(self._cache.get(key, lambda: postings(ranks)).of(rank))
            staying = moved[moved >= 0]
        if changes.added:
            new = self._equal_since(kept, name, predicate) + changes.kept
        return Live(self.size, positions=np.concatenate([staying, new]))

    def _equal_since(self, kept: Kept, name: str, predicate: Compare) -> IntArray:
        """The same among the rows that came since, counted from the first of them.

        They are compared one by one until that has been done often. More than some are always, for
        ranking them again with every commit would take longer.
        """
        count = self.size - kept.changes.kept
        if count > NEW_ROWS_RANKED_MAX:
            may_block()
        elif count > FEW_ROWS:
            key = self._key_since(kept, name)
            found = self._cache.peek(key)
            if found is None and self._cache.touch(key) >= _USES_BEFORE_RANKING:
                found = self._lookup_since(kept, name)
            if isinstance(found, Lookup):
                return found.of(predicate.value.as_py())
        is_equal = pc.equal(self._tail_since(kept, name), predicate.value)
        return np.asarray(pc.indices_nonzero(is_equal).to_numpy(), dtype=np.int64)

    def _lookup_since(self, kept: Kept, name: str) -> Lookup:
        key = self._key_since(kept, name)
        return self._cache.get(key, lambda: lookup(self._tail_since(kept, name)))

    def _key_since(self, kept: Kept, name: str) -> tuple[Hashable, ...]:
        return "lookup since", self.id, kept.base, name

    def _is_ranked_as(self, name: str, value: object) -> bool:
        """Whether a value equals those of a column when Python says so."""
        if type(value) is str:
            return bool(pa.types.is_string(self._types[name]))
        return type(value) is int and bool(pa.types.is_integer(self._types[name]))

    def _is_ranked_by_now(self, name: str) -> bool:
        """Whether the ranks of a column are kept, or it has been asked for often enough."""
        key = ("ranks", self.id, name)
        if self.size <= SMALL_TABLE_ROWS or self._cache.peek(key) is not None:
            return True
        return self._cache.touch(key) >= _USES_BEFORE_DECODING

    def _is_looked_up_often(self, name: str) -> bool:
        """Whether single values are asked for so often that ranking all of them pays.

        Comparing a decoded column with one value is quick; ranking its values is worth hundreds of
        that, and is lost with the next commit.
        """
        if self.size <= SMALL_TABLE_ROWS:
            return True
        uses = self._cache.touch(("lookups", self.id, name))
        return uses >= self.size // _ROWS_DECODED_PER_LOOKUP

    def _is_worth_ranking(self, name: str) -> bool:
        """The same of a column that is decoded: it has been used before, and ranking is cheap."""
        return self.size <= _ROWS_RANKED_AT_ONCE or self._is_ranked_by_now(name)

    def _postings(self, name: str) -> Postings:
        key = ("postings", self.id, name)
        return self._cache.get(key, lambda: postings(self.ranks(name)))

    def _mask(self, predicate: Predicate, names: list[str]) -> np.ndarray:
        if self.size > SMALL_TABLE_ROWS:
            may_block()
        if len(names) == 1 and self._has_few_values(names[0]):
            ranks = self.ranks(names[0])
            verdicts = to_mask(predicate, pa.record_batch([ranks.values], names=names))
            # Null is rank 0 and satisfies no predicate that a query can state.
            truths = np.zeros(ranks.count, dtype=bool)
            truths[1:] = verdicts.to_numpy(zero_copy_only=False)
            return truths[ranks.codes]
        columns = [self.column(name) for name in names]
        if len(names) == 1 and columns[0].null_count == 0:
            mask = number_mask(predicate, columns[0], self.handle.schema)
            if mask is not None:
                return mask
        batch = pa.record_batch(columns, names=names)
        return np.asarray(to_mask(predicate, batch).to_numpy(zero_copy_only=False))

    def _has_few_values(self, name: str) -> bool:
        """Whether a text column is known, or after some use found, to repeat its values."""
        if not pa.types.is_string(self._types[name]) or not self._is_worth_ranking(name):
            return False
        return self.ranks(name).count * 4 < self.size

    def _is_at_hand(self, name: str) -> bool:
        """Whether a column is kept, or can be carried over from an earlier version."""
        if self._cache.peek(("column", self.id, name)) is not None:
            return True
        return self.earlier.find("column", name) is not None

    def _tail_since(self, kept: Kept, name: str) -> pa.Array:
        """The values of the rows that came since; of a column that is at hand, its last part."""
        if self._is_at_hand(name):
            return self.column(name).slice(kept.changes.kept)
        return self.earlier.tail(kept.base, kept.changes, name)

    def _ranked(self, name: str) -> Ranks:
        self.earlier.remember()
        return self._carried_ranks(name) or ranked(self.column(name))

    def _carried_ranks(self, name: str) -> Ranks | None:
        kept = self.earlier.find("ranks", name)
        if kept is None or not isinstance(kept.entry, Ranks):
            return None
        tail = self._tail_since(kept, name) if kept.changes.added else None
        return kept.entry.carried(kept.changes.of_numbers(kept.entry.codes), tail)

    def _decode(self, name: str) -> Column:
        self.earlier.remember()
        kept = self.earlier.find("column", name)
        if kept is not None:
            note(f"carried {name} of {self.table_key} over from version {kept.base.version}")
            return carried_column(kept, lambda: self.earlier.tail(kept.base, kept.changes, name))
        note(f"decoded {name} of {self.table_key}")
        chunks = self._tables.reads.scan(self.handle, [name]).column(0)
        return Column(chunks.combine_chunks())

    def _gathered(self, name: str, positions: IntArray) -> pa.Array:
        """The values at these positions, from one pass that holds a batch at a time."""
        note(f"streamed {name} of {self.table_key}", len(positions))
        distinct, place = np.unique(positions, return_inverse=True)
        pieces, first = [pa.array([], self._types[name])], 0
        for batch in self.batches([name], [], rows=BATCH_ROWS):
            last = first + batch.num_rows
            here = distinct[np.searchsorted(distinct, first) : np.searchsorted(distinct, last)]
            if len(here):
                pieces.append(batch.column(0).take(pa.array(here - first)))
            first = last
        return pa.concat_arrays(pieces).take(pa.array(place))

    def _fetch(self, names: list[str], positions: IntArray) -> dict[str, pa.Array]:
        distinct, place = np.unique(positions, return_inverse=True)
        row_ids = self.row_ids().ids[distinct]
        note(f"fetched {', '.join(names)} of {self.table_key}", len(distinct))
        rows = self._tables.reads.take_rows(self.handle, row_ids.tolist(), names)
        places = pa.array(place)
        return {name: rows.column(name).combine_chunks().take(places) for name in names}

    def _read_row_ids(self) -> RowIds:
        self.earlier.remember()
        kept = self.earlier.find("row ids")
        if kept is not None and isinstance(kept.entry, RowIds):
            staying = kept.changes.of_numbers(kept.entry.ids)
            ids = np.concatenate([staying, self.earlier.tail_row_ids(kept.changes)])
        else:
            rows = self._tables.reads.scan(self.handle, [], with_row_id=True)
            ids = rows.column(ROW_ID).to_numpy()
        return row_ids_of(ids)

    def row_bytes(self, name: str) -> int:
        """About how many bytes one value of a column takes."""
        data_type = self._types[name]
        if pa.types.is_fixed_size_list(data_type):
            return int(data_type.list_size * 4)
        try:
            return max(int(data_type.bit_width // 8), 1)
        except ValueError:
            return _TEXT_BYTES_GUESS


def _picked(column: pa.Array, positions: IntArray) -> pa.Array:
    """The values at these positions. A single one, as most look-ups want, costs no kernel."""
    if len(positions) == 1:
        return column.slice(int(positions[0]), 1)
    return column.take(pa.array(positions))
