"""A branch whose files are unchanged is not read again; every change is seen by the next read."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, ConflictError
from omnigraph.manifest import snapshot_cache
from omnigraph.manifest.snapshot_cache import SnapshotCache
from omnigraph.storage import file_times, graph_texts
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from tests.graph.reading import add, new_graph, reopen

NAMES = "query q() { match { $p: Person } return { $p.name as n } order { n } }"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """Its files count as stable after a moment, so that a test need not wait for seconds."""
    monkeypatch.setattr(file_times, "STABLE_NS", 20_000_000)
    graph = new_graph(tmp_path / "graph")
    add(graph, "person", name="ann")
    return graph


def wait() -> None:
    time.sleep(0.05)


def names(graph: og.Graph, branch: str = "main") -> list[str]:
    return [row["n"] for row in graph.query(NAMES, branch=branch).rows()]


def test_a_repeated_read_opens_no_file(graph: og.Graph) -> None:
    graph.create_branch("dev")
    wait()
    for branch in ("main", "dev"):
        names(graph, branch)

        with counting() as counters:
            assert names(graph, branch) == ["ann"]

        assert (counters.head_probes, counters.text_reads, counters.control_reads) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("branch", ["main", "dev"])
def test_a_write_through_any_handle_is_seen_by_the_next_read(graph: og.Graph, branch: str) -> None:
    graph.create_branch("dev")
    other = reopen(graph)
    expected = ["ann"]
    for number in range(6):
        wait()
        assert names(graph, branch) == names(graph, branch) == expected

        add(other if number % 2 else graph, "person", name=f"p{number}", branch=branch)
        expected.append(f"p{number}")

        assert names(graph, branch) == names(other, branch) == expected


@pytest.mark.slow
def test_writes_in_a_burst_are_each_seen(graph: og.Graph) -> None:
    """Within one tick of the file system's clock the attributes may not change: not trusted."""
    other = reopen(graph)
    for number in range(10):
        add(other, "person", name=f"p{number}")
        assert len(names(graph)) == number + 2


def test_files_that_changed_a_moment_ago_are_not_trusted(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_times, "STABLE_NS", 3_600 * 10**9)
    wait()
    names(graph)

    with counting() as counters:
        names(graph)

    assert counters.text_reads > 0  # it looked again


def test_main_is_trusted_without_delay_while_it_has_no_next_version(graph: og.Graph) -> None:
    other = reopen(graph)
    for number in range(4):
        wait()  # else the schema files are too new
        add(other, "person", name=f"p{number}")
        assert len(names(graph)) == number + 2

        with counting() as counters:
            assert len(names(graph)) == number + 2

        assert (counters.head_probes, counters.text_reads, counters.control_reads) == (0, 0, 0)


