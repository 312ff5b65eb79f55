"""A graph can be carried away: moved, copied, renamed, branches included."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest

import omnigraph as og
from omnigraph.errors import StorageFull
from omnigraph.failpoints import ENVIRONMENT_VARIABLE, Failpoint, FailpointError, arm_failpoints
from omnigraph.storage.counters import counting
from omnigraph.storage.lance_manifest import list_bases, manifest_in
from omnigraph.storage.text_s3 import s3_bucket
from omnigraph.testing.inside import inside
from tests.graph.reading import SCHEMA, add, ages, names, new_graph, sidecars
from tests.storage.conftest import Store

pytestmark = pytest.mark.slow

BRANCHES = {
    "main": ["ann", "bob", "main"],
    "team/a": ["ann", "bob", "team"],
    "team/b": ["ann", "bob", "deep", "team"],
    "other": ["ann", "bob", "deep", "other", "team"],
}


@pytest.fixture
def home(tmp_path: Path, original: Path) -> Path:
    """A closed graph with a branch of a branch of a branch, whose names are nested as well."""
    root = tmp_path / "home"
    shutil.copytree(original, root)
    open_graph(root).close()
    assert is_mended(root)
    return root


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the graph was made; its copies are at home where they were opened first."""
    root = tmp_path_factory.mktemp("portable") / "original"
    with new_graph(root) as graph:
        add(graph, "pair", a="ann", b="bob")
        for branch, origin, name in (
            ("team/a", "main", "team"),
            ("team/b", "team/a", "deep"),
            ("other", "team/b", "other"),
        ):
            graph.create_branch(branch, from_=origin)
            add(graph, "person", branch=branch, name=name)
        add(graph, "person", name="main")
    return root


def open_graph(root: Path, mode: str = "rw") -> og.Graph:
    return og.open(root, mode=mode, durability="process")  # type: ignore[arg-type]


def read_names(graph: og.Graph) -> dict[str, list[str]]:
    return {branch: names(graph, branch) for branch in graph.branches()}


def bases(root: Path) -> set[str]:
    """Every base that a version file below the root names."""
    files = root.rglob("*.manifest")
    return {base for file in files for _, base in list_bases(manifest_in(file.read_bytes()))}


def is_mended(root: Path) -> bool:
    found = bases(root)
    return bool(found) and all(base.startswith(f"{root}/") for base in found)


def move(source: Path, target: Path) -> Path:
    return source.rename(target)


def copy(source: Path, target: Path) -> Path:
    subprocess.run(["cp", "-r", source, target], check=True)
    return target


def copy_and_lose(source: Path, target: Path) -> Path:
    """Copy file by file as a sync does, and lose the original."""
    shutil.copytree(source, target)
    shutil.rmtree(source)
    return target


CARRY = pytest.mark.parametrize("carry", [move, copy, copy_and_lose])


@CARRY
@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_carried_graph_opens_with_all_its_branches(
    home: Path, tmp_path: Path, carry: Callable[[Path, Path], Path], mode: str
) -> None:
    there = carry(home, tmp_path / "a longer name")

    graph = open_graph(there, mode)

    assert read_names(graph) == BRANCHES
    assert graph.verify().is_clean
    assert is_mended(there) == (mode == "rw")


def test_a_carried_graph_is_a_graph_like_any_other(home: Path, tmp_path: Path) -> None:
    """Write, branch, merge, tidy up and delete: all of it at the new place."""
    graph = open_graph(copy_and_lose(home, tmp_path / "there"))

    add(graph, "person", branch="team/b", name="later")
    graph.create_branch("new", from_="other")
    add(graph, "person", branch="new", name="newest")
    graph.merge("other", into="main")
    graph.optimize()
    graph.cleanup(keep=1, confirm=True)
    graph.delete_branch("new")
    graph.delete_branch("other")

    again = open_graph(tmp_path / "there")
    assert read_names(again) == {
        "main": ["ann", "bob", "deep", "main", "other", "team"],
        "team/a": ["ann", "bob", "team"],
        "team/b": ["ann", "bob", "deep", "later", "team"],
    }
    assert again.verify().is_clean
    assert is_mended(tmp_path / "there")


def test_a_copy_and_its_original_go_separate_ways(home: Path, tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    there = open_graph(copy(home, tmp_path / "there"))
    add(there, "gone", branch="other", name="ann")
    there.merge("team/a", into="main")
    there.optimize()
    there.cleanup(keep=1, confirm=True)
    assert {file: file.read_bytes() for file in home.rglob("*") if file.is_file()} == before

    here = open_graph(home)
    add(here, "age", branch="other", name="ann", age=3)
    here.cleanup(keep=1, confirm=True)

    assert read_names(here) == BRANCHES
    assert ages(here, "other")["ann"] == 3
    assert names(there, "other") == ["bob", "deep", "other", "team"]
    assert names(open_graph(tmp_path / "there")) == ["ann", "bob", "main", "team"]


def test_a_copy_reads_nothing_of_its_original(home: Path, tmp_path: Path) -> None:
    """An original whose files hold something else does not show in the copy."""
    there = copy(home, tmp_path / "there")
    for file in home.rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"not what it was")

    for mode in ("r", "rw"):
        assert read_names(open_graph(there, mode)) == BRANCHES


