"""Files that had their name before their data was on the disk, emptied as a power cut may."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.branch.create import branch_turn
from omnigraph.errors import GraphNotFound, StorageError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.graph.session import Mode
from omnigraph.testing.inside import inside

SCHEMA = "node Person { name: String @key }"
INSERT = "query q($n: String) { insert Person { name: $n } }"
BITS = [b"", b"half", b"zeros"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    graph.mutate(INSERT, params={"n": "ann"})
    graph.close()
    return tmp_path / "graph"


def newest(directory: Path) -> Path:
    return min((directory / "_versions").glob("*.manifest"))


def table(path: Path) -> Path:
    return next((path / "nodes").iterdir())


def tear(file: Path, how: bytes) -> None:
    whole = file.read_bytes()
    file.write_bytes(
        {b"": b"", b"half": whole[: len(whole) // 2], b"zeros": bytes(len(whole))}[how]
    )


def names(graph: og.Graph) -> set[str]:
    return {row["name"] for row in graph.nodes("Person").to_arrow().to_pylist()}


def die_at(path: Path, point: Failpoint) -> None:
    with og.open(path) as graph, arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        graph.mutate(INSERT, params={"n": "bob"})


@pytest.mark.parametrize("how", BITS)
def test_a_torn_publish_is_looked_past_and_then_finished(path: Path, how: bytes) -> None:
    """Readers see the graph before it; the next read-write open moves the file away, once."""
    die_at(path, Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT)
    torn = newest(path / "__manifest")
    tear(torn, how)

    with og.open(path, mode="r") as reader:
        before = names(reader)
        assert any(each.check == "sidecars" for each in reader.verify().errors)
    with og.open(path) as writer:
        after = names(writer)
        assert writer.verify().is_clean
        writer.mutate(INSERT, params={"n": "cy"})

    assert (before, after) == ({"ann"}, {"ann", "bob"})
    assert [each.name[27:] for each in (path / "__manifest/_damaged").iterdir()] == [torn.name]


@pytest.mark.parametrize("how", BITS)
def test_a_publish_without_its_rows_is_looked_past_and_then_finished(
    path: Path, how: bytes
) -> None:
    """Its version is whole, the data file that it names is not."""
    known = set((path / "__manifest/data").iterdir())
    die_at(path, Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT)
    for file in set((path / "__manifest/data").iterdir()) - known:
        tear(file, how)

    with og.open(path, mode="r") as reader:
        assert names(reader) == {"ann"}
    with og.open(path) as writer:
        assert names(writer) == {"ann", "bob"}
        assert writer.verify().is_clean


@pytest.mark.parametrize("how", BITS)
def test_a_torn_version_past_the_pin_is_no_commit(path: Path, how: bytes) -> None:
    """`verify` reports it, and does not fail; an open undoes the write it belonged to."""
    die_at(path, Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER)
    tear(newest(table(path)), how)

    with og.open(path, mode="r") as reader:
        assert {each.check for each in reader.verify().errors} == {"sidecars"}
    with og.open(path) as writer:
        assert names(writer) == {"ann"}
        writer.mutate(INSERT, params={"n": "bob"})
        assert writer.verify().is_clean


def test_a_torn_version_that_is_pinned_is_reported_and_kept(path: Path) -> None:
    """It was acknowledged, so it was on the disk: this is damage."""
    torn = newest(table(path))
    tear(torn, b"")

    with og.open(path, mode="r") as reader:
        (found,) = reader.verify().errors
    with og.open(path):
        pass

    assert found.check == "pins"
    assert torn.exists()


def test_a_cut_file_of_an_acknowledged_publish_is_damage(path: Path) -> None:
    """Nothing says that a write was under way: the file was on the disk, and is damaged now."""
    torn = newest(path / "__manifest")
    tear(torn, b"half")

    modes: tuple[Mode, ...] = ("r", "rw")
    for mode in modes:
        with pytest.raises(StorageError, match="was damaged later"):
            og.open(path, mode=mode)
    assert torn.exists()


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_cut_file_of_a_branch_is_damage_of_that_branch_alone(path: Path, mode: Mode) -> None:
    """An open looks at no branch that was not being written; the first read of one does."""
    with og.open(path) as graph:
        for branch in ("one", "two"):
            graph.create_branch(branch)
            graph.mutate(INSERT, params={"n": "bob"}, branch=branch)
    tear(newest(path / "__manifest/tree/two"), b"half")

    with og.open(path, mode=mode) as graph:
        assert names(graph) == {"ann"}
        assert graph.commits("one")[0].branch == "one"
        with pytest.raises(StorageError, match="was damaged later"):
            graph.commits("two")
        assert [each.subject for each in graph.verify().errors] == ["branch 'two'"]


def test_a_flipped_byte_is_not_taken_for_a_cut(path: Path) -> None:
    """Not even in the magic at the end, which Lance does not look at."""
    torn = newest(path / "__manifest")
    whole = bytearray(torn.read_bytes())
    whole[-2] ^= 1
    torn.write_bytes(bytes(whole))

    with og.open(path) as graph:
        assert names(graph) == {"ann"}
    assert torn.exists()


@pytest.mark.parametrize("is_marked", [True, False])
@pytest.mark.parametrize("how", BITS)
def test_a_branch_with_a_torn_ref_never_was(path: Path, how: bytes, is_marked: bool) -> None:
    """A creation is marked; those of an earlier Omnigraph were not."""
    point = Failpoint.BRANCH_CREATE_AFTER_MANIFEST_BRANCH_CREATE
    with og.open(path) as graph:
        if is_marked:
            graph.create_branch("other")
            og.open(path).close()
        with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
            graph.create_branch("review/a")
    assert [each.name for each in (path / "__manifest/_unfinished").iterdir()] == [
        "review%2Fa.mark"
    ]
    if is_marked:
        graph = og.open(path, mode="r")
        assert graph.branches() == ["main", "other", "review/a"], "what is whole is there"
        graph.close()
    else:
        shutil.rmtree(path / "__manifest/_unfinished")
    tear(path / "__manifest/_refs/branches/review%2Fa.json", how)
    others = ["other"] if is_marked else []

    with og.open(path, mode="r") as reader:
        assert reader.branches() == ["main", *others]
        assert reader.verify().is_clean
    with og.open(path) as writer:
        assert writer.branches() == ["main", *others]
        assert not list(path.glob("__manifest/_unfinished/*"))
        writer.create_branch("review/a")
        writer.mutate(INSERT, params={"n": "bob"}, branch="review/a")
        assert writer.verify().is_clean


def test_the_mark_of_a_branch_that_is_being_created_outlives_an_open(path: Path) -> None:
    """The power may be cut later: only the mark says then that the branch never was."""
    mark = path / "__manifest/_unfinished/review.mark"
    with og.open(path) as graph:
        with branch_turn(inside(graph).environment()), ThreadPoolExecutor(1) as other:
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
            other.submit(og.open, path).result().close()
            assert mark.exists()
        og.open(path).close()
        assert not mark.exists()


def test_a_fork_of_a_table_with_a_torn_ref_is_made_again(path: Path) -> None:
    with og.open(path) as graph:
        graph.create_branch("review/a")
        with arm_failpoints({Failpoint.FORK_AFTER_CREATE: "raise"}), pytest.raises(FailpointError):
            graph.mutate(INSERT, params={"n": "bob"}, branch="review/a")
    tear(table(path) / "_refs/branches/review%2Fa.json", b"")

    with og.open(path) as writer:
        writer.cleanup(keep=1, confirm=True)
        writer.mutate(INSERT, params={"n": "bob"}, branch="review/a")
        assert writer.verify().is_clean


def test_a_manifest_that_was_never_whole_is_no_graph(path: Path) -> None:
    for file in (path / "__manifest/_versions").glob("*.manifest"):
        tear(file, b"")

    with pytest.raises(GraphNotFound):
        og.open(path)
