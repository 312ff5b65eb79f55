"""Self-care: a graph written in small steps keeps few fragments, and no answer changes."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from threading import Event

import lance
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import StorageError
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.manifest.coordinator import FRAGMENTS_MAX
from omnigraph.storage import file_times
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from omnigraph.testing.together import run_together
from omnigraph.upkeep.self_care import CHECK_EVERY_VERSIONS, SMALL_FRAGMENTS_MAX
from tests.graph.reading import add, ages, heads, names, new_graph, pins, reopen, sidecars

pytestmark = pytest.mark.slow

WRITES = 2 * CHECK_EVERY_VERSIONS + 6


def fragments(graph: og.Graph) -> int:
    """In how many fragments the table of people is."""
    entry = graph.snapshot().entries["node:Person"]
    return len(lance.dataset(f"{graph.uri}/{entry.table_path}").get_fragments())


def data_files(graph: og.Graph) -> list[Path]:
    path = Path(graph.uri) / graph.snapshot().entries["node:Person"].table_path
    return [*(path / "data").iterdir()]


def manifest_fragments(graph: og.Graph) -> int:
    return inside(graph).store.manifest.fragment_count()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph that many small writes have gone through."""
    graph = new_graph(tmp_path_factory.mktemp("busy") / "graph")
    for number in range(WRITES):
        add(graph, "person", name=f"p{number:03}")
        inside(graph).wait_for_self_care()
    return graph


def test_many_small_writes_leave_few_pieces(busy: og.Graph) -> None:
    assert fragments(busy) < CHECK_EVERY_VERSIONS + SMALL_FRAGMENTS_MAX < WRITES
    assert manifest_fragments(busy) <= FRAGMENTS_MAX


