"""What the tests of a whole graph share: a small schema, and looking at a graph from outside."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph as og
from omnigraph.testing.inside import inside
from omnigraph.write.fork import open_pin

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
    @range(age, 0..150)
}
node Firm { code: String @key }
node Note { text: String  stars: I32? }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Firm @card(0..1)
"""

TABLES = ["edge:Knows", "edge:WorksAt", "node:Firm", "node:Note", "node:Person"]

ADD = """
query person($name: String, $age: I32?) { insert Person { name: $name, age: $age } }
query firm($code: String) { insert Firm { code: $code } }
query note($text: String) { insert Note { text: $text } }
query knows($a: String, $b: String) { insert Knows { from: $a, to: $b } }
query works($a: String, $b: String) { insert WorksAt { from: $a, to: $b } }
query age($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query gone($name: String) { delete Person where name = $name }
query apart($a: String) { delete Knows where from = $a }
query pair($a: String, $b: String) {
    insert Person { name: $a }
    insert Person { name: $b }
    insert Knows { from: $a, to: $b }
}
"""


def new_graph(path: Path, schema: str = SCHEMA, **options: Any) -> og.Graph:
    """An empty graph on the local disk that does not wait for the platter."""
    return og.init(path, schema=schema, **{"durability": "process", **options})


def reopen(graph: og.Graph, **options: Any) -> og.Graph:
    """A second handle on the same graph."""
    return og.open(graph.uri, **{"durability": "process", **options})


def add(graph: og.Graph, what: str, /, branch: str = "main", **params: Any) -> og.MutationResult:
    """Run one of the small mutations of `ADD`."""
    return graph.mutate(ADD, what, params, branch=branch)


def run(
    graph: og.Graph, body: str, branch: str = "main", params: dict[str, Any] | None = None
) -> og.MutationResult:
    """Run statements as one mutation without declared parameters, or with `$`-text ones."""
    declared = ", ".join(f"${name}: String" for name in params or {})
    return graph.mutate(f"query q({declared}) {{ {body} }}", params=params, branch=branch)


def rows(
    graph: og.Graph, type_name: str, branch: str = "main", version: int | None = None
) -> list[dict[str, Any]]:
    """Every row of a type at a branch or version; see `rows_at`."""
    if version is None:
        return rows_at(graph, graph.snapshot(branch), type_name)
    return rows_at(graph, graph.snapshot_at_version(version, branch=branch), type_name)


def rows_at(graph: og.Graph, snapshot: og.Snapshot, type_name: str) -> list[dict[str, Any]]:
    """Every row of a type, by id; of edges the id is left out, since the engine mints it."""
    kind = "node" if f"node:{type_name}" in snapshot.entries else "edge"
    tables = inside(graph).store.tables
    table = tables.reads.scan(open_pin(tables, snapshot.entries[f"{kind}:{type_name}"]))
    # A DateTime is stored as date64, which Python would show without its time of day.
    instants = {pa.date64(): pa.timestamp("ms")}
    shown = pa.schema([(f.name, instants.get(f.type, f.type)) for f in table.schema])
    found = table.cast(shown).to_pylist()
    if kind == "node":
        return sorted(found, key=lambda row: str(row["id"]))
    plain = [{name: value for name, value in row.items() if name != "id"} for row in found]
    return sorted(plain, key=lambda row: json.dumps(row, default=str))


def names(graph: og.Graph, branch: str = "main", version: int | None = None) -> list[str]:
    return [row["name"] for row in rows(graph, "Person", branch, version)]


def ages(graph: og.Graph, branch: str = "main") -> dict[str, int | None]:
    return {row["name"]: row["age"] for row in rows(graph, "Person", branch)}


def links(graph: og.Graph, type_name: str = "Knows", branch: str = "main") -> list[tuple[str, str]]:
    return [(row["src"], row["dst"]) for row in rows(graph, type_name, branch)]


def heads(graph: og.Graph, branch: str = "main") -> dict[str, int]:
    """The Lance HEAD of every table, on the lineage that the branch shows."""
    tables = inside(graph).store.tables
    return {
        key: tables.head_version(tables.root.table(entry.table_path, entry.table_branch))
        for key, entry in graph.snapshot(branch).entries.items()
    }


def pins(graph: og.Graph, branch: str = "main") -> dict[str, int]:
    return {key: entry.version for key, entry in graph.snapshot(branch).entries.items()}


def sidecars(graph: og.Graph) -> list[dict[str, Any]]:
    """Every sidecar on disk, as JSON."""
    folder = Path(graph.uri) / "__recovery"
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


@dataclass(frozen=True)
class Standing:
    """Everything of a graph that a refused write must leave alone."""

    manifest_version: int
    heads: dict[str, int]
    pins: dict[str, int]
    branches: list[str]
    sidecars: list[dict[str, Any]]


def standing(graph: og.Graph, branch: str = "main") -> Standing:
    return Standing(
        graph.snapshot(branch).manifest_version,
        heads(graph, branch),
        pins(graph, branch),
        graph.branches(),
        sidecars(graph),
    )
