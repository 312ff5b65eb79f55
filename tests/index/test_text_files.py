"""Text indexes on disk: made once per data file, mapped by every open, never needed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.index import text_files, text_parts
from omnigraph.index.arrays import AnyArray
from omnigraph.index.sealed_file import BLOCK_BYTES, Damaged, SealedFile, write_sealed
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from tests.depth import depth
from tests.index.test_full_text import SCHEMA, answers, change, fill

SIZE = 700
SEARCH = "query q($t: String) { match { $d: Doc search($d.body, $t) } return { $d.slug as s } }"

SLUGS = "query q() { match { $d: Doc } return { $d.slug as s } }"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph whose texts were searched once, so that their words are on disk."""
    graph = og.init(tmp_path / "graph", schema=SCHEMA, durability="process", self_care=False)
    fill(graph, random.Random(7), SIZE)
    search(graph)
    graph.close()
    return tmp_path / "graph"


def search(graph: og.Graph, text: str = "river") -> set[str]:
    return {row["s"] for row in graph.query(SEARCH, params={"t": text}).rows()}


def list_files(root: Path) -> list[Path]:
    return sorted((root / "__derived" / "text").rglob("*.seal"))


def read_now(root: Path, mode: Any = "rw") -> tuple[int, list[Any]]:
    """How many rows a search in a new handle reads, and the answers."""
    graph = og.open(root, mode=mode, self_care=False)
    list(graph.query(SLUGS).rows())
    with counting() as counters:
        search(graph)
    found = answers(graph, inside(graph).cache)
    assert found == answers(graph)
    graph.close()
    return counters.rows_scanned, found


def test_the_first_search_after_an_open_maps_what_was_counted(root: Path) -> None:
    assert len(list_files(root)) == 1
    for mode in ("rw", "r"):
        rows, _ = read_now(root, mode)
        assert rows == 0


def test_after_a_commit_only_its_rows_are_read(root: Path) -> None:
    graph = og.open(root, self_care=False)
    graph.mutate('query q() { insert Doc { slug: "new", body: "a zebra" } }')
    graph.mutate('query q() { update Doc set { body: "a zebra" } where slug = "d00003" }')
    graph.close()

    rows, _ = read_now(root)

    assert rows <= 2
    assert len(list_files(root)) == 1


def test_a_branch_maps_the_data_files_it_shares(root: Path) -> None:
    graph = og.open(root, self_care=False)
    graph.create_branch("work")
    work = 'query q() { delete Doc where slug = "d00001" }'
    graph.mutate(work, branch="work")
    graph.mutate('query q() { delete Doc where slug = "d00002" }')
    graph.close()

    graph = og.open(root, mode="r")
    for branch in ("main", "work"):
        list(graph.query(SLUGS, branch=branch).rows())
    with counting() as counters:
        found = [
            {row["s"] for row in graph.query(SEARCH, params={"t": "river"}, branch=each).rows()}
            for each in ("main", "work")
        ]

    assert found[0] ^ found[1] <= {"d00001", "d00002"}
    assert counters.rows_scanned <= 4
    assert "d00001" not in found[1]
    assert "d00002" not in found[0]


def flip(path: Path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0x10]))


@pytest.mark.slow
def test_a_flipped_byte_anywhere_changes_no_answer(root: Path) -> None:
    (path,) = list_files(root)
    whole = path.read_bytes()
    expected = read_now(root)[1]
    chance = random.Random(3)
    places = [0, 20, len(whole) - 1, *chance.sample(range(len(whole)), depth(1, 300))]

    for place in places:
        path.write_bytes(whole)
        flip(path, place)
        for mode in ("r", "rw"):
            assert read_now(root, mode)[1] == expected, (place, mode)

    assert read_now(root)[1] == expected


