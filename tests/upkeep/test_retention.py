"""With a retention, self-care removes history on its own, and never what is needed."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.config.project import load_project
from omnigraph.errors import BadRequestError, NotFoundError
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.testing.inside import inside
from omnigraph.upkeep import retention
from omnigraph.upkeep.retention import MARKER, Retention, read_retention
from tests.upkeep.graphs import dataset, reopen

ADD = "query add($n: String) { insert Tag { name: $n } }"
KEEP_TWO = {"retention": "keep=2"}


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleanup is due after eight publishes, and no reader is waited for."""
    monkeypatch.setattr(retention, "EVERY_VERSIONS", 8)
    monkeypatch.setattr(retention, "GRACE", timedelta(0))


def make(path: Path, **options: Any) -> og.Graph:
    schema = "node Tag { name: String @key }"
    return og.init(path, schema=schema, durability="process", **options)


def add(graph: og.Graph, first: int, count: int, branch: str = "main") -> None:
    for number in range(first, first + count):
        graph.mutate(ADD, params={"n": f"t{number:03}"}, branch=branch)
    inside(graph).wait_for_self_care()


def count_versions(graph: og.Graph) -> int:
    return len(dataset(graph, "node:Tag").versions())


def names(graph: og.Graph, **target: Any) -> list[str]:
    found = graph.query("query q() { match { $t: Tag } return { $t.name } }", **target)
    return sorted(row["t.name"] for row in found.rows())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("keep=10", Retention(10)),
        ("older_than=7d", Retention(None, timedelta(days=7))),
        (" keep=3 , older_than=90m ", Retention(3, timedelta(minutes=90))),
        ({"keep": 3, "older_than": timedelta(hours=1)}, Retention(3, timedelta(hours=1))),
        (None, None),
        ("", None),
    ],
)
def test_a_retention_is_a_number_of_commits_an_age_or_both(given: Any, expected: Any) -> None:
    assert read_retention(given, "retention") == expected


@pytest.mark.parametrize(
    "given", ["10", "keep=0", "keep=-1", "keep=many", "older_than=soon", "kept=3", 7, {}, True]
)
def test_a_retention_that_says_nothing_useful_is_refused(tmp_path: Path, given: Any) -> None:
    with pytest.raises(BadRequestError, match=r"retention|duration"):
        make(tmp_path / "graph", config={"retention": given})
    assert not (tmp_path / "graph").exists()


def test_it_comes_from_the_program_the_project_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(retention.VARIABLE, "keep=7")
    file = tmp_path / "omnigraph.yaml"
    file.write_text("graphs: { team: { uri: graph, retention: keep=5 } }\n")

    graph = make(tmp_path / "graph")
    told = og.open(graph.uri, config={"retention": load_project(file).graph("team").retention})

    assert inside(graph).settings.retention == Retention(7)
    assert inside(told).settings.retention == Retention(5)


@pytest.mark.usefixtures("often")
def test_nothing_is_removed_without_a_retention(tmp_path: Path) -> None:
    graph = make(tmp_path / "graph")

    add(graph, 0, 20)

    assert count_versions(graph) >= 21
    assert not (tmp_path / "graph" / MARKER).exists()


@pytest.mark.usefixtures("often")
def test_history_goes_after_every_few_commits_and_what_is_kept_stays(tmp_path: Path) -> None:
    """Also by processes that write once each: the count is in the graph, not in a handle."""
    graph = make(tmp_path / "graph", config=KEEP_TWO)
    for number in range(18):
        add(graph, number, 1)
        graph.close()
        graph = og.open(graph.uri, durability="process", config=KEEP_TWO)
    newest, kept, *gone = graph.commits()

    assert count_versions(graph) < 12
    assert json.loads((tmp_path / "graph" / MARKER).read_text())["manifest_version"] >= 8
    assert names(graph) == names(graph, commit=newest.commit_id)
    assert len(names(graph, commit=kept.commit_id)) == 17
    with pytest.raises(NotFoundError):
        names(graph, commit=gone[-2].commit_id)
    assert graph.verify().errors == ()


@pytest.mark.usefixtures("often")
def test_a_branch_keeps_what_it_shows_and_can_be_merged(tmp_path: Path) -> None:
    graph = make(tmp_path / "graph", config=KEEP_TWO)
    add(graph, 0, 3)
    graph.create_branch("review")
    add(graph, 3, 20)

    assert names(graph, branch="review") == ["t000", "t001", "t002"]
    add(graph, 90, 1, branch="review")
    graph.merge("review")
    assert len(names(reopen(graph))) == 24


def test_a_version_that_was_just_replaced_stays_for_its_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "EVERY_VERSIONS", 8)
    graph = make(tmp_path / "graph", config={"retention": "keep=1"})
    add(graph, 0, 3)
    reader = og.open(graph.uri, mode="r").nodes("Tag")
    version = graph.snapshot().entries["node:Tag"].version

    add(graph, 3, 20)

    assert (tmp_path / "graph" / MARKER).exists()
    assert version in {each["version"] for each in dataset(graph, "node:Tag").versions()}
    assert reader.to_arrow().num_rows == 3


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("point", [Failpoint.CLEANUP_TABLE_GC, Failpoint.CLEANUP_AFTER_LAST_TABLE])
def test_a_cleanup_that_fails_fails_no_write_and_is_tried_again(
    tmp_path: Path, point: Failpoint
) -> None:
    graph = make(tmp_path / "graph", config=KEEP_TWO)
    with arm_failpoints({point: "raise"}):
        add(graph, 0, 9)
        assert len(names(graph)) == 9
        assert not (tmp_path / "graph" / MARKER).exists()

    add(graph, 9, 1)

    assert (tmp_path / "graph" / MARKER).exists()
    assert len(names(reopen(graph))) == 10


def test_it_waits_while_a_write_is_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery may need any version: nothing goes before it has run."""
    graph = make(tmp_path / "graph", config=KEEP_TWO)
    marker = tmp_path / "graph" / MARKER
    sidecar = tmp_path / "graph" / "__recovery" / "01AAAAAAAAAAAAAAAAAAAAAAAA.json"
    add(graph, 0, 7)
    versions = count_versions(graph)
    monkeypatch.setattr(retention, "EVERY_VERSIONS", 1)
    monkeypatch.setattr(retention, "GRACE", timedelta(0))

    def care() -> tuple[bool, bool]:
        inside(graph).compact_if_due("main", [])
        inside(graph).wait_for_self_care()
        return marker.exists(), count_versions(graph) == versions

    sidecar.write_text("{}")
    assert care() == (False, True)
    os.unlink(sidecar)
    assert care() == (True, False)
