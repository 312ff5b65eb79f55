"""What joins that close cost: patterns with cycles and with edges that must not be there.

A small forum in the shape of the labelled subgraph query benchmark (LSQB), and two graphs of links.
Beside each figure stands DuckDB's in the same run, when it is installed, and the answers are equal.

`OMNIGRAPH_BENCH_FORUM` sets the size: 1,700 people by default, about 1.2 million rows.
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

import omnigraph as og
from benchmarks.harness import Figure

PEOPLE = int(os.environ.get("OMNIGRAPH_BENCH_FORUM", "1700"))
REPEAT = 5

SCHEMA = """
node Country { key: I64 @key }
node City { key: I64 @key }
node Person { key: I64 @key }
node Tag { key: I64 @key }
node Post { key: I64 @key }
node Comment { key: I64 @key }
node Voter { key: I64 @key }
node Page { key: I64 @key }
edge CityIn: City -> Country @card(1..1)
edge LivesIn: Person -> City @card(1..1)
edge Knows: Person -> Person
edge HasInterest: Person -> Tag
edge PostBy: Post -> Person @card(1..1)
edge PostTag: Post -> Tag
edge CommentBy: Comment -> Person @card(1..1)
edge ReplyOf: Comment -> Post @card(0..1)
edge CommentTag: Comment -> Tag
edge Votes: Voter -> Voter
edge Links: Page -> Page
"""

MATCHES = {
    "replies between friends": """
        $p1 <knows> $p2  $c commentBy $p1  $c replyOf $post  $post postBy $p2""",
    "friends of one country": """
        $p1 livesIn $c1  $c1 cityIn $co  $p2 livesIn $c2  $c2 cityIn $co  $p3 livesIn $c3
        $c3 cityIn $co  $p1 <knows> $p2  $p2 <knows> $p3  $p3 <knows> $p1""",
    "friends first, then their country": """
        $p1 <knows> $p2  $p2 <knows> $p3  $p3 <knows> $p1  $p1 livesIn $c1  $p2 livesIn $c2
        $p3 livesIn $c3  $c1 cityIn $co  $c2 cityIn $co  $c3 cityIn $co""",
    "tags of a reply, none of the post": """
        $post postTag $t1  $c replyOf $post  $c commentTag $t2
        not { $c commentTag $t1 }  $t1.key != $t2.key""",
    "interests of friends of friends": """
        $p1 <knows> $p2  $p2 <knows> $p3  $p3 hasInterest $t
        not { $p1 <knows> $p3 }  $p1.key != $p3.key""",
    "triangles": "$a votes $b  $b votes $c  $a votes $c",
    "four-cycles": "$a links $b  $b links $c  $c links $d  $d links $a",
}
QUERIES = "\n".join(
    f"query {name.replace(' ', '_').replace(',', '').replace('-', '_')}() {{\n"
    f"    match {{ {text.strip()} }}\n    return {{ count({text.split()[0]}) as n }}\n}}"
    for name, text in MATCHES.items()
)

SQL = {
    "replies between friends": """
        SELECT count(*) FROM both_knows k JOIN CommentBy cb ON cb.dst = k.src
        JOIN ReplyOf r ON r.src = cb.src JOIN PostBy pb ON pb.src = r.dst AND pb.dst = k.dst""",
    "friends of one country": """
        SELECT count(*) FROM both_knows a JOIN both_knows b ON a.dst = b.src
        JOIN both_knows c ON b.dst = c.src AND c.dst = a.src
        JOIN LivesIn l1 ON l1.src = a.src JOIN CityIn i1 ON i1.src = l1.dst
        JOIN LivesIn l2 ON l2.src = b.src JOIN CityIn i2 ON i2.src = l2.dst AND i2.dst = i1.dst
        JOIN LivesIn l3 ON l3.src = c.src JOIN CityIn i3 ON i3.src = l3.dst AND i3.dst = i1.dst""",
    "tags of a reply, none of the post": """
        SELECT count(*) FROM PostTag pt JOIN ReplyOf r ON r.dst = pt.src
        JOIN CommentTag ct ON ct.src = r.src WHERE pt.dst <> ct.dst AND NOT EXISTS
        (SELECT 1 FROM CommentTag x WHERE x.src = r.src AND x.dst = pt.dst)""",
    "interests of friends of friends": """
        SELECT count(*) FROM both_knows a JOIN both_knows b ON a.dst = b.src
        JOIN HasInterest h ON h.src = b.dst WHERE a.src <> b.dst AND NOT EXISTS
        (SELECT 1 FROM both_knows x WHERE x.src = a.src AND x.dst = b.dst)""",
    "triangles": """
        SELECT count(*) FROM Votes a JOIN Votes b ON a.dst = b.src
        JOIN Votes c ON c.src = a.src AND c.dst = b.dst""",
    "four-cycles": """
        SELECT count(*) FROM Links a JOIN Links b ON a.dst = b.src
        JOIN Links c ON b.dst = c.src JOIN Links d ON c.dst = d.src AND d.dst = a.src""",
}
SQL["friends first, then their country"] = SQL["friends of one country"]


def run() -> Iterator[Figure]:
    tables = frames(PEOPLE)
    peer = _duckdb(tables)
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(Path(folder) / "graph", schema=SCHEMA, durability="process")
        graph.load_dataframes(tables, mode="overwrite", engine="inline")
        graph.ensure_indices()
        time.sleep(0.2)  # files that changed a moment ago are looked at again by every read
        names = [line.split()[1][:-2] for line in QUERIES.splitlines() if line.startswith("query")]
        for title, name in zip(MATCHES, names, strict=True):
            cpu, answer = _measured(partial(_count, graph, name))
            yield Figure(title, cpu, "cpu ms")
            if peer is not None:
                other, expected = _measured(partial(peer, SQL[title]))
                assert answer == expected, (title, answer, expected)
                yield Figure(f"{title} over duckdb, this run", cpu / other, "x")
        graph.close()


def _count(graph: og.Graph, name: str) -> int:
    return int(graph.query(QUERIES, name).rows()[0]["n"])


def _measured(ask: Callable[[], int]) -> tuple[float, int]:
    answer, taken = ask(), []
    for _ in range(REPEAT):
        start = time.process_time()
        ask()
        taken.append(1_000 * (time.process_time() - start))
    return statistics.median(taken), answer


def _duckdb(tables: dict[str, pa.Table]) -> Callable[[str], int] | None:
    try:
        duckdb: Any = import_module("duckdb")
    except ImportError:
        print("duckdb is not installed: its figures are left out")
        return None
    connection = duckdb.connect()
    for name, table in tables.items():
        if "src" in table.column_names:
            ends = [table.column(end).cast(pa.int64()) for end in ("src", "dst")]
            connection.register("incoming", pa.table(ends, names=["src", "dst"]))
            connection.execute(f'CREATE TABLE "{name}" AS SELECT DISTINCT * FROM incoming')
    connection.execute(
        "CREATE TABLE both_knows AS SELECT src, dst FROM Knows UNION SELECT dst, src FROM Knows"
    )
    return lambda sql: int(connection.execute(sql).fetchone()[0])


def frames(people: int) -> dict[str, pa.Table]:
    """Every type as a table; edges have `src` and `dst`, the keys of their ends as text."""
    random = np.random.default_rng(20_261_117)
    posts, comments, tags = people * 60, people * 90, max(people * 4, 10)
    cities, countries = 1_300, 111
    sizes = {
        "Country": countries, "City": cities, "Person": people, "Tag": tags,
        "Post": posts, "Comment": comments, "Voter": 7_115, "Page": 1_005,
    }  # fmt: skip
    nodes = {name: pa.table({"key": np.arange(size)}) for name, size in sizes.items()}
    replies = np.flatnonzero(random.random(comments) < 0.5)
    home = random.integers(0, cities, people)
    country = random.integers(0, countries, cities)
    return nodes | {
        "CityIn": _edges(np.arange(cities), country),
        "LivesIn": _edges(np.arange(people), home),
        "Knows": _edges(*_friends(random, country[home], people * 9)),
        "HasInterest": _edges(*_tagged(random, people, tags, 23)),
        "PostBy": _edges(np.arange(posts), _skewed(random, people, posts)),
        "PostTag": _edges(*_tagged(random, posts, tags, 2)),
        "CommentBy": _edges(np.arange(comments), _skewed(random, people, comments)),
        "ReplyOf": _edges(replies, _skewed(random, posts, len(replies))),
        "CommentTag": _edges(*_tagged(random, comments, tags, 2)),
        "Votes": _edges(*_links(random, 7_115, 103_689)),
        "Links": _edges(*_links(random, 1_005, 25_571)),
    }


def _skewed(random: np.random.Generator, size: int, count: int) -> np.ndarray:
    """Few numbers below `size` very often, most seldom."""
    return (size * random.random(count) ** 2.5).astype(np.int64)


def _friends(
    random: np.random.Generator, group: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of people, a third of them of one group."""
    people = len(group)
    one, other = _skewed(random, people, count), _skewed(random, people, count)
    order = np.argsort(group, kind="stable")
    place = np.argsort(order)
    near = (place[one] + random.integers(1, 20, count)) % people
    other = np.where(random.random(count) < 0.33, order[near], other)
    kept = one != other
    pairs = np.minimum(one, other)[kept] * people + np.maximum(one, other)[kept]
    return np.divmod(np.unique(pairs), people)


def _tagged(
    random: np.random.Generator, size: int, tags: int, each: int
) -> tuple[np.ndarray, np.ndarray]:
    sources = random.integers(0, size, size * each)
    return np.divmod(np.unique(sources * tags + _skewed(random, tags, len(sources))), tags)


def _links(random: np.random.Generator, size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    sources, targets = _skewed(random, size, 6 * count), _skewed(random, size, 6 * count)
    # Who links much is not always who is linked to much.
    targets = np.where(random.random(len(targets)) < 0.6, targets, size - 1 - targets)
    pairs = sources * size + targets
    return np.divmod(random.permutation(np.unique(pairs))[:count], size)


def _edges(sources: np.ndarray, targets: np.ndarray) -> pa.Table:
    ends = {"src": sources, "dst": targets}
    return pa.table({name: pa.array(end).cast(pa.utf8()) for name, end in ends.items()})
