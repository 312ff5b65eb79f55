"""Branches travel with their schemas: new tables, renames and drops come along, and merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError, MergeConflicts
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.testing.inside import inside
from tests.depth import IS_TORTURE
from tests.graph.reading import SCHEMA, add, ages, names
from tests.storage.conftest import Store
from tests.transfer.conftest import OPTIONS, failing_at, find_damage, list_commits, past, show

pytestmark = pytest.mark.slow

CITY = "\nnode City { name: String @key  size: I32? }\nedge LivesIn: Person -> City\n"
CITY_QUERIES = """
query city($name: String) { insert City { name: $name, size: 1 } }
query lives($a: String, $b: String) { insert LivesIn { from: $a, to: $b } }
query cities() { match { $c: City } return { $c.name } }
"""


@pytest.fixture
def pair(home: Path, tmp_path: Path) -> tuple[og.Graph, og.Graph]:
    """Two stores of one graph."""
    og.clone(home, tmp_path / "away", durability="process")
    return og.open(home, **OPTIONS), og.open(tmp_path / "away", **OPTIONS)


def change(graph: og.Graph, query: str, branch: str = "main", **params: Any) -> None:
    graph.mutate(CITY_QUERIES, query, params, branch=branch)


def cities(graph: og.Graph, branch: str = "main") -> list[str]:
    return sorted(row["c.name"] for row in graph.query(CITY_QUERIES, "cities", branch=branch))


def compare(
    one: og.Graph, other: og.Graph, branch: str = "main", *, is_cleaned: bool = False
) -> None:
    """Both stores have one branch: schema, commits, what each of them showed, every file."""
    stores = [og.open(each.uri, mode="r") for each in (one, other)]
    heads = [each.commits(branch)[0].commit_id for each in stores]
    assert heads[0] == heads[1]
    schemas = [inside(each).read_schema(branch).source for each in stores]
    assert schemas[0] == schemas[1]
    reached = [list_commits(store, [branch]) for store in stores]
    assert reached[0].keys() == reached[1].keys()
    for each in reached[0]:
        shown = [past(store, each) for store in stores]
        if is_cleaned and "gone" in shown:
            continue
        assert shown[0] == shown[1], each
        assert stores[0].checks(each) == stores[1].checks(each), each
    for store in stores:
        assert find_damage(store.uri) == []


def test_a_push_brings_a_schema_with_its_tables(pair: tuple[og.Graph, og.Graph]) -> None:
    here, there = pair
    there.apply_schema(SCHEMA + CITY)
    change(there, "city", name="Rome")
    change(there, "lives", a="ann", b="Rome")

    there.push(here.uri)

    assert "City" in here.schema
    assert (Path(here.uri) / "_schema.pg").read_text() == there.schema
    assert cities(here) == ["Rome"]
    compare(here, there)
    change(here, "city", name="Oslo")
    there.pull(here.uri)
    assert cities(there) == ["Oslo", "Rome"]
    compare(here, there)
    assert og.open(here.uri).recoveries() == []


def test_renames_drops_and_names_used_again_travel(pair: tuple[og.Graph, og.Graph]) -> None:
    here, there = pair
    for graph in pair:
        graph.optimize()
    there.apply_schema(
        SCHEMA.replace("node Firm { code", 'node Company @rename_from("Firm") { code')
        .replace("-> Firm", "-> Company")
        .replace("node Note { text: String  stars: I32? }", "")
        .replace("age: I32?", "age: I32?  height: F64?")
    )
    add(there, "person", name="tall")
    there.push(here.uri)
    compare(here, there)
    there.apply_schema(there.schema + "\nnode Note { title: String @key }\nnode Firm { x: I32? }\n")
    there.mutate('query n() { insert Note { title: "new" } }')
    there.mutate("query f() { insert Firm { x: 1 } }")

    here.pull(there.uri)

    compare(here, there)
    assert [row["title"] for row in here.nodes("Note").to_arrow().to_pylist()] == ["new"]
    here.mutate('query n() { insert Note { title: "mine" } }')
    here.optimize()
    here.cleanup(keep=2, confirm=True)
    there.pull(here.uri)
    assert there.nodes("Note").to_arrow().num_rows == 2
    assert find_damage(here.uri) == find_damage(there.uri) == []


def test_branches_in_different_schemas_are_fetched_cloned_and_made(
    pair: tuple[og.Graph, og.Graph], tmp_path: Path
) -> None:
    here, there = pair
    there.create_branch("wide")
    there.apply_schema(SCHEMA + CITY, branch="wide")
    change(there, "city", "wide", name="Rome")

    there.push(here.uri, "wide")

    assert cities(here, "wide") == ["Rome"]
    assert "City" not in here.schema
    compare(here, there, "wide")
    change(here, "city", "wide", name="Oslo")
    there.fetch(here.uri)
    assert cities(there, "origin/wide") == ["Oslo", "Rome"]
    og.clone(here.uri, tmp_path / "third", durability="process")
    with og.open(tmp_path / "third", **OPTIONS) as third:
        assert cities(third, "wide") == ["Oslo", "Rome"]
        change(third, "city", "wide", name="Bonn")
        third.push(here.uri, "wide")
        compare(here, third, "wide")
    here.merge("wide", into="main")
    assert cities(here) == ["Bonn", "Oslo", "Rome"]
    there.pull(here.uri)
    compare(here, there)


def test_a_pull_of_diverged_schemas_merges_them_and_their_rows(
    pair: tuple[og.Graph, og.Graph],
) -> None:
    """Both add `City`, declared alike: it is one type with the rows of both."""
    here, there = pair
    for graph, name in ((here, "Rome"), (there, "Oslo")):
        graph.apply_schema(SCHEMA + CITY)
        change(graph, "city", name=name)
    here.apply_schema(here.schema + "\nnode Ship { name: String @key }\n")
    there.apply_schema(there.schema.replace("stars: I32?", "stars: I32?  mood: String?"))

    there.pull(here.uri)

    assert cities(there) == ["Oslo", "Rome"]
    assert "Ship" in there.schema
    assert "mood" in there.schema
    there.push(here.uri)
    compare(here, there)
    change(here, "city", name="Bonn")
    change(there, "city", name="Kiel")
    there.pull(here.uri)
    there.push(here.uri)
    assert cities(here) == ["Bonn", "Kiel", "Oslo", "Rome"]
    compare(here, there)


def test_types_of_one_name_and_other_declarations_are_a_conflict(
    pair: tuple[og.Graph, og.Graph],
) -> None:
    here, there = pair
    here.apply_schema(SCHEMA + CITY)
    there.apply_schema(SCHEMA + CITY.replace("size: I32?", "size: String?"))
    before = show(there.uri)["branches"]["main"], there.schema

    with pytest.raises(MergeConflicts, match="divergent_schema"):
        there.pull(here.uri)

    assert (show(there.uri)["branches"]["main"], there.schema) == before


def test_things_added_on_both_sides_are_never_taken_for_one_another(
    pair: tuple[og.Graph, og.Graph],
) -> None:
    here, there = pair
    here.apply_schema(SCHEMA + "\nnode City { name: String @key }\n")
    there.apply_schema(SCHEMA + "\nnode Ship { name: String @key }\n")
    here.mutate('query c() { insert City { name: "Rome" } }')
    there.mutate('query s() { insert Ship { name: "Fram" } }')

    there.pull(here.uri)

    assert [row["name"] for row in there.nodes("City").to_arrow().to_pylist()] == ["Rome"]
    assert [row["name"] for row in there.nodes("Ship").to_arrow().to_pylist()] == ["Fram"]


def test_identities_of_stores_that_counted_alike_are_refused(
    pair: tuple[og.Graph, og.Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier Omnigraph handed them out."""
    here, there = pair
    monkeypatch.setattr("omnigraph.manifest.schemas.DISTANCE_MIN", 0)
    monkeypatch.setattr("omnigraph.manifest.schemas.DISTANCES", 1)
    here.apply_schema(SCHEMA + "\nnode City { name: String @key }\n")
    there.apply_schema(SCHEMA + "\nnode Ship { name: String @key }\n")
    before = show(here.uri)

    with pytest.raises(ConflictError, match=r"identity \d+ is 'node City' here and 'node Ship'"):
        here.pull(there.uri)

    assert show(here.uri) == before


