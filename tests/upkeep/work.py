"""The jobs that the crash cells of upkeep run, in processes of their own."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph import failpoints
from omnigraph.graph import Graph
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.testing.inside import inside
from omnigraph.upkeep import retention
from omnigraph.write.fork import open_pin
from omnigraph.write.schema_lock import LOCK_REF

SCHEMA = """
node Person { name: String @key  age: I32?  note: String? @index }
node City { name: String @key  size: I32? }
node Gone { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""

DESIRED = {
    "rewrite": SCHEMA.replace("age: I32?", "email: String?").replace("size: I32?", "area: I32?"),
    "alter": SCHEMA.replace("age: I32?", "age: I32?  email: String?"),
    "grow": SCHEMA.replace("age: I32?", "age: I64?")
    .replace("size: I32?", "size: I32?  label: String @backfill(name)")
    .replace("since: I32?", "since: I32?  @key(src, dst)"),
    "rename": SCHEMA.replace("node City {", 'node Town @rename_from("City") {'),
    "add": SCHEMA + "node Tag { name: String @key }\nnode Team { name: String @key }\n",
    "drop": SCHEMA.replace("node Gone { name: String @key }\n", ""),
    "hard": SCHEMA.replace("node Gone { name: String @key }\n", "").replace("age: I32?  ", ""),
    "metadata": SCHEMA.replace("age: I32?", "age: I32? @index"),
    "all": SCHEMA.replace("node City {", 'node Town @rename_from("City") {')
    .replace("node Gone { name: String @key }\n", "node Tag { name: String @key }\n")
    .replace("age: I32?", "email: String?"),
}

BRANCH = "side"
ON_BRANCH = f"{BRANCH} "
"""What the name of a schema change begins with that is applied to a branch."""

MERGE = "merge "
"""What the name of a merge begins with that brings a schema change to main."""

SEED = """
query seed() {
    insert Person { name: "ann", age: 1, note: "by the river" }
    insert Person { name: "bob", age: 2, note: "by the sea" }
    insert City { name: "oslo", size: 1 }
    insert Gone { name: "gone" }
    insert Knows { from: "ann", to: "bob" }
}
"""


def build(path: str) -> None:
    """A graph of small fragments whose indexes lag behind."""
    shutil.rmtree(path, ignore_errors=True)
    graph = og.init(path, schema=SCHEMA, durability="process", self_care=False)
    graph.mutate(SEED)
    graph.ensure_indices()
    for number in range(3):
        graph.mutate(
            "query q($n: String) { insert Person { name: $n }  insert City { name: $n } }",
            params={"n": f"more {number}"},
        )
    graph.mutate('query q() { delete Person where name = "more 1" }')


def add_branch(path: str) -> None:
    """A branch with a fork of its own, beside a main that has moved on."""
    graph = open_graph(path)
    graph.create_branch(BRANCH)
    graph.mutate('query q() { insert Person { name: "aside", age: 9 } }', branch=BRANCH)
    graph.mutate('query q() { insert City { name: "ahead" } }')


def change_branch(path: str, change: str) -> None:
    """The branch is in another schema, and ready to be merged."""
    open_graph(path).apply_schema(DESIRED[change], branch=BRANCH)


def branch_of(writer: str) -> str:
    return BRANCH if writer.startswith(ON_BRANCH) else "main"


def open_graph(path: str, **options: Any) -> Graph:
    return og.open(path, **{"durability": "process", "self_care": False, **options})


def write(path: str, writer: str, arm: str = "") -> str:
    graph = open_graph(path)
    failpoints.arm_from_environment(arm)
    match writer:
        case "ensure":
            graph.ensure_indices()
        case "optimize":
            graph.optimize()
        case "cleanup":
            graph.cleanup(keep=1, confirm=True)
        case "retention":
            clean_by_self_care(path)
        case merge if merge.startswith(MERGE):
            graph.merge(BRANCH, actor="worker")
        case _:
            graph.apply_schema(
                DESIRED[writer.removeprefix(ON_BRANCH)],
                branch=branch_of(writer),
                allow_data_loss=writer == "hard",
                actor="worker",
            )
    return "done"


def clean_by_self_care(path: str) -> None:
    """A write that changes no value and makes a cleanup due, which ends before this does."""
    usual = retention.EVERY_VERSIONS, retention.GRACE
    retention.EVERY_VERSIONS, retention.GRACE = 1, timedelta(0)
    try:
        with open_graph(path, self_care=True, config={"retention": "keep=1"}) as graph:
            graph.mutate('query q() { update Person set { age: 1 } where name = "ann" }')
    finally:
        retention.EVERY_VERSIONS, retention.GRACE = usual


def unindexed(path: str) -> None:
    """The same graph as if no index had been built on it."""
    graph = open_graph(path)
    records = list(graph.export())
    # What is there already would not be written again.
    graph.load([_rename_ends(record) for record in records], mode="overwrite")
    graph.load(records, mode="overwrite")


def _rename_ends(record: dict[str, Any]) -> dict[str, Any]:
    """The same record about other nodes."""
    if "edge" in record:
        ends = {end: f"other {record[end]}" for end in ("from", "to")}
        return {"edge": record["edge"], **ends, "data": {}}
    return {"type": record["type"], "data": {"name": f"other {record['data']['name']}"}}


def recover(path: str, arm: str = "") -> str:
    failpoints.arm_from_environment(arm)
    open_graph(path)
    return "opened"


def rows_of(graph: Graph, branch: str = "main") -> dict[str, list[str]]:
    tables = inside(graph).store.tables
    found = {}
    for key, entry in graph.snapshot(branch).entries.items():
        rows = tables.reads.scan(open_pin(tables, entry)).to_pylist()
        found[key] = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return found


def look(path: str, branch: str = "main") -> dict[str, Any]:
    """What a reader sees; the schema and the rows."""
    graph = open_graph(path, mode="r")
    return {"schema": graph.branch_schema(branch), "rows": rows_of(graph, branch)}


def look_around(path: str, writer: str) -> dict[str, Any]:
    """What a reader sees before a writer, and after the whole of it."""
    branch = branch_of(writer)
    old = look(path, branch)
    write(path, writer)
    return {"old": old, "new": look(path, branch)}


def inspect(path: str, branch: str = "main") -> dict[str, Any]:
    """Open read-write, which recovers; look; write again."""
    graph = open_graph(path)
    tables = inside(graph).store.tables
    entries = graph.snapshot(branch).entries
    top = Path(path)
    found: dict[str, Any] = {
        "schema": graph.branch_schema(branch),
        "rows": rows_of(graph, branch),
        "main": rows_of(graph),
        "pins": {key: entry.version for key, entry in entries.items()},
        "heads": {
            key: tables.head_version(tables.root.table(entry.table_path, entry.table_branch))
            if owns_lineage(branch, entry.table_branch)
            else entry.version
            for key, entry in entries.items()
        },
        "left": sorted(each.name for each in top.glob("*.staging"))
        + sorted(each.name for each in (top / "__recovery").glob("*.json"))
        + ([LOCK_REF] if (top / LOCK_REF).exists() else []),
        "audit": [each.kind.value for each in graph.recoveries()],
        "verify": [str(each) for each in graph.verify().errors],
    }
    second = rows_of(open_graph(path), branch)
    assert second == found["rows"], "a second open changes nothing"
    graph.mutate('query q() { insert Person { name: "next" } }', branch=branch)
    graph.optimize()
    verified = graph.verify()
    # What a branch has written is not indexed before main has it.
    is_alone = graph.branches() == ["main"]
    found["after"] = [str(e) for e in (verified.findings if is_alone else verified.errors)]
    found["next"] = len(rows_of(open_graph(path), branch)["node:Person"])
    return found
