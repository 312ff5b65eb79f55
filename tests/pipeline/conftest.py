"""What pipeline tests share: a graph, and the same load run by every engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.pipeline.archive import ARCHIVE_VARIABLE
from omnigraph.pipeline.engine import CHECK_ROWS_VARIABLE, PART_BYTES_VARIABLE
from omnigraph.testing.inside import inside
from tests.ready import copy_ready

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
    born: Date?
    photo: Blob?
    tags: [String]?
    mood: enum(calm, wild)?
    @range(age, 0..150)
}
node Note { text: String }
node Team { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge Likes: Person -> Note
edge MemberOf: Person -> Team @card(0..2) { @unique(src, dst) }
edge Rates: Person -> Team @card(0..2) { stars: I32?  @key(src, dst) }
"""

# The suite uses a class archive that the machine has, and leaves none behind.
os.environ.setdefault(ARCHIVE_VARIABLE, "use")

SPARK = pytest.param("spark", marks=pytest.mark.xdist_group("spark"))


@dataclass
class Loads:
    """A graph, and loads into it by one engine."""

    graph: og.Graph
    engine: str
    directory: Path
    options: dict[str, Any] = field(default_factory=dict)

    def load(self, data: Any, mode: str = "append", **options: Any) -> og.LoadResult:
        result: og.LoadResult = self.graph.load(data, mode=mode, engine=self.engine, **options)
        return result

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def rows(self, type_name: str, **selection: Any) -> list[dict[str, Any]]:
        found = self.graph.scan(type_name, **selection).to_arrow().to_pylist()
        return sorted(found, key=lambda row: str(row["id"]))

    def ids(self, type_name: str, **selection: Any) -> list[str]:
        return [row["id"] for row in self.rows(type_name, **selection)]

    def versions(self) -> dict[str, int]:
        return {key: entry.version for key, entry in self.graph.snapshot().entries.items()}


@pytest.fixture(params=["one range", "many ranges", SPARK])
def loads(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Loads]:
    """An empty graph and each engine in turn; the last two cut their input into tiny ranges."""
    engine = "inline"
    if request.param != "one range":
        monkeypatch.setenv(PART_BYTES_VARIABLE, "150")
    if request.param == "many ranges":
        monkeypatch.setenv(CHECK_ROWS_VARIABLE, "3")
    if request.param == "spark":
        request.getfixturevalue("spark")
        engine = "spark"
    copy_ready("loads", lambda path: og.init(path, schema=SCHEMA), tmp_path / "graph")
    with og.open(tmp_path / "graph") as graph:
        yield Loads(graph, engine, tmp_path)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Loads]:
    """An empty graph, loaded in process: for what happens before the engine matters."""
    copy_ready("loads", lambda path: og.init(path, schema=SCHEMA), tmp_path / "graph")
    with og.open(tmp_path / "graph") as graph:
        yield Loads(graph, "inline", tmp_path)


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": data}


def heads_of(graph: og.Graph) -> dict[str, int]:
    """The Lance HEAD of every table that main shows."""
    tables = inside(graph).store.tables
    return {
        key: tables.head_version(tables.root.table(entry.table_path, entry.table_branch))
        for key, entry in graph.snapshot().entries.items()
    }


def unclaimed_files(graph: og.Graph) -> list[str]:
    """Data files below the graph that no version of a table names, and all scratch."""
    root = Path(graph.uri)
    named: set[str] = set()
    tables = inside(graph).store.tables
    for entry in graph.snapshot().entries.values():
        location = tables.root.table(entry.table_path, entry.table_branch)
        for version in range(1, tables.head_version(location) + 1):
            fragments = tables.reads.fragments(tables.open_at(location, version))
            named |= {name for each in fragments for name in each.files}
    on_disk = [path for kind in ("nodes", "edges") for path in root.glob(f"{kind}/*/data/*.lance")]
    hidden = [
        str(path) for kind in ("nodes", "edges") for path in root.glob(f"{kind}/*/data/.tmp*")
    ]
    loose = [str(path) for path in on_disk if path.name not in named]
    scratch = root / "__load"
    return loose + hidden + (sorted(os.listdir(scratch)) if scratch.exists() else [])