STEPS = [
    Failpoint.TRANSFER_BEFORE_LINEAGES,
    Failpoint.TRANSFER_BEFORE_PUBLISH,
    Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
]


def test_a_push_of_a_schema_that_fails_anywhere_changes_nothing_and_goes_on(
    pair: tuple[og.Graph, og.Graph], tmp_path: Path
) -> None:
    here, there = pair
    there.apply_schema(SCHEMA + CITY)
    change(there, "city", name="Rome")
    before = show(here.uri)
    with arm_failpoints({Failpoint.TRANSFER_BEFORE_FILE: "count"}) as hits:
        og.clone(here.uri, tmp_path / "counted", durability="process")
        copied = hits[Failpoint.TRANSFER_BEFORE_FILE]
        there.push(tmp_path / "counted")
    files = hits[Failpoint.TRANSFER_BEFORE_FILE] - copied
    assert files >= 4
    # Each attempt copies one more file than the one before.
    torn = [(Failpoint.TRANSFER_BEFORE_FILE, 1 + min(each, 1)) for each in range(files)]
    table = [(Failpoint.TRANSFER_BEFORE_TABLE, number) for number in (1, 2)]
    cells = [*torn, *table, *((point, 1) for point in STEPS)]

    for point, number in cells:
        with failing_at(point, number):
            there.push(here.uri)
        assert show(here.uri) == before
    og.open(here.uri, **OPTIONS).cleanup(keep=10, confirm=True)

    there.push(here.uri)
    compare(here, there, is_cleaned=True)
    assert cities(og.open(here.uri, mode="r")) == ["Rome"]


