"""What files cost: the same CSV, Parquet and JSON Lines files read by Omnigraph, DuckDB and Kuzu.

Each load runs in a process of its own: rows per CPU second from the call to the commit, with keys
and ends of edges checked where a system can, and the greatest memory of the process. Omnigraph
reads the same people as 40 and as 640 MB of CSV too, which shows whether its memory follows the
size of a file, and four times the rows of the comparison on one core and on two: the least wall
time of three loads each. `OMNIGRAPH_BENCH_ROWS` sets the number of rows, half of them edges:
1,200,000 by default.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pyarrow.types as pat

from benchmarks.harness import Figure, is_quick

SCHEMA = """
node Person { key: I64 @key  name: String  age: I64  city: String?  born: Date }
edge Knows: Person -> Person { since: Date  @key(src, dst) }
"""
TEXT_SCHEMA = "node Text { key: I64 @key  body: String  vector: Vector(256) @embed(body) }"
CORES = "OMNIGRAPH_BENCH_CORES"
PERSON = '{"type": "Person", "data": {"key": 1, "name": "x", "age": 1, "born": "2000-01-01"}}'
ROWS = 4_000 if is_quick() else int(os.environ.get("OMNIGRAPH_BENCH_ROWS", "1200000"))
TEXT_ROWS = 1_000 if is_quick() else 40_000
SIZES_MB = (0.1, 0.2) if is_quick() else (40, 640)
TRIES = 1 if is_quick() else 3
FORMATS = ("csv", "parquet", "jsonl")
MEASURED_FORMATS = (*FORMATS, "csv.gz")
ROWS_PER_WRITE = 100_000
ROW_BYTES = 47
"""About how long a line of people.csv is."""


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        write_files(top, ROWS // 2)
        yield Figure("people.csv of the loads", (top / "people.csv").stat().st_size / 1e6, "MB")
        for file_format in FORMATS:
            for system in ("omnigraph", "duckdb", "kuzu"):
                if (system, file_format) == ("kuzu", "jsonl"):
                    continue  # needs an extension from the network
                cpu, _ = _run_alone("load_" + system, top, file_format)
                name = f"load of {file_format}"
                yield Figure(name, ROWS / cpu / 1_000, "k rows/cpu s", subject=system)
        yield from _measure_memory(top)
        yield from _measure_cores(top)
        yield from _measure_vectors(top)


def write_files(folder: Path, rows: int, formats: Sequence[str] = FORMATS) -> None:
    """People and who knows whom, once per format, some rows at a time."""
    folder.mkdir(exist_ok=True)
    for name, make in (("people", _make_people), ("knows", _make_pairs)):
        with ExitStack() as stack:
            writers = [_open_writer(stack, folder / f"{name}.{each}") for each in formats]
            for first in range(0, rows, ROWS_PER_WRITE):
                numbers = np.arange(first, min(first + ROWS_PER_WRITE, rows))
                for write in writers:
                    write(make(numbers, rows))


def _make_people(numbers: np.ndarray, rows: int) -> pa.Table:
    columns = {
        "key": numbers,
        "name": pc.binary_join_element_wise("Person number", _to_text(numbers), " "),
        "age": numbers % 90,
        "city": pc.if_else(pa.array(numbers % 3 > 0), "London", pa.scalar(None, pa.utf8())),
        "born": _make_days(numbers),
    }
    return pa.table(columns)


def _make_pairs(numbers: np.ndarray, rows: int) -> pa.Table:
    since = _make_days(numbers)
    return pa.table({"from": numbers, "to": (numbers * 7919 + 1) % rows, "since": since})


def _make_days(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers % 20_000, pa.int32()).cast(pa.date32())


def _to_text(numbers: np.ndarray) -> pa.StringArray:
    return pa.array(numbers).cast(pa.utf8())


def _open_writer(stack: ExitStack, path: Path) -> Callable[[pa.Table], object]:
    """A function that adds rows to a file, in the format of its name."""
    schema = (_make_people if path.name.startswith("people") else _make_pairs)(
        np.arange(1), 1
    ).schema
    ending = path.name.partition(".")[2]
    if ending == "jsonl":
        file = stack.enter_context(path.open("wb"))
        return lambda rows: file.write(_to_json_lines(rows))
    if ending == "parquet":
        writer: Any = pq.ParquetWriter(path, schema)
    elif ending == "csv.gz":
        sink = stack.enter_context(pa.CompressedOutputStream(str(path), "gzip"))
        writer = pcsv.CSVWriter(sink, schema)
    else:
        writer = pcsv.CSVWriter(path, schema)
    stack.enter_context(writer)
    return lambda rows: writer.write_table(rows)


def _to_json_lines(rows: pa.Table) -> bytes:
    """Rows as JSON Lines; ends of edges are texts, as they are ids."""
    parts: list[pa.Array | str] = []
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        text = column.cast(pa.utf8()).combine_chunks()
        if not pat.is_integer(column.type) or name in ("from", "to"):
            text = pc.binary_join_element_wise('"', text, '"', "")
        before = f'{", " if parts else "{"}"{name}": '
        parts += [before, text.fill_null("null")]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    return "".join(lines.to_pylist()).encode()


def _measure_memory(top: Path) -> Iterator[Figure]:
    for size in SIZES_MB:
        folder = top / f"size-{size}"
        write_files(folder, int(size * 1e6) // ROW_BYTES, MEASURED_FORMATS)
        for file_format in MEASURED_FORMATS:
            _, peak = _run_alone("load_people", folder, file_format)
            yield Figure(f"memory of a load, {file_format}, {size} MB of CSV", peak, "MB")
        shutil.rmtree(folder)


def _measure_cores(top: Path) -> Iterator[Figure]:
    """Enough rows that what a load does once, whatever its size, is a small part of it."""
    folder = top / "cores"
    write_files(folder, 2 * ROWS, ("csv", "parquet"))
    for engine in ("inline", "spark"):
        for file_format in ("csv", "parquet"):
            work = f"load_{engine}"
            wall = [_time_on_cores(work, folder, file_format, cores) for cores in (1, 2)]
            name = f"load of {file_format} on two cores, {engine}, wall time of one core over it"
            yield Figure(name, wall[0] / wall[1], "x")


def _time_on_cores(work: str, top: Path, file_format: str, cores: int) -> float:
    """The least of some wall times: what else the machine does only ever adds to one."""
    variables = {"OMNIGRAPH_SPARK_MASTER": f"local[{cores}]", CORES: str(cores)}
    return min(_run_alone(work, top, file_format, variables)[0] for _ in range(TRIES))


def _measure_vectors(top: Path) -> Iterator[Figure]:
    words = np.random.default_rng(7).integers(0, 11_000, (TEXT_ROWS, 30))
    bodies = [" ".join(f"word{n}" for n in row) for row in words]
    table = pa.table({"key": range(TEXT_ROWS), "body": bodies})
    pq.write_table(table, top / "texts.parquet")
    for work, name in (("embed_texts", "local vectors"), ("load_texts", "load with local vectors")):
        seconds, _ = _run_alone(work, top, "local")
        rate = TEXT_ROWS / seconds / 1_000
        yield Figure(f"{name} of texts of 30 words", rate, "k rows/cpu s")


def _run_alone(
    work: str, folder: Path, choice: str, variables: dict[str, str] | None = None
) -> tuple[float, float]:
    """Run a load in a process: its CPU seconds, or what it returns, and its greatest memory."""
    command = [sys.executable, "-m", "benchmarks.files", work, str(folder), choice]
    environment = os.environ | (variables or {})
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, peak = json.loads(ran.stdout.splitlines()[-1])
    return seconds, peak


def load_omnigraph(folder: Path, file_format: str, scratch: Path) -> None:
    _load(folder, scratch, {"Person": "people", "Knows": "knows"}, file_format)


def load_people(folder: Path, file_format: str, scratch: Path) -> None:
    _load(folder, scratch, {"Person": "people"}, file_format)


def _load(folder: Path, scratch: Path, names: dict[str, str], file_format: str) -> None:
    import omnigraph as og

    graph = og.init(scratch / "graph", schema=SCHEMA)
    files = {name: folder / f"{stem}.{file_format}" for name, stem in names.items()}
    graph.load(files, mode="append", engine="inline")


def load_inline(folder: Path, file_format: str, scratch: Path) -> float:
    """The wall time of a load in this process."""
    start = time.perf_counter()
    load_omnigraph(folder, file_format, scratch)
    return time.perf_counter() - start


def load_spark(folder: Path, file_format: str, scratch: Path) -> float:
    """The wall time of a load by workers that are up already."""
    import omnigraph as og

    graph = og.init(scratch / "graph", schema=SCHEMA)
    files = {"Person": folder / f"people.{file_format}", "Knows": folder / f"knows.{file_format}"}
    graph.load(files, mode="overwrite", engine="spark")
    other = og.init(scratch / "other", schema=SCHEMA)
    start = time.perf_counter()
    other.load(files, mode="overwrite", engine="spark")
    return time.perf_counter() - start


def load_texts(folder: Path, choice: str, scratch: Path) -> float:
    """The CPU time of a load that makes vectors, once the model is read."""
    import omnigraph as og

    graph = og.init(scratch / "graph", schema=TEXT_SCHEMA)
    graph.load('{"type": "Text", "data": {"key": -1, "body": "first"}}', mode="append")
    start = time.process_time()
    graph.load({"Text": folder / "texts.parquet"}, mode="append", engine="inline")
    return time.process_time() - start


def embed_texts(folder: Path, choice: str, scratch: Path) -> float:
    """The CPU time of the local model, once it is read."""
    from omnigraph.embed.source import local_embedder

    texts = pq.read_table(folder / "texts.parquet")["body"].to_pylist()
    embedder = local_embedder()
    embedder.embed_documents(["first"], 256)
    start = time.process_time()
    embedder.embed_documents(texts, 256)
    return time.process_time() - start


def load_duckdb(folder: Path, file_format: str, scratch: Path) -> None:
    import duckdb

    reader = {"csv": "read_csv", "parquet": "read_parquet", "jsonl": "read_json"}[file_format]
    with duckdb.connect(str(scratch / "duck.db")) as database:
        database.execute("SET threads = 1")
        database.execute(
            "CREATE TABLE person (key BIGINT PRIMARY KEY, name TEXT NOT NULL, age BIGINT NOT NULL, "
            "city TEXT, born DATE NOT NULL)"
        )
        database.execute(
            "CREATE TABLE knows (src BIGINT REFERENCES person(key), dst BIGINT REFERENCES "
            "person(key), since DATE NOT NULL, PRIMARY KEY (src, dst))"
        )
        for table, stem in (("person", "people"), ("knows", "knows")):
            path = folder / f"{stem}.{file_format}"
            database.execute(f"INSERT INTO {table} SELECT * FROM {reader}('{path}')")


def load_kuzu(folder: Path, file_format: str, scratch: Path) -> None:
    import kuzu

    connection = kuzu.Connection(kuzu.Database(str(scratch / "kuzu.db")), num_threads=1)
    connection.execute(
        "CREATE NODE TABLE Person (key INT64 PRIMARY KEY, name STRING, age INT64, city STRING, "
        "born DATE)"
    )
    connection.execute("CREATE REL TABLE Knows (FROM Person TO Person, since DATE)")
    options = " (header=true)" if file_format == "csv" else ""
    for table, stem in (("Person", "people"), ("Knows", "knows")):
        connection.execute(f'COPY {table} FROM "{folder}/{stem}.{file_format}"{options}')


WORK: dict[str, Callable[[Path, str, Path], float | None]] = {
    each.__name__: each
    for each in (
        *(load_omnigraph, load_people, load_inline, load_spark, embed_texts, load_texts),
        *(load_duckdb, load_kuzu),
    )
}


def _main(work: str, folder: str, choice: str) -> None:
    if CORES in os.environ:
        # Before the first import: pools of threads ask for the cores once.
        os.sched_setaffinity(0, range(int(os.environ[CORES])))
    with tempfile.TemporaryDirectory() as scratch:
        if "duckdb" not in work and "kuzu" not in work:
            import omnigraph as og

            # Imports are not part of a load.
            first = og.init(Path(scratch) / "first", schema=SCHEMA)
            first.load(PERSON, mode="append")
        start = time.process_time()
        returned = WORK[work](Path(folder), choice, Path(scratch))
        seconds = time.process_time() - start if returned is None else returned
        print(json.dumps([seconds, _read_peak_memory()]))


def _read_peak_memory() -> float:
    """The greatest memory of this process, in MB; `getrusage` has that of its parent too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(peak) / 1024


if __name__ == "__main__":
    _main(*sys.argv[1:])
