"""Run: what one execution on Spark reads through, all of it at one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.executor.filters import to_stored_predicate
from omnigraph.executor.run import Run
from omnigraph.index.keys import RepeatedPairsKey
from omnigraph.ir.expressions import Predicate
from omnigraph.ir.query import Direction
from omnigraph.pipeline.scan import Part, Pin, cut_parts, pin_handle
from omnigraph.pipeline.spark_query.checks import to_check
from omnigraph.pipeline.spark_query.columns import FROM, TO, WEIGHT, property_of
from omnigraph.pipeline.spark_query.pairs import (
    SUSPECTS_MAX,
    Hashes,
    PairCheck,
    find_repeated_pairs,
    read_pairs,
)
from omnigraph.pipeline.spark_query.source import BatchCheck, TableRead, count_frame, read_frame
from omnigraph.planner.pattern import Hop
from omnigraph.storage import predicates as stored
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn

BROADCAST_BYTES = 16 * 1024 * 1024
"""Nodes of about so many bytes are sent to every task, so that the larger side is not shuffled."""


@dataclass(slots=True, eq=False)
class SparkRun:
    """One execution. `held` let go of frames when it ends, `notes` say what the driver did."""

    spark: Any
    local: Run
    held: list[Callable[[], object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _parts: dict[str, list[Part]] = field(default_factory=dict)

    def handle(self, table_key: str) -> TableHandle:
        kind, _, name = table_key.partition(":")
        local = self.local
        view = local.nodes(name) if kind == "node" else local.edges(name).edges
        return view.handle

    def row_count(self, table_key: str) -> int:
        return self.handle(table_key).row_count

    def read_nodes(
        self, variable: str, type_name: str, filters: Sequence[Predicate], names: Iterable[str]
    ) -> DataFrame:
        """The nodes that a variable may be bound to, with these properties."""

        key = f"node:{type_name}"
        columns = {name: property_of(variable, name) for name in ["id", *sorted(set(names))]}
        frame = self.read(key, columns, filters)
        view = self.local.nodes(type_name)
        size = view.handle.row_count * sum(map(view.row_bytes, columns))
        return fn.broadcast(frame) if size <= BROADCAST_BYTES else frame

    def read(
        self,
        table_key: str,
        columns: dict[str, str],
        filters: Sequence[Predicate] = (),
        looked_up: IsIn | None = None,
        checks: Sequence[BatchCheck] = (),
        *,
        is_counted: bool = False,
    ) -> DataFrame:
        """Rows of a table that meet every filter. `columns` gives each its name in the frame.

        With `looked_up` one task asks an index for the few rows that have such a value. When it
        `is_counted`, the one column has each value once for each task, with a weight.
        """
        handle = self.handle(table_key)
        pushed: list[stored.Predicate] = [] if looked_up is None else [looked_up]
        checked = list(checks)
        for each in filters:
            known = to_stored_predicate(self.local, each)
            if known is None:
                checked.append(to_check(each, self.local.values, by_variable=False))
            else:
                pushed.append(known)
        fields = [
            pa.field(shown, handle.schema.field(name).type) for name, shown in columns.items()
        ]
        read = TableRead(
            self.pin(table_key),
            tuple(columns.items()),
            pa.schema(fields),
            tuple(pushed),
            tuple(checked),
        )
        parts = self.parts(table_key)
        if looked_up is not None and parts:
            ids = dict.fromkeys(each for part in parts for each in part.fragment_ids)
            parts = [Part(tuple(ids))]
        return (count_frame if is_counted else read_frame)(self.spark, read, parts)

    def ends(
        self,
        hop: Hop,
        edge_columns: dict[str, str],
        filters: Sequence[Predicate] = (),
        *,
        distinct: bool,
        at: tuple[str, pa.Array] | None = None,
    ) -> DataFrame:
        """Both ends of every edge of a hop, seen from its source, with columns of the edge.

        With `at`, an end and its ids, those of the edges at these nodes.
        """
        looked_up = _look_up(hop, at)
        ends = {"src": FROM, "dst": TO}
        frames = []
        for checks, may_repeat in self._cut_edges(hop, distinct, looked_up):
            along = self.read(f"edge:{hop.edge}", edge_columns | ends, filters, looked_up, checks)
            shown = [fn.col(ends.get(name, to)).alias(to) for name, to in edge_columns.items()]
            along = along.select(FROM, TO, *shown)
            frame = _turn(along, hop.direction, list(edge_columns.values()))
            frames.append(frame.select(FROM, TO).distinct() if may_repeat else frame)
        return reduce(DataFrame.union, frames)

    def count_ends(
        self,
        hop: Hop,
        end: str,
        filters: Sequence[Predicate] = (),
        *,
        distinct: bool,
        at: tuple[str, pa.Array] | None = None,
    ) -> DataFrame:
        """The nodes at one end of a hop, each in several rows whose weights add up to its pairs."""
        if hop.direction is Direction.BOTH:
            return _weigh(self.ends(hop, {}, filters, distinct=distinct, at=at), end)
        key, looked_up = f"edge:{hop.edge}", _look_up(hop, at)
        frames = []
        for checks, may_repeat in self._cut_edges(hop, distinct, looked_up):
            if may_repeat:
                along = self.read(key, {"src": FROM, "dst": TO}, filters, looked_up, checks)
                frame = _weigh(_turn(along, hop.direction, []).distinct(), end)
            else:
                near = {_column_of(hop, end): end}
                frame = self.read(key, near, filters, looked_up, checks, is_counted=True)
            frames.append(frame)
        return reduce(DataFrame.union, frames)

    def _cut_edges(
        self, hop: Hop, distinct: bool, looked_up: IsIn | None
    ) -> list[tuple[tuple[BatchCheck, ...], bool]]:
        """The edges of a hop in parts: by which checks, and whether pairs of a part may repeat."""
        if not distinct or self._has_distinct_pairs(hop):
            return [((), False)]
        if looked_up is not None:
            return [((), True)]
        both = hop.direction is Direction.BOTH
        repeated = self._repeated_pairs(f"edge:{hop.edge}", both=both)
        if len(repeated) > SUSPECTS_MAX:
            return [((), True)]
        if len(repeated) == 0:
            return [((), False)]
        return [((PairCheck(repeated, both, which),), which) for which in (False, True)]

    def _repeated_pairs(self, table_key: str, *, both: bool) -> Hashes:
        local = self.local
        view = local.edges(table_key.removeprefix("edge:")).edges

        def find() -> Hashes:
            rows, parts = view.handle.row_count, self.parts(table_key)
            read = read_pairs(self.pin(table_key))
            found = find_repeated_pairs(self.spark, read, parts, rows, both=both)
            self.note(f"looked for repeated pairs among {rows} of {table_key}: {len(found)}")
            return found

        return local.cache.get(RepeatedPairsKey(view.id, "both" if both else ""), find)

    def _has_distinct_pairs(self, hop: Hop) -> bool:
        """Whether no pair of ends occurs twice, by the rules of the schema."""
        edge = self.local.catalog.edges[hop.edge]
        if hop.direction is Direction.BOTH:
            return False
        told_apart = [*edge.uniques, *([] if edge.key is None else [edge.key])]
        is_unique = any(set(each) <= {"src", "dst"} for each in told_apart)
        return is_unique or edge.cardinality.maximum == 1

    def pin(self, table_key: str) -> Pin:
        return pin_handle(self.local.tables, self.handle(table_key))

    def parts(self, table_key: str) -> list[Part]:
        found = self._parts.get(table_key)
        if found is None:
            found = self._parts[table_key] = cut_parts(self.local.tables, self.handle(table_key))
        return found

    def cut(self, frame: DataFrame) -> DataFrame:
        """Compute a frame now and forget how. What is used more than once has to be cut.

        A plan holds a frame as often as it is used: three blocks, each of which starts from the
        rows so far and is joined to them, would be eight times as large as what they start from.
        """
        found: DataFrame = frame.localCheckpoint(eager=True)
        # Spark lets go of its rows only when Java happens to collect what refers to them.
        self.held.append(partial(found._jdf.queryExecution().logical().rdd().unpersist, False))
        return found

    def release(self) -> None:
        """Let go of everything that is held; a session that has ended holds nothing."""
        while self.held:
            with suppress(Exception):
                self.held.pop()()

    def note(self, text: str) -> None:
        self.notes.append(text)


def _column_of(hop: Hop, end: str) -> str:
    return "src" if (end == FROM) == (hop.direction is Direction.OUT) else "dst"


def _look_up(hop: Hop, at: tuple[str, pa.Array] | None) -> IsIn | None:
    if at is None or hop.direction is Direction.BOTH:
        return None
    return IsIn(_column_of(hop, at[0]), at[1])


def _turn(along: DataFrame, direction: Direction, others: Sequence[str]) -> DataFrame:
    """Edges as pairs seen from the source of a hop; `others` are columns that stay."""
    turned = along.select(fn.col(TO).alias(FROM), fn.col(FROM).alias(TO), *map(fn.col, others))
    match direction:
        case Direction.OUT:
            return along
        case Direction.IN:
            return turned
        case Direction.BOTH:
            # A loop is one edge, whichever way it is walked.
            return along.union(turned.where(fn.col(FROM) != fn.col(TO)))


def _weigh(ends: DataFrame, end: str) -> DataFrame:
    return ends.select(end, fn.lit(1).cast("long").alias(WEIGHT))