def put_in_the_way(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("in the way")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        lambda path: path.write_bytes(b"\0" * path.stat().st_size),
        lambda path: path.write_bytes(b"not ours"),
        lambda path: shutil.rmtree(path.parent.parent.parent),
        lambda path: put_in_the_way(path.parent),
    ],
    ids=["gone", "empty", "short", "long", "zeros", "foreign", "all gone", "in the way"],
)
def test_a_damaged_or_missing_file_changes_no_answer(
    root: Path, damage: Callable[[Path], object]
) -> None:
    expected = read_now(root)[1]

    damage(list_files(root)[0])

    assert read_now(root, "r")[1] == expected
    assert read_now(root)[1] == expected


def test_a_read_only_handle_writes_nothing(root: Path) -> None:
    shutil.rmtree(root / "__derived")

    read_now(root, "r")

    assert not (root / "__derived").exists()


def test_verify_names_a_damaged_file(root: Path) -> None:
    (path,) = list_files(root)
    flip(path, path.stat().st_size // 2)

    report = og.open(root, mode="r").verify(content=True)

    assert [finding.file for finding in report.findings if finding.file] == [str(path)]


def test_a_property_that_is_dropped_and_made_again_has_no_old_words(root: Path) -> None:
    """Its data files are the same, but it is another column."""
    graph = og.open(root, self_care=False)
    graph.apply_schema("node Doc { slug: String @key  n: I32? }")
    graph.apply_schema(SCHEMA)
    assert search(graph) == set()
    graph.mutate('query q() { update Doc set { body: "river" } where slug = "d00003" }')
    assert search(graph) == {"d00003"}
    graph.close()

    assert search(og.open(root, mode="r")) == {"d00003"}


def test_a_property_that_is_renamed_keeps_its_words(root: Path) -> None:
    graph = og.open(root, self_care=False)
    expected = search(graph)
    graph.apply_schema(SCHEMA.replace("body: String?", 'words: String? @rename_from("body")'))
    graph.close()

    graph = og.open(root, mode="r")
    found = graph.query(SEARCH.replace("body", "words"), params={"t": "river"}).rows()

    assert {row["s"] for row in found} == expected


def test_a_graph_that_moved_maps_its_files(root: Path, tmp_path: Path) -> None:
    root.rename(tmp_path / "there")

    assert read_now(tmp_path / "there", "r")[0] == 0


def test_cleanup_removes_what_no_version_needs_and_keeps_the_rest(root: Path) -> None:
    (path,) = list_files(root)
    graph = og.open(root, self_care=False)
    fill(graph, random.Random(8), SIZE)
    search(graph)
    inside(graph).cache.derived.texts.wait()  # type: ignore[union-attr]
    assert len(list_files(root)) == 2

    graph.cleanup(keep=10, confirm=True)
    assert path.exists()
    graph.cleanup(keep=1, confirm=True)

    assert path not in list_files(root)
    assert len(list_files(root)) == 1
    graph.close()


def test_the_files_used_least_recently_make_room(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = list_files(root)
    os.utime(path, (1, 1))
    monkeypatch.setattr(text_files, "BYTES_MAX", path.stat().st_size * 3 // 2)
    graph = og.open(root, self_care=False)
    fill(graph, random.Random(8), SIZE)
    search(graph)
    graph.close()

    (left,) = list_files(root)
    assert left != path


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small test has large parts, merged in the background, and files of few rows."""
    monkeypatch.setattr(text_parts, "MERGED_AT_ONCE_MAX", 16)
    monkeypatch.setattr(text_parts, "SAVED_ROWS_MIN", 8)
    monkeypatch.setattr(text_parts, "PART_ROWS_MAX", 4_096)
    monkeypatch.setattr(text_files, "SMALL_ROWS", 64)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_parts")
@pytest.mark.parametrize("seed", range(depth(1, 40)))
def test_random_commits_branches_and_damage_change_no_answer(tmp_path: Path, seed: int) -> None:
    """Answers over cached, mapped, merged and damaged parts are those of the rows alone."""
    chance = random.Random(seed)
    root = tmp_path / "graph"
    graph = og.init(root, schema=SCHEMA, durability="process", self_care=False)
    fill(graph, chance, 200)
    for step in range(depth(5, 80)):
        for _ in range(chance.randint(1, 3)):
            change(graph, chance, 200)
        if chance.random() < 0.3:
            cache = inside(graph).cache.derived
            assert cache is not None
            cache.texts.wait()
            damage_one(root, chance)
        if chance.random() < 0.3:
            graph.close()
            graph = og.open(root, self_care=False)
        assert answers(graph, inside(graph).cache) == answers(graph), step
    graph.close()


def damage_one(root: Path, chance: random.Random) -> None:
    files = list_files(root)
    if not files:
        return
    path = chance.choice(files)
    if chance.random() < 0.3:
        path.unlink()
    else:
        # A handle that has mapped the file keeps the bytes that it has checked.
        copy = path.with_suffix(".copy")
        shutil.copy(path, copy)
        flip(copy, chance.randrange(path.stat().st_size))
        copy.replace(path)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_parts")
def test_many_small_commits_leave_few_parts_and_files(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    graph = og.init(root, schema=SCHEMA, durability="process", self_care=False)
    fill(graph, random.Random(1), 100)
    notes = []
    for number in range(depth(16, 300)):
        graph.mutate(f'query q() {{ insert Doc {{ slug: "s{number}", body: "river {number}" }} }}')
        notes.append(len(search(graph)))
        inside(graph).cache.derived.texts.wait()  # type: ignore[union-attr]

    parts = [each for each in inside(graph).cache.list_keys() if "FullText" in type(each).__name__]
    text = inside(graph).cache.peek(parts[-1])

    assert len(text.parts) <= 4  # type: ignore[union-attr]
    assert len(list_files(root)) <= 8
    assert notes == sorted(notes)


KILLED = """
import os, sys, signal
import omnigraph as og
from omnigraph.index import sealed_file
graph = og.open(sys.argv[1], self_care=False)
sealed_file.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
list(graph.query(sys.argv[2], params={"t": "river"}).rows())
graph.close()
"""


@pytest.mark.slow
def test_a_process_killed_while_it_writes_leaves_no_file(root: Path) -> None:
    shutil.rmtree(root / "__derived")

    done = subprocess.run([sys.executable, "-c", KILLED, str(root), SEARCH], check=False)

    assert done.returncode == -9
    assert list_files(root) == []
    assert read_now(root)[0] > 0
    assert read_now(root)[0] == 0


# Sealed files


def test_a_sealed_file_has_what_was_written(tmp_path: Path) -> None:
    arrays: dict[str, AnyArray] = {
        "a": np.arange(100_000),
        "b": np.zeros(0, np.uint8),
        "c": np.ones(3, np.uint32),
    }
    write_sealed(tmp_path / "f", {"format": 1}, arrays)

    file = SealedFile(tmp_path / "f")

    assert file.facts == {"format": 1}
    for name, array in arrays.items():
        assert file.sections[name].all().tolist() == array.tolist()
    assert file.sections["a"].run(5, 7).tolist() == [5, 6]
    assert file.sections["a"].at(np.array([99_999, 0])).tolist() == [99_999, 0]


def test_only_what_is_read_is_checked(tmp_path: Path) -> None:
    """A large file costs what is read of it."""
    path = tmp_path / "f"
    write_sealed(path, {"format": 1}, {"a": np.arange(4 * BLOCK_BYTES, dtype=np.uint8)})
    flip(path, path.stat().st_size - 1)
    file = SealedFile(path)

    assert file.sections["a"].run(0, 10).tolist() == list(range(10))
    with pytest.raises(Damaged):
        file.sections["a"].run(4 * BLOCK_BYTES - 1, 4 * BLOCK_BYTES)
    with pytest.raises(Damaged):
        file.sections["a"].at(np.array([4 * BLOCK_BYTES - 5]))
    with pytest.raises(Damaged):
        file.check()
