"""What an undo reads follows what its commits changed, not what the table holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pytest
from benchmarks.merge import plain_rows, to_table

import omnigraph as og
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from tests.branch.bulk import appending, upserting, write_bulk

DOCS = "node Doc { slug: String @key  x: I64? }"
SCHEMA = "node Person { name: String @key  age: I32? }"
AGE = "query q($n: String) { update Person set { age: 1 } where name = $n }"


@pytest.mark.slow
def test_the_rows_that_a_revert_takes_do_not_grow_with_the_table(tmp_path: Path) -> None:
    taken = []
    for size in (2_000, 20_000):
        graph = og.init(tmp_path / str(size), schema=SCHEMA, durability="process", self_care=False)
        people = ({"type": "Person", "data": {"name": f"p{n}"}} for n in range(size))
        graph.load(list(people), mode="append")
        made = graph.mutate(AGE, params={"n": "p7"}).commit_id
        graph.mutate(AGE, params={"n": "p8"})
        assert made is not None
        with counting() as counters:
            graph.revert(made)
        taken.append((counters.rows_taken, counters.rows_scanned))

    assert taken[0] == taken[1]
    assert sum(taken[0]) < 100


@pytest.mark.slow
def test_a_revert_of_scattered_rows_takes_those_rows_of_a_table_of_any_size(tmp_path: Path) -> None:
    """Each is in a page of its own in a large table; no other row is looked at."""
    costs = []
    for size in (2_000, 20_000):
        graph = og.init(tmp_path / str(size), schema=SCHEMA, durability="process", self_care=False)
        every, some = range(size), range(0, size, size // 200)
        people = [{"type": "Person", "data": {"name": f"p{n}", "age": 0}} for n in every]
        graph.load(people, mode="append")
        older = [{"type": "Person", "data": {"name": f"p{n}", "age": 5}} for n in some]
        made = graph.load(older, mode="merge").commit_id
        graph.mutate('query q() { insert Person { name: "later" } }')
        assert made is not None
        with counting() as counters:
            assert graph.revert(made).tables["node:Person"].updated == 200
        costs.append((counters.rows_taken, counters.rows_scanned, counters.commits))

    assert costs[0] == costs[1]
    assert sum(costs[0]) < 5 * 200


@pytest.mark.slow
def test_a_restore_of_one_entity_reads_that_entity(tmp_path: Path) -> None:
    """However large the table is, and however much else has changed since."""
    costs = []
    for size in (2_000, 20_000):
        graph = og.init(tmp_path / str(size), schema=SCHEMA, durability="process", self_care=False)
        people = [{"type": "Person", "data": {"name": f"p{n}", "age": 0}} for n in range(size)]
        graph.load(people, mode="append")
        graph.optimize()
        older = [{"type": "Person", "data": {"name": f"p{n}", "age": 5}} for n in range(size // 4)]
        graph.load(older, mode="merge")
        with counting() as counters:
            graph.restore("main~1", types=["Person"], ids=["p7"])

        found = graph.query(
            "query q() { match { $p: Person } return { $p.name as n, $p.age as age } }"
        )
        ages = {row["n"]: row["age"] for row in found.rows()}
        assert ages == {f"p{n}": 5 if n < size // 4 and n != 7 else 0 for n in range(size)}
        costs.append((counters.rows_taken, counters.rows_scanned))

    assert costs[0] == costs[1]
    assert sum(costs[0]) < 50


def make_docs(path: Path, size: int) -> og.Graph:
    """A table of this size in one file, and two changes of 200 rows that lie far apart in it."""
    graph = og.init(path, schema=DOCS, durability="process", self_care=False)
    write_bulk(graph, "node:Doc", appending(plain_rows(np.arange(size), 0)))
    graph.create_branch("side")
    for turn in (1, 2):
        change_docs(graph, size, turn)
    return graph


def change_docs(graph: og.Graph, size: int, turn: int, branch: str = "main") -> None:
    """Write every so many rows anew, others in each turn."""
    rows = to_table(plain_rows(np.arange(turn, size, size // 200), -turn))
    write_bulk(graph, "node:Doc", upserting(rows), branch)


VERBS: dict[str, Callable[[og.Graph], object]] = {
    "revert": lambda graph: graph.revert("main"),
    "revert of an earlier commit": lambda graph: graph.revert("main~1"),
    "cherry-pick": lambda graph: graph.cherry_pick("main", into="side"),
    "restore": lambda graph: graph.restore("main~1", types=["Doc"]),
    "merge": lambda graph: graph.merge("side"),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_an_undo_and_a_merge_take_each_row_once(tmp_path: Path, verb: str) -> None:
    """As it was and as it is, to compare, check and write it; of what the target did besides
    none is looked at."""
    costs = []
    for size in (2_000, 20_000):
        graph = make_docs(tmp_path / f"{size}", size)
        if verb == "merge":
            change_docs(graph, size, 3, branch="side")
        with counting() as counters:
            VERBS[verb](graph)
        costs.append((counters.rows_taken, counters.rows_scanned, counters.commits))
        graph.close()

    assert costs[0] == costs[1]
    assert costs[0][0] == 2 * 200


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="bytes are counted by Linux")
def test_a_revert_reads_little_more_than_lance_to_take_its_rows(tmp_path: Path) -> None:
    """The rows of a change that are far apart are each in a page of its own: they are the floor."""
    size = 200_000
    graph = make_docs(tmp_path / "graph", size)
    graph.revert("main~1")  # imports, and opens files

    floor = count_read(lambda: take_docs(graph, np.arange(2, size, size // 200)))
    read = count_read(lambda: graph.revert("main~1"))

    assert read < floor + 300_000 < 2 * floor


def take_docs(graph: og.Graph, rows: np.ndarray) -> None:
    """Have Lance itself take rows of the first version of the table."""
    entry = inside(graph).coordinator.fresh("main").entries["node:Doc"]
    dataset = lance.dataset(f"{graph.uri}/{entry.table_path}", version=2)
    assert dataset.take(rows.tolist(), columns=["slug", "x"]).num_rows == len(rows)


def count_read(work: Callable[[], object]) -> int:
    """The bytes that this process reads meanwhile, from disk or cache."""
    first = read_bytes()
    work()
    return read_bytes() - first


def read_bytes() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))
