"""Walk: the pairs of nodes that `{m,n}` relates, from the ends at hand outwards.

A node is reached once from each start, at its shortest distance. A pair is one of the answer when
that distance lies within the bounds; or is one short of them, and the end of the walk has a loop.
Both hold from either end, so a walk may begin at its source or at its target.

    few pairs    the driver asks the store for the edges at the frontier, one look-up a hop
    more         each hop is a join, less what was reached before; a frame is kept for each

Few nodes may lead to very many: before their pairs are made they are counted, and tasks go on.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.executor.filters import to_stored_predicate
from omnigraph.executor.rows import WALKS, require_room
from omnigraph.ir.query import Direction
from omnigraph.pipeline.spark_query.columns import FROM, TO
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.pattern import Hop
from omnigraph.storage.predicates import And, IsIn, Predicate

LOOKED_UP_PAIRS = 20_000
"""A frontier of so many pairs is looked up; a larger one is joined."""
MADE_PAIRS_MAX = 2_000_000
"""The driver makes no more pairs at once: about 200 MB."""

START, NODE, NEXT = "*start", "*node", "*next"


@dataclass(frozen=True, slots=True)
class _Reached:
    """Pairs of a start and a node, of one distance: at hand, or as a frame."""

    distance: int
    pairs: pa.Table | DataFrame


def walk_ends(run: SparkRun, hop: Hop, starts: DataFrame, *, from_source: bool) -> DataFrame:
    """The pairs from the starts, which are one column of distinct ids, as ends of the hop."""
    edge = run.local.catalog.edges[hop.edge]
    if edge.source != edge.target:
        # The far end has no such edge of its own, so a second hop leads nowhere.
        ends = run.ends(hop, {}, hop.conditions, distinct=True)
        return ends if hop.min_hops == 1 else ends.limit(0)
    assert hop.max_hops is not None, "a walk without an end searches for paths"
    walk = _Walk(run, hop, from_source)
    answer: DataFrame = run.spark.createDataFrame([], f"`{START}` string, `{NODE}` string")
    for reached in walk.reach(starts, hop.max_hops):
        if reached.distance >= hop.min_hops - 1:
            answer = answer.union(walk.within(reached, hop.min_hops))
    names = {START: FROM, NODE: TO} if from_source else {START: TO, NODE: FROM}
    return answer.withColumnsRenamed(names)


class _Walk:
    """One walk of one hop."""

    def __init__(self, run: SparkRun, hop: Hop, from_source: bool) -> None:
        self.run = run
        self.hop = hop
        self.from_source = from_source
        self.key = f"edge:{hop.edge}"
        # What the store cannot decide is left to tasks.
        self.pushed: list[Predicate | None] = [
            to_stored_predicate(run.local, each) for each in hop.conditions
        ]

    def reach(self, starts: DataFrame, most: int) -> Iterator[_Reached]:
        """The pairs of each distance, from 0 on, until there are none."""
        few = starts.limit(LOOKED_UP_PAIRS + 1).toArrow().column(0)
        if len(few) > LOOKED_UP_PAIRS or None in self.pushed:
            frame = self.run.cut(starts).toDF(START).withColumn(NODE, fn.col(START))
            yield from self._join_on(frame, frame, 0, most)
            return
        frontier = seen = pa.table({START: few, NODE: few})
        distance, looked_up = 0, 0
        while True:
            yield _Reached(distance, frontier)
            if distance == most or frontier.num_rows == 0:
                break
            if frontier.num_rows > LOOKED_UP_PAIRS:
                kept, known = self._to_frame(frontier), self._to_frame(seen)
                yield from _later(self._join_on(kept, known, distance, most))
                break
            further = self._look_up(frontier, seen)
            if further is None:
                kept, known = self._to_frame(frontier), self._to_frame(seen)
                yield from _later(self._join_on(kept, known, distance, most))
                break
            frontier = further
            seen = pa.concat_tables([seen, frontier])
            distance, looked_up = distance + 1, looked_up + 1
        self.run.note(
            f"looked up {looked_up} hops along {self.hop.edge} from {len(few)} starts in the store"
        )

    def _look_up(self, frontier: pa.Table, seen: pa.Table) -> pa.Table | None:
        """The pairs one hop further that were not seen before; None where they are too many."""
        edges = self._edges_at(pc.unique(frontier.column(NODE)))
        if _count_pairs(frontier, edges) > MADE_PAIRS_MAX:
            return None
        pairs = frontier.join(edges, NODE, join_type="inner").select([START, NEXT])
        distinct = pairs.group_by([START, NEXT]).aggregate([]).rename_columns([START, NODE])
        return distinct.join(seen, [START, NODE], join_type="left anti").select([START, NODE])

    def _edges_at(self, nodes: pa.ChunkedArray) -> pa.Table:
        """Where one step leads from these nodes, along the walk."""
        nodes = nodes.combine_chunks() if isinstance(nodes, pa.ChunkedArray) else nodes
        handle, reads = self.run.handle(self.key), self.run.local.tables.reads
        found = []
        for near, far in self._columns():
            wanted = IsIn(near, nodes.cast(pa.utf8()))
            predicate = (
                And((wanted, *(each for each in self.pushed if each))) if self.pushed else wanted
            )
            edges = reads.scan(handle, [near, far], predicate)
            found.append(edges.select([near, far]).rename_columns([NODE, NEXT]))
        return pa.concat_tables(found)

    def _columns(self) -> list[tuple[str, str]]:
        """The columns that one step leads from and to."""
        along, against = ("src", "dst"), ("dst", "src")
        if self.hop.direction is Direction.BOTH:
            return [along, against]
        is_along = (self.hop.direction is Direction.OUT) == self.from_source
        return [along if is_along else against]

    def _join_on(
        self, frontier: DataFrame, seen: DataFrame, distance: int, most: int
    ) -> Iterator[_Reached]:
        near, far = (FROM, TO) if self.from_source else (TO, FROM)
        steps = self.run.ends(self.hop, {}, self.hop.conditions, distinct=False)
        steps = steps.withColumnsRenamed({near: NODE, far: NEXT})
        yield _Reached(distance, frontier)
        held = 0
        while distance < most:
            pairs = frontier.join(steps, [NODE]).select(START, NEXT).distinct().toDF(START, NODE)
            frontier = self.run.cut(pairs.join(seen, [START, NODE], "left_anti"))
            distance += 1
            count = frontier.count()
            held += count
            require_room(held, WALKS)
            self.run.note(f"walked {self.hop.edge} to distance {distance}: {count} pairs")
            if count == 0:
                break
            yield _Reached(distance, frontier)
            seen = seen.union(frontier)

    def within(self, reached: _Reached, least: int) -> DataFrame:
        """The pairs that count: all of them, or one hop short those that a loop makes longer."""
        if reached.distance >= least:
            return self._to_frame(reached.pairs)
        end = NODE if self.from_source else START
        if isinstance(reached.pairs, pa.Table):
            edges = self._edges_at(pc.unique(reached.pairs.column(end)))
            loops = edges.filter(pc.equal(edges.column(NODE), edges.column(NEXT))).column(NODE)
            is_loop = pc.is_in(reached.pairs.column(end), pc.unique(loops))
            return self._to_frame(reached.pairs.filter(is_loop))
        ends = self.run.ends(self.hop, {}, self.hop.conditions, distinct=False)
        loops = ends.where(fn.col(FROM) == fn.col(TO)).select(fn.col(FROM).alias(end))
        return reached.pairs.join(loops, [end], "left_semi").select(START, NODE)

    def _to_frame(self, pairs: pa.Table | DataFrame) -> DataFrame:
        if not isinstance(pairs, pa.Table):
            return pairs
        frame: DataFrame = self.run.spark.createDataFrame(pairs)
        return frame


def _count_pairs(frontier: pa.Table, edges: pa.Table) -> int:
    """How many pairs a frontier and the edges at its nodes make, before any is made."""
    starts = frontier.group_by(NODE).aggregate([([], "count_all")]).rename_columns([NODE, "s"])
    ends = edges.group_by(NODE).aggregate([([], "count_all")]).rename_columns([NODE, "e"])
    both = starts.join(ends, NODE, join_type="inner")
    return int(pc.sum(pc.multiply(both.column("s"), both.column("e"))).as_py() or 0)


def _later(reached: Iterator[_Reached]) -> Iterator[_Reached]:
    """Without the first, which was given already."""
    next(reached)
    return reached
