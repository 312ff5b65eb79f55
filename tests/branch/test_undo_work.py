"""What an undo reads follows what its commits changed, not what the table holds."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage.counters import counting

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
