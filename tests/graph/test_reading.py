"""Reads see one snapshot, whatever writers do meanwhile; writes say what they affected."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, CommitNotFound, ConflictError, VersionNotFound
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.storage.counters import counting
from omnigraph.storage.queues import writer_queues
from omnigraph.testing.inside import inside

SCHEMA = """
node Left { slug: String @key  n: I32? }
node Right { slug: String @key }
edge Joins: Left -> Right
"""
WRITES = """
query pair($s: String) {
    insert Left { slug: $s, n: 0 }
    insert Right { slug: $s }
    insert Joins { from: $s, to: $s }
}
query touch($s: String) { update Left set { n: 1 } where slug = $s }
query drop($s: String) { delete Left where slug = $s }
"""
COUNTS = """
query left() { match { $l: Left } return { count($l) as n } }
query joined() { match { $l: Left  $l joins $r } return { count($r) as n } }
query both() { match { $l: Left  $l joins $r } return { $l.slug, $r.slug } }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", schema=SCHEMA, durability="process")


def count(graph: og.Graph, name: str, branch: str = "main") -> int:
    found: int = graph.query(COUNTS, name, branch=branch).rows()[0]["n"]
    return found


@pytest.mark.accepts("S-184")
def test_a_mutation_reports_what_each_statement_affected(graph: og.Graph) -> None:
    inserted = graph.mutate(WRITES, "pair", {"s": "a"})
    updated = graph.mutate(WRITES, "touch", {"s": "a"})
    deleted = graph.mutate(WRITES, "drop", {"s": "a"})
    nothing = graph.mutate(WRITES, "touch", {"s": "gone"})

    counts = [(each.affected_nodes, each.affected_edges) for each in (inserted, updated, deleted)]
    assert counts == [(2, 1), (1, 0), (1, 1)]
    assert (nothing.affected_nodes, nothing.commit_id) == (0, None)


@pytest.mark.slow
@pytest.mark.accepts("S-179")
def test_a_query_at_a_version_answers_as_main_did_then(graph: og.Graph) -> None:
    """Rows, values and edges of every version, asked for in any order, also after upkeep."""
    slugs = """query at($n: I32) {
        match { $l: Left  $l.n = $n  $l joins $r } return { $l.slug, $r.slug } order { $l.slug }
    }"""
    then: dict[int, list[Any]] = {}

    def ask(version: int) -> list[Any]:
        asked = [graph.run_query_at(version, slugs, params={"n": n}) for n in (0, 1)]
        assert {each.manifest_version for each in asked} == {version}
        joined = graph.run_query_at(version, COUNTS, "joined").rows()
        return [[row["l.slug"] for row in each.rows()] for each in asked] + [joined]

    then[graph.snapshot().manifest_version] = [[], [], [{"n": 0}]]
    changes: list[tuple[str, str, list[Any]]] = [
        ("pair", "a", [["a"], [], [{"n": 1}]]),
        ("pair", "b", [["a", "b"], [], [{"n": 2}]]),
        ("touch", "a", [["b"], ["a"], [{"n": 2}]]),
        ("drop", "b", [[], ["a"], [{"n": 1}]]),
    ]
    for name, slug, answer in changes:
        then[graph.mutate(WRITES, name, {"s": slug}).manifest_version] = answer
    graph.create_branch("side")
    graph.mutate(WRITES, "pair", {"s": "z"}, branch="side")
    graph.optimize()

    assert len(then) == 5
    for version, answer in reversed(then.items()):
        assert ask(version) == answer
    assert graph.query(COUNTS, "joined", version=min(then)).rows() == [{"n": 0}]
    with pytest.raises(VersionNotFound):
        graph.run_query_at(99_999, COUNTS, "left")


@pytest.mark.accepts("S-166")
def test_a_read_is_refused_when_the_schema_files_were_edited(graph: og.Graph) -> None:
    """Before anything runs: no table is opened."""
    path = Path(graph.uri) / "_schema.pg"
    path.write_text(path.read_text().replace("n: I32?", "n: I64?"))

    with counting() as counters, pytest.raises(ConflictError, match=r"_schema\.pg"):
        graph.query(COUNTS, "left")

    assert (counters.opens, counters.scans) == (0, 0)


