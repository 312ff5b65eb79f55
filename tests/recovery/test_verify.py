"""Verify: a sound graph has nothing to report, and each kind of damage is named with its remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.manifest import Publish, UpdatePin, publish
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import IndexKind, IndexSpec
from omnigraph.testing.inside import inside
from omnigraph.upkeep.findings import Finding, Severity
from omnigraph.write.pins import version_to_pin
from tests.recovery import work
from tests.recovery.staging import commit_rows, leave, new_graph, reopen, write_raw


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "graph", "forked")


def the_error(graph: Graph, check: str) -> Finding:
    """The one finding of a check; its advice says what to do."""
    found = [each for each in reopen(graph, mode="r").verify().errors if each.check == check]
    assert len({each.subject for each in found}) == 1, found
    return found[0]


def force(graph: Graph, table_key: str, rows: list[dict[str, object]]) -> None:
    """Commit and publish rows that no writer of ours would let through."""
    tables = inside(graph).store.tables
    entry = graph.snapshot().entries[table_key]
    handle = tables.open_at(tables.root.table(entry.table_path), entry.version)
    full = [{field.name: row.get(field.name) for field in handle.schema} for row in rows]
    staged = tables.rows.stage_append(handle, pa.Table.from_pylist(full, schema=handle.schema))
    pin = version_to_pin(table_key, tables.commit_staged(staged))
    publish(inside(graph).coordinator, Publish("main", (pin,)))


def folder_of(graph: Graph, table_key: str, branch: str = "main") -> Path:
    entry = graph.snapshot(branch).entries[table_key]
    place = Path(graph.uri) / entry.table_path
    return place / "tree" / entry.table_branch if entry.table_branch else place


def test_a_sound_graph_is_clean(graph: Graph) -> None:
    report = graph.verify()

    assert report.errors == ()
    assert report.is_clean
    assert report.branches_checked == 2
    # Seven tables on main; the branch has five of its own and shares two.
    assert report.tables_checked == 12
    assert report.rows_checked == 10 + 13
    assert graph.verify() == report


def test_verify_writes_nothing(graph: Graph) -> None:
    before = work.standing_of(graph)

    with counting() as counters:
        reopen(graph, mode="r").verify()

    assert (counters.commits, counters.text_writes, counters.control_merges) == (0, 0, 0)
    assert work.standing_of(graph) == before


def test_an_unfinished_write_is_named_with_its_actor(graph: Graph) -> None:
    leave(graph, Failpoint.COMMIT_AFTER_TABLE)

    found = the_error(graph, "sidecars")

    assert "a Mutation of worker on 'edge:Knows', 'node:Person' is unfinished" in found.message
    assert "opening the graph read-write" in found.fix
    assert "opening the graph read-write" in the_error(graph, "pins").fix
    assert reopen(graph).verify().errors == ()


def test_a_damaged_sidecar_is_named(graph: Graph) -> None:
    write_raw(graph, "01HV", b"{")

    assert "__recovery/01HV.json" in the_error(graph, "sidecars").message


def test_drift_that_no_sidecar_covers_is_for_repair(graph: Graph) -> None:
    commit_rows(graph, "node:Person", "drift")

    found = the_error(graph, "pins")

    assert str(found) == (
        "error: 'node:Person': HEAD is 3, ahead of the pinned version 2 — run `omnigraph repair`"
    )


@pytest.mark.parametrize("branch", ["main", work.BRANCH])
def test_a_file_that_is_gone_is_named(graph: Graph, branch: str) -> None:
    victim = next((folder_of(graph, "node:Person", branch) / "data").glob("*.lance"))
    victim.unlink()

    found = the_error(graph, "files")

    assert found.subject == "'node:Person'"
    assert f"'{victim}' is missing" in found.message
    assert "backup" in found.fix


def test_a_file_of_the_parent_is_missed_by_the_branch_too(graph: Graph) -> None:
    """The branch shares the rows it did not write."""
    next((folder_of(graph, "node:Person") / "data").glob("*.lance")).unlink()

    assert the_error(graph, "files").branches == ("main", work.BRANCH)


def test_a_file_that_was_cut_off_is_named_with_both_sizes(graph: Graph) -> None:
    victim = next((folder_of(graph, "node:Tag") / "data").glob("*.lance"))
    size = victim.stat().st_size
    victim.write_bytes(victim.read_bytes()[:-10])

    assert f"has {size - 10} bytes instead of {size}" in the_error(graph, "files").message


def test_a_deletion_file_that_is_gone_is_named(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    graph.mutate('query q() { delete Person where name = "bob" }')
    next((folder_of(graph, "node:Person") / "_deletions").iterdir()).unlink()

    assert "_deletions" in the_error(graph, "files").message


def test_an_index_that_is_gone_is_named(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    tables, entry = inside(graph).store.tables, graph.snapshot().entries["node:Person"]
    handle = tables.open_at(tables.root.table(entry.table_path), entry.version)
    staged = tables.indexes.stage_create(handle, [IndexSpec("id", IndexKind.BTREE)]).transaction
    assert staged is not None
    pin = version_to_pin("node:Person", tables.commit_staged(staged))
    publish(inside(graph).coordinator, Publish("main", (pin,)))
    covered = {w.message for w in graph.verify().warnings if w.subject == "'node:Person'"}
    assert not any("`id`" in message for message in covered)
    index = next((folder_of(graph, "node:Person") / "_indices").iterdir())
    for file in index.iterdir():
        file.unlink()
    index.rmdir()

    found = the_error(graph, "files")
    assert f"_indices/{index.name}/" in str(found.file)
    assert "is missing" in found.message


def test_a_version_that_is_gone_is_named(graph: Graph) -> None:
    entry = graph.snapshot().entries["node:City"]
    name = f"{2**64 - 1 - entry.version:020d}.manifest"
    (folder_of(graph, "node:City") / "_versions" / name).unlink()

    assert "pinned version 2 is missing" in the_error(graph, "pins").message


def test_a_pin_that_does_not_say_what_is_there_is_named(graph: Graph) -> None:
    entry = graph.snapshot().entries["node:City"]
    tables = inside(graph).store.tables
    location = tables.root.table(entry.table_path)
    commit_rows(graph, "node:City", "more")
    pin = UpdatePin("node:City", tables.head_version(location), None, 99, None, "not-its-uuid")
    publish(inside(graph).coordinator, Publish("main", (pin,)))

    messages = [each.message for each in graph.verify().errors]

    assert "has 2 rows, the manifest says 99" in messages
    assert "version 3 is not the one that was published" in messages


def test_an_id_that_occurs_twice_is_named(graph: Graph) -> None:
    force(graph, "node:Person", [{"id": "ann", "name": "ann"}])

    assert "'ann'" in the_error(graph, "keys").message


def test_an_edge_without_its_node_is_named(graph: Graph) -> None:
    force(graph, "edge:Knows", [{"id": f"e{n}", "src": "ann", "dst": f"no{n}"} for n in range(5)])

    found = the_error(graph, "endpoints")

    assert "dst 'no0' not found in Person" in found.message
    assert "; and 2 more" in found.message


def test_a_source_with_too_many_edges_is_named(graph: Graph) -> None:
    force(graph, "edge:WorksAt", [{"id": "e1", "src": "cy", "dst": "firm"}])

    assert "max 1" in the_error(graph, "cardinality").message


def test_an_index_that_is_missing_is_a_warning(graph: Graph) -> None:
    report = graph.verify()

    assert report.is_clean
    assert {each.check for each in report.warnings} == {"indexes"}
    assert all(each.severity is Severity.WARNING for each in report.warnings)
    assert "`omnigraph optimize`" in report.warnings[0].fix


def test_the_report_is_plain_json(graph: Graph) -> None:
    commit_rows(graph, "node:Person", "drift")

    found = json.loads(json.dumps(graph.verify().to_json()))

    assert found["clean"] is False
    assert found["tables_checked"] == 12
    assert found["findings"][0] == {
        "severity": "error",
        "check": "pins",
        "subject": "'node:Person'",
        "branch": None,
        "message": "HEAD is 3, ahead of the pinned version 2",
        "fix": "run `omnigraph repair`",
        "file": None,
        "branches": [],
        "commit": None,
        "rows": None,
    }
