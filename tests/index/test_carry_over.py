"""What is carried over from earlier versions is what reading the version anew would give."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.compiler import compile_query, require_read
from omnigraph.executor.execute import prepare_query
from omnigraph.executor.kernels import expand
from omnigraph.index import OpenTables, RuntimeCache, TableView, thresholds
from omnigraph.index.cache import UNREAD_MAX
from omnigraph.index.keys import ColumnKey, NumbersKey, PlanKey, RowIdsKey
from omnigraph.index.notes import notes_to
from omnigraph.index.runs import PatchedRuns, ShiftedRuns
from omnigraph.storage.counters import PROCESS, counting
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.predicates import Compare, CompareOp
from omnigraph.storage.tables import TableStorage
from omnigraph.testing.inside import inside
from tests.branch.bulk import write_bulk
from tests.depth import depth

SCHEMA = """
node Person { slug: String @key  name: String?  age: I64?  team: String?  score: F64? }
edge Knows: Person -> Person { since: I64? }
"""
COLUMNS = ("id", "slug", "name", "age", "team", "score")
PEOPLE = 60
FRIENDS = (
    "query friends($slug: String) { match { $p: Person { slug: $slug }  $p knows $f } "
    "return { $f.slug, $f.name } order { $f.slug } }"
)


def person(number: int, **values: Any) -> dict[str, Any]:
    data = {"slug": f"p{number}", "name": f"n{number}", "age": number, "team": f"t{number % 3}"}
    return {"type": "Person", "data": {**data, "score": number / 2, **values}}


def knows(source: int, target: int) -> dict[str, Any]:
    return {"edge": "Knows", "from": f"p{source}", "to": f"p{target}", "data": {"since": source}}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as made:
        people = [person(number) for number in range(PEOPLE)]
        edges = [knows(number, (number * 7 + 1) % PEOPLE) for number in range(PEOPLE)]
        made.load([*people, *edges], mode="overwrite")
        yield made


@pytest.fixture
def reader(graph: og.Graph) -> Iterator[og.Graph]:
    """Another handle of the same graph, which has written none of its rows."""
    with og.open(graph.uri, mode="r") as opened_elsewhere:
        yield opened_elsewhere


def opened(graph: og.Graph, cache: RuntimeCache) -> OpenTables:
    return OpenTables(graph.snapshot(), graph.catalog, inside(graph).store.tables, cache)


def people_of(graph: og.Graph, cache: RuntimeCache) -> TableView:
    return opened(graph, cache).view("node:Person")


def contents(graph: og.Graph, cache: RuntimeCache) -> dict[str, Any]:
    """Everything that is derived of a version, in a form that can be compared."""
    return contents_of(opened(graph, cache))


def contents_anew(graph: og.Graph) -> dict[str, Any]:
    """The same read from the files: nothing is known that was derived or written before."""
    tables = TableStorage(inside(graph).store.tables.root)
    return contents_of(OpenTables(graph.snapshot(), graph.catalog, tables, RuntimeCache(1 << 30)))


def contents_of(tables: OpenTables) -> dict[str, Any]:
    people, edges = tables.view("node:Person"), tables.edges("Knows")
    found: dict[str, Any] = {name: people.column(name).to_pylist() for name in COLUMNS}
    found["row ids"] = people.row_ids().ids.tolist()
    for name in ("slug", "team", "age", "score"):
        ranks = people.lookup.ranks(name)
        found[f"ranks of {name}"] = (ranks.codes.tolist(), ranks.values.to_pylist())
    for both in (False, True):
        for kind, relation in (
            ("distinct", edges.distinct(both=both)),
            ("per edge", edges.per_edge(both=both)),
        ):
            for source in (True, False):
                side = relation.side(source=source)
                rows, entries = expand(side, np.arange(side.size))
                found[f"{kind} {both} {source}"] = (
                    rows.tolist(),
                    side.neighbours(entries).tolist(),
                    None if side.edges is None else side.edges[entries].tolist(),
                )
    ends = edges.endpoints()
    found["ends"] = (ends.sources.tolist(), ends.targets.tolist())
    found["ids"] = people.positions_of_ids(pa.array(["p3", "p61", "none", "p3"])).tolist()
    found["numbers"] = people.numbers("score").tolist()
    return found


def positions_of(view: TableView, column: str, value: Any) -> list[int]:
    return view.select([Compare(column, CompareOp.EQ, pa.scalar(value))]).positions().tolist()


def change(graph: og.Graph, choice: random.Random) -> None:
    """One of the ways in which a table can come to a new version."""
    number = choice.randrange(PEOPLE + 20)
    match choice.randrange(12):
        case 0:
            graph.load([person(number, name="loaded")], mode="merge")
        case 1:
            graph.mutate(
                'query q($s: String) { update Person set { team: "t1" } where slug = $s }',
                params={"s": f"p{number}"},
            )
        case 2:
            graph.mutate(
                "query q($s: String) { delete Person where slug = $s }", params={"s": f"p{number}"}
            )
        case 3:
            graph.load(
                [person(number), person(number + 1), knows(number, number + 1)], mode="merge"
            )
        case 4:
            branch = f"b{graph.snapshot().manifest_version}"
            graph.create_branch(branch)
            graph.load([person(number, age=-1), person(number + 30)], mode="merge", branch=branch)
            graph.load([person(number + 31, team=None)], mode="merge")
            graph.merge(branch, resolve="theirs")
        case 5:
            graph.optimize()
        case 6:
            graph.load([person(number, team=None, score=-0.0)], mode="merge")
        case 7:
            graph.mutate("query q($n: I64) { delete Knows where since = $n }", params={"n": number})
        case 8:  # parallel edges and a loop, from and to people who may be gone
            pair = (choice.randrange(4), choice.randrange(4))
            graph.load([person(each) for each in pair], mode="merge")
            graph.load([knows(*pair), knows(*pair), knows(pair[0], pair[0])], mode="append")
        case 9:
            graph.mutate(
                "query q($s: String) { delete Knows where from = $s }",
                params={"s": f"p{choice.randrange(4)}"},
            )
        case 10:
            graph.load([person(200 + graph.snapshot().manifest_version)], mode="append")
        case _:
            people = opened(graph, RuntimeCache(1 << 30)).view("node:Person").column("slug")
            source, target = choice.sample(people.to_pylist(), 2)
            edge = {"edge": "Knows", "from": source, "to": target, "data": {"since": number}}
            graph.load([edge], mode="append")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(depth(2, 12)))
@pytest.mark.parametrize("is_ranked", [False, True])
def test_what_is_carried_over_is_what_reading_anew_gives(
    graph: og.Graph, seed: int, is_ranked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_ranked:  # new rows too are found by rank
        monkeypatch.setattr(thresholds, "FEW_ROWS", 0)
        monkeypatch.setattr(thresholds, "USES_BEFORE_RANKING", 1)
    choice = random.Random(seed)
    kept = RuntimeCache(1 << 30)
    contents(graph, kept)

    for _ in range(12):
        change(graph, choice)
        slugs = [f"p{choice.randrange(PEOPLE + 40)}" for _ in range(4)]
        # Before the ranks of this version are built: found by those of an earlier one.
        by_earlier = [positions_of(people_of(graph, kept), "slug", each) for each in slugs]
        cold = RuntimeCache(1 << 30)
        assert by_earlier == [positions_of(people_of(graph, cold), "slug", each) for each in slugs]
        assert contents(graph, kept) == contents_anew(graph)


@pytest.mark.parametrize(("is_writer", "rows_read"), [(True, 0), (False, 2)])
def test_a_column_of_a_version_with_new_rows_reads_only_those(
    graph: og.Graph, reader: og.Graph, is_writer: bool, rows_read: int
) -> None:
    """The handle that wrote them does not even read those: it knows them."""
    cache = RuntimeCache(1 << 30)
    handle = graph if is_writer else reader
    people_of(handle, cache).column("name")
    graph.load([person(PEOPLE), person(PEOPLE + 1)], mode="append")
    view = people_of(handle, cache)

    with counting() as counters:
        names = view.column("name")

    assert counters.rows_scanned == rows_read
    assert names.to_pylist()[-2:] == [f"n{PEOPLE}", f"n{PEOPLE + 1}"]
    assert len(names) == view.size == PEOPLE + 2


def test_a_column_of_a_version_without_some_rows_reads_nothing_of_it(graph: og.Graph) -> None:
    cache = RuntimeCache(1 << 30)
    earlier = people_of(graph, cache)
    earlier.column("name"), earlier.row_ids()
    graph.mutate('query q() { delete Person where slug = "p7" }')
    view = people_of(graph, cache)

    with counting() as counters:
        names = view.column("name").to_pylist()

    assert counters.rows_scanned == 0
    assert names == [f"n{number}" for number in range(PEOPLE) if number != 7]


@pytest.mark.parametrize(("is_writer", "rows_read"), [(True, 0), (False, 1)])
def test_a_column_of_a_version_with_an_updated_row_reads_only_that(
    graph: og.Graph, reader: og.Graph, is_writer: bool, rows_read: int
) -> None:
    """An update keeps the row id and moves the row."""
    cache = RuntimeCache(1 << 30)
    handle = graph if is_writer else reader
    people_of(handle, cache).column("name")
    graph.mutate('query q() { update Person set { name: "new" } where slug = "p7" }')
    view = people_of(handle, cache)

    with counting() as counters:
        names = view.column("name").to_pylist()

    assert counters.scans == counters.rows_scanned == rows_read
    assert names == [*(f"n{number}" for number in range(PEOPLE) if number != 7), "new"]


def test_nothing_is_carried_over_when_much_has_changed(graph: og.Graph) -> None:
    cache = RuntimeCache(1 << 30)
    people_of(graph, cache).column("name")
    notes: list[str] = []

    graph.load([person(number) for number in range(PEOPLE, PEOPLE + 8)], mode="append")
    with notes_to(lambda text, rows=None: notes.append(text)):
        people_of(graph, cache).column("name")

    assert notes == ["decoded name of node:Person"]


def test_a_version_of_the_past_is_not_made_from_a_later_one(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.load([person(PEOPLE)], mode="append")
    cache = RuntimeCache(1 << 30)
    people_of(graph, cache).column("name")

    past = OpenTables(before, graph.catalog, inside(graph).store.tables, cache).view("node:Person")

    assert len(past.column("name")) == PEOPLE


def test_the_ends_of_edges_follow_nodes_that_are_written_again(graph: og.Graph) -> None:
    """A merge load writes a node anew, so its position changes; its edges still lead to it."""
    cache = RuntimeCache(1 << 30)
    opened(graph, cache).edges("Knows").endpoints()
    graph.load([person(1, name="again")], mode="merge")
    tables = opened(graph, cache)

    ends = tables.edges("Knows").endpoints()

    slugs = np.array(tables.view("node:Person").column("slug").to_pylist())
    assert slugs[ends.sources].tolist() == [f"p{number}" for number in range(PEOPLE)]
    expected = [f"p{(number * 7 + 1) % PEOPLE}" for number in range(PEOPLE)]
    assert slugs[ends.targets].tolist() == expected


def delete_p8(tables: TableStorage, handle: TableHandle) -> StagedTransaction:
    """Delete a node, and none of its edges."""
    staged = tables.rows.stage_delete(handle, Compare("slug", CompareOp.EQ, pa.scalar("p8")))
    assert staged is not None
    return staged


def test_what_is_kept_of_an_earlier_version_stays_as_it_is(graph: og.Graph) -> None:
    """An edge that led nowhere leads somewhere in a later version, and only there."""
    write_bulk(graph, "node:Person", delete_p8)
    cache = RuntimeCache(1 << 30)
    earlier = opened(graph, cache).edges("Knows")
    before = earlier.endpoints().targets.copy()
    assert np.count_nonzero(before < 0) == 1
    graph.load([person(8)], mode="append")

    later = opened(graph, cache).edges("Knows").endpoints()

    assert np.count_nonzero(later.targets < 0) == 0
    assert earlier.endpoints().targets.tolist() == before.tolist()


# Adjacency

ONE_ROW = {
    "a node": lambda graph: graph.load([person(900)], mode="append"),
    "an edge": lambda graph: graph.load([knows(1, 40)], mode="append"),
    "an edge less": lambda graph: graph.mutate("query q() { delete Knows where since = 5 }"),
    "a node with an edge": lambda graph: graph.load([person(900), knows(900, 3)], mode="append"),
    "a changed node": lambda graph: graph.load([person(7, name="new")], mode="merge"),
    "a node less": lambda graph: graph.mutate('query q() { delete Person where slug = "p7" }'),
}


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("change_one", ONE_ROW.values(), ids=ONE_ROW)
def test_the_adjacency_of_a_version_with_one_more_commit_reads_only_that(
    graph: og.Graph, change_one: Callable[[og.Graph], object], both: bool
) -> None:
    cache = RuntimeCache(1 << 30)
    edges = opened(graph, cache).edges("Knows")
    edges.distinct(both=both)
    people_of(graph, cache).column("id"), people_of(graph, cache).row_ids()
    change_one(graph)
    notes: list[str] = []
    with counting() as counters, notes_to(lambda text, rows=None: notes.append(text)):
        found = opened(graph, cache).edges("Knows").distinct(both=both)

    assert any(each.startswith("carried the adjacency of edge:Knows") for each in notes)
    assert counters.rows_scanned + counters.rows_taken <= 2
    assert isinstance(found.forward, PatchedRuns | ShiftedRuns)
    assert len(found.forward.rooms[0].array) == len(
        edges.distinct(both=both).forward.rooms[0].array
    )


def test_an_adjacency_with_edges_that_lead_nowhere_is_not_carried_over(graph: og.Graph) -> None:
    """A node that comes later may be where they lead."""
    write_bulk(graph, "node:Person", delete_p8)
    cache = RuntimeCache(1 << 30)
    before = opened(graph, cache).edges("Knows").distinct(both=False)
    graph.load([person(8)], mode="append")

    after = opened(graph, cache).edges("Knows").distinct(both=False)

    assert after.forward.count > before.forward.count
    assert contents(graph, cache) == contents_anew(graph)


def test_one_more_row_moves_no_other(graph: og.Graph) -> None:
    """Columns, row ids, ranks and ends of a version lie in the rooms of the version before."""
    cache = RuntimeCache(1 << 30)
    contents(graph, cache)
    graph.load([person(900, team="t1"), knows(900, 1)], mode="append")
    contents(graph, cache)
    rooms = [cache.peek(key) for key in cache.list_keys()]
    known = {id(room) for entry in rooms for room in getattr(entry, "shared", ())}
    graph.load([person(901, team="t1"), knows(901, 1)], mode="append")

    view = people_of(graph, cache)
    view.column("slug"), view.column("age"), view.numbers("score"), view.row_ids()
    grown = [
        cache.peek(key)
        for key in (
            view.column_keys["slug"],
            view.column_keys["age"],
            NumbersKey(view.id, "score"),
            RowIdsKey(view.id),
        )
    ]
    grown.append(view.lookup.ranks("team"))
    grown.append(opened(graph, cache).edges("Knows").endpoints())

    for each in grown:
        assert {id(room) for room in getattr(each, "shared", ())} & known, each


def test_both_ends_of_a_new_edge_between_nodes_of_one_type_are_looked_up_at_once(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a table whose ids are not in memory: one scan for its ends, and none for the edge."""
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 0)
    cache = RuntimeCache(1 << 30)
    opened(graph, cache).edges("Knows").distinct(both=False)
    graph.load([knows(3, 9)], mode="append")
    edges = opened(graph, cache).edges("Knows")

    with counting() as counters:
        found = edges.distinct(both=False)

    assert counters.scans == 1
    assert counters.rows_scanned == 2
    assert found.dangling == 0
    assert contents(graph, cache) == contents_anew(graph)


