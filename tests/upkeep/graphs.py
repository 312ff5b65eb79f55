"""What the tests of upkeep share: a small library of papers, and looking at it from outside."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import omnigraph as og
from omnigraph.storage.handles import IndexInfo, TableHandle
from omnigraph.testing.inside import inside
from omnigraph.write.fork import open_pin
from tests.storage.blobs import read_whole

SCHEMA = """
node Author {
    slug: String @key
    name: String
    age: I32?
    level: enum(junior, senior)? @index
    bio: String? @index
    face: Vector(4)? @index
    photo: Blob?
}
node Paper { doi: String @key  year: I32? @index }
edge Wrote: Author -> Paper { pos: I32? }
"""

READS = """
query authors() {
    match { $a: Author }
    return { $a.slug, $a.name, $a.age, $a.level, $a.bio } order { $a.slug }
}
query seniors() { match { $a: Author { level: "senior" } } return { $a.slug } order { $a.slug } }
query early() { match { $p: Paper  $p.year < 2003 } return { $p.doi } order { $p.doi } }
query written() {
    match { $a: Author  $a wrote $p }
    return { $a.slug, $p.doi } order { $a.slug, $p.doi }
}
query counts() {
    match { $a: Author  $a wrote $p } return { $p.doi, count($a) as n } order { $p.doi }
}
query about($q: String) {
    match { $a: Author  search($a.bio, $q) }
    return { $a.slug } order { $a.slug }
}
query like($v: Vector(4)) {
    match { $a: Author } return { $a.slug } order { nearest($a.face, $v) } limit 5
}
"""

PARAMS: dict[str, dict[str, Any]] = {"about": {"q": "river"}, "like": {"v": [3.0, 3.0, 3.0, 3.0]}}


def new_library(path: Path, schema: str = SCHEMA, **options: Any) -> og.Graph:
    """An empty graph that does not wait for the platter and does not look after itself."""
    return og.init(path, schema=schema, **{"durability": "process", "self_care": False, **options})


def reopen(graph: og.Graph, **options: Any) -> og.Graph:
    return og.open(graph.uri, **{"durability": "process", "self_care": False, **options})


def author(number: int) -> dict[str, Any]:
    photo = base64.b64encode(f"photo {number}".encode()).decode()
    data: dict[str, Any] = {
        "slug": f"a{number:03}",
        "name": f"Name {number}",
        "age": number % 90,
        "level": ("junior", "senior", None)[number % 3],
        "bio": f"lives near the {'river' if number % 4 else 'sea'} number {number}",
        "face": [float(number % 7)] * 4 if number % 5 else None,
        "photo": (None, f"base64:{photo}", "base64:")[number % 3],
    }
    return {"type": "Author", "data": data}


def fill(graph: og.Graph, start: int = 0, count: int = 12, branch: str = "main") -> None:
    """Add authors, a paper and who wrote it, as one commit."""
    records = [author(number) for number in range(start, start + count)]
    records.append({"type": "Paper", "data": {"doi": f"p{start:03}", "year": 2000 + start % 9}})
    records += [
        {"edge": "Wrote", "from": f"a{n:03}", "to": f"p{start:03}", "data": {"pos": n - start}}
        for n in range(start, start + count, 2)
    ]
    graph.load(records, mode="append", branch=branch)


def answers(graph: og.Graph, **target: Any) -> dict[str, list[dict[str, Any]]]:
    """What every query of the library answers."""
    names = ("authors", "seniors", "early", "written", "counts", "about", "like")
    return {name: graph.query(READS, name, PARAMS.get(name), **target).rows() for name in names}


def photos(graph: og.Graph) -> dict[str, bytes | None]:
    tables = inside(graph).store.tables
    handle = handle_of(graph, "node:Author")
    ids = tables.reads.scan(handle, ["id"])["id"].to_pylist()
    return {
        each: read_whole(tables.reads.open_blob(handle, "photo", entity_id=each)) for each in ids
    }


def handle_of(graph: og.Graph, table_key: str, branch: str = "main") -> TableHandle:
    return open_pin(inside(graph).store.tables, graph.snapshot(branch).entries[table_key])


def indexes(graph: og.Graph, table_key: str, branch: str = "main") -> dict[str, IndexInfo]:
    """Index name → what it covers."""
    found = inside(graph).store.tables.indexes.describe(handle_of(graph, table_key, branch))
    return {each.name: each for each in found}


def is_covered(graph: og.Graph, table_key: str) -> bool:
    found = indexes(graph, table_key).values()
    return bool(found) and all(each.rows_unindexed == 0 for each in found)


def fragments(graph: og.Graph, table_key: str) -> int:
    return len(inside(graph).store.tables.reads.fragment_ids(handle_of(graph, table_key)))


def rows(graph: og.Graph, table_key: str, **target: int) -> list[dict[str, Any]]:
    """Every row of a table, by id, as it is stored."""
    version = target.get("version")
    snapshot = graph.snapshot() if version is None else graph.snapshot_at_version(version)
    tables = inside(graph).store.tables
    found: pa.Table = tables.reads.scan(open_pin(tables, snapshot.entries[table_key]))
    return sorted(found.to_pylist(), key=lambda row: str(row["id"]))


def pins(graph: og.Graph) -> dict[str, int]:
    return {key: entry.version for key, entry in graph.snapshot().entries.items()}


def heads(graph: og.Graph) -> dict[str, int]:
    tables = inside(graph).store.tables
    return {
        key: tables.head_version(tables.root.table(entry.table_path, entry.table_branch))
        for key, entry in graph.snapshot().entries.items()
    }


def sidecars(graph: og.Graph) -> list[dict[str, Any]]:
    folder = Path(graph.uri) / "__recovery"
    return [json.loads(each.read_text()) for each in sorted(folder.glob("*.json"))]


def dataset(graph: og.Graph, table_key: str) -> lance.LanceDataset:
    """The table as a stranger would open it."""
    return lance.dataset(f"{graph.uri}/{graph.snapshot().entries[table_key].table_path}")


def versions(graph: og.Graph, table_key: str) -> list[int]:
    return [each["version"] for each in dataset(graph, table_key).versions()]