def test_a_graph_is_moved_twice_and_back(home: Path, tmp_path: Path) -> None:
    for place in ("first", "second", "home", "third"):
        home = move(home, tmp_path / place)
        graph = open_graph(home)
        assert read_names(graph) == BRANCHES
        assert is_mended(home)
        graph.close()


def test_an_open_that_finds_the_graph_at_home_mends_nothing(home: Path) -> None:
    open_graph(home).close()  # which notes that the history table is up to date

    with counting() as counters:
        open_graph(home).close()

    assert counters.text_writes == 0
    assert location_of(home) == {"format": 1, "root": str(home)}


def location_of(root: Path) -> object:
    return json.loads((root / "__location.json").read_text())


def test_a_graph_of_before_the_marker_is_mended_once(home: Path, tmp_path: Path) -> None:
    (home / "__location.json").unlink()
    there = move(home, tmp_path / "there")

    assert read_names(open_graph(there, "r")) == BRANCHES
    assert not (there / "__location.json").exists()
    assert read_names(open_graph(there)) == BRANCHES

    assert is_mended(there)
    assert location_of(there) == {"format": 1, "root": str(there)}


def fork_stamps(root: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in root.glob("**/tree/**/*.manifest")}


def test_two_spellings_of_one_place_are_one_graph(home: Path, tmp_path: Path) -> None:
    """Through a symbolic link: nothing is rewritten, and a cleanup keeps what forks need."""
    link = tmp_path / "link"
    link.symlink_to(home)
    stamps = fork_stamps(home)

    linked = open_graph(link)

    assert fork_stamps(home) == stamps
    linked.create_branch("linked", from_="team/a")
    add(linked, "person", branch="linked", name="linked")
    add(linked, "gone", name="ann")
    linked.optimize()
    linked.cleanup(keep=1, confirm=True)
    for graph in (linked, open_graph(home), open_graph(link, "r")):
        found = read_names(graph)
        assert found.pop("linked") == ["ann", "bob", "linked", "team"]
        assert found == {**BRANCHES, "main": ["bob", "main"]}
    assert location_of(home) == {"format": 1, "root": str(home)}


def strand(graph: og.Graph, branch: str) -> None:
    """Let a fork be the last that needs a file of its origin, without writing to it; tidy up."""
    same = [{"type": "Person", "data": {"name": name}} for name in ("ann", "bob")]
    graph.load(same, mode="overwrite")
    graph.merge("main", into=branch)
    add(graph, "person", name="later")
    graph.cleanup(keep=1, confirm=True)


def test_forks_made_through_a_link_survive_a_cleanup(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to(tmp_path / "real")
    with make_branched(link / "graph"):
        pass

    graph = open_graph(tmp_path / "real" / "graph")
    strand(graph, "b")

    assert names(graph, "b") == ["ann", "bob", "cy"]
    assert names(graph) == ["ann", "bob", "later"]


def make_branched(root: Path) -> og.Graph:
    graph = new_graph(root)
    for name in ("ann", "bob"):
        add(graph, "person", name=name)
    graph.optimize()
    graph.create_branch("b")
    add(graph, "person", branch="b", name="cy")
    return graph


def test_cleanup_mends_first_what_came_in_behind_the_marker(tmp_path: Path) -> None:
    """A sync that skips newer files brings stale versions beside a marker that is right."""
    make_branched(tmp_path / "home").close()
    there = copy_and_lose(tmp_path / "home", tmp_path / "there")
    (there / "__location.json").write_text(json.dumps({"format": 1, "root": str(there)}))
    graph = open_graph(there)
    assert not is_mended(there)

    strand(graph, "b")

    assert names(graph, "b") == ["ann", "bob", "cy"]
    assert names(graph) == ["ann", "bob", "later"]
    assert graph.verify().is_clean


def test_a_graph_that_cannot_be_mended_is_read_all_the_same(home: Path, tmp_path: Path) -> None:
    def fill_the_disk() -> None:
        raise StorageFull("no space")

    there = copy_and_lose(home, tmp_path / "there")

    with arm_failpoints({Failpoint.RELOCATE_BEFORE_VERSION_FILE: fill_the_disk}):
        graph = open_graph(there)

    assert read_names(graph) == BRANCHES
    assert not is_mended(there)
    assert location_of(there) == {"format": 1, "root": str(home)}


def in_a_process(root: Path, failpoints: str) -> int:
    code = f"import omnigraph as og; og.open({str(root)!r}, durability='process')"
    environment = {**os.environ, ENVIRONMENT_VARIABLE: failpoints}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode


def test_a_kill_in_the_middle_of_mending_is_mended_by_the_next_open(
    home: Path, tmp_path: Path
) -> None:
    there = copy_and_lose(home, tmp_path / "there")

    ended = in_a_process(there, f"{Failpoint.RELOCATE_BEFORE_VERSION_FILE}=kill@4")

    assert ended == -signal.SIGKILL
    assert not is_mended(there)
    assert read_names(open_graph(there, "r")) == BRANCHES
    assert read_names(open_graph(there)) == BRANCHES
    assert is_mended(there)


def test_two_processes_that_open_concurrently_relocate_once(home: Path, tmp_path: Path) -> None:
    there = copy_and_lose(home, tmp_path / "there")
    code = (
        "import sys, omnigraph as og; from pathlib import Path\n"
        f"graph = og.open({str(there)!r}, durability='process')\n"
        "graph.mutate('query q($n: String) { insert Person { name: $n } }', 'q', "
        "{'n': sys.argv[1]}, branch='other')\n"
    )

    racers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("x", "y")]

    assert [racer.wait() for racer in racers] == [0, 0]
    assert names(open_graph(there), "other") == [*BRANCHES["other"], "x", "y"]
    assert is_mended(there)


