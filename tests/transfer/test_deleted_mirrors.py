"""A fetched branch that is deleted takes nothing along that another branch comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.graph.reading import add, names, new_graph
from tests.transfer.conftest import OPTIONS

pytestmark = pytest.mark.slow


def test_a_merged_commit_stays_readable_when_a_fetched_branch_is_deleted(tmp_path: Path) -> None:
    """It lies on the fetched branch below commits that both branches know as their own."""
    here = new_graph(tmp_path / "here", self_care=False)
    og.clone(here.uri, tmp_path / "there", durability="process")
    there = og.open(tmp_path / "there", **OPTIONS)
    merged = str(add(there, "person", name="ann").commit_id)
    add(here, "person", name="bob")
    here.pull(there.uri)
    there.pull(here.uri)
    add(there, "person", name="cy")
    here.fetch(there.uri)

    here.delete_branch("origin/main")

    shown = [each["data"]["name"] for each in here.export(commit=merged)]
    assert shown == ["ann"]
    assert names(here) == ["ann", "bob"]
