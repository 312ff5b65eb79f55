"""Which engine `auto` takes: the faster one for the input and the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph import build_catalog, parse_schema
from omnigraph.errors import OmnigraphError
from omnigraph.machine import count_cores, measure_memory
from omnigraph.pipeline import loader
from omnigraph.pipeline.crossing import (
    PART_BYTES_MIN,
    RATE_BYTES,
    Machine,
    is_faster_on_spark,
    share_bytes,
)
from omnigraph.pipeline.engine import PART_BYTES, PART_BYTES_VARIABLE
from omnigraph.pipeline.loader import stays_in_process
from omnigraph.pipeline.ranges import Input
from omnigraph.pipeline.sources import plan_source
from omnigraph.pipeline.spool import Spool
from tests.pipeline.conftest import SCHEMA

GB = 1024**3
COLD = Machine(cores=16, memory_bytes=64 * GB, is_spark_running=False)
WARM = Machine(cores=16, memory_bytes=64 * GB, is_spark_running=True)
VECTORS = "node Doc { key: I64 @key  vector: Vector(64) }"


def choose(machine: Machine, seconds: float, parts: int = 100) -> bool:
    """Whether files that one core loads in so many seconds go to Spark."""
    return is_faster_on_spark(int(seconds * RATE_BYTES), parts, PART_BYTES, machine)


@pytest.mark.parametrize(
    ("machine", "stays", "goes"),
    [
        (COLD, 31, 34),
        (WARM, 7.5, 9),
        (Machine(8, 64 * GB, is_spark_running=False), 45, 48),
    ],
)
def test_files_go_to_spark_when_that_saves_more_than_its_start(
    machine: Machine, stays: float, goes: float
) -> None:
    assert not choose(machine, stays)
    assert choose(machine, goes)


@pytest.mark.parametrize(
    ("machine", "parts"),
    [
        (Machine(1, 16 * GB, is_spark_running=True), 100),
        (Machine(2, 16 * GB, is_spark_running=True), 100),
        (WARM, 1),
        (Machine(16, 4 * GB, is_spark_running=True), 100),
    ],
    ids=["one core", "a thread per core", "one compressed file", "too little memory"],
)
def test_a_load_that_cannot_gain_stays_whatever_its_size(machine: Machine, parts: int) -> None:
    assert not choose(machine, 1_000, parts)


@pytest.mark.parametrize(
    ("cores", "memory", "threads"), [(1, 16, 1), (2, 16, 2), (64, 16, 4), (64, 1, 2), (4, 0, 1)]
)
def test_a_load_takes_a_thread_per_core_while_there_is_memory(
    cores: int, memory: int, threads: int
) -> None:
    machine = Machine(cores, memory * GB, is_spark_running=False)

    assert machine.count_threads(PART_BYTES) == threads


@pytest.mark.parametrize(
    ("cores", "megabytes", "share"),
    [(1, 48, 16), (2, 48, 6), (4, 160, 10), (2, 17, 4), (2, 3, 4), (2, 1_000, 16), (2, 0, 4)],
)
def test_input_is_cut_so_that_every_thread_gets_several_parts(
    cores: int, megabytes: int, share: int
) -> None:
    machine = Machine(cores, 64 * GB, is_spark_running=False)

    assert share_bytes(megabytes << 20, PART_BYTES, machine) == share << 20
    assert share_bytes(megabytes << 20, 100, machine) == 100 < PART_BYTES_MIN


@pytest.mark.parametrize("ending", ["csv", "parquet", "one.parquet", "jsonl", "arrow"])
def test_files_of_less_than_a_part_each_keep_all_threads_busy(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "here", lambda: Machine(2, 64 * GB, is_spark_running=False))
    monkeypatch.setattr("omnigraph.pipeline.crossing.PART_BYTES_MIN", 500)
    monkeypatch.setattr("omnigraph.pipeline.formats.parquet.count_cores", lambda: 2)
    rows = pa.table({"text": [f"a note, number {n}" for n in range(400)]})
    path = tmp_path / f"Note.{ending}"
    match ending:
        case "csv":
            pcsv.write_csv(rows, path)
        case "parquet":
            pq.write_table(rows, path, row_group_size=20)
        case "one.parquet":
            pq.write_table(rows, path, use_dictionary=False, compression="none")
        case "jsonl":
            path.write_text("".join(f'{{"text": "{text}"}}\n' for text in rows["text"]))
        case _:
            with pa.ipc.new_file(path, rows.schema) as file:
                file.write_table(rows, max_chunksize=20)
    catalog = build_catalog(parse_schema(SCHEMA))
    planned = plan_source({"Note": path}, catalog, path.stat().st_size // 2, {})

    assert planned.parts >= 4
    assert not planned.is_small


def test_the_machine_is_the_one_this_process_may_use() -> None:
    machine = Machine.here()

    assert machine.cores == count_cores() == len(os.sched_getaffinity(0))
    assert machine.memory_bytes == measure_memory() > GB


@pytest.fixture
def fast_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which every file of more than one part goes to Spark."""
    endless = Machine(cores=1_000_000, memory_bytes=1 << 62, is_spark_running=True)
    monkeypatch.setattr(Machine, "here", lambda: endless)
    monkeypatch.setattr("omnigraph.pipeline.crossing.WORKERS_SECONDS", 0.0)
    monkeypatch.setenv(PART_BYTES_VARIABLE, "100")


