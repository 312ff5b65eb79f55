"""Walks of the reference evaluator: every shortest path by hand, then the one that counts.

All paths of least length are listed, node by node, and compared as lists. It shares no code with
the executor.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from omnigraph.errors import BadRequestError
from omnigraph.ir.query import Expand, WalkMode

Entity = dict[str, Any]
Path = tuple[list[str], list[Entity]]
Leaving = Callable[[str], Iterable[tuple[Entity, str]]]
"""The edges at a node that exist for the walk, each with its other end."""


def list_walks(expand: Expand, start: str, leaving: Leaving, *, chains: bool) -> Iterator[Path]:
    """The paths of a walk from `start`, read from their written left end."""
    for paths in _list_shortest(expand, start, leaving, chains).values():
        if expand.mode is WalkMode.ALL_SHORTEST:
            yield from paths
        else:
            yield min(paths, key=_order)


def _order(path: Path) -> tuple[list[bytes], list[bytes]]:
    nodes, edges = path
    return [node.encode() for node in nodes], [edge["id"].encode() for edge in edges]


def _list_shortest(
    expand: Expand, start: str, leaving: Leaving, chains: bool
) -> dict[str, list[Path]]:
    """All shortest paths to each end."""
    most = expand.max_hops if chains else 1
    visited, ends = {start}, dict[str, list[Path]]()
    frontier: dict[str, list[Path]] = {start: [([start], [])]}
    hop = 0
    while frontier and hop != most:
        hop += 1
        ahead: dict[str, list[Path]] = {}
        for node, paths in frontier.items():
            for edge, end in leaving(node):
                longer = [_extend(path, edge, end, expand.is_reversed) for path in paths]
                is_loop = chains and end == node and expand.mode is WalkMode.REACH
                if end not in visited or not chains:
                    ahead.setdefault(end, []).extend(longer)
                elif is_loop and hop == expand.min_hops:
                    ends.setdefault(end, []).extend(longer)
        if hop >= expand.min_hops:
            ends |= ahead
        visited |= ahead.keys()
        frontier = ahead
    return ends


def _extend(path: Path, edge: Entity, end: str, is_reversed: bool) -> Path:
    nodes, edges = path
    return ([end, *nodes], [edge, *edges]) if is_reversed else ([*nodes, end], [*edges, edge])


def find_cheapest(
    start: str, leaving: Leaving, weight: str, *, chains: bool
) -> dict[str, tuple[float, Path]]:
    """The path of least weight to every node but the start; without `chains` of one hop."""
    best: dict[str, tuple[float, Path]] = {}
    heap: list[Any] = [(0.0, 0, [start.encode()], [], 0, ([start], []))]
    done: set[str] = set()
    number = 0
    while heap:
        cost, hops, order, ids, _, (nodes, edges) = heapq.heappop(heap)
        node = nodes[-1]
        if node in done:
            continue
        if hops or chains:
            done.add(node)
        if hops:
            best[node] = cost, (nodes, edges)
        if hops and not chains:
            continue
        for edge, end in leaving(node):
            if edge[weight] is None:
                continue
            if edge[weight] < 0:
                raise BadRequestError("negative weight")
            number += 1
            longer = ([*nodes, end], [*edges, edge])
            step = (cost + edge[weight], hops + 1, [*order, end.encode()])
            heapq.heappush(heap, (*step, [*ids, edge["id"].encode()], number, longer))
    return best


class PathEntity(dict[str, Any]):
    """A path as an entity: its functions are its properties."""

    def __init__(
        self,
        path: Path,
        left: Mapping[str, Entity],
        right: Mapping[str, Entity],
        cost: float | None = None,
    ) -> None:
        ids, edges = path
        names = [edge["id"] for edge in edges]
        super().__init__(id=(ids, names), hops=len(edges), nodes=ids, edges=names, cost=cost)
        # Of two types both may have a node of this id.
        self._nodes = [left[ids[0]], *(right[each] for each in ids[1:])]
        self._edges = edges

    def get(self, name: str, _default: Any = None) -> Any:
        kind, _, wanted = name.removeprefix("#").partition("/")
        if not wanted:
            return dict.get(self, kind)
        return [each[wanted] for each in (self._nodes if kind == "nodes" else self._edges)]


class ScoreEntity(dict[str, Any]):
    """What a stage sorted by. It is no entity, so that ties are not broken by it."""
