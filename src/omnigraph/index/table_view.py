"""TableView: one table of a snapshot, addressed by position.

A position is the number of a row in the order of a full scan, which a version never changes.
Columns are decoded into the cache when that pays; otherwise single rows are fetched, and filters
are pushed down to the scan. The answers are the same either way.

    a column is decoded   when the table is small, most rows are wanted, or it is used again
    and never             when it would take more than a quarter of the budget
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.index import thresholds
from omnigraph.index.arrays import AnyArray, IntArray, to_arrow
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.carry_over import PreviousVersion, carry_column, carry_row_ids
from omnigraph.index.columns import Column, RowIds, build_row_ids, to_doubles, with_room
from omnigraph.index.id_index import IdIndex, build_id_index
from omnigraph.index.keys import ColumnKey, IdIndexKey, NumbersKey, RowIdsKey, TableId
from omnigraph.index.notes import note
from omnigraph.index.number_masks import number_mask
from omnigraph.index.patches import Moves
from omnigraph.index.query_memory import read_in_parts, require_bytes, take
from omnigraph.index.selection import Selection
from omnigraph.index.text_parts import TextReader
from omnigraph.index.value_lookup import ValueLookup
from omnigraph.index.vector_parts import read_vectors
from omnigraph.manifest.model import TableEntry
from omnigraph.nonblocking import may_block
from omnigraph.storage.handles import BY_PLACE, TableHandle
from omnigraph.storage.masks import to_mask
from omnigraph.storage.predicates import And, IsIn, Predicate, columns_of, leaves, list_equalities
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.tables import TableStorage

BATCH_ROWS = 8_192
_TEXT_BYTES_GUESS = 32
_IDS_GONE_MAX = 16_384
_NONE: IntArray = np.empty(0, dtype=np.int64)
_FEW_PER_ID = 64
"""So many ids are hashed for one that is looked up, or the whole column is not worth an index."""
_ROWS_LISTED_PER_FETCH = 65_536
"""How many row ids Lance lists, once for each version, in the time that a fetch by place loses."""


class TableView:
    """One table at one version. Shared by every query of it; what it keeps is in the cache."""

    def __init__(self, tables: TableStorage, entry: TableEntry, cache: RuntimeCache) -> None:
        self._tables = tables
        self._cache = cache
        self._entry = entry
        self.table_key = entry.table_key
        self.id = to_table_id(tables, entry)
        location = tables.root.table(entry.table_path, entry.table_branch)
        self.handle: TableHandle = entry.image or tables.open_pinned(
            location, entry.version, entry.transaction_uuid, entry.shown
        )
        self.size = self.handle.row_count
        self.types = {field.name: field.type for field in self.handle.schema}
        self.column_keys = {name: ColumnKey(self.id, name) for name in self.types}
        self._widest = max(map(self.row_bytes, self.types), default=0)
        self._unindexed: dict[str, int] | None = None
        self._fetches = 0
        self.previous = PreviousVersion(self.id, self.handle, tables, cache)

    @property
    def lookup(self) -> ValueLookup:
        """The positions of values. A view does not keep it, or it would wait for the collector."""
        return ValueLookup(self, self._cache)

    def at(self, table: TableId) -> TableView:
        """The same table at another version."""
        if table == self.id:
            return self
        entry = replace(self._entry, version=table.version, transaction_uuid=table.transaction)
        return TableView(self._tables, entry, self._cache)

    # Positions

    def row_ids(self) -> RowIds:
        """The stable row id of every position."""
        return self._cache.get(RowIdsKey(self.id), self._read_row_ids)

    def positions_of_rows(self, row_ids: np.ndarray) -> IntArray:
        """The positions of rows with these ids; every one has to be in the table."""
        known = self.row_ids()
        if known.order is None:
            return np.searchsorted(known.ids, row_ids)
        return known.order[np.searchsorted(known.ids, row_ids, sorter=known.order)]

    def positions_of_ids(self, ids: pa.Array) -> IntArray:
        """The positions of the entities with these ids, -1 for one that is not there."""
        if len(ids) == 0:
            return np.empty(0, dtype=np.int64)
        is_large = self.size > thresholds.SMALL_TABLE_ROWS
        is_few = len(ids) <= max(thresholds.FEW_IDS, self.size // _FEW_PER_ID)
        if is_large and is_few and self._is_worth_looking_up_ids():
            return self._look_up_ids(ids)
        column = self.column("id")
        if len(ids) <= thresholds.FEW_IDS and len(ids) * _FEW_PER_ID < self.size:
            return self.id_index().find(ids, column)
        found = pc.index_in(ids, value_set=column)
        return np.asarray(found.fill_null(-1).to_numpy(), dtype=np.int64)

    def _is_worth_looking_up_ids(self) -> bool:
        """Whether storage finds a few ids at less cost than what is at hand.

        What finds them again and again is made in the background.
        """
        key = IdIndexKey(self.id)
        if not self.is_at_hand("id"):
            return True
        if self._cache.peek(key) is not None or self.previous.find(key, IdIndex) is not None:
            return False
        if not self.has_index("id"):
            return False
        if self._cache.touch(key) >= thresholds.USES_BEFORE_DECODING:
            self._cache.background.start(key, self.id_index)
        return True

    def id_index(self) -> IdIndex:
        """Where the entities with a few ids stand."""
        return self._cache.get(IdIndexKey(self.id), self._index_ids)

    def _index_ids(self) -> IdIndex:
        ids = self.column("id")
        carried = self.previous.find(IdIndexKey(self.id), IdIndex)
        if carried is None or len(carried.entry.shift.gone) > _IDS_GONE_MAX:
            return build_id_index(ids)
        kept, tail = carried.entry.remove(carried.delta.removed), ids.slice(carried.delta.kept)
        return kept.append(tail) if len(tail) else kept

    def find_moves(self, base: TableId) -> Moves | None:
        """Which rows lost their position since a version, and where they are written again.

        None when that is not known, or many did.
        """
        delta = self.previous.delta_since(base)
        if delta is None:
            return None
        if len(delta.removed) == 0:
            return Moves(_NONE, _NONE, delta.kept)
        again = self.previous.find_again(base, delta)
        return None if again is None else Moves(delta.removed, again, delta.kept)

    def _look_up_ids(self, ids: pa.Array) -> IntArray:
        rows = self.scan(["id"], IsIn("id", ids.unique()), with_row_id=True)
        index = pc.index_in(ids, value_set=rows.column("id").combine_chunks())
        known = self.positions_of_rows(rows.column(ROW_ID).to_numpy())
        found = np.full(len(ids), -1, dtype=np.int64)
        is_there = index.is_valid().to_numpy(zero_copy_only=False)
        found[is_there] = known[index.drop_null().to_numpy()]
        return found

    def _read_row_ids(self) -> RowIds:
        self.previous.remember()
        carried = self.previous.find(RowIdsKey(self.id), RowIds)
        if carried is not None:
            base, delta = carried.base, carried.delta
            return carry_row_ids(carried, lambda: self.previous.tail_row_ids(base, delta))
        rows = self._tables.reads.scan(self.handle, [], with_row_id=True)
        return build_row_ids(rows.column(ROW_ID).to_numpy())

    # Decoded columns

    def column(self, name: str) -> pa.Array:
        """All values of a column, decoded and cached."""
        return self._cache.get(self.column_keys[name], lambda: self._decode(name)).array

    def read(self, name: str) -> pa.Array:
        """All values of a column, cached only if they are already."""
        cached = self._cache.peek(self.column_keys[name])
        return cached.array if isinstance(cached, Column) else self._decode(name).array

    def numbers(self, name: str) -> AnyArray:
        """All values of a column as doubles to sum, null as zero; cached."""
        built = self._cache.get(NumbersKey(self.id, name), lambda: self._to_numbers(name))
        return np.asarray(built.array)

    def _to_numbers(self, name: str) -> Column:
        column = self.column(name)
        carried = self.previous.find(NumbersKey(self.id, name), Column)
        if carried is None or len(carried.delta.removed):
            return Column(to_doubles(column))
        return carried.entry.append(to_doubles(column.slice(carried.delta.kept)))

    def is_at_hand(self, name: str) -> bool:
        """Whether a column is cached, or can be carried over from an earlier version."""
        key = self.column_keys[name]
        return self._cache.peek(key) is not None or self.previous.find(key, Column) is not None

    def is_worth_decoding(self, name: str, rows_wanted: int, *, uses: int | None = None) -> bool:
        """Whether to hold the column in memory; counts as one use of it."""
        key = self.column_keys[name]
        if self._cache.peek(key) is not None:
            return True
        if self.is_too_wide(name):
            return False
        if self.size <= thresholds.SMALL_TABLE_ROWS or rows_wanted * 4 >= self.size:
            return True
        uses = thresholds.USES_BEFORE_DECODING if uses is None else uses
        return self.is_at_hand(name) or self._cache.touch(key) >= uses

    def is_too_wide(self, name: str) -> bool:
        """Whether a column is never held: it would take more than a quarter of the budget."""
        return self.size * self.row_bytes(name) * 4 > self._cache.budget_bytes

    def has_wide_columns(self) -> bool:
        """Whether a column of this table is never held."""
        return self.size * self._widest * 4 > self._cache.budget_bytes

    def row_bytes(self, name: str) -> int:
        """About how many bytes one value of a column takes."""
        data_type = self.types[name]
        if pa.types.is_fixed_size_list(data_type):
            return int(data_type.list_size * 4)
        try:
            return max(int(data_type.bit_width // 8), 1)
        except ValueError:
            return _TEXT_BYTES_GUESS

    def full_text(self, name: str, language: str) -> TextReader:
        """The full text of a column, to ask."""
        return TextReader(self._tables, self.handle, name, language, self._cache)

    def nearest(
        self, name: str, query: Sequence[float], candidates: IntArray | None, limit: int | None
    ) -> tuple[IntArray, AnyArray]:
        """Positions by distance to `query`, ties by entity id, and the distances."""
        search = self._tables.search
        if search.is_worth_keeping(self.handle, name):
            note(f"nearest {name} among vectors kept in memory")
            kept = read_vectors(self._tables, self.handle, name, self._cache)
            wanted = None if candidates is None else Selection(self.size, positions=candidates)
            return kept.nearest(query, search.dimension(self.handle, name), wanted, limit)
        is_indexed = search.find_index(self.handle, name) is not None
        note(f"nearest {name} {'by its vector index' if is_indexed else 'by a scan'}")
        row_ids = None
        if candidates is not None:
            row_ids = pa.array(self.row_ids().ids[candidates], pa.uint64())
        found, distances = search.nearest(self.handle, name, query, row_ids, limit)
        return self.positions_of_rows(found), distances

    def _decode(self, name: str) -> Column:
        self.previous.remember()
        carried = self.previous.find(self.column_keys[name], Column)
        if carried is not None:
            note(f"carried {name} of {self.table_key} over from version {carried.base.version}")
            return carry_column(
                carried, lambda: self.previous.tail(carried.base, carried.delta, name)
            )
        note(f"decoded {name} of {self.table_key}")
        chunks = self._tables.reads.scan(self.handle, [name]).column(0)
        array = chunks.combine_chunks()
        # A small table is copied in no time.
        return with_room(array) if self.size > thresholds.SMALL_TABLE_ROWS else Column(array)

    # Values

    def ids(self, positions: IntArray) -> pa.Array:
        """The ids at a few positions. The column is not decoded for them."""
        if self._cache.peek(self.column_keys["id"]) is None:
            found = self._at_earlier_version("id", positions)
            return self._fetch(["id"], positions)["id"] if found is None else found
        return _pick(self.column("id"), positions)

    def values(self, names: Sequence[str], positions: IntArray) -> dict[str, pa.Array]:
        """The values of some columns at these positions, which may repeat."""
        wanted = len(positions)
        found: dict[str, pa.Array] = {}
        for name in names:
            earlier = self._at_earlier_version(name, positions)
            if earlier is not None:
                found[name] = earlier
            elif self.is_worth_decoding(name, wanted):
                found[name] = _pick(self.column(name), positions)
            elif wanted * 4 >= self.size:
                # Too wide to hold, and most of it is wanted: one pass beats so many fetches.
                found[name] = self._gather(name, positions)
        missing = [name for name in names if name not in found]
        if missing:
            found |= self._fetch(missing, positions)
        return found

    def _at_earlier_version(self, name: str, positions: IntArray) -> pa.Array | None:
        """The same from the column of an earlier version, when those rows are where they were.

        A few rows are then had without a look at the rows added since.
        """
        key = self.column_keys[name]
        if len(positions) > thresholds.FEW_ROWS or self._cache.peek(key) is not None:
            return None
        carried = self.previous.find(key, Column)
        if carried is None or len(carried.delta.removed):
            return None
        if np.max(positions, initial=0) >= carried.delta.kept:
            return None
        return _pick(carried.entry.array, positions)

    def scan(
        self, names: Sequence[str], predicate: Predicate, *, with_row_id: bool = False
    ) -> pa.Table:
        """The rows where a predicate is TRUE, straight from storage; nothing is cached."""
        return self._tables.reads.scan(self.handle, names, predicate, with_row_id=with_row_id)

    def batches(
        self, names: Sequence[str], predicates: Sequence[Predicate], *, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows where every predicate is TRUE, in batches of at most `rows`; none is cached."""
        predicate = And(tuple(predicates)) if predicates else None
        return self._tables.reads.scan_stream(self.handle, names, predicate, batch_rows=rows)

    def _gather(self, name: str, positions: IntArray) -> pa.Array:
        """The values at these positions, from one pass that holds a batch at a time."""
        note(f"streamed {name} of {self.table_key}", len(positions))
        distinct, index = np.unique(positions, return_inverse=True)
        parts, first, held = [pa.array([], self.types[name])], 0, 0
        for batch in self.batches([name], [], rows=BATCH_ROWS):
            last = first + batch.num_rows
            here = distinct[np.searchsorted(distinct, first) : np.searchsorted(distinct, last)]
            if len(here):
                parts.append(batch.column(0).take(pa.array(here - first)))
                held += parts[-1].nbytes
                require_bytes(held)
            first = last
        return take(pa.concat_arrays(parts), index, to_arrow(index))

    def _fetch(self, names: list[str], positions: IntArray) -> dict[str, pa.Array]:
        distinct, index = np.unique(positions, return_inverse=True)
        note(f"fetched {', '.join(names)} of {self.table_key}", len(distinct))
        self._fetches += 1
        fetched = read_in_parts(lambda part: self._fetch_distinct(names, part), distinct)
        indices = to_arrow(index)
        return {name: take(fetched.column(name).combine_chunks(), index, indices) for name in names}

    def _fetch_distinct(self, names: list[str], positions: IntArray) -> pa.Table:
        reads = self._tables.reads
        if self._fetches * _ROWS_LISTED_PER_FETCH <= self.size:
            return reads.take_places(self.handle, positions.tolist(), names)
        return reads.take_rows(self.handle, self.row_ids().ids[positions].tolist(), names)

    # Selections

    def select(self, predicates: Sequence[Predicate]) -> Selection:
        """The positions where every predicate is TRUE."""
        selection = Selection(self.size)
        pushed: list[Predicate] = []
        for predicate in predicates:
            equal = self._select_equal(predicate)
            if equal is not None:
                selection = selection.intersect(equal)
                continue
            names = columns_of(predicate)
            uses = self._uses_before_decoding(predicate)
            if all(self.is_worth_decoding(name, 1, uses=uses) for name in names):
                mask = self._mask(predicate, names)
                selection = selection.intersect(Selection(self.size, mask=mask))
            else:
                pushed.append(predicate)
        if not pushed:
            return selection
        return selection.intersect(self._scan_selection(And(tuple(pushed))))

    def _select_equal(self, predicate: Predicate) -> Selection | None:
        """The positions of one value or of a few, each looked up; None when one cannot be."""
        wanted = list_equalities(predicate)
        if len(wanted) < 2:
            return self.lookup.select_equal(predicate)
        positions: list[np.ndarray] = []
        for each in wanted:
            found = self.lookup.select_equal(each)
            if found is None:
                return None
            positions.append(found.positions())
        note(f"looked up {len(wanted)} values in {self.table_key}")
        return Selection(self.size, positions=np.unique(np.concatenate(positions)))

    def has_index(self, name: str) -> bool:
        """Whether a scalar index covers a column, but for a few rows at most."""
        unindexed = self._rows_unindexed().get(name)
        return unindexed is not None and unindexed <= thresholds.SMALL_TABLE_ROWS

    def _rows_unindexed(self) -> dict[str, int]:
        """Column → how many rows its scalar index does not cover."""
        if self._unindexed is None:
            self._unindexed = {
                index.column: index.rows_unindexed
                for index in self._tables.indexes.describe(self.handle)
                if index.kind.lower() in BY_PLACE
            }
        return self._unindexed

    def _uses_before_decoding(self, predicate: Predicate) -> int:
        """How often a filter has to be used before its column is held.

        An index finds one value quickly, and the next commit makes a version of which nothing is
        held: a large table that is written to is better looked up many times than decoded often.
        """
        least = thresholds.USES_BEFORE_DECODING
        if any(
            isinstance(leaf, IsIn) and len(leaf.values) >= thresholds.MANY_VALUES
            for leaf in leaves(predicate)
        ):
            return 1
        if not list_equalities(predicate) or self.size <= thresholds.SMALL_TABLE_ROWS:
            return least
        if not all(self.has_index(name) for name in columns_of(predicate)):
            return least
        return least + self.size // thresholds.ROWS_DECODED_PER_LOOKUP

    def _scan_selection(self, predicate: Predicate) -> Selection:
        rows = self.scan([], predicate, with_row_id=True)
        names = ", ".join(columns_of(predicate))
        note(f"pushed the filter on {names} to the scan of {self.table_key}", rows.num_rows)
        positions = self.positions_of_rows(rows.column(ROW_ID).to_numpy())
        return Selection(self.size, positions=np.sort(positions))

    def _mask(self, predicate: Predicate, names: list[str]) -> np.ndarray:
        if self.size > thresholds.SMALL_TABLE_ROWS:
            may_block()
        if len(names) == 1 and self.lookup.has_few_values(names[0]):
            ranks = self.lookup.ranks(names[0])
            verdicts = to_mask(predicate, pa.record_batch([ranks.values], names=names))
            # Null is rank 0 and satisfies no predicate that a query can state.
            truths = np.zeros(ranks.count, dtype=bool)
            truths[1:] = verdicts.to_numpy(zero_copy_only=False)
            return truths[ranks.codes]
        equalities = list_equalities(predicate)
        if 1 < len(equalities) <= thresholds.FEW_COMPARISONS:
            masks = (self._mask(each, [each.column]) for each in equalities)
            return reduce(np.logical_or, masks)
        columns = [self.column(name) for name in names]
        if len(names) == 1 and columns[0].null_count == 0:
            mask = number_mask(predicate, columns[0], self.handle.schema)
            if mask is not None:
                return mask
        batch = pa.record_batch(columns, names=names)
        return np.asarray(to_mask(predicate, batch).to_numpy(zero_copy_only=False))


def to_table_id(tables: TableStorage, entry: TableEntry) -> TableId:
    """What names the version of a table that an entry of the manifest shows."""
    path = tables.root.child(entry.table_path)
    return TableId(path, entry.table_branch, entry.version, entry.transaction_uuid, entry.shown)


def _pick(column: pa.Array, positions: IntArray) -> pa.Array:
    """The values at these positions. A single one, as most look-ups want, costs no kernel."""
    if len(positions) == 1:
        return column.slice(int(positions[0]), 1)
    return take(column, positions, to_arrow(positions))
