"""Paths: what walks followed, kept as entries that know where they were reached from.

A row holds the number of a path. The nodes of a path are listed when they are read, its edges are
looked up then: of parallel edges the one with the least id.

    #hops          how many edges it has           #cost         the sum of their weights
    #nodes         the ids of its nodes            #nodes/title  a property of each
    #edges         the ids of its edges            #edges/note   a property of each

`id` gives numbers that sort paths by the ids of their nodes, then by those of their edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.closing import Members
from omnigraph.executor.kernels import expand_runs
from omnigraph.executor.rows import LISTS, PATHS, require_room
from omnigraph.executor.shortest import Forest, Found, join_forests
from omnigraph.index import EdgeIndex, Selection, TableView, Walk
from omnigraph.index.adjacency import Pairs, Relation
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray, sort_distinct
from omnigraph.index.columns import to_sort_keys
from omnigraph.ir.query import Direction
from omnigraph.planner.pattern import Hop

_NONE: IntArray = np.empty(0, dtype=np.int64)
_PATHS_MAX = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class PathTables:
    """What paths are made of, seen from their written left end.

    `direction` is that of the stored edges from there. `kept` says which edges a path may use,
    None for all of them.
    """

    left: TableView
    right: TableView
    index: EdgeIndex
    direction: Direction
    kept: Callable[[], Selection | None]


@dataclass(slots=True, eq=False)
class Paths:
    """The paths of one walk. A path ends at an entry; from there it leads to the left, or right.

    `is_looped` says that the other end is there twice.
    """

    hop: Hop
    tables: PathTables
    forest: Forest = field(default_factory=Forest)
    entries: IntArray = field(default_factory=lambda: _NONE)
    hops: IntArray = field(default_factory=lambda: _NONE)
    is_looped: BoolArray = field(default_factory=lambda: _NONE.astype(bool))
    is_prefix: BoolArray = field(default_factory=lambda: _NONE.astype(bool))
    costs: AnyArray | None = None

    @property
    def size(self) -> int:
        """Every number of a path is below this, those to come as well."""
        return _PATHS_MAX

    def add(self, found: Found, *, is_prefix: bool, costs: AnyArray | None = None) -> IntArray:
        """Keep what a search found; give the number of each path."""
        before = len(self.entries)
        self.entries = np.concatenate([self.entries, found.entries + len(self.forest.nodes)])
        self.forest = join_forests([self.forest, found.forest])
        require_room(len(self.forest.nodes), PATHS)
        self.hops = np.concatenate([self.hops, found.hops])
        self.is_looped = np.concatenate([self.is_looped, found.is_looped])
        side = np.full(len(found.entries), is_prefix)
        self.is_prefix = np.concatenate([self.is_prefix, side])
        if costs is not None:
            known = np.empty(0) if self.costs is None else self.costs
            self.costs = np.concatenate([known, costs])
        return np.arange(before, len(self.entries))

    # Reading

    def values(self, names: Sequence[str], positions: IntArray) -> dict[str, pa.Array]:
        """What is asked of the paths at these positions, which may repeat."""
        lists = _Lists(self, positions)
        return {name: self._read(name, positions, lists) for name in names}

    def _read(self, name: str, paths: IntArray, lists: _Lists) -> pa.Array:
        kind, _, wanted = name.partition("/")
        match kind:
            case "#hops":
                return pa.array(self.hops[paths], pa.int64())
            case "#cost":
                assert self.costs is not None
                return pa.array(self.costs[paths], pa.float64())
            case "#nodes":
                return lists.of_nodes(wanted or "id")
            case "#edges":
                return lists.of_edges(wanted or "id")
        assert kind == "id", name
        return pa.array(lists.ranks())


class _Lists:
    """The nodes and edges of some paths, one after the other, from left to right."""

    def __init__(self, paths: Paths, numbers: IntArray) -> None:
        self._paths = paths
        self._numbers = numbers
        self._hops = paths.hops[numbers]
        self._starts = np.concatenate([[0], np.cumsum(self._hops + 1)])
        self._nodes: IntArray | None = None
        self._edges: IntArray | None = None

    def of_nodes(self, name: str) -> pa.Array:
        """A property of every node."""
        tables, nodes = self._paths.tables, self._list_nodes()
        if tables.left.id == tables.right.id:
            values = tables.left.values([name], nodes)[name]
        else:
            # Edges between two types do not chain: a path has one node of each.
            ends = [
                tables.left.values([name], nodes[::2]),
                tables.right.values([name], nodes[1::2]),
            ]
            both = pa.concat_arrays([each[name] for each in ends])
            count = len(nodes) // 2
            values = both.take(pa.array(np.arange(2 * count).reshape(2, count).T.ravel()))
        return _to_lists(self._starts, values)

    def of_edges(self, name: str) -> pa.Array:
        """A property of every edge."""
        starts = np.concatenate([[0], np.cumsum(self._hops)])
        values = self._paths.tables.index.edges.values([name], self._list_edges())[name]
        return _to_lists(starts, values)

    def ranks(self) -> IntArray:
        """Numbers that sort these paths by the ids of nodes, then of edges."""
        tables, nodes = self._paths.tables, self._list_nodes()
        if tables.left.id == tables.right.id:
            codes = id_codes(tables.left, nodes)
        else:
            codes = np.empty(len(nodes), dtype=np.int64)
            codes[::2] = id_codes(tables.left, nodes[::2])
            codes[1::2] = id_codes(tables.right, nodes[1::2])
        keys = _to_columns(codes, self._hops + 1)
        order, ranks = _rank(keys)
        if len(order) and ranks[order[-1]] + 1 < len(order):
            edges = id_codes(tables.index.edges, self._list_edges())
            _, ranks = _rank([*keys, *_to_columns(edges, self._hops)])
        return ranks

    def _list_nodes(self) -> IntArray:
        if self._nodes is None:
            self._nodes = self._walk(self._paths.forest.nodes, self._hops + 1)
            looped = self._paths.is_looped[self._numbers]
            lasts, firsts = self._starts[1:] - 1, self._starts[:-1]
            is_prefix = self._paths.is_prefix[self._numbers]
            at = np.where(is_prefix, firsts, lasts)[looped]
            self._nodes[at] = self._nodes[np.where(is_prefix, firsts + 1, lasts - 1)[looped]]
        return self._nodes

    def _walk(self, values: IntArray, counts: IntArray) -> IntArray:
        """What entries have, from each path's last one on; `counts` values of each path."""
        paths, numbers = self._paths, self._numbers
        ends = np.cumsum(counts)
        is_prefix = paths.is_prefix[numbers]
        place = np.where(is_prefix, ends - 1, ends - counts)
        step = np.where(is_prefix, -1, 1)
        left = counts - (paths.is_looped[numbers] & (counts > self._hops))
        count = int(ends[-1]) if len(ends) else 0
        require_room(count, LISTS)
        listed = np.empty(count, dtype=np.int64)
        entries = paths.entries[numbers]
        active = np.arange(len(numbers))
        while len(active):
            active = active[left[active] > 0]
            listed[place[active]] = values[entries[active]]
            place[active] += step[active]
            left[active] -= 1
            entries[active] = paths.forest.parents[entries[active]]
        return listed

    def _list_edges(self) -> IntArray:
        if self._edges is None:
            edges = self._paths.forest.edges
            if edges is not None and len(edges):
                self._edges = self._walk(edges, self._hops)
            else:
                self._edges = self._look_up_edges()
        return self._edges

    def _look_up_edges(self) -> IntArray:
        nodes = self._list_nodes()
        is_last = np.zeros(len(nodes), dtype=bool)
        is_last[self._starts[1:] - 1] = True
        lefts = nodes[~is_last]
        is_first = np.zeros(len(nodes), dtype=bool)
        is_first[self._starts[:-1]] = True
        return find_edges(self._paths.tables, lefts, nodes[~is_first])


