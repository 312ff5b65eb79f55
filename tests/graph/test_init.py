"""Init and open: what lies on disk, who wins, and what is refused."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, GraphExists, GraphNotFound, SourceError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.testing.inside import inside
from tests.graph.reading import SCHEMA, TABLES, add, names, new_graph, pins, reopen, run, standing

KNOWN_AT_ROOT = {
    "__schemas",
    *("_schema.pg", "_schema.ir.json", "__schema_state.json"),
    *("__manifest", "nodes", "edges", "_graph_commits.lance", "_graph_commit_recoveries.lance"),
    *("__recovery", "__locks", "__location.json"),
}


def test_a_new_graph_has_every_table_at_its_first_version(graph: og.Graph) -> None:
    assert pins(graph) == dict.fromkeys(TABLES, 1)
    assert graph.branches() == ["main"]
    genesis = graph.commits()[0]
    assert (genesis.parent_id, genesis.manifest_version, genesis.branch) == (None, 1, "main")


@pytest.mark.accepts("S-005", "S-008")
def test_writes_leave_nothing_at_the_root_that_the_layout_does_not_name(graph: og.Graph) -> None:
    """No run records and no staging branches, however often one writes."""
    for number in range(5):
        add(graph, "person", name=f"p{number}")
        graph.load([{"type": "Firm", "data": {"code": f"f{number}"}}], mode="merge")
    with pytest.raises(og.errors.OmnigraphError):
        add(graph, "knows", a="p0", b="nobody")

    assert set(os.listdir(graph.uri)) <= KNOWN_AT_ROOT
    assert graph.branches() == ["main"]
    assert not [name for name in inside(graph).store.manifest.branch_names() if "run" in name]


@pytest.mark.accepts("S-011")
def test_leftovers_of_the_abolished_run_tables_are_left_alone(graph: og.Graph) -> None:
    left = Path(graph.uri) / "_graph_runs.lance" / "data"
    left.mkdir(parents=True)
    (left / "0.lance").write_bytes(b"inert")

    add(graph, "person", name="ann")
    again = reopen(graph)
    again.refresh()

    assert (left / "0.lance").read_bytes() == b"inert"
    assert os.listdir(left) == ["0.lance"]
    assert names(again) == ["ann"]
    assert again.branches() == ["main"]


def test_a_second_init_is_refused_and_changes_nothing(graph: og.Graph) -> None:
    add(graph, "person", name="ann")
    before = standing(graph)

    with pytest.raises(GraphExists) as caught:
        new_graph(Path(graph.uri))

    assert caught.value.uri == graph.uri
    assert standing(graph) == before
    assert names(graph) == ["ann"]


def test_of_many_concurrent_inits_exactly_one_wins(tmp_path: Path) -> None:
    def attempt(_: int) -> str:
        try:
            new_graph(tmp_path / "graph")
        except GraphExists:
            return "exists"
        return "made"

    with ThreadPoolExecutor(6) as threads:
        outcomes = list(threads.map(attempt, range(6)))

    assert sorted(outcomes) == ["exists"] * 5 + ["made"]
    assert add(og.open(tmp_path / "graph"), "person", name="ann").affected_nodes == 1


def test_a_bad_schema_leaves_no_trace(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        new_graph(tmp_path / "graph", "node Person { name: Strin }")

    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize(
    "point", [Failpoint.INIT_AFTER_SCHEMA_PG_WRITTEN, Failpoint.INIT_AFTER_SCHEMA_CONTRACT_WRITTEN]
)
def test_an_init_that_fails_before_its_tables_can_be_tried_again(
    tmp_path: Path, point: Failpoint
) -> None:
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        new_graph(tmp_path / "graph")

    with pytest.raises(GraphNotFound):
        og.open(tmp_path / "graph")
    assert new_graph(tmp_path / "graph").branches() == ["main"]


def test_an_init_that_fails_after_its_manifest_has_made_a_graph(tmp_path: Path) -> None:
    with (
        arm_failpoints({Failpoint.INIT_AFTER_COORDINATOR_INIT: "raise"}),
        pytest.raises(FailpointError),
    ):
        new_graph(tmp_path / "graph")

    assert add(og.open(tmp_path / "graph"), "person", name="ann").affected_nodes == 1


def test_opening_what_is_not_a_graph_says_so(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound, match="omnigraph init"):
        og.open(tmp_path / "nothing")

    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("path", ["people.csv", "people.csv/graph"])
def test_a_path_that_is_a_file_is_told_from_a_missing_graph(tmp_path: Path, path: str) -> None:
    (tmp_path / "people.csv").write_text("name")

    with pytest.raises(GraphNotFound, match="a graph is a directory"):
        og.open(tmp_path / path)
    with pytest.raises(BadRequestError, match="a graph is a directory"):
        new_graph(tmp_path / path)
    assert (tmp_path / "people.csv").read_text() == "name"


def test_an_unknown_mode_is_refused(graph: og.Graph) -> None:
    with pytest.raises(BadRequestError, match="'rw' or 'r'"):
        og.open(graph.uri, mode="w")  # type: ignore[arg-type]


def files_below(root: str) -> dict[str, tuple[int, int]]:
    """Path → size and time of change, of every file."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in Path(root).rglob("*")
        if path.is_file()
    }


