"""A relation that was patched is the relation of the edges that there are now."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from omnigraph.executor.closing import Members
from omnigraph.executor.kernels import best_along, expand, sum_along
from omnigraph.index import patches
from omnigraph.index.adjacency import (
    Endpoints,
    Relation,
    build_distinct_relation,
    build_edge_relation,
)
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.keys import DistinctKey, EdgeTables, TableId
from omnigraph.index.patches import EdgeChanges, Moves, patch_distinct, patch_edges
from omnigraph.index.runs import PatchedRuns, Runs, ShiftedRuns, StoredRuns
from tests.depth import depth


def ends_of(pairs: np.ndarray) -> Endpoints:
    return Endpoints(pairs[:, 0].copy(), pairs[:, 1].copy())


def describe(runs: Runs) -> dict[str, object]:
    """Everything that a query can ask of one side, in a form that can be compared."""
    everywhere = np.arange(runs.size)
    rows, entries = expand(runs, everywhere)
    found = {
        "rows": rows.tolist(),
        "targets": runs.neighbours(entries).tolist(),
        "edges": None if runs.edges is None else runs.edges[entries].tolist(),
        "one by one": [np.diff(runs.runs(np.array([each]))).tolist() for each in everywhere],
        "count": runs.count,
        "degree": runs.degree.tolist(),
        "has neighbour": runs.has_neighbour.tolist(),
        "is total": runs.is_total,
        "is function": runs.is_function,
        "loops": runs.loops.tolist(),
        "with neighbour": runs.with_neighbour().positions().tolist(),
        "flat": (runs.flat.offsets.tolist(), runs.flat.targets.tolist()),
    }
    assert runs.degree_max >= max(runs.degree, default=0)
    return found


def describe_sums(relation: Relation) -> list[object]:
    """What a query sums along both sides: whole numbers, doubles, and the best rank."""
    weights = np.arange(relation.sizes[1]) % 5
    forward, backward = (lambda: relation.forward), (lambda: relation.backward)
    size = relation.sizes[0]
    return [
        sum_along(forward, backward, weights, size).tolist(),
        sum_along(forward, backward, weights / 3, size).tolist(),
        sum_along(forward, backward, np.where(weights == 4, 1, 0), size).tolist(),
        best_along(forward, weights, 9, is_minimum=True).tolist(),
        best_along(forward, weights, -1, is_minimum=False).tolist(),
    ]


def describe_members(relation: Relation) -> list[tuple[int, int]]:
    """Which of all pairs an edge joins."""
    pairs = np.argwhere(np.ones(relation.sizes, dtype=bool))
    members = Members(relation.forward, relation.sizes[1])
    return [tuple(pairs[each]) for each in members.find(pairs[:, 0], pairs[:, 1])[0]]


def assert_same(found: Relation, expected: Relation) -> None:
    for source in (True, False):
        assert describe(found.side(source=source)) == describe(expected.side(source=source))
    assert describe_sums(found) == describe_sums(expected)
    assert describe_members(found) == describe_members(expected)


NOTHING = np.empty((0, 2), dtype=np.int64)


class World:
    """Nodes in the order of a table, and edges between them: one step after the other at random.

    A step adds nodes and edges, removes edges, removes nodes with their edges, and writes nodes
    again, which moves them to the end.
    """

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.count = int(random.integers(1, 12))
        self.nodes = list(range(self.count))
        pairs = random.integers(0, self.count, (int(random.integers(0, 30)), 2))
        self.edges = [(int(source), int(target)) for source, target in pairs]

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.nodes), len(self.nodes)

    def ends(self) -> Endpoints:
        return self._ends_of(self.edges)

    def step(self, both: bool) -> tuple[EdgeChanges, Moves]:
        before, random = list(self.nodes), self.random
        chosen = [node for node in before if random.random() < 0.15 and len(before) > 3]
        again = [node for node in chosen if random.random() < 0.6]
        gone = [
            edge
            for edge in self.edges
            if random.random() < 0.1 or self._is_lost(edge, chosen, again)
        ]
        for edge in gone:
            self.edges.remove(edge)
        new = list(range(self.count, self.count + int(random.integers(0, 3))))
        self.count += len(new)
        added = list(random.permutation([*again, *new]))
        self.nodes = [node for node in before if node not in chosen] + [int(e) for e in added]
        come = [
            (int(random.choice(self.nodes)), int(random.choice(self.nodes)))
            for _ in range(int(random.integers(0, 5)) if self.nodes else 0)
        ]
        if self.edges and random.random() < 0.5:
            come.append(self.edges[0])  # one more edge of the same pair
        self.edges += come
        whole = [edge for edge in gone if edge[0] in self.nodes and edge[1] in self.nodes]
        lost = [edge for edge in gone if edge not in whole]
        pairs_lost = sum(2 if both and source != target else 1 for source, target in lost)
        moves = Moves(
            np.array([before.index(node) for node in chosen], dtype=np.int64),
            np.array([added.index(n) if n in again else -1 for n in chosen], dtype=np.int64),
            len(before) - len(chosen),
        )
        return EdgeChanges(self._ends_of(come), self._ends_of(whole), pairs_lost), moves

    def _is_lost(self, edge: tuple[int, int], chosen: list[int], again: list[int]) -> bool:
        return any(end in chosen and end not in again for end in edge)

    def _ends_of(self, edges: list[tuple[int, int]]) -> Endpoints:
        places = [[self.nodes.index(end) for end in edge] for edge in edges]
        return ends_of(np.array(places, dtype=np.int64).reshape(-1, 2))


def patch_edge(
    relation: Relation, size: int, come: np.ndarray, gone: np.ndarray
) -> Relation | None:
    """The relation with some edges more and some less, between nodes that stay."""
    stay = Moves(NOTHING[:, 0], NOTHING[:, 0], kept=size)
    changes = EdgeChanges(ends_of(come), ends_of(gone))
    return patch_distinct(relation, (size, size), changes, (stay, stay), both=False)


@pytest.mark.parametrize("seed", range(depth(8, 200)))
@pytest.mark.parametrize("both", [False, True])
def test_a_patched_relation_is_the_one_built_of_all_edges(
    seed: int, both: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parallel edges, loops, emptied and refilled runs, nodes that come, go and move, and folds."""
    monkeypatch.setattr(patches, "CHANGED_RUNS_MAX", 12)
    world = World(np.random.default_rng(seed))
    relation = build_distinct_relation(world.ends(), world.sizes, both=both)
    seen: list[tuple[Relation, Relation]] = []
    for _ in range(12):
        changes, moves = world.step(both)

        patched = patch_distinct(relation, world.sizes, changes, (moves, moves), both=both)

        assert patched is not None
        fresh = build_distinct_relation(world.ends(), world.sizes, both=both)
        assert_same(patched, fresh)
        seen.append((patched, fresh))
        relation = patched
    for patched, fresh in seen:  # what later versions added changed none of the earlier ones
        assert_same(patched, fresh)


