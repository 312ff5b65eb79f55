"""No answer depends on layout, indexes or history: they are the same after every kind of upkeep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.testing.inside import inside
from tests.upkeep.graphs import answers, fill, handle_of, indexes, new_library, photos, pins

pytestmark = pytest.mark.slow


def drop_indexes(graph: og.Graph) -> None:
    """Drop every index of every table outside Omnigraph, and publish that."""
    tables = inside(graph).store.tables
    for key in pins(graph):
        names = list(indexes(graph, key))
        if names:
            tables.commit_staged(tables.indexes.stage_drop(handle_of(graph, key), names))
    graph.repair(confirm=True, force=True)


def insert_one(graph: og.Graph) -> None:
    start = 100 + 10 * len(graph.commits())
    fill(graph, start, 2)


def delete_one(graph: og.Graph) -> None:
    found = graph.query("query q() { match { $a: Author } return { $a.slug } order { $a.slug } }")
    slug = found.rows()[0]["a.slug"]
    graph.mutate("query q($s: String) { delete Author where slug = $s }", params={"s": slug})


UPKEEP: dict[str, Callable[[og.Graph], object]] = {
    "ensure": lambda graph: graph.ensure_indices(),
    "optimize": lambda graph: graph.optimize(),
    "cleanup": lambda graph: graph.cleanup(keep=1, confirm=True),
    "drop": drop_indexes,
}
WRITES: dict[str, Callable[[og.Graph], object]] = {"insert": insert_one, "delete": delete_one}


@pytest.mark.parametrize("name", UPKEEP)
def test_upkeep_changes_no_answer(library: og.Graph, name: str) -> None:
    fill(library, 100, 5)
    library.ensure_indices()
    fill(library, 200, 5)
    before, bytes_before = answers(library), photos(library)

    UPKEEP[name](library)

    assert answers(library) == before
    assert photos(library) == bytes_before


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.sampled_from([*UPKEEP, *WRITES]), min_size=3, max_size=7))
def test_any_order_of_writes_and_upkeep_answers_like_no_upkeep(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """The same writes, with and without upkeep between them."""
    folder: Path = tmp_path_factory.mktemp("same")
    kept, plain = new_library(folder / "kept"), new_library(folder / "plain")
    fill(kept)
    fill(plain)
    count = 0
    for step in steps:
        if step in WRITES:
            count += 1
            for graph in (kept, plain):
                if step == "insert":
                    fill(graph, 100 * count, 2)
                else:
                    delete_one(graph)
        else:
            UPKEEP[step](kept)

    assert answers(kept) == answers(plain)
    assert kept.verify().errors == ()
