"""A relation that was patched is the relation of the edges that there are now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from omnigraph.executor.kernels import best_along, expand, sum_along
from omnigraph.index import patches
from omnigraph.index.adjacency import (
    Endpoints,
    PatchedRuns,
    Relation,
    Runs,
    StoredRuns,
    build_distinct_relation,
    build_edge_relation,
)
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.keys import DistinctKey, EdgeTables, TableId
from omnigraph.index.patches import patch_distinct, patch_edges
from tests.depth import depth


def ends_of(pairs: np.ndarray) -> Endpoints:
    return Endpoints(pairs[:, 0].copy(), pairs[:, 1].copy())


def describe(runs: Runs) -> dict[str, object]:
    """Everything that a query can ask of one side, in a form that can be compared."""
    everywhere = np.arange(runs.size)
    rows, entries = expand(runs, everywhere)
    found = {
        "rows": rows.tolist(),
        "targets": runs.targets[entries].tolist(),
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


def assert_same(found: Relation, expected: Relation) -> None:
    for source in (True, False):
        assert describe(found.side(source=source)) == describe(expected.side(source=source))
    assert describe_sums(found) == describe_sums(expected)


def change_pairs(random: np.random.Generator, pairs: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Some pairs that come, and some of those there are."""
    come = random.integers(0, size, (int(random.integers(0, 5)), 2))
    if len(pairs) and random.random() < 0.5:
        come = np.concatenate([come, random.choice(pairs, 1)])  # one more edge of the same pair
    yield come
    yield random.choice(pairs, min(len(pairs), int(random.integers(0, 4))), replace=False)


def without(pairs: np.ndarray, gone: np.ndarray) -> np.ndarray:
    left = pairs.tolist()
    for each in gone.tolist():
        left.remove(each)
    return np.array(left, dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(depth(6, 60)))
@pytest.mark.parametrize("both", [False, True])
def test_a_patched_relation_is_the_one_built_of_all_edges(
    seed: int, both: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parallel edges, loops, new positions, emptied and refilled runs, and a fold now and then."""
    monkeypatch.setattr(patches, "CHANGED_RUNS_MAX", 12)
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 12))
    pairs = random.integers(0, size, (int(random.integers(0, 30)), 2))
    relation = build_distinct_relation(ends_of(pairs), (size, size), both=both)
    seen: list[tuple[Relation, Relation]] = []
    for _ in range(14):
        size += int(random.integers(0, 3))
        come, gone = change_pairs(random, pairs, size)
        pairs = np.concatenate([without(pairs, gone), come])

        patched = patch_distinct(relation, (size, size), ends_of(come), ends_of(gone), both=both)

        assert patched is not None
        fresh = build_distinct_relation(ends_of(pairs), (size, size), both=both)
        assert_same(patched, fresh)
        seen.append((patched, fresh))
        relation = patched
    for patched, fresh in seen:  # what later versions added changed none of the earlier ones
        assert_same(patched, fresh)


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
    nothing = ends_of(pairs[:0])

    one = patch_distinct(base, (3, 3), ends_of(np.array([[0, 2]])), nothing, both=False)
    other = patch_distinct(base, (3, 3), ends_of(np.array([[0, 0]])), nothing, both=False)

    assert one is not None
    assert other is not None
    for found, more in ((one, [0, 2]), (other, [0, 0])):
        ends = ends_of(np.concatenate([pairs, [more]]))
        assert_same(found, build_distinct_relation(ends, (3, 3)))


def test_an_edge_that_was_never_there_cannot_go() -> None:
    base = build_distinct_relation(ends_of(np.array([[0, 1]])), (3, 3))
    nothing, gone = ends_of(np.empty((0, 2), dtype=np.int64)), ends_of(np.array([[1, 0]]))

    assert patch_distinct(base, (3, 3), nothing, gone, both=False) is None


def test_a_patch_of_one_edge_makes_only_the_runs_of_its_ends() -> None:
    """However many edges there are, a commit adds as much as the runs that it changed."""
    added = []
    for size in (100, 10_000):
        sources = np.repeat(np.arange(size), 3)
        base = build_distinct_relation(
            Endpoints(sources, (sources * 7 + np.tile([1, 2, 3], size)) % size), (size, size)
        )
        come = ends_of(np.array([[5, 50]]))
        found = patch_distinct(base, (size, size), come, ends_of(come_none()), both=False)
        assert found is not None
        added.append([patch_length(found.forward), patch_length(found.backward)])

    assert added[0] == added[1] == [4, 4]


def come_none() -> np.ndarray:
    return np.empty((0, 2), dtype=np.int64)


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
        come = ends_of(np.array([[2, 0]]))
        patched = patch_distinct(relation, (3, 3), come, ends_of(come_none()), both=False)
        assert patched is not None
        relation = patched
        cache.get(key, partial(replace, patched))

    own = sum(entry.nbytes for entry in (cache.peek(key) for key in keys[1:]) if entry is not None)
    assert cache.nbytes == before + own
    for key in keys:
        cache._drop(key)
    assert cache.nbytes == 0