def test_a_node_that_is_written_again_moves_only_its_own_pairs() -> None:
    """However many nodes and edges there are, and however many positions it shifts."""
    for size in (100, 10_000):
        sources = np.repeat(np.arange(size), 3)
        ends = Endpoints(sources, (sources + np.tile([1, 2, 3], size)) % size)
        base = build_distinct_relation(ends, (size, size))
        moves = Moves(np.array([5]), np.array([0]), kept=size - 1)
        nothing = EdgeChanges(ends_of(NOTHING), ends_of(NOTHING))

        found = patch_distinct(base, (size, size), nothing, (moves, moves), both=False)

        assert found is not None
        assert isinstance(found.forward, ShiftedRuns)
        # Its own run of three, and those of the three nodes that lead to it.
        assert patch_length(found.forward.runs_of_slots) == 12
        assert found.forward.rooms == base.forward.rooms


def test_a_node_that_leaves_edges_behind_is_not_patched_out() -> None:
    """They lead nowhere from then on, and somewhere again when the node comes back."""
    base = build_distinct_relation(ends_of(np.array([[0, 1], [1, 2]])), (3, 3))
    gone = Moves(np.array([2]), np.array([-1]), kept=2)
    nothing = EdgeChanges(ends_of(NOTHING), ends_of(NOTHING))

    assert patch_distinct(base, (2, 2), nothing, (gone, gone), both=False) is None