@pytest.mark.usefixtures("fast_spark")
def test_only_files_leave_the_process(tmp_path: Path) -> None:
    """Text, records and frames are in memory: sending them costs more than loading them."""
    line = '{"type": "Note", "data": {"text": "' + "x" * 60 + '"}}\n'
    path = tmp_path / "notes.jsonl"
    path.write_text(line * 50)
    small = tmp_path / "small.jsonl"
    small.write_text(line[:98])
    size = loader.part_bytes()

    catalog = build_catalog(parse_schema(SCHEMA))

    def plan(data: Any) -> Input:
        return plan_source(data, catalog, size, {})

    assert not stays_in_process(plan(path))
    assert stays_in_process(plan(small))
    assert stays_in_process(plan(line * 50))
    assert stays_in_process(plan([{"type": "Note"}] * 400_000))
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as graph:
        frame = pa.table({"text": [f"a note, number {n}" for n in range(50)]})
        loaded = graph.load_dataframe(frame, type="Note", mode="append")
        assert (loaded.engine, loaded.tables) == ("inline", {"node:Note": 50})


@pytest.mark.xdist_group("spark")
def test_a_large_frame_reaches_spark_through_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than what Java was given; a bad row is named by its place in the frame."""
    monkeypatch.setenv(PART_BYTES_VARIABLE, "60000")
    keys = np.arange(1_000)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(64_000, np.float32)), 64)
    sent: list[int] = []
    write = Spool.write

    def count(spool: Spool, batches: Iterable[pa.RecordBatch], number: int) -> str | None:
        sent.append(number)
        return write(spool, batches, number)

    monkeypatch.setattr(Spool, "write", count)
    with og.init(tmp_path / "graph", schema=VECTORS, durability="process") as graph:
        frame = pa.table({"key": keys, "vector": vectors})
        loaded = graph.load_dataframe(frame, type="Doc", mode="append", engine="spark")

        assert (loaded.engine, loaded.tables) == ("spark", {"node:Doc": 1_000})
        assert sent == list(range(5))
        assert graph.nodes("Doc").to_arrow()["key"].to_pylist() == keys.tolist()
        assert not list((tmp_path / "graph").glob("__load/*"))
        with pytest.raises(OmnigraphError, match="Doc row 901"):
            graph.load_dataframe(
                frame.set_column(0, "key", pa.array([*range(2_000, 2_900), None, *range(99)])),
                type="Doc",
                mode="append",
                engine="spark",
            )
