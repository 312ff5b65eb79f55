"""The same graph on an object store."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, ExpectedVersionMismatch, GraphExists, GraphNotFound
from omnigraph.nonblocking import WouldBlock, nonblocking
from omnigraph.storage.counters import Counters, counting
from omnigraph.testing.inside import inside
from tests.graph.reading import SCHEMA, add, ages, heads, links, names, pins, run
from tests.storage.conftest import Store

pytestmark = pytest.mark.slow

ONE = "query one($name: String) { match { $p: Person { name: $name } } return { $p.age } }"


@pytest.fixture
def graph(s3_store: Store) -> og.Graph:
    return og.init(s3_store.root.uri, schema=SCHEMA, storage_options=s3_store.storage_options)


def reopen(store: Store, **options: object) -> og.Graph:
    return og.open(store.root.uri, storage_options=store.storage_options, **options)  # type: ignore[arg-type]


def test_a_graph_lives_on_an_object_store(graph: og.Graph, s3_store: Store) -> None:
    add(graph, "pair", a="ann", b="bob")
    graph.load([{"type": "Firm", "data": {"code": "f"}}], mode="append", actor="ada")
    add(graph, "age", name="ann", age=3)

    again = reopen(s3_store)

    assert ages(again) == {"ann": 3, "bob": None}
    assert links(again) == [("ann", "bob")]
    assert [commit.actor for commit in again.commits()] == [None, "ada", None, None]
    assert heads(again) == pins(again)
    with pytest.raises(GraphExists):
        og.init(s3_store.root.uri, schema=SCHEMA, storage_options=s3_store.storage_options)
    with pytest.raises(GraphNotFound):
        og.open(f"{s3_store.root.uri}x", storage_options=s3_store.storage_options)


def test_branches_work_on_an_object_store(graph: og.Graph, s3_store: Store) -> None:
    add(graph, "pair", a="ann", b="bob")
    graph.create_branch("review/x")
    add(graph, "gone", branch="review/x", name="bob")
    add(graph, "person", name="cy")

    again = reopen(s3_store)

    assert again.branches() == ["main", "review/x"]
    assert names(again, "review/x") == ["ann"]
    assert names(again) == ["ann", "bob", "cy"]
    add(again, "person", branch="review/x", name="dan")
    again.reset_branch("review/x", "review/x~1")
    assert names(graph, "review/x") == ["ann"]
    add(again, "person", branch="review/x", name="eve")
    assert names(graph, "review/x") == ["ann", "eve"]
    again.delete_branch("review/x")
    with pytest.raises(BranchNotFound):
        graph.snapshot("review/x")


def test_a_stale_writer_on_an_object_store_is_refused(graph: og.Graph, s3_store: Store) -> None:
    add(graph, "person", name="ann")
    stale = reopen(s3_store)
    add(graph, "age", name="ann", age=1)

    with pytest.raises(ExpectedVersionMismatch):
        add(stale, "age", name="ann", age=2)

    assert ages(graph) == {"ann": 1}
    with pytest.raises(og.errors.ConstraintError):
        run(stale, 'insert Knows { from: "ann", to: "nobody" }')
    assert inside(graph).store.texts.list_dir("__recovery") == []


def test_a_reader_needs_no_write(graph: og.Graph, s3_store: Store) -> None:
    add(graph, "person", name="ann")

    reader = reopen(s3_store, mode="r")

    assert names(reader) == ["ann"]
    with pytest.raises(og.errors.BadRequestError, match="reading only"):
        add(reader, "person", name="bob")


def test_queries_on_an_object_store_are_never_nonblocking(graph: og.Graph) -> None:
    """Every read probes the store first, and how long that takes is unknown."""
    add(graph, "person", name="ann")
    for _ in range(3):
        assert graph.query(ONE, params={"name": "ann"}).rows() == [{"p.age": None}]

    with counting() as counters, pytest.raises(WouldBlock), nonblocking():
        graph.query(ONE, params={"name": "ann"})

    assert counters == Counters()
