"""Tags go with commits, other stores have names, and a fetch tells what is gone or made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    ConflictError,
    GraphNotFound,
    NotFoundError,
    RemoteNotFound,
)
from omnigraph.failpoints import Failpoint
from omnigraph.testing.crash import run_spawned
from tests.cli.running import run
from tests.graph.reading import add, names
from tests.transfer.conftest import OPTIONS, failing_at, find_damage

pytestmark = pytest.mark.slow


@pytest.fixture
def pair(home: Path, tmp_path: Path) -> tuple[og.Graph, og.Graph]:
    """A graph and its clone, both open."""
    og.clone(home, tmp_path / "away", durability="process")
    return og.open(home, **OPTIONS), og.open(tmp_path / "away", **OPTIONS)


def tags(graph: og.Graph) -> dict[str, str]:
    return {each.name: each.commit_id for each in og.open(graph.uri, mode="r").tags()}


def test_tags_go_with_the_commits_they_name(pair: tuple[og.Graph, og.Graph]) -> None:
    here, there = pair
    add(there, "person", name="first")
    there.tag("v2", message="with first", actor="ann")
    add(there, "person", name="second")
    there.create_branch("aside")
    add(there, "person", branch="aside", name="third")
    there.tag("aside/v1", "aside")

    moved = there.push(here.uri)

    assert moved.tags == ("v2",)
    assert tags(here).keys() == {"v1", "v2"}
    assert here.tags()[-1] == next(each for each in there.tags() if each.name == "v2")
    assert there.push(here.uri) == og.TransferResult()
    here.cleanup(keep=1, confirm=True)
    people = list(here.export(commit="tag:v2", types=["Person"]))
    assert "first" in str(people)
    assert "second" not in str(people)
    assert here.fetch(there.uri).tags == ("aside/v1",)
    here.tag("v3")  # a tag on a commit that both have travels without any commit
    assert there.pull(here.uri).tags == ("v3",)
    assert find_damage(here.uri) == []


def test_a_tag_of_the_same_name_is_kept_and_told(pair: tuple[og.Graph, og.Graph]) -> None:
    here, there = pair
    mine = add(here, "person", name="mine").commit_id
    here.tag("v2")
    add(there, "person", name="theirs")
    there.tag("v2")

    moved = here.fetch(there.uri)

    assert (moved.tags, moved.refused_tags) == ((), ("v2",))
    assert tags(here)["v2"] == mine
    outcome = run("fetch", there.uri, "--store", here.uri)
    assert "tag v2 was not taken" in outcome.out


def test_tags_that_are_torn_come_when_it_is_repeated(pair: tuple[og.Graph, og.Graph]) -> None:
    here, there = pair
    for number in (2, 3, 4):
        add(there, "person", name=f"p{number}")
        there.tag(f"v{number}")

    with failing_at(Failpoint.TRANSFER_BEFORE_TAG, 2):
        there.push(here.uri)
    assert tags(here).keys() == {"v1", "v2"}
    died = run_spawned(
        "tests.transfer.work:push",
        {
            "src": there.uri,
            "dst": here.uri,
            "branch": "main",
            "arm": "transfer.before_tag=kill@2",
        },
    )
    assert died.was_killed, died.error
    assert tags(here).keys() == {"v1", "v2", "v3"}

    assert there.push(here.uri).tags == ("v4",)
    assert tags(here) == tags(there)
    assert find_damage(here.uri) == []


def test_a_tag_of_a_commit_in_another_schema_is_read_in_it(
    pair: tuple[og.Graph, og.Graph],
) -> None:
    here, there = pair
    there.apply_schema(there.schema + "\nnode City { name: String @key }\n")
    there.mutate('query c() { insert City { name: "Rome" } }')
    there.tag("cities")
    there.apply_schema(there.schema.replace("\nnode City { name: String @key }\n", ""))

    there.push(here.uri)

    assert "City" not in here.schema
    assert "Rome" in str(list(here.export(commit="tag:cities")))
    here.cleanup(keep=1, confirm=True)
    assert "Rome" in str(list(here.export(commit="tag:cities")))


def test_stores_have_names(pair: tuple[og.Graph, og.Graph], tmp_path: Path) -> None:
    here, there = pair
    assert [(each.name, each.uri) for each in there.remotes()] == [("origin", here.uri)]
    assert here.remotes() == []
    here.add_remote("south", there.uri)
    here.add_remote("south", there.uri)
    add(there, "person", name="new")

    here.fetch("south")
    assert "new" in names(here, "south/main")
    here.pull("south")
    assert "new" in names(here)
    add(here, "person", name="back")
    here.push("south")
    assert "back" in names(og.open(there.uri, mode="r"))
    there.fetch("origin")
    assert "origin/main" in there.branches()
    og.clone(here.uri, tmp_path / "third", durability="process")
    with og.open(tmp_path / "third", mode="r") as third:
        assert [each.name for each in third.remotes()] == ["origin"]
    with pytest.raises(ConflictError, match="remote 'south' is"):
        here.add_remote("south", "/elsewhere")
    here.remove_remote("south")
    with pytest.raises(NotFoundError, match="there is no remote 'south'"):
        here.remove_remote("south")
    assert "south/main" in here.branches()


def test_a_name_that_could_not_begin_a_branch_is_refused(home: Path) -> None:
    with og.open(home, **OPTIONS) as graph:
        for name in ("", "a/b", "main", "..", "__x", "a b", "-", "--x", "x" * 300):
            with pytest.raises(BadRequestError):
                graph.add_remote(name, "/elsewhere")
        assert graph.remotes() == []


def test_an_unknown_remote_is_told_with_those_there_are(
    pair: tuple[og.Graph, og.Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = pair
    monkeypatch.chdir(tmp_path)  # where `away` is a graph, and no other name is a path
    for graph, known in ((here, "there are no remotes"), (there, "the remotes are origin")):
        for ask in (graph.push, graph.pull, graph.fetch):
            with pytest.raises(RemoteNotFound, match=f"'elsewhere' not found.*{known}") as caught:
                ask("elsewhere")
            assert isinstance(caught.value, GraphNotFound)  # what programs have caught so far
    with pytest.raises(RemoteNotFound, match=r"did you mean `origin`\?"):
        there.fetch("orign")
    told = run("push", "orign", "--store", "away")
    assert (told.code, "did you mean `origin`?" in told.err) == (1, True)
    with pytest.raises(GraphNotFound, match=r"no graph at '\./elsewhere'"):
        there.fetch("./elsewhere")

    assert here.fetch("away") == og.TransferResult()


def test_no_secret_is_kept(pair: tuple[og.Graph, og.Graph]) -> None:
    here, _ = pair
    for uri in ("s3://key:secret@bucket/g", "s3://bucket/g?secret=x"):
        with pytest.raises(BadRequestError, match="not kept") as refused:
            here.add_remote("far", uri)
        assert "secret" not in str(refused.value)
    assert here.remotes() == []


def test_a_fetch_prunes_and_tells_what_was_made_again(pair: tuple[og.Graph, og.Graph]) -> None:
    here, there = pair
    there.fetch("origin")
    here.delete_branch("team/b")
    here.create_branch("team/b")
    add(here, "person", branch="team/b", name="second life")
    here.create_branch("short")
    there.fetch("origin")
    here.delete_branch("short")

    assert there.fetch("origin").pruned == ()
    assert "origin/short" in there.branches()
    here.delete_branch("team/b")
    here.create_branch("team/b")
    add(here, "person", branch="team/b", name="third life")
    moved = there.fetch("origin", prune=True)

    assert (moved.renewed, moved.pruned) == (("origin/team/b",), ("origin/short",))
    assert "third life" in names(there, "origin/team/b")
    assert {"main", "team/a", "team/b"} <= set(there.branches())
    here.create_branch("short")
    assert "origin/short" not in there.branches()


def test_remotes_on_the_command_line(home: Path, tmp_path: Path) -> None:
    run("clone", home, tmp_path / "away")
    store = ("--store", tmp_path / "away")
    with og.open(home, **OPTIONS) as graph:
        add(graph, "person", name="new")

    assert run("remote", "list", *store).out == f"origin  {home}\n"
    assert run("pull", "origin", *store).out.startswith("pulled main from origin: ")
    assert run("remote", "add", "up", home, *store).code == 0
    assert json.loads(run("remote", "list", "--json", *store).out) == {
        "remotes": [{"name": "origin", "uri": str(home)}, {"name": "up", "uri": str(home)}]
    }
    assert run("fetch", "up", "--prune", *store).code == 0
    assert run("remote", "remove", "up", *store).out == "removed remote up\n"
    assert run("push", "origin", *store).out.startswith("pushed main to origin: 0 files")