def test_compaction_changes_nothing_that_anyone_can_see(busy: og.Graph) -> None:
    """Invariant I25: rows, commits and every earlier version are as they would have been."""
    assert names(busy) == [f"p{number:03}" for number in range(WRITES)]
    commits = busy.commits()
    assert len(commits) == WRITES + 1
    assert [commit.parent_id for commit in commits[:-1]] == [c.commit_id for c in commits[1:]]
    for commit in commits[:: WRITES // 6]:
        rows_then = WRITES - commits.index(commit)
        assert len(names(busy, version=commit.manifest_version)) == rows_then
    assert heads(busy) == pins(busy)
    assert sidecars(busy) == []


def test_what_a_reopened_handle_sees_is_the_same(busy: og.Graph) -> None:
    again = reopen(busy)

    assert again.snapshot().entries == busy.snapshot().entries
    assert again.commits() == busy.commits()


def test_a_group_that_passes_a_check_by_is_compacted(tmp_path: Path) -> None:
    """Its members make their versions at once, so hardly ever does it end just at a check."""
    graph = new_graph(tmp_path / "graph")
    count = CHECK_EVERY_VERSIONS + 8
    members = [partial(add, graph, "person", name=f"p{number:03}") for number in range(1, count)]
    add(graph, "person", name="p000")

    results = run_together(graph, members)
    inside(graph).wait_for_self_care()

    assert len({result.manifest_version for result in results}) == 1
    assert fragments(graph) < SMALL_FRAGMENTS_MAX
    assert names(graph) == [f"p{number:03}" for number in range(count)]


def nearly_due(path: Path) -> og.Graph:
    """A graph that the next insert makes due for a compaction of its people."""
    graph = new_graph(path)
    for number in range(CHECK_EVERY_VERSIONS - pins(graph)["node:Person"] - 1):
        add(graph, "person", name=f"p{number:03}")
    inside(graph).wait_for_self_care()
    return graph


def test_writes_go_on_while_fragments_are_merged(tmp_path: Path) -> None:
    """An insert that came meanwhile is behind the new fragment, which is written once."""
    graph = nearly_due(tmp_path / "graph")

    def insert() -> None:
        add(graph, "person", name="q-meanwhile")

    before = len(data_files(graph))
    with arm_failpoints({Failpoint.OPTIMIZE_AFTER_STAGE: insert}) as hits:
        add(graph, "person", name="p-last")
        inside(graph).wait_for_self_care()

    assert hits[Failpoint.OPTIMIZE_AFTER_STAGE] == 1
    assert len(data_files(graph)) == before + 2 + 1
    assert fragments(graph) == 2
    assert names(graph) == sorted(names(reopen(graph)))
    assert {"p-last", "q-meanwhile"} <= set(names(graph))
    assert heads(graph) == pins(graph)
    commits = graph.commits()
    assert len(names(graph, version=commits[1].manifest_version)) == len(commits) - 2


def test_a_table_whose_rows_change_all_the_time_is_compacted_all_the_same(tmp_path: Path) -> None:
    """What was written is of rows that are no more, so the compaction begins again by itself."""
    graph = nearly_due(tmp_path / "graph")

    def update() -> None:
        add(graph, "age", name="p000", age=44)

    before = len(data_files(graph))
    with arm_failpoints({Failpoint.OPTIMIZE_AFTER_STAGE: update}):
        add(graph, "person", name="p-last")
        inside(graph).wait_for_self_care()

    assert len(data_files(graph)) == before + 2 + 2
    assert fragments(graph) == 1
    assert ages(graph)["p000"] == 44
    assert heads(graph) == pins(graph)


def test_a_compaction_gives_back_the_memory_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread keeps what Arrow has freed in it: one that works now and then has to let go."""
    asked = list[str]()

    class Pool:
        def release_unused(self) -> None:
            asked.append(threading.current_thread().name)

    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    graph = new_graph(tmp_path / "graph")
    add(graph, "person", name="first")
    members = [partial(add, graph, "person", name=f"p{n:03}") for n in range(CHECK_EVERY_VERSIONS)]
    run_together(graph, members)
    inside(graph).wait_for_self_care()

    assert asked == ["omnigraph-self-care_0"]


def test_planted_without_self_care_the_fragments_pile_up(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph", self_care=False)
    for number in range(CHECK_EVERY_VERSIONS + 2):
        add(graph, "person", name=f"p{number}")

    assert fragments(graph) == CHECK_EVERY_VERSIONS + 2
    assert manifest_fragments(graph) > FRAGMENTS_MAX


def test_trouble_while_compacting_does_not_fail_the_write(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    due = CHECK_EVERY_VERSIONS - pins(graph)["node:Person"]
    for number in range(due - 1):
        add(graph, "person", name=f"p{number}")

    def trouble() -> None:
        raise StorageError("the store does not answer")

    with arm_failpoints({Failpoint.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT: trouble}) as hits:
        result = add(graph, "person", name="last")
        inside(graph).wait_for_self_care()

    assert hits[Failpoint.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT] == 1
    assert result.commit_id is not None
    assert len(names(reopen(graph, mode="r"))) == due
    assert sidecars(graph) == []
    (undone,) = graph.recoveries()
    assert (undone.kind.value, undone.writer_kind) == ("RolledBack", "Optimize")
    assert [each.table_key for each in undone.outcomes] == ["node:Person"]


def test_a_write_at_the_end_of_a_program_is_made_and_reported_as_made(tmp_path: Path) -> None:
    """When Python ends its pools take no more work: neither syncs nor compactions may need them."""
    graph = new_graph(tmp_path / "graph")
    for number in range(CHECK_EVERY_VERSIONS - pins(graph)["node:Person"] - 1):
        add(graph, "person", name=f"p{number}")
    graph.close()
    program = f"""
import atexit, omnigraph as og
graph = og.open({graph.uri!r})
def write():
    insert = 'query q() {{ insert Person {{ name: "last" }} }}'
    print(graph.mutate(insert).affected_nodes)
atexit.register(write)
"""

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (ended.returncode, ended.stdout) == (0, "1\n"), ended.stderr
    assert "last" in names(reopen(graph))
    assert sidecars(graph) == []


def test_a_write_is_acknowledged_before_it_compacts(tmp_path: Path) -> None:
    """The compaction that it makes due is held up, and it is not."""
    graph = new_graph(tmp_path / "graph")
    due = CHECK_EVERY_VERSIONS - pins(graph)["node:Person"]
    for number in range(due - 1):
        add(graph, "person", name=f"p{number}")
    inside(graph).wait_for_self_care()
    may_go_on = Event()

    def hold() -> None:
        assert may_go_on.wait(60)

    with arm_failpoints({Failpoint.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT: hold}):
        add(graph, "person", name="last")
        assert len(names(graph)) == due
        may_go_on.set()
        graph.close()

    assert fragments(reopen(graph)) == 1
    assert sidecars(graph) == []


def cost_of_an_insert(graph: og.Graph, name: str) -> dict[str, int]:
    with counting() as counters:
        add(graph, "person", name=name)
    wanted = ("opens", "head_probes", "scans", "commits", "control_reads", "control_merges")
    return {each: getattr(counters, each) for each in (*wanted, "text_reads", "text_lists")}


def test_a_write_costs_the_same_however_long_the_history_is(
    busy: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant I26, in things done rather than in time."""
    monkeypatch.setattr(file_times, "STABLE_NS", 0)
    young = new_graph(tmp_path / "graph")
    add(young, "person", name="first")

    assert cost_of_an_insert(busy, "z1") == cost_of_an_insert(young, "z1")


def test_opening_reads_each_control_table_once_whatever_the_history(
    busy: og.Graph, tmp_path: Path
) -> None:
    young = new_graph(tmp_path / "graph")
    add(young, "person", name="first")  # so that the history has a version before its newest
    costs = []
    for graph in (young, busy):
        reopen(graph)
        with counting() as counters:
            reopen(graph)
        costs.append((counters.control_reads, counters.opens, counters.head_probes))

    assert costs[0] == costs[1]
    # The manifest and the commit history.
    assert costs[0][0] == 2