# Prefetch


@pytest.fixture
def prefetching(graph: og.Graph) -> Iterator[og.Graph]:
    with og.open(graph.uri, config={"read_ahead": True}) as opened_ahead:
        yield opened_ahead


@pytest.mark.parametrize("slug", ["p0", "p59", "new"])
def test_a_query_after_a_commit_finds_everything_prefetched(
    prefetching: og.Graph, slug: str
) -> None:
    prefetching.query(FRIENDS, params={"slug": "p3"})
    prefetching.load([person(3, slug="new"), knows(3, 4)], mode="merge")

    with counting() as counters:
        found = prefetching.query(FRIENDS, params={"slug": slug}).rows()

    assert counters.scans == counters.rows_taken == counters.control_reads == 0
    with og.open(prefetching.uri, mode="r") as cold:
        assert found == cold.query(FRIENDS, params={"slug": slug}).rows()


def test_a_merge_is_prefetched_too(prefetching: og.Graph) -> None:
    prefetching.query(FRIENDS, params={"slug": "p3"})
    prefetching.create_branch("side")
    prefetching.load([person(3, name="theirs")], mode="merge", branch="side")
    prefetching.load([person(4, name="ours")], mode="merge")
    prefetching.query(FRIENDS, params={"slug": "p3"})
    prefetching.merge("side")

    with counting() as counters:
        prefetching.query(FRIENDS, params={"slug": "p9"})

    assert counters.scans == counters.rows_taken == counters.control_reads == 0


