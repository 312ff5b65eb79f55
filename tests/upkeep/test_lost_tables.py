"""Tables of types that only a deleted branch had, or one that went back, go with a cleanup."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.testing.inside import inside
from omnigraph.upkeep.lost_tables import list_lost_tables
from tests.branch.people import SCHEMA, new_people, state_of

pytestmark = pytest.mark.slow

WITH_CITIES = SCHEMA + "node City { name: String @key }\nedge LivesIn: Person -> City\n"
ADD = """
query q() { insert City { name: "rome" } insert LivesIn { from: "alice", to: "rome" } }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """A branch `b` that has cities, and `main` that has none."""
    graph = new_people(tmp_path / "graph")
    graph.create_branch("b")
    graph.apply_schema(WITH_CITIES, branch="b")
    graph.mutate(ADD, branch="b")
    return graph


def tables(graph: og.Graph) -> set[str]:
    """The directories of tables."""
    top = Path(graph.uri)
    return {f"{kind}/{each.name}" for kind in ("nodes", "edges") for each in (top / kind).iterdir()}


def cities(graph: og.Graph, branch: str = "b") -> set[str]:
    entries = graph.snapshot(branch).entries
    return {entries[key].table_path for key in ("node:City", "edge:LivesIn")}


def lose(graph: og.Graph, how: str) -> None:
    if how == "delete":
        graph.delete_branch("b")
    else:
        graph.reset_branch("b", "b~2")


@pytest.mark.parametrize("how", ["delete", "reset"])
def test_a_table_that_nothing_names_goes_with_a_cleanup(graph: og.Graph, how: str) -> None:
    lost, before, shown = cities(graph), tables(graph), state_of(graph)
    assert list_lost_tables(inside(graph).environment(), []) == []
    lose(graph, how)

    looked = {each.table_key: each for each in graph.cleanup(keep=1).tables}
    assert tables(graph) == before
    done = {each.table_key: each for each in graph.cleanup(keep=1, confirm=True).tables}

    assert tables(graph) == before - lost
    assert lost <= looked.keys() & done.keys()
    assert all(done[path] == looked[path] and done[path].bytes_removed > 0 for path in lost)
    assert (state_of(graph), graph.verify().errors) == (shown, ())
    assert not lost & {each.table_key for each in graph.cleanup(keep=1, confirm=True).tables}


@pytest.mark.parametrize("how", ["delete", "reset"])
@pytest.mark.parametrize("use", ["tag", "branch", "merge"])
def test_a_table_that_is_named_stays(graph: og.Graph, how: str, use: str) -> None:
    """By a tag, by a branch that came from it, or by a commit that was merged and is kept."""
    named, shown = cities(graph), state_of(graph, "b")
    head = graph.commits("b")[0].commit_id
    match use:
        case "tag":
            graph.tag("kept", "b")
        case "branch":
            graph.create_branch("c", from_="b")
        case _:
            graph.merge("b")  # main has tables of its own for them
            assert not named & cities(graph, "main")
    with suppress(og.errors.ConflictError):  # where another branch comes from it
        lose(graph, how)

    graph.cleanup(older_than=timedelta(days=1), confirm=True)
    if use != "merge":
        graph.cleanup(keep=1, confirm=True)

    assert named <= tables(graph)
    assert len(list(graph.export(commit=head))) == sum(map(len, shown.values()))
    if use == "branch":
        assert state_of(graph, "c") == shown
    assert graph.verify().errors == ()


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_cleanup_that_dies_leaves_nothing_that_looks_damaged(graph: og.Graph, nth: int) -> None:
    lost, before = cities(graph), tables(graph)
    graph.delete_branch("b")
    armed = arm_failpoints({Failpoint.CLEANUP_LOST_TABLE: f"raise@{nth}"})
    with armed, pytest.raises(FailpointError):
        graph.cleanup(keep=1, confirm=True)

    if nth == 2:  # its checksums are gone: nothing expects the files that are removed then
        tops = [Path(graph.uri) / each for each in sorted(lost)]
        [top] = [each for each in tops if not (each / "_checksums").exists()]
        some = next(each for each in top.rglob("*") if each.is_file())
        some.unlink()
    assert graph.verify(content=True).errors == ()
    with og.open(graph.uri, durability="process") as again:
        again.cleanup(keep=1, confirm=True)
        assert tables(again) == before - lost
        assert again.verify(content=True).errors == ()


def test_a_schema_change_that_is_under_way_is_left_alone(graph: og.Graph) -> None:
    """It makes its tables before it names them; where locks do not reach only its mark tells."""
    environment = inside(graph).environment()
    graph.delete_branch("b")
    assert len(list_lost_tables(environment, [])) == 2
    environment.coordinator.unlisted.lock_schema(is_stale=False)

    assert list_lost_tables(environment, []) == []


def test_a_table_that_is_being_received_is_received_again(graph: og.Graph, tmp_path: Path) -> None:
    """Its files are copied without a lock, to where a cleanup finds a lost table."""
    og.clone(graph.uri, tmp_path / "away", durability="process")
    away = og.open(tmp_path / "away", durability="process", self_care=False)
    away.delete_branch("b")
    other = og.open(away.uri, durability="process", self_care=False)
    left = [1]

    def clean() -> None:
        if left:
            left.pop()
            other.cleanup(keep=1, confirm=True)

    with arm_failpoints({Failpoint.TRANSFER_BEFORE_LINEAGES: clean}):
        away.fetch(graph.uri, branch="b")

    assert not left
    assert state_of(away, "origin/b") == state_of(graph, "b")
    assert away.verify(content=True).errors == ()
