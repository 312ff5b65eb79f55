"""What the tests of branches share: a small graph, ways to change it, and looking at it whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.branch.descent import open_entry
from omnigraph.branch.images import images
from omnigraph.branch.merge import MergePreview, MergeResult
from omnigraph.testing.inside import inside
from tests.ready import copy_ready

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
    @range(age, 0..150)
}
node Firm { code: String @key }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Firm @card(0..1)
"""

CHANGES = """
query person($name: String, $age: I32?) { insert Person { name: $name, age: $age } }
query firm($code: String) { insert Firm { code: $code } }
query knows($a: String, $b: String) { insert Knows { from: $a, to: $b } }
query works($a: String, $b: String) { insert WorksAt { from: $a, to: $b } }
query age($name: String, $age: I32?) { update Person set { age: $age } where name = $name }
query email($name: String, $email: String) {
    update Person set { email: $email } where name = $name
}
query gone($name: String) { delete Person where name = $name }
query apart($a: String) { delete Knows where from = $a }
query quit($a: String) { delete WorksAt where from = $a }
"""

State = dict[str, dict[str, dict[str, Any]]]
"""Table key → id → row."""


def new_people(path: Path, **options: Any) -> og.Graph:
    """The people of the truth table: four of them, two firms, one acquaintance, one job."""
    if options:
        return _make_people(path, **options)
    copy_ready("people", _make_people, path)
    return og.open(path, durability="process")


def _make_people(path: Path, **options: Any) -> og.Graph:
    graph = og.init(path, schema=SCHEMA, **{"durability": "process", **options})
    records = [
        *({"type": "Person", "data": {"name": n, "age": a}} for n, a in AGES.items()),
        *({"type": "Firm", "data": {"code": code}} for code in ("f1", "f2")),
        {"edge": "Knows", "from": "bob", "to": "carol", "data": {}},
        {"edge": "WorksAt", "from": "bob", "to": "f1", "data": {}},
    ]
    graph.load(records, mode="append")
    return graph


AGES = {"alice": 30, "bob": 25, "carol": 40, "dan": 50}


def change(graph: og.Graph, what: str, /, branch: str = "main", **params: Any) -> None:
    """Run one of the small mutations of `CHANGES`."""
    graph.mutate(CHANGES, what, params, branch=branch)


def state_of(graph: og.Graph, branch: str = "main") -> State:
    """Every row of every table of a branch."""
    return snapshot_state(graph, graph.snapshot(branch))


def snapshot_state(graph: og.Graph, snapshot: og.Snapshot) -> State:
    tables = inside(graph).store.tables
    found: State = {}
    for key, entry in snapshot.entries.items():
        rows = tables.reads.scan(open_entry(tables, entry), include_blobs=True)
        shown = [image for batch in rows.to_batches() for image in images(batch)]
        found[key] = {row["id"]: row for row in shown}
        assert len(found[key]) == len(shown), f"ids of {key} occur twice"
        assert len(shown) == entry.row_count
    return found


def merged(graph: og.Graph, source: str, into: str = "main", **options: Any) -> MergeResult:
    """Merge, and say that the result is not a preview."""
    result = graph.merge(source, into, **options)
    assert isinstance(result, MergeResult)
    return result


def previewed(graph: og.Graph, source: str, into: str = "main", **options: Any) -> MergePreview:
    result = graph.merge(source, into, preview=True, **options)
    assert isinstance(result, MergePreview)
    return result


def joined(base: State, source: State, target: State) -> State:
    """What a merge without conflicts leaves, by its definition and nothing else."""
    return {
        key: _joined_rows(base[key], source[key], target[key]) for key in {*base, *source, *target}
    }


def _joined_rows(
    base: Mapping[str, Any], source: Mapping[str, Any], target: Mapping[str, Any]
) -> dict[str, Any]:
    result = {}
    for id_ in {*base, *source, *target}:
        row = source.get(id_) if source.get(id_) != base.get(id_) else target.get(id_)
        if row is not None:
            result[id_] = row
    return result
