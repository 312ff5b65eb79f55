"""Paths: walks that keep what they followed, level by level, as frames.

A row has a start, a node, and the nodes and edges between them, from the written left end to the
right one. Spark compares arrays element by element, so the least of the arrays that reach a node is
the path that counts, from whichever end the walk began.

    shortest, {m,n}    each level keeps the least path to each node that was not reached before
    all shortest       each level keeps all of them; more than the limit on rows are refused
    by a weight        each round keeps the cheapest path so far, until none gets cheaper
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.executor.cheapest import negative_weight
from omnigraph.executor.rows import ANSWER, require_room
from omnigraph.ir.query import HIDDEN_PREFIX, WalkMode
from omnigraph.pipeline.spark_query.columns import FROM, TO, id_of, property_of
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.pattern import Hop

START, NODE, NEXT = "*start", "*node", "*next"
_PATH, _EDGE, _STEP = "*path", "*edge", "*step"
_BEST, _KNOWN, _COST = "*best", "*known", "*cost"


@dataclass(frozen=True, slots=True)
class PathNeeds:
    """Which properties of nodes and of edges are read, and whether paths are read at all."""

    variable: str | None
    columns: tuple[str, ...] = ()

    def of(self, kind: str) -> list[str]:
        """The properties of `nodes` or `edges`."""
        parts = (name.removeprefix(HIDDEN_PREFIX).partition("/") for name in self.columns)
        return sorted({name for owner, _, name in parts if owner == kind and name})


def path_ends(
    run: SparkRun, hop: Hop, starts: DataFrame, needs: PathNeeds, *, from_source: bool
) -> DataFrame:
    """The ends of a hop from these starts, with its path; one row for each path."""
    walk = _PathWalk(run, hop, needs, from_source)
    starts = run.cut(starts)
    if hop.weight is not None:
        return walk.show(walk.cheapest(starts))
    answer: DataFrame | None = None
    for distance, frame in walk.levels(starts):
        found = walk.within(frame, distance)
        if found is not None:
            answer = found if answer is None else answer.union(found)
    if answer is None:
        answer = walk.begin(starts).limit(0)
    return walk.show(answer)


class _PathWalk:
    """One walk of one hop."""

    def __init__(self, run: SparkRun, hop: Hop, needs: PathNeeds, from_source: bool) -> None:
        self.run = run
        self.hop = hop
        self.needs = needs
        self.from_source = from_source
        self.is_prefix = from_source != hop.is_reversed
        edge = run.local.catalog.edges[hop.edge]
        self.chains = edge.source == edge.target
        near, far = (FROM, TO) if from_source else (TO, FROM)
        self.types = self._end_types(edge.source, edge.target)
        self.steps = self._read_steps(near, far)

    def _end_types(self, source: str, target: str) -> tuple[str, str]:
        """The types of the nodes that a step leads from and to."""
        is_along = (self.hop.direction.value != "in") == self.from_source
        return (source, target) if is_along else (target, source)

    def _read_steps(self, near: str, far: str) -> DataFrame:
        read = dict.fromkeys(["id", *self.needs.of("edges"), *filter(None, [self.hop.weight])])
        names = {name: f"*e {name}" for name in read}
        ends = self.run.ends(self.hop, names, self.hop.conditions, distinct=False)
        edge = fn.struct(*(fn.col(shown).alias(name) for name, shown in names.items()))
        steps = ends.select(fn.col(near).alias(NODE), fn.col(far).alias(NEXT), edge.alias(_EDGE))
        return self._with_node(steps, NEXT, self.types[1], _STEP)

    def _with_node(self, frame: DataFrame, column: str, type_name: str, shown: str) -> DataFrame:
        """The frame with what is read of the node in a column."""
        names = self.needs.of("nodes")
        own = fn.col(column).alias("id")
        if not names:
            return frame.withColumn(shown, fn.struct(own))
        nodes = self.run.read_nodes("*n", type_name, (), names)
        joined = frame.join(nodes, fn.col(column) == fn.col(id_of("*n")))
        read = [fn.col(f"`{property_of('*n', name)}`").alias(name) for name in names]
        return joined.withColumn(shown, fn.struct(own, *read)).drop(*nodes.columns)

    def begin(self, starts: DataFrame) -> DataFrame:
        """The paths without a hop."""
        frame = starts.toDF(START).withColumn(NODE, fn.col(START))
        frame = self._with_node(frame, START, self.types[0], _STEP)
        edge = self.steps.schema[_EDGE].dataType.simpleString()
        path = fn.struct(
            fn.array(_STEP).alias("nodes"),
            fn.expr(f"cast(array() as array<{edge}>)").alias("edges"),
        )
        return frame.select(START, NODE, path.alias(_PATH))

    def levels(self, starts: DataFrame) -> Iterator[tuple[int, DataFrame]]:
        """The paths of each length, from 0 on, until there are none."""
        frontier = self.begin(starts)
        seen = frontier.select(START, NODE)
        most = self.hop.max_hops if self.chains else 1
        distance, held = 0, 0
        yield distance, frontier
        while distance != most:
            longer = self._extend(frontier, self.steps)
            if self.chains:
                longer = longer.join(seen, [START, NODE], "left_anti")
            frontier = self.run.cut(self._choose(longer))
            distance += 1
            count = frontier.count()
            held += count
            require_room(held, ANSWER)
            self.run.note(f"walked {self.hop.edge} to distance {distance}: {count} paths")
            if count == 0:
                break
            yield distance, frontier
            seen = seen.union(frontier.select(START, NODE).distinct())

    def cheapest(self, starts: DataFrame) -> DataFrame:
        """The cheapest path to each node but the start: cost, then hops, then the path."""
        zero = fn.struct(fn.lit(0.0).alias("cost"), fn.lit(0).alias("hops"), fn.col(_PATH))
        best = self.begin(starts).select(START, NODE, zero.alias(_BEST))
        frontier = best
        while True:
            longer = self._extend_weighted(frontier)
            known = best.withColumnRenamed(_BEST, _KNOWN)
            chosen = longer.groupBy(START, NODE).agg(fn.min(_BEST).alias(_BEST))
            better = chosen.join(known, [START, NODE], "left").where(
                fn.col(_KNOWN).isNull() | (fn.col(_BEST) < fn.col(_KNOWN))
            )
            frontier = self.run.cut(better.select(START, NODE, _BEST))
            count = frontier.count()
            self.run.note(f"{count} cheaper paths along {self.hop.edge}")
            if count == 0 or not self.chains:
                break
            kept = best.join(frontier, [START, NODE], "left_anti")
            best = self.run.cut(kept.union(frontier))
            require_room(best.count(), ANSWER)
        found = best if self.chains else frontier
        path = fn.col(_BEST)
        return found.where(path["hops"] > 0).select(
            START, NODE, path[_PATH].alias(_PATH), path["cost"].alias(_COST)
        )

    def _extend_weighted(self, frontier: DataFrame) -> DataFrame:
        assert self.hop.weight is not None
        joined = frontier.join(self.steps, [NODE])
        weight = fn.col(_EDGE)[self.hop.weight].cast("double")
        if not joined.where(weight < 0).isEmpty():
            raise negative_weight()
        best = fn.col(_BEST)
        path = self._join(best[_PATH], fn.col(_STEP), fn.col(_EDGE), at_start=not self.is_prefix)
        longer = fn.struct(
            (best["cost"] + weight).alias("cost"),
            (best["hops"] + 1).alias("hops"),
            path.alias(_PATH),
        )
        return joined.select(START, fn.col(NEXT).alias(NODE), longer.alias(_BEST))

    def _extend(self, frontier: DataFrame, steps: DataFrame) -> DataFrame:
        joined = frontier.join(steps, [NODE])
        path = self._join(fn.col(_PATH), fn.col(_STEP), fn.col(_EDGE), at_start=not self.is_prefix)
        return joined.select(START, fn.col(NEXT).alias(NODE), path.alias(_PATH))

    def _join(self, path: Column, node: Column, edge: Column, *, at_start: bool) -> Column:
        nodes, edges = [path["nodes"], fn.array(node)], [path["edges"], fn.array(edge)]
        if at_start:
            nodes, edges = nodes[::-1], edges[::-1]
        return fn.struct(fn.concat(*nodes).alias("nodes"), fn.concat(*edges).alias("edges"))

    def _choose(self, frame: DataFrame) -> DataFrame:
        if self.hop.mode is WalkMode.ALL_SHORTEST:
            return frame
        return frame.groupBy(START, NODE).agg(fn.min(_PATH).alias(_PATH))

    def within(self, frame: DataFrame, distance: int) -> DataFrame | None:
        """The paths that count: all of them, or one hop short those that a loop makes longer."""
        if distance >= self.hop.min_hops:
            return frame
        if distance < self.hop.min_hops - 1 or not self.chains:
            return None
        return self._with_loops(frame) if self.hop.mode is WalkMode.REACH else None

    def _with_loops(self, frame: DataFrame) -> DataFrame:
        end = NODE if self.from_source else START
        loops = self.steps.where(fn.col(NODE) == fn.col(NEXT))
        loops = loops.select(fn.col(NODE).alias(end), _STEP, _EDGE)
        # The loop is at the target of the walk: at its far end, or at the end it began from.
        at_start = self.is_prefix != self.from_source
        path = self._join(fn.col(_PATH), fn.col(_STEP), fn.col(_EDGE), at_start=at_start)
        longer = frame.join(loops, [end]).select(START, NODE, path.alias(_PATH))
        return self._choose(longer)

    def show(self, frame: DataFrame) -> DataFrame:
        """Both ends as the hop has them, and what is read of the path."""
        names = (FROM, TO) if self.from_source else (TO, FROM)
        columns = [fn.col(START).alias(names[0]), fn.col(NODE).alias(names[1])]
        return frame.select(*columns, *self._columns())

    def _columns(self) -> Iterable[Column]:
        variable = self.needs.variable
        if variable is None:
            return
        path = fn.col(_PATH)
        yield fn.struct(path["nodes"]["id"], path["edges"]["id"]).alias(id_of(variable))
        for name in self.needs.columns:
            value = fn.col(_COST) if name == "#cost" else _value(path, name)
            yield value.alias(property_of(variable, name))


def _value(path: Column, name: str) -> Column:
    kind, _, wanted = name.removeprefix(HIDDEN_PREFIX).partition("/")
    if kind == "hops":
        return fn.size(path["edges"]).cast("long")
    return path[kind][wanted or "id"]