def test_a_compaction_is_prefetched_too(prefetching: og.Graph) -> None:
    for number in range(4):
        prefetching.load([person(PEOPLE + number)], mode="append")
    prefetching.query(FRIENDS, params={"slug": "p3"})
    before = prefetching.snapshot().version_of("node:Person")

    prefetching.optimize()

    assert prefetching.snapshot().version_of("node:Person") > before
    with counting() as counters:
        prefetching.query(FRIENDS, params={"slug": "p9"})
    assert counters.scans == counters.rows_taken == counters.control_reads == 0


def test_ranks_are_prefetched_though_no_query_reads_the_column_they_rank(
    prefetching: og.Graph,
) -> None:
    who = "query who($slug: String) { match { $p: Person { slug: $slug } } return { $p.age } }"
    prefetching.query(who, params={"slug": "p3"})

    for _ in range(UNREAD_MAX + 3):
        prefetching.load([person(number) for number in range(PEOPLE)], mode="merge")
        with counting() as counters:
            prefetching.query(who, params={"slug": "p3"})

        assert counters.scans == counters.rows_taken == counters.control_reads == 0


def test_what_no_query_reads_is_not_prefetched_for_ever(prefetching: og.Graph) -> None:
    prefetching.query(FRIENDS, params={"slug": "p3"})

    decoded = []
    for number in range(UNREAD_MAX + 2):
        prefetching.mutate(
            "query q($s: String) { insert Person { slug: $s } }", params={"s": f"x{number}"}
        )
        version = prefetching.snapshot().version_of("node:Person")
        keys = inside(prefetching).cache.list_keys()
        decoded.append(any(version in _versions(key) for key in keys))

    assert decoded == [True] * UNREAD_MAX + [False] * 2


