"""`doctor` says how a graph stands and what to do about it, and changes nothing."""

from __future__ import annotations

import json

import pytest

import omnigraph as og
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from tests.upkeep.graphs import dataset, fill


def test_a_fresh_library_wants_its_indexes(library: og.Graph) -> None:
    report = library.doctor()

    author = next(each for each in report.tables if each.table_key == "node:Author")
    assert (author.rows, author.fragments, author.head_is_pin) == (12, 1, True)
    assert set(author.indexes_missing) == {"id", "bio", "face", "level", "slug"}
    assert any("omnigraph optimize" in each for each in report.advice)
    assert report.versions["omnigraph"] == og.__version__
    assert report.disk_free_bytes
    assert json.loads(json.dumps(report.to_json()))["branches"] == 1


def test_a_graph_in_order_gets_no_advice(library: og.Graph) -> None:
    library.optimize()

    assert [each for each in library.doctor().advice if "Java" not in each] == []


def test_lagging_indexes_drift_and_pending_writes_are_named(library: og.Graph) -> None:
    library.optimize()
    fill(library, 100, 2)
    assert any("incomplete" in each for each in library.doctor().advice)

    with arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}), pytest.raises(FailpointError):
        fill(library, 200)
    pending = library.doctor()
    assert len(pending.pending_recovery) == 1
    assert "read-write" in pending.advice[0]

    og.open(library.uri, durability="process")
    dataset(library, "node:Paper").delete("doi = 'nothing'")
    assert any("omnigraph repair" in each for each in library.doctor().advice)
