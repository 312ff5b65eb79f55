"""Run: what one execution on Spark reads through, all of it at one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.executor.filters import to_stored_predicate
from omnigraph.executor.run import Run
from omnigraph.ir.expressions import Predicate
from omnigraph.ir.query import Direction
from omnigraph.pipeline.scan import Part, Pin, cut_parts, pin_handle
from omnigraph.pipeline.spark_query.checks import to_check
from omnigraph.pipeline.spark_query.columns import FROM, TO, property_of
from omnigraph.pipeline.spark_query.source import TableRead, read_frame
from omnigraph.planner.pattern import Hop
from omnigraph.storage import predicates as stored
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.tables import TableStorage

BROADCAST_ROWS = 100_000
"""A node table of so many rows is sent to every task, so that the larger side is not shuffled."""


@dataclass(slots=True, eq=False)
class SparkRun:
    """One execution. `held` are frames that are kept until it ends, `notes` what the driver did."""

    spark: Any
    local: Run
    held: list[DataFrame] = field(default_factory=list)
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
        return fn.broadcast(frame) if self.row_count(key) <= BROADCAST_ROWS else frame

    def read(
        self,
        table_key: str,
        columns: dict[str, str],
        filters: Sequence[Predicate] = (),
        looked_up: IsIn | None = None,
    ) -> DataFrame:
        """Rows of a table that meet every filter. `columns` gives each its name in the frame.

        With `looked_up` one task asks an index for the few rows that have such a value.
        """
        handle = self.handle(table_key)
        pushed: list[stored.Predicate] = [] if looked_up is None else [looked_up]
        checked = []
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
        return read_frame(self.spark, read, parts)

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

        key = f"edge:{hop.edge}"
        looked_up = None
        if at is not None and hop.direction is not Direction.BOTH:
            is_source = (at[0] == FROM) == (hop.direction is Direction.OUT)
            looked_up = IsIn("src" if is_source else "dst", at[1])
        along = self.read(key, {"src": FROM, "dst": TO, **edge_columns}, filters, looked_up)
        others = [fn.col(name) for name in edge_columns.values()]
        turned = along.select(fn.col(TO).alias(FROM), fn.col(FROM).alias(TO), *others)
        match hop.direction:
            case Direction.OUT:
                frame = along
            case Direction.IN:
                frame = turned
            case Direction.BOTH:
                # A loop is one edge, whichever way it is walked.
                frame = along.union(turned.where(fn.col(FROM) != fn.col(TO)))
        if not distinct or self._has_distinct_pairs(hop):
            return frame
        return frame.select(FROM, TO).distinct()

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

    def hold(self, frame: DataFrame) -> DataFrame:
        """Compute a frame once and keep it, on the disks of the executors, until the run ends."""
        kept = frame.persist(StorageLevel.DISK_ONLY)
        self.held.append(kept)
        return kept

    def release(self) -> None:
        """Let go of everything that is held; a session that has ended holds nothing."""
        while self.held:
            with suppress(Exception):
                self.held.pop().unpersist()

    def note(self, text: str) -> None:
        self.notes.append(text)


def read_edges(spark: Any, tables: TableStorage, handle: TableHandle) -> DataFrame:
    """Both ends of every edge of a table."""
    schema = pa.schema([("src", pa.utf8()), ("dst", pa.utf8())])
    read = TableRead(pin_handle(tables, handle), (("src", "src"), ("dst", "dst")), schema)
    return read_frame(spark, read, cut_parts(tables, handle))
