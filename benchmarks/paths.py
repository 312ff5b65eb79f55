"""What paths and stages cost: shortest paths between two nodes, and retrieval that walks on.

100,000 nodes with a vector each and a million edges between them, at random. Beside each path
stands the time of Kuzu and of a recursive query of DuckDB in the same run, when they are installed,
and the lengths are equal.

`OMNIGRAPH_BENCH_PATHS` sets the number of nodes.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og
from benchmarks.harness import Figure

NODES = int(os.environ.get("OMNIGRAPH_BENCH_PATHS", "100000"))
DEGREE = 10
DIMENSION = 32
PAIRS = 5
REPEAT = 5

SCHEMA = f"node N {{ key: I64 @key  vec: Vector({DIMENSION})? }}\nedge To: N -> N"
QUERIES = f"""
query way($a: I64, $b: I64) {{
    match {{ $x: N {{ key: $a }}  $y: N {{ key: $b }}  $x $t:shortest to $y }}
    return {{ hops($t) as n }}
}}
query retrieve($q: Vector({DIMENSION})) {{
    top 10 by nearest($x.vec, $q) as $d {{ $x: N }}
    match {{ $x to $y  $y to $z }}
    return {{ $x.key, $d as d, count($z) as n }}
    order {{ d }}
}}
"""
RECURSIVE = """
WITH RECURSIVE way(node, depth) USING KEY (node) AS (
    SELECT ?::BIGINT, 0 UNION
    SELECT e.dst, min(way.depth) + 1 FROM way JOIN edges e ON e.src = way.node
    WHERE NOT EXISTS (SELECT 1 FROM recurring.way w WHERE w.node = e.dst)
    AND NOT EXISTS (SELECT 1 FROM recurring.way w WHERE w.node = ?::BIGINT) GROUP BY e.dst
) SELECT depth FROM way WHERE node = ?::BIGINT"""
CYPHER = "MATCH p = (a:N {key: $a})-[:To* SHORTEST 1..30]->(b:N {key: $b}) RETURN length(p)"

Ask = Callable[[int, int], int]


def run() -> Iterator[Figure]:
    random = np.random.default_rng(20_261_117)
    ends = random.integers(0, NODES, (2, NODES * DEGREE))
    vectors = random.standard_normal((NODES, DIMENSION)).astype(np.float32)
    pairs = [(int(a), int(b)) for a, b in random.integers(0, NODES, (PAIRS, 2))]
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(Path(folder) / "graph", schema=SCHEMA, durability="process")
        graph.load_dataframes(_frames(ends, vectors), mode="overwrite", engine="inline")
        own = partial(_ask, graph)
        cpu, lengths = _measure(own, pairs)
        yield Figure("shortest path between two", cpu, "cpu ms")
        for name, ask in _peers(Path(folder), ends).items():
            other, expected = _measure(ask, pairs)
            assert lengths == expected, (name, lengths, expected)
            yield Figure(f"shortest path, {name} over ours in this run", other / cpu, "x")
        question = vectors[0].tolist()
        taken, _ = _measure(lambda *_: _retrieve(graph, question), pairs)
        yield Figure("ten of 100,000 by meaning, and two hops", taken, "cpu ms")
        graph.close()


def _frames(ends: np.ndarray, vectors: np.ndarray) -> dict[str, pa.Table]:
    components = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    nodes = pa.table({"key": np.arange(NODES), "vec": components})
    texts = [pa.array(each).cast(pa.utf8()) for each in ends]
    return {"N": nodes, "To": pa.table(texts, names=["src", "dst"])}


def _ask(graph: og.Graph, a: int, b: int) -> int:
    return int(graph.query(QUERIES, "way", {"a": a, "b": b}).rows()[0]["n"])


def _retrieve(graph: og.Graph, question: list[float]) -> int:
    return len(graph.query(QUERIES, "retrieve", {"q": question}).rows())


def _measure(ask: Ask, pairs: list[tuple[int, int]]) -> tuple[float, list[int]]:
    """The median over pairs and repetitions, after one round to warm up."""
    answers, taken = [ask(*pair) for pair in pairs], []
    for _ in range(REPEAT):
        for pair in pairs:
            start = time.process_time()
            ask(*pair)
            taken.append(1_000 * (time.process_time() - start))
    return statistics.median(taken), answers


def _peers(folder: Path, ends: np.ndarray) -> dict[str, Ask]:
    pq.write_table(pa.table({"key": np.arange(NODES)}), folder / "nodes.parquet")
    pq.write_table(pa.table({"src": ends[0], "dst": ends[1]}), folder / "edges.parquet")
    found: dict[str, Ask] = {}
    for name, make in (("duckdb", _duckdb), ("kuzu", _kuzu)):
        try:
            found[name] = make(folder)
        except ImportError:
            print(f"{name} is not installed: its figures are left out")
    return found


def _duckdb(folder: Path) -> Ask:
    connection: Any = import_module("duckdb").connect()
    connection.execute(f"CREATE TABLE edges AS SELECT * FROM '{folder / 'edges.parquet'}'")
    return lambda a, b: int(connection.execute(RECURSIVE, [a, b, b]).fetchone()[0])


def _kuzu(folder: Path) -> Ask:
    kuzu: Any = import_module("kuzu")
    connection = kuzu.Connection(kuzu.Database(str(folder / "peer.kuzu")))
    connection.execute("CREATE NODE TABLE N(key INT64, PRIMARY KEY(key))")
    connection.execute("CREATE REL TABLE To(FROM N TO N)")
    connection.execute(f"COPY N FROM '{folder / 'nodes.parquet'}'")
    connection.execute(f"COPY To FROM '{folder / 'edges.parquet'}'")
    return lambda a, b: int(connection.execute(CYPHER, {"a": a, "b": b}).get_next()[0])