def find_edges(tables: PathTables, lefts: IntArray, rights: IntArray) -> IntArray:
    """The edge between each pair, of several the one with the least id."""
    if len(lefts) == 0:
        return _NONE
    pairs, of_pair = np.unique(np.stack([lefts, rights]), axis=1, return_inverse=True)
    relation = _stored_edges(tables, sort_distinct(pairs[0]))
    runs = relation.side(source=tables.direction is not Direction.IN)
    assert runs.edges is not None
    found, firsts, lasts = Members(runs, tables.right.size).find(pairs[0], pairs[1])
    assert len(found) == pairs.shape[1], "a path follows stored edges"
    which, entries = expand_runs(firsts, lasts)
    edges = runs.edges[entries]
    if len(edges) > len(found):
        order = np.lexsort([id_codes(tables.index.edges, edges), which])
        edges = edges[order[np.flatnonzero(np.diff(which[order], prepend=-1))]]
    return np.asarray(edges[of_pair.ravel()])


def _stored_edges(tables: PathTables, lefts: IntArray) -> Relation | Pairs:
    index, both = tables.index, tables.direction is Direction.BOTH
    kept = tables.kept()
    if kept is not None:
        return index.select_edges(kept, both=both)
    walk = Walk(from_source=tables.direction is not Direction.IN, both=both, is_stored=True)
    near = Selection(tables.left.size, positions=lefts)
    return index.look_up(near, walk) or index.per_edge(both=both)


def id_codes(view: TableView, positions: IntArray) -> IntArray:
    """Numbers that sort these positions by their ids."""
    if view.lookup.prefers_ranks("id", len(positions)):
        return np.asarray(view.lookup.ranks("id").codes[positions], dtype=np.int64)
    return np.asarray(to_sort_keys(view.values(["id"], positions)["id"]), dtype=np.int64)


def _to_columns(codes: IntArray, counts: IntArray) -> list[IntArray]:
    """The first numbers of every list, the second ones, …; -1 where a list has ended."""
    starts = np.cumsum(counts) - counts
    longest = int(np.max(counts, initial=0))
    require_room(longest * len(counts), LISTS)
    columns = []
    for place in range(longest):
        column = np.full(len(counts), -1, dtype=np.int64)
        has_one = counts > place
        column[has_one] = codes[starts[has_one] + place]
        columns.append(column)
    return columns


def _rank(keys: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """The order of rows by several keys, and a number for each: the same for equal rows."""
    order = np.lexsort(keys[::-1]) if keys else _NONE
    ranks = np.zeros(len(order), dtype=np.int64)
    if len(order):
        differs = np.zeros(len(order), dtype=bool)
        for key in keys:
            differs[1:] |= key[order][1:] != key[order][:-1]
        ranks[order] = np.cumsum(differs)
    return order, ranks


def _to_lists(starts: IntArray, values: pa.Array) -> pa.Array:
    found = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)
    return found.cast(pa.list_(pa.field("item", values.type, nullable=True)))