def _versions(key: Any) -> list[int]:
    return [each.version for each in key if hasattr(each, "version")]


def test_a_handle_without_read_ahead_derives_nothing_on_a_write(graph: og.Graph) -> None:
    with og.open(graph.uri, config={"read_ahead": False}) as handle:
        handle.query(FRIENDS, params={"slug": "p3"})
        before = inside(handle).cache.list_keys()

        handle.load([person(PEOPLE)], mode="append")

        assert inside(handle).cache.list_keys() == before


@pytest.mark.parametrize("change_one", ONE_ROW.values(), ids=ONE_ROW)
def test_the_first_query_after_a_commit_of_one_row_derives_nothing(
    graph: og.Graph, change_one: Callable[[og.Graph], object]
) -> None:
    """The writer has carried over what queries use, without a setting that asks for it."""
    graph.mutate('query q() { delete Person where slug = "p6" }')
    for slug in ("p3", "p4", "p3"):
        graph.query(FRIENDS, params={"slug": slug})
    change_one(graph)
    before = set(inside(graph).cache.list_keys())

    with counting() as counters:
        found = graph.query(FRIENDS, params={"slug": "p3"}).rows()

    made = set(inside(graph).cache.list_keys()) - before
    assert [key for key in made if not isinstance(key, PlanKey)] == []
    assert counters.scans == counters.rows_taken == counters.control_reads == 0
    with og.open(graph.uri, mode="r") as cold:
        assert found == cold.query(FRIENDS, params={"slug": "p3"}).rows()


