"""`allow_data_loss` on any branch: what is dropped is gone for good, and nothing else goes."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError, NotFoundError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints

pytestmark = pytest.mark.slow

SCHEMA = "node Person { slug: String @key }\n"
PET = "node Pet { slug: String @key  chip: String?  name: String? }\n"
NO_CHIP = SCHEMA + "node Pet { slug: String @key  name: String? }\n"
DROPS = {
    "a type": SCHEMA,
    "a property": NO_CHIP,
    "a property of a renamed type": NO_CHIP.replace("Pet {", 'Animal @rename_from("Pet") {'),
}
INSERT = 'query q() { insert Pet { slug: "rex", chip: "number 4711", name: "Rex" } }'


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """Branch `x` has a type that no other branch has, with a row."""
    made = og.init(tmp_path / "g", schema=SCHEMA, durability="process", self_care=False)
    made.create_branch("x")
    made.apply_schema(SCHEMA + PET, branch="x")
    made.mutate(INSERT, branch="x")
    return made


def holds_chip(graph: og.Graph) -> bool:
    files = Path(graph.uri, "nodes").rglob("*.lance")
    return any(b"number 4711" in each.read_bytes() for each in files)


def list_names(graph: og.Graph, branch: str) -> list[str]:
    return [str(each["data"]["name"]) for each in graph.export(branch=branch)]


@pytest.mark.parametrize("what", DROPS)
def test_what_a_branch_drops_for_good_is_gone(graph: og.Graph, what: str) -> None:
    before = graph.commits("x", limit=1)[0].commit_id
    assert holds_chip(graph)

    graph.apply_schema(DROPS[what], branch="x", allow_data_loss=True)

    assert not holds_chip(graph)
    with pytest.raises(NotFoundError):
        list(graph.export(commit=before))
    kept = [] if what == "a type" else ["Rex"]
    assert list_names(graph, "x") == kept
    again = og.open(graph.uri, durability="process", self_care=False)
    assert list_names(again, "x") == kept
    assert again.verify(content=True).errors == ()


def test_a_branch_goes_on_after_it_dropped_a_property_for_good(graph: og.Graph) -> None:
    graph.apply_schema(NO_CHIP, branch="x", allow_data_loss=True)
    graph.mutate('query q() { insert Pet { slug: "tom", name: "Tom" } }', branch="x")
    graph.merge("x", "main")

    assert list_names(graph, "main") == ["Rex", "Tom"]
    assert graph.cleanup(keep=1, confirm=True).tables
    assert list_names(graph, "x") == ["Rex", "Tom"]
    assert graph.verify(content=True).errors == ()


def test_a_type_of_the_same_name_does_not_answer_for_one_that_was_dropped_for_good(
    graph: og.Graph,
) -> None:
    before = graph.commits("x", limit=1)[0].commit_id
    graph.apply_schema(SCHEMA, branch="x", allow_data_loss=True)
    graph.apply_schema(SCHEMA + "node Pet { slug: String @key }\n", branch="x")
    graph.mutate('query q() { insert Pet { slug: "tom" } }', branch="x")

    with pytest.raises(NotFoundError, match="cleaned up"):
        graph.scan("Pet", commit=before)


@pytest.mark.parametrize("what", ["a type", "a property"])
def test_recovery_removes_what_a_writer_that_died_had_dropped(graph: og.Graph, what: str) -> None:
    point = Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        graph.apply_schema(DROPS[what], branch="x", allow_data_loss=True)

    again = og.open(graph.uri, durability="process", self_care=False)

    assert not holds_chip(again)
    assert list_names(again, "x") == ([] if what == "a type" else ["Rex"])
    assert again.verify(content=True).errors == ()


@pytest.mark.parametrize("branch", ["x", "main"])
def test_what_a_merge_compares_with_is_not_removed_for_good(graph: og.Graph, branch: str) -> None:
    """Main has a table of its own for what it merged, and yet both may be compared again."""
    graph.merge("x", "main")
    if branch == "main":
        graph.mutate('query q() { insert Pet { slug: "tom", name: "Tom" } }')
        graph.merge("main", "x")

    with pytest.raises(ConflictError, match="compares"):
        graph.apply_schema(NO_CHIP, branch=branch, allow_data_loss=True)

    graph.apply_schema(NO_CHIP, branch=branch)
    graph.merge("x", "main")
    assert "chip" not in graph.branch_schema("main")


def test_the_table_of_a_merged_branch_goes_as_well(graph: og.Graph) -> None:
    """Its commits are part of the history of main, and show the table that the branch had."""
    before = graph.commits("x", limit=1)[0].commit_id
    graph.merge("x", "main", delete_branch=True)

    graph.apply_schema(NO_CHIP, allow_data_loss=True)

    assert not holds_chip(graph)
    with pytest.raises(NotFoundError):
        list(graph.export(commit=before))
    assert list_names(graph, "main") == ["Rex"]
    assert graph.verify(content=True).errors == ()


def test_rows_that_were_pulled_stay_when_a_property_is_dropped_for_good(
    graph: og.Graph, tmp_path: Path
) -> None:
    """They lie on a lineage of their own, which is not one of a deleted branch."""
    graph.merge("x", "main", delete_branch=True)
    og.clone(graph.uri, tmp_path / "copy")
    copy = og.open(tmp_path / "copy", durability="process", self_care=False)
    graph.mutate('query q() { insert Pet { slug: "tom", name: "Tom" } }')
    copy.pull(graph.uri)
    copy.delete_branch("origin/main")

    copy.apply_schema(NO_CHIP, allow_data_loss=True)

    assert list_names(copy, "main") == ["Rex", "Tom"]
    assert not holds_chip(copy)
    assert copy.verify(content=True).errors == ()
