"""Setting the scene in this process: graphs that a writer has left half-way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph as og
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.graph import Graph
from omnigraph.testing.inside import inside
from tests.recovery import work

FIXTURES = Path(__file__).parent / "sidecars"


def new_graph(path: Path, kind: str = "plain") -> Graph:
    """The graph of the crash cells, open."""
    work.build_by_copy(str(path), kind)
    return work.open_graph(str(path))


def leave(
    graph: Graph,
    point: Failpoint,
    *,
    writer: str = "insert",
    count: int = 2,
    nth: int = 1,
) -> None:
    """A write that stops at a point. Its locks go and its sidecar stays, as if it had died."""
    with arm_failpoints({point: f"raise@{nth}"}):
        try:
            work.WRITERS[writer](graph, count)
        except FailpointError:
            return
    raise AssertionError(f"{writer} did not come by {point}")


def sidecar_files(graph: Graph) -> list[Path]:
    return sorted((Path(graph.uri) / "__recovery").glob("*.json"))


def sidecar(graph: Graph) -> dict[str, Any]:
    """The one sidecar there is."""
    (path,) = sidecar_files(graph)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write_raw(graph: Graph, name: str, data: bytes) -> Path:
    """Put any bytes where a sidecar would be."""
    folder = Path(graph.uri) / "__recovery"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_bytes(data)
    return path


def fixture(graph: Graph, name: str) -> Path:
    """Put a sidecar of another day in place, its paths filled in for this graph."""
    text = (FIXTURES / f"{name}.json").read_text()
    for key, entry in graph.snapshot().entries.items():
        text = text.replace("{" + key + "}", entry.table_path)
    text = text.replace("{root}", graph.uri)
    return write_raw(graph, json.loads(text)["operation_id"], text.encode())


def commit_rows(graph: Graph, table_key: str, name: str) -> int:
    """Move a table's HEAD behind the manifest's back, as a writer in Phase B does."""
    tables = inside(graph).store.tables
    entry = graph.snapshot().entries[table_key]
    location = tables.root.table(entry.table_path, entry.table_branch)
    handle = tables.open_at(location, tables.head_version(location))
    schema = handle.schema
    values = {"id": name, "name": name, "src": "ann", "dst": "bob"}
    rows = pa.Table.from_pylist(
        [{field.name: values.get(field.name) for field in schema}], schema=schema
    )
    return tables.commit_staged(tables.rows.stage_append(handle, rows)).version


def reopen(graph: Graph, **options: Any) -> Graph:
    return work.open_graph(graph.uri, **options)


def kinds(graph: Graph) -> list[str]:
    """What recovery did, oldest first."""
    return [each.kind.value for each in graph.recoveries()]


def is_whole(graph: Graph) -> None:
    """No drift, no sidecar, nothing that verify would object to."""
    found = work.standing_of(graph)
    assert found["pins"] == found["heads"]
    assert found["sidecars"] == []
    assert graph.verify().errors == ()


def names(graph: Graph, table_key: str = "node:Person", branch: str = "main") -> list[str]:
    rows = work.rows_of(graph)[branch][table_key]
    return [json.loads(row)["name"] for row in rows]


def mutate(graph: Graph, body: str, branch: str = "main") -> og.MutationResult:
    return graph.mutate(f"query q() {{ {body} }}", branch=branch)
