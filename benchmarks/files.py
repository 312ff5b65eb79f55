"""What files cost: the same CSV, Parquet and JSON Lines files read by Omnigraph, DuckDB and Kuzu.

Each load runs in a process of its own: rows per CPU second from the call to the commit, with keys
and ends of edges checked where a system can, and the greatest memory of the process. Omnigraph
reads files of 10, 40 and 160 MB too, which shows whether its memory follows the size of a file.
`OMNIGRAPH_BENCH_ROWS` sets the number of rows, half of them edges: 1,200,000 by default.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from benchmarks.harness import Figure, is_quick

SCHEMA = """
node Person { key: I64 @key  name: String  age: I64  city: String?  born: Date }
edge Knows: Person -> Person { since: Date  @key(src, dst) }
"""
PERSON = '{"type": "Person", "data": {"key": 1, "name": "x", "age": 1, "born": "2000-01-01"}}'
ROWS = 4_000 if is_quick() else int(os.environ.get("OMNIGRAPH_BENCH_ROWS", "1200000"))
TEXT_ROWS = 1_000 if is_quick() else 40_000
SIZES_MB = (0.1, 0.2) if is_quick() else (10, 40, 160)
FORMATS = ("csv", "parquet", "jsonl")
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


def write_files(folder: Path, rows: int) -> None:
    """People and who knows whom, once per format."""
    folder.mkdir(exist_ok=True)
    numbers = np.arange(rows)
    days = pa.array(numbers % 20_000, pa.int32()).cast(pa.date32())
    people = pa.table(
        {
            "key": numbers,
            "name": [f"Person number {n}" for n in range(rows)],
            "age": numbers % 90,
            "city": ["London" if n % 3 else None for n in range(rows)],
            "born": days,
        }
    )
    pairs = {"from": numbers, "to": (numbers * 7919 + 1) % rows, "since": days}
    for name, table in (("people", people), ("knows", pa.table(pairs))):
        pcsv.write_csv(table, folder / f"{name}.csv")
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100_000)
        with (folder / f"{name}.jsonl").open("w") as file:
            for row in table.to_pylist():
                ends = {end: str(row[end]) for end in ("from", "to") if end in row}
                file.write(json.dumps(row | ends, default=str) + "\n")


def _measure_memory(top: Path) -> Iterator[Figure]:
    for size in SIZES_MB:
        folder = top / f"size-{size}"
        write_files(folder, int(size * 1e6) // ROW_BYTES)
        for file_format in FORMATS:
            _, peak = _run_alone("load_people", folder, file_format)
            yield Figure(f"memory of a load, {file_format}, {size} MB of CSV", peak, "MB")


def _measure_cores(top: Path) -> Iterator[Figure]:
    for file_format in ("csv", "parquet"):
        wall = [_time_on_spark(top, file_format, cores) for cores in (1, 2)]
        name = f"load of {file_format} on two cores, wall time of one core over it"
        yield Figure(name, wall[0] / wall[1], "x")


def _time_on_spark(top: Path, file_format: str, cores: int) -> float:
    variables = {"OMNIGRAPH_SPARK_MASTER": f"local[{cores}]", "OMNIGRAPH_BENCH_CORES": str(cores)}
    return _run_alone("load_on_spark", top, file_format, variables)[0]


def _measure_vectors(top: Path) -> Iterator[Figure]:
    words = np.random.default_rng(7).integers(0, 11_000, (TEXT_ROWS, 30))
    bodies = [" ".join(f"word{n}" for n in row) for row in words]
    table = pa.table({"key": range(TEXT_ROWS), "body": bodies})
    pq.write_table(table, top / "texts.parquet")
    seconds, _ = _run_alone("embed_texts", top, "local")
    rate = TEXT_ROWS / seconds / 1_000
    yield Figure("local vectors of texts of 30 words", rate, "k rows/cpu s")


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


def load_on_spark(folder: Path, file_format: str, scratch: Path) -> float:
    """The wall time of a load by workers that are up already."""
    import omnigraph as og

    os.sched_setaffinity(0, range(int(os.environ["OMNIGRAPH_BENCH_CORES"])))
    graph = og.init(scratch / "graph", schema=SCHEMA)
    files = {"Person": folder / f"people.{file_format}", "Knows": folder / f"knows.{file_format}"}
    graph.load(files, mode="overwrite", engine="spark")
    other = og.init(scratch / "other", schema=SCHEMA)
    start = time.perf_counter()
    other.load(files, mode="overwrite", engine="spark")
    return time.perf_counter() - start


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
        *(load_omnigraph, load_people, load_on_spark, embed_texts),
        *(load_duckdb, load_kuzu),
    )
}


def _main(work: str, folder: str, choice: str) -> None:
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
