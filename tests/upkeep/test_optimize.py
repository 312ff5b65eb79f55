"""`optimize` merges fragments and completes the indexes without changing any answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.testing.inside import inside
from omnigraph.upkeep.optimize import optimize
from omnigraph.upkeep.self_care import CHECK_EVERY_VERSIONS
from tests.upkeep.graphs import (
    answers,
    dataset,
    fill,
    fragments,
    heads,
    indexes,
    is_covered,
    new_library,
    photos,
    pins,
    reopen,
    sidecars,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def fragmented(library: og.Graph) -> og.Graph:
    """A library that is indexed, then written to in small steps, with some rows deleted."""
    library.ensure_indices()
    for start in (100, 200, 300):
        fill(library, start, 4)
    library.mutate('query q() { delete Author where slug = "a001" }')
    return library


@pytest.mark.accepts("S-081")
def test_fragments_are_merged_and_indexes_cover_them(fragmented: og.Graph) -> None:
    assert not is_covered(fragmented, "node:Author")

    report = fragmented.optimize()

    by_key = {row.table_key: row for row in report.tables}
    assert list(by_key) == ["edge:Wrote", "node:Author", "node:Paper", "__manifest"]
    assert all(row.committed for row in report.tables)
    assert by_key["node:Author"].fragments_removed == 4
    assert by_key["node:Author"].fragments_added == 1
    assert [fragments(fragmented, key) for key in pins(fragmented)] == [1, 1, 1]
    assert all(is_covered(fragmented, key) for key in pins(fragmented))
    assert heads(fragmented) == pins(fragmented)
    assert sidecars(fragmented) == []


def test_answers_blobs_and_history_stay(fragmented: og.Graph) -> None:
    """Invariants I12 and I25."""
    before, bytes_before = answers(fragmented), photos(fragmented)
    commits, version = fragmented.commits(), fragmented.snapshot().manifest_version

    fragmented.optimize()

    assert answers(fragmented) == before == answers(reopen(fragmented, mode="r"))
    assert photos(fragmented) == bytes_before
    assert set(bytes_before.values()) >= {None, b""}
    assert fragmented.commits() == commits
    assert answers(fragmented, version=version) == before
    assert fragmented.verify().findings == ()


def test_one_publish_for_all_tables(fragmented: og.Graph) -> None:
    with arm_failpoints({Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT: "count"}) as hits:
        fragmented.optimize()

    assert hits[Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT] == 1


def test_a_second_run_does_nothing(fragmented: og.Graph) -> None:
    fragmented.optimize()
    version = fragmented.snapshot().manifest_version

    report = fragmented.optimize()

    assert not any(row.committed for row in report.tables)
    assert fragmented.snapshot().manifest_version == version


def test_missing_indexes_are_built_and_pending_ones_named(tmp_path: Path) -> None:
    graph = new_library(tmp_path / "graph")
    graph.load([{"type": "Author", "data": {"slug": "a", "name": "A"}}], mode="append")

    report = graph.optimize()

    row = next(row for row in report.tables if row.table_key == "node:Author")
    assert row.pending_indexes == (("face", "no row has a value in 'face'"),)
    assert set(indexes(graph, "node:Author")) == {
        "id_btree", "bio_inverted", "level_btree", "slug_inverted",
    }  # fmt: skip
    assert not any(row.committed for row in graph.optimize().tables)


def test_a_large_index_is_continued_rather_than_built_anew(tmp_path: Path) -> None:
    graph = new_library(tmp_path / "graph")
    fill(graph, 0, 60)
    graph.ensure_indices()
    fill(graph, 100, 3)

    graph.optimize()

    bio = indexes(graph, "node:Author")["bio_inverted"]
    assert (bio.segments, bio.rows_unindexed) == (2, 0)
    assert fragments(graph, "node:Author") == 2, "a full-text segment keeps its fragments apart"
    assert answers(graph)["about"] == answers_without_indexes(graph, tmp_path)
    assert not any(row.committed for row in graph.optimize().tables)


def answers_without_indexes(graph: og.Graph, folder: Path) -> list[dict[str, object]]:
    other = new_library(folder / "plain")
    other.load(list(graph.export()), mode="overwrite")
    return answers(other)["about"]


def test_many_segments_become_one_again(tmp_path: Path) -> None:
    graph = new_library(tmp_path / "graph")
    fill(graph, 0, 100)
    graph.ensure_indices()
    for start in range(100, 900, 100):
        fill(graph, start, 2)
        graph.optimize()

    bio = indexes(graph, "node:Author")["bio_inverted"]
    assert bio.segments <= 8
    assert bio.rows_unindexed == 0


@pytest.mark.accepts("S-121")
def test_it_refuses_while_an_interrupted_write_is_pending(library: og.Graph) -> None:
    point = Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        fill(library, 100)

    with pytest.raises(ConflictError, match="interrupted Load is pending"):
        optimize(inside(library).environment(), library.catalog)

    assert any(row.committed for row in library.optimize().tables)  # which recovers it first
    assert [each.kind for each in library.recoveries()] == ["RolledForward"]


def test_a_table_with_drift_is_left_alone_and_named(fragmented: og.Graph) -> None:
    dataset(fragmented, "node:Paper").delete("doi = 'nothing'")
    pin = pins(fragmented)["node:Paper"]

    report = fragmented.optimize()

    row = next(row for row in report.tables if row.table_key == "node:Paper")
    assert (row.skipped, row.committed) == ("drift_needs_repair", False)
    assert (row.manifest_version, row.lance_head_version) == (pin, pin + 1)
    assert next(row for row in report.tables if row.table_key == "node:Author").committed


@pytest.mark.accepts("S-081")
def test_a_failure_before_the_publish_is_finished_by_an_open(fragmented: og.Graph) -> None:
    before = answers(fragmented)
    point = Failpoint.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        fragmented.optimize()

    again = reopen(fragmented)

    assert heads(again) == pins(again)
    assert [each.kind.value for each in again.recoveries()] == ["RolledForward"]
    assert answers(again) == before
    assert is_covered(again, "node:Author")


def test_self_care_keeps_btree_coverage(tmp_path: Path) -> None:
    """The compaction takes coverage away; the same publish gives it back."""
    graph = og.init(
        tmp_path / "graph",
        schema="node Tag { name: String @key  size: I32? @index }",
        durability="process",
    )
    add = "query q($n: String, $s: I32) { insert Tag { name: $n, size: $s } }"
    graph.mutate(add, params={"n": "first", "s": 0})
    graph.ensure_indices()

    for number in range(CHECK_EVERY_VERSIONS):
        graph.mutate(add, params={"n": f"t{number}", "s": number})
    inside(graph).wait_for_self_care()

    assert fragments(graph, "node:Tag") < 6
    btrees = [info for info in indexes(graph, "node:Tag").values() if info.kind == "BTree"]
    assert [each.rows_unindexed <= 4 for each in btrees] == [True, True]
