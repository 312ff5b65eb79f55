"""Walks: the pairs that a traversal of several hops, or a search for shortest paths, relates.

    {m,n} without a variable   `kernels.walk`: who reaches whom
    a path is asked for        the same pairs, each with the number of its path
    shortest                   from the end with fewer nodes; from both when each has one
    all shortest               a pair for each path

A walk starts where there is less to start from, and means the same from either end.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from omnigraph.executor.all_shortest import search_all
from omnigraph.executor.cheapest import Weighted, search_cheapest
from omnigraph.executor.kernels import expand, walk
from omnigraph.executor.paths import id_codes
from omnigraph.executor.run import Run
from omnigraph.executor.shortest import Forest, Found, Search, meet, search
from omnigraph.index import Selection
from omnigraph.index.adjacency import Pairs, Relation
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray
from omnigraph.index.columns import to_doubles
from omnigraph.index.runs import Runs
from omnigraph.ir.query import Direction, WalkMode
from omnigraph.planner.pattern import Hop

_NONE: IntArray = np.empty(0, dtype=np.int64)


def walk_pairs(
    run: Run,
    hop: Hop,
    relation: Relation | Pairs,
    ends: tuple[Selection, Selection],
    kept: Selection | None,
) -> Relation | Pairs:
    """The pairs of a walk between `ends`. `relation` is one hop of it, seen from its source."""
    edge = run.catalog.edges[hop.edge]
    if hop.mode is WalkMode.REACH and hop.edge_variable is None:
        if edge.source != edge.target:
            # The far end has no such edge of its own, so a second hop leads nowhere.
            return relation if hop.min_hops == 1 else Pairs(_NONE, _NONE, None, relation.sizes)
        return _reach(run, hop, relation, ends)
    found = _Walk(run, hop, relation, ends, kept, chains=edge.source == edge.target)
    return found.all_paths() if hop.mode is WalkMode.ALL_SHORTEST else found.one_path()


def _is_backwards(ends: tuple[Selection, Selection]) -> bool:
    """Whether a walk starts from its targets, because they are fewer."""
    return ends[1].count < ends[0].count


def _reach(
    run: Run, hop: Hop, relation: Relation | Pairs, ends: tuple[Selection, Selection]
) -> Pairs:
    assert hop.max_hops is not None
    hops = (hop.min_hops, hop.max_hops)
    loops = relation.forward.loops
    is_backwards = _is_backwards(ends)
    starts = ends[is_backwards].positions()
    side = relation.side(source=not is_backwards)
    rows, nodes = walk(side, starts, hops, loops, loop_at_start=is_backwards, look_at=run.look_at)
    _note(run, hop, is_backwards, len(rows))
    if is_backwards:
        return Pairs(nodes, starts[rows], None, relation.sizes)
    return Pairs(starts[rows], nodes, None, relation.sizes)


def _note(run: Run, hop: Hop, is_backwards: bool, count: int) -> None:
    end = "targets" if is_backwards else "sources"
    run.note(f"walked {hop.edge} from its {end}", count)


class _Walk:
    """One walk that keeps its paths, or that is a search for shortest ones."""

    def __init__(
        self,
        run: Run,
        hop: Hop,
        relation: Relation | Pairs,
        ends: tuple[Selection, Selection],
        kept: Selection | None,
        *,
        chains: bool,
    ) -> None:
        self.run = run
        self.hop = hop
        self.relation = relation
        self.ends = ends
        self.kept = kept
        self.chains = chains
        # Weights are summed from the written left end, and so is what follows from them.
        self.is_backwards = hop.is_reversed if hop.weight else _is_backwards(ends)
        # Seen from the written left end, where the order of paths is decided.
        self.is_prefix = self.is_backwards == hop.is_reversed
        self.paths = None if hop.edge_variable is None else run.paths(hop)

    def one_path(self) -> Pairs:
        """The pairs that are reached, each once."""
        if self.hop.weight is not None:
            return self._cheapest_path(self.hop.weight)
        if not self.chains:
            return self._to_pairs(self._one_hop(self._side()))
        if self._is_one_pair():
            found = self._meet()
        else:
            starts = self.ends[self.is_backwards].positions()
            found = search(self._side(), starts, self._wanted())
            _note(self.run, self.hop, self.is_backwards, len(found.rows))
        return self._to_pairs(found)

    def all_paths(self) -> Pairs:
        """The pairs of all shortest paths, one for each path."""
        starts = self.ends[self.is_backwards].positions()
        stored = self._stored().side(source=not self.is_backwards)
        if not self.chains:
            return self._to_pairs(self._one_hop(stored))
        found = search_all(self._side(), self._side(reverse=True), stored, starts, self._wanted())
        _note(self.run, self.hop, self.is_backwards, len(found.rows))
        return self._to_pairs(found)

    def _cheapest_path(self, weight: str) -> Pairs:
        """The pairs that are reached, each by its cheapest path."""
        edges = self.run.edges(self.hop.edge).edges
        weights = to_doubles(edges.column(weight))
        stored = self._stored().side(source=not self.is_backwards)
        wanted = self._wanted()
        starts = self.ends[self.is_backwards].positions()
        codes = partial(id_codes, edges)
        width = max(self.relation.sizes)
        edges_of = Weighted(stored, weights, codes, width, chains=self.chains)
        found, costs = search_cheapest(edges_of, starts, wanted)
        _note(self.run, self.hop, self.is_backwards, len(found.rows))
        return self._to_pairs(found, costs)

    def _is_one_pair(self) -> bool:
        is_search = self.hop.mode is WalkMode.SHORTEST and self.chains
        return is_search and self.ends[0].count == 1 and self.ends[1].count == 1

    def _meet(self) -> Found:
        """Search from both ends at once."""
        source, target = (int(each.positions()[0]) for each in self.ends)
        sides = self.relation.forward, self.relation.backward
        if self.hop.is_reversed:
            source, target, sides = target, source, sides[::-1]
        nodes = meet(*sides, source, target, self.hop.max_hops, self._ranks())
        is_found = nodes is not None and len(nodes) > self.hop.min_hops
        self.run.note(f"searched {self.hop.edge} from both ends", int(is_found))
        if nodes is None or not is_found:
            return Found(_NONE, _NONE, _NONE, _NONE, _NONE.astype(bool), Forest())
        one, last = np.zeros(1, dtype=np.int64), len(nodes) - 1
        self.is_prefix, self.is_backwards = True, self.hop.is_reversed
        return Found(
            one,
            nodes[-1:],
            one + last,
            one + last,
            one.astype(bool),
            Forest(nodes, np.arange(-1, last)),
        )

    def _one_hop(self, side: Runs) -> Found:
        """Between two types there is no second hop."""
        starts, far = self.ends[self.is_backwards].positions(), self.ends[not self.is_backwards]
        rows, entries = expand(side, starts if self.hop.min_hops == 1 else _NONE)
        nodes = side.neighbours(entries)
        kept = np.flatnonzero(far.contains(nodes))
        rows, nodes, count = rows[kept], nodes[kept], len(kept)
        edges: IntArray | None = None
        if side.edges is not None:
            none = np.full(len(starts), -1, dtype=np.int64)
            edges = np.concatenate([none, side.edges[entries[kept]]])
        parents = np.concatenate([np.full(len(starts), -1, dtype=np.int64), rows])
        return Found(
            rows,
            nodes,
            len(starts) + np.arange(count),
            np.ones(count, dtype=np.int64),
            np.zeros(count, dtype=bool),
            Forest(np.concatenate([starts, nodes]), parents, edges),
        )

    def _to_pairs(self, found: Found, costs: AnyArray | None = None) -> Pairs:
        starts = self.ends[self.is_backwards].positions()[found.rows]
        numbers: IntArray | None = None
        if self.paths is not None:
            numbers = self.paths.add(found, is_prefix=self.is_prefix, costs=costs)
        elif self.hop.mode is WalkMode.ALL_SHORTEST:
            # Nothing reads the paths, but each is a row.
            numbers = np.zeros(len(starts), dtype=np.int64)
        ends = (starts, found.nodes)
        source, target = ends[self.is_backwards], ends[not self.is_backwards]
        return Pairs(source, target, numbers, self.relation.sizes)

    def _wanted(self) -> Search:
        hop, far = self.hop, self.ends[not self.is_backwards]
        loops: BoolArray | None = None
        if hop.mode is WalkMode.REACH:
            loops = self.relation.forward.loops
        return Search(
            hop.min_hops,
            hop.max_hops,
            None if far.is_all else far.mask(),
            self._ranks(),
            self.is_prefix,
            loops,
            loop_at_start=self.is_backwards,
            look_at=self.run.look_at,
        )

    def _side(self, *, reverse: bool = False) -> Runs:
        return self.relation.side(source=self.is_backwards == reverse)

    def _ranks(self) -> IntArray | None:
        """Numbers that sort nodes by their ids, when it matters which path is taken."""
        if self.hop.edge_variable is None or not self.chains:
            return None
        return self.run.path_tables(self.hop).left.lookup.ranks("id").codes

    def _stored(self) -> Relation | Pairs:
        """One hop with parallel edges apart, seen from the walk's source."""
        index, both = self.run.edges(self.hop.edge), self.hop.direction is Direction.BOTH
        if self.kept is None:
            relation: Relation | Pairs = index.per_edge(both=both)
        else:
            relation = index.select_edges(self.kept, both=both)
        return relation.reverse() if self.hop.direction is Direction.IN else relation