@pytest.mark.slow
@pytest.mark.accepts("S-180")
def test_a_query_sees_whole_writes_only(graph: og.Graph) -> None:
    """While a writer adds pairs, every answer has as many left ends as right ends."""
    done = threading.Event()

    def write() -> None:
        writer = og.open(graph.uri, durability="process")
        for number in range(15):
            writer.mutate(WRITES, "pair", {"s": f"p{number}"})
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    while not done.is_set():
        rows = graph.query(COUNTS, "both").rows()
        assert all(row["l.slug"] == row["r.slug"] for row in rows)
        seen.append(len(rows))
    thread.join()

    assert seen == sorted(seen)
    assert count(graph, "left") == count(graph, "joined") == 15


@pytest.mark.accepts("S-180")
def test_a_snapshot_taken_before_a_write_answers_as_before(graph: og.Graph) -> None:
    graph.mutate(WRITES, "pair", {"s": "a"})
    before = graph.commits()[0].commit_id

    graph.mutate(WRITES, "drop", {"s": "a"})

    assert graph.query(COUNTS, "left", commit=before).rows() == [{"n": 1}]
    assert count(graph, "left") == 0


@pytest.mark.accepts("S-181", "S-069")
def test_a_writer_blocks_its_own_tables_and_no_others(graph: og.Graph) -> None:
    """A writer that stands still between commit and publish on one branch: reads and another
    branch's writes go on, while its own tables are locked."""
    graph.mutate(WRITES, "pair", {"s": "a"})
    graph.create_branch("dev")
    entered, go_on = threading.Event(), threading.Event()

    def wait_on_dev() -> None:
        if threading.current_thread() is writer:
            entered.set()
            assert go_on.wait(60)

    writer = threading.Thread(
        target=lambda: graph.mutate(WRITES, "pair", {"s": "dev"}, branch="dev")
    )
    with arm_failpoints({Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER: wait_on_dev}):
        writer.start()
        assert entered.wait(60)
        queues = writer_queues(inside(graph).store.root)
        with pytest.raises(ConflictError, match="another writer holds 'node:Left'"):
            queues.acquire_many([("node:Left", "dev")], timeout_seconds=0.05)
        graph.mutate(WRITES, "pair", {"s": "main"})
        assert (count(graph, "left"), count(graph, "left", "dev")) == (2, 1)
        go_on.set()
        writer.join()

    assert count(graph, "left", "dev") == 2


def test_a_commit_just_made_is_found_without_a_look_at_any_manifest(graph: og.Graph) -> None:
    for name in ("a", "b", "dev"):
        graph.create_branch(name)
    made = graph.mutate(WRITES, "pair", {"s": "a"}, branch="dev")
    assert made.commit_id is not None

    with counting() as counters:
        found = graph.commit(made.commit_id)

    assert (found.commit_id, found.branch) == (made.commit_id, "dev")
    assert (counters.head_probes, counters.control_reads) == (0, 0)


def test_a_commit_of_a_branch_that_another_handle_deleted_is_gone(graph: og.Graph) -> None:
    graph.create_branch("dev")
    made = graph.mutate(WRITES, "pair", {"s": "a"}, branch="dev")
    with og.open(graph.uri) as other:
        other.delete_branch("dev")

    with pytest.raises(CommitNotFound):
        graph.commit(str(made.commit_id))


@pytest.mark.accepts("S-084")
def test_a_three_way_merge_rewrites_by_one_upsert_and_staged_commits(graph: og.Graph) -> None:
    graph.mutate(WRITES, "pair", {"s": "a"})
    graph.mutate(WRITES, "pair", {"s": "b"})
    graph.create_branch("dev")
    graph.mutate(WRITES, "touch", {"s": "a"}, branch="dev")
    graph.mutate(WRITES, "touch", {"s": "b"})

    with counting() as counters:
        result = graph.merge("dev")

    assert result.outcome == "merged"
    assert dict(counters.stages) == {"update": 1}
    assert counters.stage_update_rows == 1
    assert counters.commits == 1


def test_an_unknown_engine_is_refused(graph: og.Graph) -> None:
    assert graph.query(COUNTS, "left", engine="local").rows() == [{"n": 0}]

    with pytest.raises(BadRequestError, match="expected one of 'local', 'spark', 'auto'"):
        graph.query(COUNTS, "left", engine="abacus")
