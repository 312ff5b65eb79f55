"""A clone is the whole graph, or nothing that opens."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    ConflictError,
    DamagedFile,
    GraphExists,
    GraphNotFound,
    OmnigraphError,
)
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.testing.crash import run_spawned
from tests.depth import depth, sample
from tests.graph.reading import add, names, new_graph
from tests.storage.conftest import Store
from tests.transfer.conftest import OPTIONS, failing_at, find_damage, list_files, show

pytestmark = pytest.mark.slow

STEPS = [Failpoint.TRANSFER_BEFORE_TEXTS, Failpoint.TRANSFER_BEFORE_CLAIM]


def clone(home: Path | str, target: Path | str, **options: object) -> og.TransferResult:
    return og.clone(home, target, durability="process", **options)  # type: ignore[arg-type]


def test_a_clone_has_every_branch_commit_and_tag(home: Path, tmp_path: Path) -> None:
    before = show(home)

    found = clone(home, tmp_path / "copy")

    assert show(tmp_path / "copy") == before == show(home)
    assert found.commits == len(before["commits"])
    assert find_damage(tmp_path / "copy") == []


def test_a_clone_stands_alone(home: Path, tmp_path: Path) -> None:
    before = show(home)
    clone(home, tmp_path / "copy")
    shutil.rmtree(home)

    with og.open(tmp_path / "copy", **OPTIONS) as graph:
        for branch in graph.branches():
            add(graph, "person", branch=branch, name=f"new {branch}")
        graph.merge("team/b", into="main")
        graph.cleanup(keep=1, confirm=True)

        assert {"new main", "new team/b"} <= set(names(graph))
    assert before["branches"].keys() == show(tmp_path / "copy")["branches"].keys()
    assert find_damage(tmp_path / "copy") == []


def test_a_clone_of_a_graph_that_is_written_to_is_one_state_of_it(
    home: Path, tmp_path: Path
) -> None:
    """Each commit of the writer adds two people: a state that has one of them never was."""
    stop = threading.Event()

    def write() -> None:
        with og.open(home, **OPTIONS) as graph:
            number = 0
            while not stop.is_set():
                add(graph, "pair", a=f"x{number}", b=f"y{number}")
                number += 1
                if number % 8 == 0:
                    graph.optimize()
                    graph.cleanup(keep=2, confirm=True)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(depth(4, 40)):
            clone(home, tmp_path / f"copy{number}")
    finally:
        stop.set()
        writer.join()

    for number in range(depth(4, 40)):
        path = tmp_path / f"copy{number}"
        with og.open(path, mode="r") as graph:
            found = names(graph)
            firsts = {each[1:] for each in found if each.startswith("x")}
            assert firsts == {each[1:] for each in found if each.startswith("y")}
        assert find_damage(path) == []


def test_a_clone_leaves_out_what_writers_have_not_finished(home: Path, tmp_path: Path) -> None:
    """A file of Lance has a temporary name until it is whole; another size or none later."""
    directory = next(home.glob("nodes/*/data"))
    (directory / ".tmpQSxz7a").write_bytes(b"")
    (directory.parent / "_versions" / "18446744073709551600.manifest#12").write_bytes(b"")

    clone(home, tmp_path / "copy")

    copied = list_files(tmp_path / "copy")
    assert not [path for path in copied if ".tmp" in path or "#" in path]


def count_files(home: Path, tmp_path: Path) -> int:
    with arm_failpoints({Failpoint.TRANSFER_BEFORE_FILE: "count"}) as hits:
        clone(home, tmp_path / "counted")
    return hits[Failpoint.TRANSFER_BEFORE_FILE]


def test_a_clone_that_fails_at_any_file_does_not_open_and_goes_on(
    home: Path, tmp_path: Path
) -> None:
    before, count = show(home), count_files(home, tmp_path)
    whole = list_files(tmp_path / "counted")
    moved = 0

    for number in sample(range(1, count + 1), every=14):
        target = tmp_path / f"copy{number}"
        with failing_at(Failpoint.TRANSFER_BEFORE_FILE, number):
            clone(home, target)
        with pytest.raises(OmnigraphError):
            og.open(target, mode="r")
        moved += clone(home, target).files

        assert show(target) == before
        assert list_files(target).keys() == whole.keys()
        assert find_damage(target) == []
        shutil.rmtree(target)
    assert moved < count * len(sample(range(1, count + 1), every=14))


@pytest.mark.parametrize("point", STEPS)
def test_a_clone_that_fails_near_its_end_goes_on(
    home: Path, tmp_path: Path, point: Failpoint
) -> None:
    with failing_at(point):
        clone(home, tmp_path / "copy")
    with pytest.raises(OmnigraphError):
        og.open(tmp_path / "copy", mode="r")

    again = clone(home, tmp_path / "copy")

    assert again.files < count_files(home, tmp_path)
    assert show(tmp_path / "copy") == show(home)
    assert find_damage(tmp_path / "copy") == []


@pytest.mark.parametrize("arm", ["transfer.before_file=kill@9", "transfer.before_claim=kill"])
def test_a_clone_that_is_killed_goes_on(home: Path, tmp_path: Path, arm: str) -> None:
    target = tmp_path / "copy"

    died = run_spawned(
        "tests.transfer.work:clone", {"src": str(home), "dst": str(target), "arm": arm}
    )

    assert died.was_killed, died.error
    with pytest.raises(OmnigraphError):
        og.open(target, mode="r")
    clone(home, target)
    assert show(target) == show(home)
    assert find_damage(target) == []


def test_an_interrupted_clone_follows_its_source(home: Path, tmp_path: Path) -> None:
    """What was copied and is gone by now is removed again, and what is new comes along."""
    with failing_at(Failpoint.TRANSFER_BEFORE_CLAIM):
        clone(home, tmp_path / "copy")
    with og.open(home, **OPTIONS) as graph:
        graph.delete_branch("team/b")
        graph.delete_branch("team/a")
        add(graph, "person", name="late")
        graph.optimize()
        graph.cleanup(keep=1, confirm=True)

    clone(home, tmp_path / "copy")

    assert show(tmp_path / "copy") == show(home)
    assert find_damage(tmp_path / "copy") == []


def test_a_damaged_file_is_refused_and_named(home: Path, tmp_path: Path) -> None:
    """One flipped byte in any data file stops the copy before the file has its name there."""
    # What is damaged in the manifest is noticed by the open that a clone begins with.
    tables = [each for top in ("nodes", "edges") for each in (home / top).rglob("data/*.lance")]
    for number, path in enumerate(sorted(tables)):
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        relative = str(path.relative_to(home))

        with pytest.raises(DamagedFile, match=relative):
            clone(home, tmp_path / f"copy{number}")

        assert not (tmp_path / f"copy{number}" / relative).exists()
        with pytest.raises(OmnigraphError):
            og.open(tmp_path / f"copy{number}", mode="r")
        path.write_bytes(whole)
        clone(home, tmp_path / f"copy{number}")
        assert find_damage(tmp_path / f"copy{number}") == []


def test_a_taken_location_is_refused(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    new_graph(other).close()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")

    with pytest.raises(GraphExists):
        clone(home, other)
    with pytest.raises(BadRequestError, match="not empty"):
        clone(home, tmp_path / "mine")
    with pytest.raises(GraphNotFound):
        clone(tmp_path / "nowhere", tmp_path / "copy")
    with failing_at(Failpoint.TRANSFER_BEFORE_CLAIM):
        clone(other, tmp_path / "half")
    with pytest.raises(ConflictError, match="another graph"):
        clone(home, tmp_path / "half")

    assert list_files(tmp_path / "mine") == {"letter.txt": 4}


def test_a_graph_goes_to_an_object_store_and_back(
    home: Path, tmp_path: Path, s3_store: Store
) -> None:
    uri, options = s3_store.root.uri, s3_store.storage_options

    with failing_at(Failpoint.TRANSFER_BEFORE_CLAIM):
        clone(home, uri, target_options=options)
    assert clone(home, uri, target_options=options).files < len(list_files(home))
    clone(uri, tmp_path / "back", storage_options=options, target_options={})

    assert show(uri, storage_options=options) == show(home) == show(tmp_path / "back")
    assert find_damage(uri, storage_options=options) == []
    assert find_damage(tmp_path / "back") == []
