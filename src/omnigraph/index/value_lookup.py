"""Value look-up: the positions of one value in a column, by rank.

    ranks       the rank of every value; equal ranks are equal values (columns.py)
    postings    the positions of every rank
    tail        of a version without ranks: those of an earlier one, and the rows added since

Ranking pays when single values are looked up again and again. Until then the caller compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.index import thresholds
from omnigraph.index.arrays import IntArray
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.carry_over import Carried, carry_ranks
from omnigraph.index.columns import (
    Lookup,
    Postings,
    Ranks,
    build_lookup,
    build_postings,
    rank_values,
)
from omnigraph.index.keys import LookupsKey, PostingsKey, RanksKey, TailLookupKey
from omnigraph.index.selection import Selection
from omnigraph.nonblocking import may_block
from omnigraph.storage.predicates import Compare, CompareOp, Predicate

if TYPE_CHECKING:
    from omnigraph.index.table_view import TableView


class ValueLookup:
    """The ranks of one table's columns, and what they find."""

    __slots__ = ("_cache", "_view")

    def __init__(self, view: TableView, cache: RuntimeCache) -> None:
        self._view = view
        self._cache = cache

    def ranks(self, name: str) -> Ranks:
        """The ranks of all values of a column, cached."""
        return self._cache.get(self._ranks_key(name), lambda: self._rank(name))

    def has_ranks(self, name: str) -> bool:
        """Whether the ranks of a column are cached."""
        return self._cache.peek(self._ranks_key(name)) is not None

    def prefers_ranks(self, name: str, rows_wanted: int) -> bool:
        """Whether to rank the whole column rather than the values of some rows; counts as a use."""
        if self.has_ranks(name):
            return True
        if self._view.is_too_wide(name):
            return False
        return rows_wanted * 4 >= self._view.size or self._is_ranked_by_now(name)

    def has_few_values(self, name: str) -> bool:
        """Whether a text column is known, or after some use found, to repeat its values."""
        view = self._view
        if not pa.types.is_string(view.types[name]):
            return False
        if view.size > thresholds.ROWS_RANKED_AT_ONCE and not self._is_ranked_by_now(name):
            return False
        return self.ranks(name).count * 4 < view.size

    def select_equal(self, predicate: Predicate) -> Selection | None:
        """The positions of one text or whole number, by rank; None when that is not to be had."""
        if not isinstance(predicate, Compare) or predicate.op is not CompareOp.EQ:
            return None
        name, value = predicate.column, predicate.value.as_py()
        view = self._view
        if not _is_ranked_as(view.types[name], value):
            return None
        # The column is in use as long as its ranks are, of this version or an earlier one.
        column = self._cache.peek(view.column_keys[name])
        ranks = self._cache.peek(self._ranks_key(name))
        if ranks is None:
            found = self._select_by_previous(name, predicate)
            if found is not None:
                return found
            if column is not None and self._is_looked_up_often(name):
                ranks = self.ranks(name)
        if not isinstance(ranks, Ranks):
            return None
        rank = ranks.find_rank(value)
        if rank is None:
            return Selection.empty(view.size)
        if ranks.count < thresholds.RANKS_FOR_POSTINGS:
            return Selection(view.size, mask=ranks.codes == rank)
        return Selection(view.size, positions=self._postings(name).find(rank))

    def prefetch(self, name: str, *, all_of_it: bool) -> None:
        """Rank a column again, unless single values are found by the ranks that are there.

        Unless `all_of_it` is wanted, ranks that cannot be carried over are left to the query.
        """
        if not self._cache.is_in_use(self._ranks_key(name)):
            return
        carried = self._view.previous.find(self._ranks_key(name), Ranks)
        if carried is None and not all_of_it:
            return
        if carried is None or self._carry_ranks(name) is not None:
            has_postings = self._cache.is_in_use(self._postings_key(name))
            self.ranks(name)
            if has_postings:
                self._postings(name)
        elif (
            thresholds.FEW_ROWS
            < self._view.size - carried.delta.kept
            <= thresholds.NEW_ROWS_RANKED_MAX
        ) and self._cache.is_in_use(self._tail_key(carried, name)):
            self._tail_lookup(carried, name)

    # Ranks

    def _ranks_key(self, name: str) -> RanksKey:
        return RanksKey(self._view.id, name)

    def _postings_key(self, name: str) -> PostingsKey:
        return PostingsKey(self._view.id, name)

    def _rank(self, name: str) -> Ranks:
        self._view.previous.remember()
        return self._carry_ranks(name) or rank_values(self._view.column(name))

    def _carry_ranks(self, name: str) -> Ranks | None:
        carried = self._view.previous.find(self._ranks_key(name), Ranks)
        return None if carried is None else carry_ranks(carried, lambda: self._tail(carried, name))

    def _postings(self, name: str) -> Postings:
        return self._cache.get(self._postings_key(name), lambda: build_postings(self.ranks(name)))

    def _is_ranked_by_now(self, name: str) -> bool:
        """Whether the ranks of a column are cached, or it has been used often enough."""
        if self._view.size <= thresholds.SMALL_TABLE_ROWS or self.has_ranks(name):
            return True
        return self._cache.touch(self._ranks_key(name)) >= thresholds.USES_BEFORE_DECODING

    def _is_looked_up_often(self, name: str) -> bool:
        """Whether single values are looked up so often that ranking all of them pays.

        Comparing a decoded column with one value is quick; ranking its values is worth hundreds of
        that, and is lost with the next commit.
        """
        size = self._view.size
        if size <= thresholds.SMALL_TABLE_ROWS:
            return True
        uses = self._cache.touch(LookupsKey(self._view.id, name))
        return uses >= size // thresholds.ROWS_DECODED_PER_LOOKUP

    # By an earlier version

    def _select_by_previous(self, name: str, predicate: Compare) -> Selection | None:
        """The same by the ranks of an earlier version, and a look at the rows added since."""
        carried = self._view.previous.find(self._ranks_key(name), Ranks)
        if carried is None or carried.entry.count < thresholds.RANKS_FOR_POSTINGS:
            return None
        ranks, delta = carried.entry, carried.delta
        rank = ranks.find_rank(predicate.value.as_py())
        kept = added = np.empty(0, dtype=np.int64)
        if rank is not None:
            key = PostingsKey(carried.base, name)
            now = delta.remap(self._cache.get(key, lambda: build_postings(ranks)).find(rank))
            kept = now[now >= 0]
        if delta.added:
            added = self._find_in_tail(carried, name, predicate) + delta.kept
        return Selection(self._view.size, positions=np.concatenate([kept, added]))

    def _find_in_tail(self, carried: Carried[Ranks], name: str, predicate: Compare) -> IntArray:
        """The same among the added rows, counted from the first of them.

        They are compared one by one until that has been done often. A long tail always is, for
        ranking it again with every commit would take longer.
        """
        count = self._view.size - carried.delta.kept
        if count > thresholds.NEW_ROWS_RANKED_MAX:
            may_block()
        elif count > thresholds.FEW_ROWS:
            key = self._tail_key(carried, name)
            found = self._cache.peek(key)
            if found is None and self._cache.touch(key) >= thresholds.USES_BEFORE_RANKING:
                found = self._tail_lookup(carried, name)
            if isinstance(found, Lookup):
                return found.find(predicate.value.as_py())
        is_equal = pc.equal(self._tail(carried, name), predicate.value)
        return np.asarray(pc.indices_nonzero(is_equal).to_numpy(), dtype=np.int64)

    def _tail_lookup(self, carried: Carried[Ranks], name: str) -> Lookup:
        key = self._tail_key(carried, name)
        return self._cache.get(key, lambda: build_lookup(self._tail(carried, name)))

    def _tail_key(self, carried: Carried[Ranks], name: str) -> TailLookupKey:
        return TailLookupKey(self._view.id, carried.base, name)

    def _tail(self, carried: Carried[Ranks], name: str) -> pa.Array:
        """The values of the added rows: the last part of the column if that is at hand."""
        if self._view.is_at_hand(name):
            return self._view.column(name).slice(carried.delta.kept)
        return self._view.previous.tail(carried.base, carried.delta, name)


def _is_ranked_as(data_type: pa.DataType, value: object) -> bool:
    """Whether a value equals those of a column exactly when Python says so."""
    if type(value) is str:
        return bool(pa.types.is_string(data_type))
    return type(value) is int and bool(pa.types.is_integer(data_type))
