"""Stream groups: aggregates over batches, without ever holding more than one row per group.

A row is a partial result over itself. Partial results of equal keys fold into one, as often as
needed, and the order in which they do changes no answer beyond the rounding of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.executor.grouping import best_per_group, group_by, sums_of
from omnigraph.executor.values import Values
from omnigraph.index.arrays import AnyArray
from omnigraph.index.columns import rank_values, to_doubles
from omnigraph.index.query_memory import require_bytes
from omnigraph.ir.expressions import Aggregate, Constant, NodeRef, Param, PropertyRef
from omnigraph.syntax.query_tree import AggregateFunction

ROWS_BEFORE_FOLDING = 16_384
_EXTREMES = (AggregateFunction.MIN, AggregateFunction.MAX)


class Partials:
    """The groups so far. `rows` have been added; after `finish` there are `groups` of them."""

    def __init__(
        self, values: Values, keys: Sequence[str], aggregates: Sequence[Aggregate]
    ) -> None:
        self._values = values
        self._keys = keys
        self._aggregates = aggregates
        self._held: list[pa.Table] = []
        self._fold_at = ROWS_BEFORE_FOLDING
        self.rows = 0
        self.groups = 0

    def add(self, batch: pa.Table) -> None:
        """Take in the rows of a batch."""
        self.rows += batch.num_rows
        self._held.append(self._fold(self._partial(batch)))
        if sum(table.num_rows for table in self._held) > self._fold_at:
            require_bytes(2 * sum(table.nbytes for table in self._held))
            self._held = [self._fold(pa.concat_tables(self._held))]
            # Twice as many again: with many groups, folding stays in proportion to the rows.
            self._fold_at = max(ROWS_BEFORE_FOLDING, 2 * self._held[0].num_rows)

    def finish(self) -> tuple[list[pa.Array], list[pa.Array]]:
        """The key columns and the aggregates of every group."""
        found = self._fold(pa.concat_tables(self._held))
        # Where all that is returned is a constant or a parameter, no column counts the one group.
        self.groups = found.num_rows if found.num_columns else 1
        keys = [found.column(f"key{index}").combine_chunks() for index in range(len(self._keys))]
        return keys, [self._value(found, index) for index in range(len(self._aggregates))]

    def _partial(self, batch: pa.Table) -> pa.Table:
        columns = {f"key{index}": batch.column(name) for index, name in enumerate(self._keys)}
        for index, aggregate in enumerate(self._aggregates):
            array = self._argument(batch, aggregate)
            if aggregate.function in _EXTREMES:
                columns[f"best{index}"] = array
                continue
            known = array.is_valid().to_numpy(zero_copy_only=False)
            columns[f"count{index}"] = pa.array(known.astype(np.int64))
            columns[f"sum{index}"] = pa.array(to_doubles(array))
        return pa.table(columns)

    def _argument(self, batch: pa.Table, aggregate: Aggregate) -> pa.Array:
        match aggregate.argument:
            case PropertyRef(_, name):
                return batch.column(name).combine_chunks()
            case NodeRef():
                return pa.array(np.zeros(batch.num_rows, dtype=np.int64))
            case Constant() | Param() as value:
                return pa.repeat(self._values.scalar(value), batch.num_rows)

    def _fold(self, partials: pa.Table) -> pa.Table:
        keys = [partials.column(f"key{index}").combine_chunks() for index in range(len(self._keys))]
        ranks = map(rank_values, keys)
        groups = group_by(((each.codes, each.count) for each in ranks), partials.num_rows)
        columns = {
            f"key{index}": key.take(pa.array(groups.first)) for index, key in enumerate(keys)
        }
        for index, aggregate in enumerate(self._aggregates):
            if aggregate.function in _EXTREMES:
                best = partials.column(f"best{index}").combine_chunks()
                is_minimum = aggregate.function is AggregateFunction.MIN
                columns[f"best{index}"] = best_per_group(
                    rank_values(best), groups, is_minimum=is_minimum
                )
                continue
            for name in (f"count{index}", f"sum{index}"):
                values: AnyArray = partials.column(name).to_numpy()
                summed = sums_of(values, groups).astype(values.dtype, copy=False)
                columns[name] = pa.array(summed)
        return pa.table(columns)

    def _value(self, found: pa.Table, index: int) -> pa.Array:
        aggregate = self._aggregates[index]
        wanted = aggregate.type.arrow_type()
        if aggregate.function in _EXTREMES:
            return found.column(f"best{index}").combine_chunks().cast(wanted)
        counts: AnyArray = found.column(f"count{index}").to_numpy()
        if aggregate.function is AggregateFunction.COUNT:
            return pa.array(counts, wanted)
        sums: AnyArray = found.column(f"sum{index}").to_numpy()
        if aggregate.function is AggregateFunction.AVG:
            sums = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
        return pa.array(sums, mask=counts == 0)