def test_a_push_that_fails_before_the_schema_files_is_whole(
    pair: tuple[og.Graph, og.Graph],
) -> None:
    here, there = pair
    there.apply_schema(SCHEMA + CITY)
    change(there, "city", name="Rome")

    with failing_at(Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT):
        there.push(here.uri)

    assert cities(og.open(here.uri, mode="r")) == ["Rome"]
    with og.open(here.uri, **OPTIONS) as again:
        change(again, "city", name="Oslo")
        again.apply_schema(again.schema + "\nnode Ship { name: String @key }\n")
        assert cities(again) == ["Oslo", "Rome"]
    there.pull(here.uri)
    compare(here, there)


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_schemas_travel_to_an_object_store_and_back(home: Path, s3_store: Store) -> None:
    uri, options = s3_store.root.uri, s3_store.storage_options
    og.clone(home, uri, target_options=options)
    with og.open(home, **OPTIONS) as here:
        here.apply_schema(SCHEMA + CITY)
        change(here, "city", name="Rome")
        here.push(uri, storage_options=options)
        with og.open(uri, storage_options=options) as there:
            assert cities(there) == ["Rome"]
            change(there, "city", name="Oslo")
        add(here, "age", name="ann", age=1)
        here.pull(uri, storage_options=options)
        assert cities(here) == ["Oslo", "Rome"]
        assert ages(here)["ann"] == 1
        assert "ann" in names(here)
    assert find_damage(uri, storage_options=options) == find_damage(home) == []


def test_a_branch_that_received_a_renamed_type_keeps_the_rows_of_its_earlier_name(
    pair: tuple[og.Graph, og.Graph],
) -> None:
    """What it shows lies on a fork that came along; earlier commits show a fork of its own."""
    here, there = pair
    for graph, name in ((here, "one"), (there, "two")):
        graph.create_branch("x")
        add(graph, "person", branch="x", name=name)
    earlier = here.commits("x")[0].commit_id
    there.pull(here.uri, "x")
    renamed = SCHEMA.replace("Person", "Human")
    renamed = renamed.replace("node Human {", 'node Human @rename_from("Person") {')
    there.apply_schema(renamed, branch="x")
    there.push(here.uri, "x")
    before = past(here, earlier)

    here.mutate('query q() { insert Human { name: "three" } }', branch="x")

    assert past(here, earlier) == before != "gone"
    assert find_damage(here.uri) == []