def test_a_read_only_handle_writes_nothing(pair: og.Graph) -> None:
    """Invariant I22, seen from the file system."""
    before = files_below(pair.uri)

    reader = og.open(pair.uri, mode="r")
    reader.refresh()
    reader.commits()
    assert names(reader) == ["ann", "bob"]
    for refused in (
        lambda: add(reader, "person", name="cy"),
        lambda: reader.load([], mode="merge"),
        lambda: reader.create_branch("b"),
        lambda: reader.delete_branch("b"),
    ):
        with pytest.raises(BadRequestError, match="reading only"):
            refused()

    assert files_below(pair.uri) == before


def test_a_closed_handle_is_of_no_use(graph: og.Graph) -> None:
    with graph:
        pass

    with pytest.raises(BadRequestError, match="closed"):
        graph.branches()


def test_a_path_and_its_file_uri_are_one_graph(graph: og.Graph) -> None:
    add(og.open(f"file://{graph.uri}"), "person", name="ann")

    assert names(graph) == ["ann"]


def test_every_dataset_has_stable_row_ids_and_the_pinned_format(pair: og.Graph) -> None:
    """Invariant I21: row ids outlive compaction, and nothing is collected behind our back."""
    root = Path(pair.uri)
    datasets = [*root.glob("nodes/*"), *root.glob("edges/*"), root / "__manifest"]
    for path in [*datasets, root / "_graph_commits.lance"]:
        dataset = lance.dataset(str(path))
        assert dataset.has_stable_row_ids, path
        assert dataset.data_storage_version == "2.2", path
        assert not [key for key in dataset.config() if "auto_cleanup" in key], path


def test_the_commit_history_is_also_a_table_that_people_can_query(pair: og.Graph) -> None:
    """The projection lags a live writer and is brought up to date by the next open."""
    reopen(pair)

    table = lance.dataset(f"{pair.uri}/_graph_commits.lance").to_table().to_pylist()

    assert {row["graph_commit_id"] for row in table} == {c.commit_id for c in pair.commits()}
    assert {row["manifest_branch"] for row in table} == {None}


def test_many_handles_may_open_concurrently_over_a_lagging_history(pair: og.Graph) -> None:
    """Each of them brings the history table up to date; none of them may lose for it."""
    for number in range(3):
        add(pair, "person", name=f"p{number}")

    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(lambda _: reopen(pair), range(6)))

    assert all(len(each.commits()) == 5 for each in opened)
    history = lance.dataset(f"{pair.uri}/_graph_commits.lance").to_table()
    assert sorted(history["graph_commit_id"].to_pylist()) == sorted(
        commit.commit_id for commit in pair.commits()
    )


def test_the_schema_is_kept_as_it_was_written(graph: og.Graph) -> None:
    assert graph.schema == SCHEMA


def test_a_query_may_be_a_file(graph: og.Graph, tmp_path: Path) -> None:
    file = tmp_path / "add.gq"
    file.write_text('query q() { insert Firm { code: "f" } }')

    assert graph.mutate(file).affected_nodes == 1
    assert graph.mutate(str(file)).affected_nodes == 1
    with pytest.raises(BadRequestError, match="cannot read the query file"):
        graph.mutate(tmp_path / "no.gq")


@pytest.mark.accepts("S-009")
def test_run_is_an_ordinary_name_now(pair: og.Graph) -> None:
    """Creating, writing and deleting; merging is for the merge's tests."""
    pair.create_branch("__run__x")
    run(pair, 'insert Person { name: "cy" }', branch="__run__x")

    again = reopen(pair)

    assert again.branches() == ["main", "__run__x"]
    assert names(again, "__run__x") == ["ann", "bob", "cy"]
    again.delete_branch("__run__x")
    assert again.branches() == ["main"]
