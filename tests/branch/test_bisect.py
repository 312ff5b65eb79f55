"""Bisect finds the commit that broke a check, and asks few times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError
from tests.branch.people import CHANGES, change, new_people
from tests.cli.running import run

OLD = "query old() { match { $p: Person  $p.age > 100 } return { $p.name } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "graph")


@pytest.mark.parametrize("place", [0, 7, 18, 19])
def test_the_commit_that_broke_a_check_is_found_in_few_questions(
    graph: og.Graph, place: int
) -> None:
    good = graph.commits()[0].commit_id
    for number in range(20):
        age = 120 if number == place else 20 + number
        name = "dan" if number == place else "bob"
        graph.mutate(CHANGES, "age", {"name": name, "age": age}, message=f"step {number}")
    asked: list[str] = []

    def is_well(snapshot: og.Snapshot) -> bool:
        asked.append(snapshot.head.commit_id)
        return not len(graph.query(OLD, commit=snapshot.head.commit_id))

    assert graph.bisect(is_well, good=good, bad="main").message == f"step {place}"
    assert graph.bisect(OLD, good=good, bad="main").message == f"step {place}"
    assert len(asked) <= 2 + 5  # both ends, and 20 commits halved


def test_ends_that_are_not_as_they_are_said_to_be_are_refused(graph: og.Graph) -> None:
    change(graph, "age", name="dan", age=120)

    with pytest.raises(BadRequestError, match="is not before"):
        graph.bisect(OLD, good="main~0", bad="main")  # the same commit
    with pytest.raises(BadRequestError, match="holds at 'main~1'"):
        graph.bisect(OLD, good="main~2", bad="main~1")
    change(graph, "age", name="dan", age=121)
    with pytest.raises(BadRequestError, match="does not hold at 'main~1'"):
        graph.bisect(OLD, good="main~1", bad="main")


def test_the_command_prints_the_commit_that_broke_an_assertion(
    graph: og.Graph, tmp_path: Path
) -> None:
    """With a query that has a default and asks for the time."""
    file = tmp_path / "old.gq"
    file.write_text(
        "query old($age: I32 = 100) "
        '{ match { $p: Person $p.age > $age date(now()) > date("2020-01-01") } return { $p.name } }'
    )
    good = graph.commits()[0].commit_id
    for number in range(5):
        change(graph, "age", name="bob", age=120 if number >= 3 else number)
    broken = graph.commits()[1].commit_id

    found = run("bisect", graph.uri, "--assert", file, "--good", good, "--json")
    missing = run("bisect", graph.uri, "--assert", file, "--good", "main", "--bad", good)

    assert (found.code, missing.code) == (0, 1)
    assert json.loads(found.out)["graph_commit_id"] == broken
    assert "is not before" in missing.err