@CARRY
def test_an_interrupted_write_is_recovered_where_the_graph_is_now(
    home: Path, tmp_path: Path, carry: Callable[[Path, Path], Path]
) -> None:
    graph = open_graph(home)
    with arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}), pytest.raises(FailpointError):
        add(graph, "pair", branch="other", a="x", b="y")
    assert len(sidecars(graph)) == 1
    graph.close()

    there = open_graph(carry(home, tmp_path / "there"))

    assert sidecars(there) == []
    assert [each.kind for each in there.recoveries()] == ["RolledBack"]
    assert read_names(there) == BRANCHES
    if home.exists():
        assert len(list((home / "__recovery").iterdir())) == 1
        assert read_names(open_graph(home)) == BRANCHES


def test_what_a_dead_load_left_in_a_copy_is_not_looked_for_in_the_original(
    home: Path, tmp_path: Path
) -> None:
    """The files that it was moving are those of the copy."""
    people = open_graph(home).snapshot().entries["node:Person"].table_path
    load = home / "__load" / "01J00000000000000000000000"
    load.mkdir(parents=True)
    (load / "lock").touch()
    moved = {"table": people, "branch": None, "version": 1, "names": ["left.lance"]}
    (load / "moved.json").write_text(json.dumps([moved]))
    (home / people / "data" / "left.lance").write_bytes(b"in flight")

    there = open_graph(copy(home, tmp_path / "there"))
    there.cleanup(keep=100, confirm=True)

    assert (home / people / "data" / "left.lance").exists()
    assert not (tmp_path / "there" / people / "data" / "left.lance").exists()
    assert not list((tmp_path / "there" / "__load").iterdir())


def test_a_prefix_that_was_synced_to_another_is_a_graph_of_its_own(s3_store: Store) -> None:
    """The same on an object store, with the original still there and then gone."""
    options = s3_store.storage_options
    here = og.init(s3_store.root.uri, schema=SCHEMA, storage_options=options)
    add(here, "pair", a="ann", b="bob")
    here.create_branch("team/a")
    add(here, "person", branch="team/a", name="cy")
    here.create_branch("other", from_="team/a")
    add(here, "person", branch="other", name="dee")
    there = sync_prefix(s3_store, "-copy")

    assert read_names(og.open(there, mode="r", storage_options=options)) == read_names(here)
    copied = og.open(there, storage_options=options)
    add(copied, "gone", branch="other", name="ann")
    copied.cleanup(keep=1, confirm=True)
    add(here, "age", branch="other", name="ann", age=3)
    assert ages(here, "other") == {"ann": 3, "bob": None, "cy": None, "dee": None}
    inside(here).store.texts.store.delete_prefix(f"{s3_store.root.uri}/")

    again = og.open(there, storage_options=options)
    assert read_names(again) == {
        "main": ["ann", "bob"],
        "other": ["bob", "cy", "dee"],
        "team/a": ["ann", "bob", "cy"],
    }
    again.merge("other", into="main")
    assert names(again) == ["bob", "cy", "dee"]
    assert again.verify().is_clean


def sync_prefix(store: Store, suffix: str) -> str:
    """Copy every object of the graph to a prefix beside it; returns the new root."""
    bucket, key = s3_bucket(store.root.uri, store.storage_options)
    for page in obstore.list(bucket, prefix=f"{key}/"):
        for item in page:
            obstore.copy(bucket, item["path"], item["path"].replace(key, key + suffix, 1))
    return store.root.uri + suffix