def test_a_write_is_seen_within_one_tick_of_the_file_clock(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many writes one tick has room for."""
    hour_ns = 3_600 * 10**9
    now = time.time_ns() // 10**9 * 10**9 + 1

    def attributes(path: str) -> tuple[int, int, int]:
        return 1, now + hour_ns if path.endswith("_versions") else now - hour_ns, 1

    monkeypatch.setattr(snapshot_cache, "read_attributes", attributes)
    other = reopen(graph)
    for number in range(4):
        add(other, "person", name=f"p{number}")
        assert len(names(graph)) == number + 2
        with counting() as counters:
            assert len(names(graph)) == number + 2
        assert counters.head_probes == 0


def test_main_of_a_file_system_with_whole_seconds_is_not_trusted_early(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writes and a clean-up of the version between them would go unnoticed."""
    hour_ns = 3_600 * 10**9
    now = time.time_ns() // 10**9 * 10**9

    def attributes(path: str) -> tuple[int, int, int]:
        return 1, now + hour_ns if path.endswith("_versions") else now - hour_ns, 1

    monkeypatch.setattr(snapshot_cache, "read_attributes", attributes)
    monkeypatch.setattr(graph_texts, "read_stable_attributes", lambda _: None)
    names(graph)
    with counting() as counters:
        names(graph)
    assert counters.text_reads > 0  # it looked again


def test_branches_that_do_not_exist_take_no_entry(graph: og.Graph) -> None:
    for number in range(10):
        with pytest.raises(BranchNotFound):
            names(graph, f"nothing-{number}")
    assert not inside(graph).snapshots._entries

    wait()
    names(graph)
    assert set(inside(graph).snapshots._entries) == {"main"}


def test_files_that_were_too_new_when_probed_stay_untrusted(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is delayed between probe and put must not take its files for stable."""
    graph.create_branch("dev")
    cache = SnapshotCache[str](inside(graph).store.root)
    changed_ns = (Path(graph.uri) / "__manifest/_refs/branches").stat().st_ctime_ns
    monkeypatch.setattr(time, "time_ns", lambda: changed_ns + 1)
    probe = cache.probe("dev")
    monkeypatch.setattr(time, "time_ns", lambda: changed_ns + 10**10)

    cache.put(probe, "found", 1)
    assert cache.get(cache.probe("dev")) is None

    cache.put(cache.probe("dev"), "found", 1)
    assert cache.get(cache.probe("dev")) == "found"


def test_a_version_whose_file_is_missing_proves_nothing(graph: og.Graph) -> None:
    wait()
    add(graph, "person", name="bob")
    cache = SnapshotCache[str](inside(graph).store.root)
    probe = cache.probe("main")
    assert probe is not None
    assert probe.attributes[-1] is not None
    changed_ns = probe.attributes[-1][1]
    probe = probe._replace(time_ns=changed_ns + 1)  # right after the write, however slow
    version = graph.snapshot().manifest_version

    cache.put(probe, "found", version + 5)
    assert cache.get(cache.probe("main")) is None

    cache.put(probe, "found", version)
    assert cache.get(cache.probe("main")) == "found"


def test_a_branch_that_is_deleted_or_recreated_is_noticed(graph: og.Graph) -> None:
    other = reopen(graph)
    other.create_branch("dev")
    wait()
    assert names(graph, "dev") == names(graph, "dev") == ["ann"]

    other.delete_branch("dev")
    with pytest.raises(BranchNotFound):
        names(graph, "dev")

    add(other, "person", name="bob")
    other.create_branch("dev")
    wait()
    assert names(graph, "dev") == names(graph, "dev") == ["ann", "bob"]


def test_an_edit_of_a_schema_file_is_noticed_even_with_its_old_time(graph: og.Graph) -> None:
    wait()
    assert names(graph) == names(graph) == ["ann"]
    path = Path(graph.uri) / "_schema.pg"
    before = path.stat()

    path.write_text(path.read_text().replace("age: I32?", "age: I64?"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(ConflictError, match=r"_schema\.pg"):
        names(graph)
    with pytest.raises(ConflictError, match=r"_schema\.pg"):
        add(graph, "person", name="bob")


def test_a_write_reads_no_schema_file_again_until_one_changes(graph: og.Graph) -> None:
    other = reopen(graph)
    wait()
    add(graph, "person", name="bob")
    with counting() as counters:
        add(graph, "person", name="cy")
    assert counters.text_reads == 0

    other.apply_schema(other.schema.replace("age: I32?", "age: I32?\n    town: String?"))
    graph.mutate('query q() { insert Person { name: "dee", town: "ulm" } }')

    assert names(graph) == ["ann", "bob", "cy", "dee"]


def test_a_schema_change_elsewhere_is_read_by_the_next_query(graph: og.Graph) -> None:
    other = reopen(graph)
    wait()
    assert names(graph) == names(graph) == ["ann"]

    other.apply_schema(other.schema.replace("age: I32?", "age: I32?\n    town: String?"))

    text = "query q() { match { $p: Person } return { $p.town } }"
    assert graph.query(text).rows() == [{"p.town": None}]


def test_a_closed_handle_refuses_queries(graph: og.Graph) -> None:
    wait()
    names(graph)
    names(graph)

    graph.close()

    with pytest.raises(og.errors.BadRequestError, match="closed"):
        names(graph)
