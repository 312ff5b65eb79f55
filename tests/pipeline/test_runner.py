"""Threads of a load in this process: the same answers in the same order, and none left behind."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.pipeline import run_checks
from omnigraph.pipeline.crossing import Machine
from omnigraph.pipeline.engine import PART_BYTES_VARIABLE
from omnigraph.pipeline.runner import map_in_order
from omnigraph.write.bad_rows import BadRowsError
from tests.pipeline.conftest import SCHEMA

PEOPLE = 60
TEXTS = "node Note { key: String @key  text: String  vector: Vector(64) @embed(text) }"


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Say how many cores the machine has; parts of an input are small."""
    monkeypatch.setenv(PART_BYTES_VARIABLE, "200")

    def give(count: int) -> None:
        machine = Machine(count, 1 << 40, is_spark_running=False)
        monkeypatch.setattr(Machine, "here", lambda: machine)

    return give


def write_people(path: Path, wrong: frozenset[int] = frozenset()) -> Path:
    rows = [f"p{n},{'old' if n in wrong else n},{n}@x" for n in range(PEOPLE)]
    path.write_text("\n".join(["name,age,email", *rows]) + "\n")
    return path


def write_ends(path: Path, people: int = PEOPLE) -> Path:
    rows = [f"p{n},p{(n * 7 + 1) % people}" for n in range(PEOPLE)]
    path.write_text("\n".join(["from,to", *rows]) + "\n")
    return path


def test_results_are_in_the_order_of_the_items_whichever_thread_is_first() -> None:
    second_is_done = threading.Event()

    def double(item: int) -> int:
        if item == 0:
            assert second_is_done.wait(10), "the items ran one after the other"
        elif item == 1:
            second_is_done.set()
        return 2 * item

    assert list(map_in_order(2, double, range(9))) == [2 * item for item in range(9)]


def test_the_first_item_that_fails_is_reported_once_every_thread_has_stopped() -> None:
    later_has_failed = threading.Event()
    started: list[int] = []

    def fail(item: int) -> int:
        started.append(item)
        if item == 1:
            assert later_has_failed.wait(10)
        if item == 2:
            later_has_failed.set()
        if item in (1, 2):
            raise ValueError(f"item {item}")
        return item

    with pytest.raises(ValueError, match="item 1"):
        list(map_in_order(3, fail, iter(range(1_000))))

    assert len(started) < 10
    assert not [each for each in threading.enumerate() if each.name.startswith("load")]


def test_threads_load_the_graph_that_one_thread_loads(
    tmp_path: Path, cores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With keys exchanged through a file, which threads write and read at the same time."""
    files = {
        "Person": write_people(tmp_path / "people.csv"),
        "Rates": write_ends(tmp_path / "rates.csv"),
        "Team": tmp_path / "teams.csv",
    }
    files["Team"].write_text("name\n" + "".join(f"p{n}\n" for n in range(PEOPLE)))
    seen = []
    for count in (1, 4):
        cores(count)
        monkeypatch.setattr(run_checks, "HELD_ROWS", 10 if count > 1 else 1_000)
        with og.init(tmp_path / str(count), schema=SCHEMA, durability="process") as graph:
            result = graph.load(files, mode="merge", engine="inline")
            again = graph.load(files, mode="merge", engine="inline")
            seen.append((dict(result.tables), list(graph.export())))
        assert again.commit_id is None

    assert seen[0] == seen[1]
    assert seen[0][0] == {"edge:Rates": PEOPLE, "node:Person": PEOPLE, "node:Team": PEOPLE}


@pytest.mark.parametrize("held", [10, 1_000], ids=["exchanged", "in memory"])
def test_threads_name_the_bad_rows_that_one_thread_names(
    held: int, tmp_path: Path, cores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that are wrong, and ends that are not there, each by file and line."""
    monkeypatch.setattr(run_checks, "HELD_ROWS", held)
    people = write_people(tmp_path / "people.csv", frozenset({5, 17, 44}))
    files = {"Person": people, "Knows": write_ends(tmp_path / "knows.csv", 90)}
    said = []
    for count in (1, 4):
        cores(count)
        with og.init(tmp_path / str(count), schema=SCHEMA, durability="process") as graph:
            with pytest.raises(BadRowsError) as values:
                graph.load(files, mode="append", engine="inline")
            write_people(people)
            with pytest.raises(BadRowsError) as ends:
                graph.load(files, mode="append", engine="inline")
            write_people(people, frozenset({5, 17, 44}))
        said.append((str(values.value), str(ends.value)))

    assert said[0] == said[1]
    assert "people.csv:7" in said[0][0]
    assert "knows.csv:11" in said[0][1]


def test_a_function_that_embeds_is_never_called_by_two_threads(tmp_path: Path, cores: Any) -> None:
    cores(4)
    callers: set[str] = set()

    def embed(texts: list[str]) -> list[list[float]]:
        callers.add(threading.current_thread().name)
        return [[1.0] * 64 for _ in texts]

    path = tmp_path / "notes.csv"
    path.write_text("key,text\n" + "".join(f"n{n},some words\n" for n in range(40)))
    options: dict[str, Any] = {"embedder": embed, "embedding_model": "ours"}
    with og.init(tmp_path / "graph", schema=TEXTS, durability="process", **options) as graph:
        graph.load({"Note": path}, mode="append", engine="inline")

    assert callers == {threading.current_thread().name}