@pytest.mark.parametrize("seed", range(depth(3, 30)))
@pytest.mark.parametrize("both", [False, True])
def test_patched_stored_edges_are_those_built_of_all_edges(seed: int, both: bool) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 12))
    pairs = random.integers(0, size, (20, 2))
    relation = build_edge_relation(ends_of(pairs), (size, size), both=both)
    for _ in range(8):
        size += int(random.integers(0, 3))
        come = random.integers(0, size, (int(random.integers(0, 5)), 2))

        relation = patch_edges(relation, (size, size), ends_of(come), len(pairs), both=both)

        pairs = np.concatenate([pairs, come])
        fresh = build_edge_relation(ends_of(pairs), (size, size), both=both)
        assert_same(relation, fresh)


def test_two_versions_that_go_on_from_one_do_not_disturb_each_other() -> None:
    """As the first commits of two branches do."""
    pairs = np.array([[0, 1], [1, 2], [2, 0]])
    base = build_distinct_relation(ends_of(pairs), (3, 3))

    one = patch_edge(base, 3, np.array([[0, 2]]), NOTHING)
    other = patch_edge(base, 3, np.array([[0, 0]]), NOTHING)

    assert one is not None
    assert other is not None
    for found, more in ((one, [0, 2]), (other, [0, 0])):
        ends = ends_of(np.concatenate([pairs, [more]]))
        assert_same(found, build_distinct_relation(ends, (3, 3)))


def test_an_edge_that_was_never_there_cannot_go() -> None:
    base = build_distinct_relation(ends_of(np.array([[0, 1]])), (3, 3))

    assert patch_edge(base, 3, NOTHING, np.array([[1, 0]])) is None


def test_a_patch_of_one_edge_makes_only_the_runs_of_its_ends() -> None:
    """However many edges there are, a commit adds as much as the runs that it changed."""
    added = []
    for size in (100, 10_000):
        sources = np.repeat(np.arange(size), 3)
        base = build_distinct_relation(
            Endpoints(sources, (sources * 7 + np.tile([1, 2, 3], size)) % size), (size, size)
        )
        found = patch_edge(base, size, np.array([[5, 50]]), NOTHING)
        assert found is not None
        added.append([patch_length(found.forward), patch_length(found.backward)])

    assert added[0] == added[1] == [4, 4]


def patch_length(runs: StoredRuns) -> int:
    assert isinstance(runs, PatchedRuns)
    return runs.length - runs.base.count


def test_what_versions_share_is_counted_once() -> None:
    cache = RuntimeCache(1 << 30)
    base = build_distinct_relation(ends_of(np.array([[0, 1], [1, 2]])), (3, 3))
    tables = [TableId("t", None, version, None) for version in range(3)]
    keys = [DistinctKey(EdgeTables(each, each, each)) for each in tables]
    cache.get(keys[0], lambda: base)
    before = cache.nbytes
    assert before >= base.forward.nbytes + base.backward.nbytes

    relation = base
    for key in keys[1:]:
        patched = patch_edge(relation, 3, np.array([[2, 0]]), NOTHING)
        assert patched is not None
        relation = patched
        cache.get(key, partial(replace, patched))

    own = sum(entry.nbytes for entry in (cache.peek(key) for key in keys[1:]) if entry is not None)
    assert cache.nbytes == before + own
    for key in keys:
        cache._drop(key)
    assert cache.nbytes == 0