def test_a_large_commit_is_left_to_the_query(graph: og.Graph) -> None:
    graph.query(FRIENDS, params={"slug": "p3"})
    before = inside(graph).cache.list_keys()

    graph.load([person(number, name="again") for number in range(PEOPLE)], mode="merge")

    version = graph.snapshot().version_of("node:Person")
    made = set(inside(graph).cache.list_keys()) - set(before)
    assert not [key for key in made if version in _versions(key) and isinstance(key, ColumnKey)]


def test_threads_that_see_a_new_version_read_the_manifest_once(graph: og.Graph) -> None:
    readers = 8
    with og.open(graph.uri, mode="r") as reader:
        reader.query(FRIENDS, params={"slug": "p3"})
        graph.load([person(PEOPLE)], mode="append")
        start = Barrier(readers)
        reads = PROCESS.control_reads

        def ask() -> None:
            start.wait()
            reader.query(FRIENDS, params={"slug": "p3"})

        threads = [Thread(target=ask) for _ in range(readers)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert PROCESS.control_reads - reads == 1


def test_one_more_row_of_many_makes_no_other_plan(tmp_path: Path) -> None:
    with og.init(tmp_path / "many", schema=SCHEMA, durability="process") as graph:
        graph.load([person(number) for number in range(300)], mode="overwrite")
        ir = require_read(compile_query(FRIENDS, graph.catalog, name="friends"))
        cache = RuntimeCache(1 << 30)
        before = prepare_query(ir, graph.snapshot(), graph.catalog, cache)
        graph.load([person(300)], mode="append")

        after = prepare_query(ir, graph.snapshot(), graph.catalog, cache)
        graph.load([person(number) for number in range(301, 400)], mode="append")
        much_later = prepare_query(ir, graph.snapshot(), graph.catalog, cache)

    assert after is before
    assert much_later is not before


def test_a_few_rows_are_read_of_an_earlier_version_when_they_are_where_they_were(
    graph: og.Graph,
) -> None:
    cache = RuntimeCache(1 << 30)
    people_of(graph, cache).column("name")
    graph.load([person(PEOPLE)], mode="append")
    view = people_of(graph, cache)

    with counting() as counters:
        names = view.values(["name"], np.array([7, 3, 7]))["name"].to_pylist()

    assert counters.rows_scanned == 0
    assert names == ["n7", "n3", "n7"]
    assert view.values(["name"], np.array([PEOPLE]))["name"].to_pylist() == [f"n{PEOPLE}"]
