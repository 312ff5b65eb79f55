"""What a killed process leaves of a ref is no branch, and stops nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage.leftovers import LEFTOVER_SECONDS
from tests.graph.reading import SCHEMA, add, names, reopen

_HEX = "e70c553fde17480c9d106ddc846f3a3f"


def lose_ref(dataset: str | Path, branch: str) -> Path:
    """Leave of a branch what a kill between Lance's temporary ref and its link leaves."""
    ref = Path(dataset) / "_refs" / "branches" / f"{branch}.json"
    return ref.rename(ref.with_name(f"{ref.name}.tmp.{_HEX}"))


@pytest.fixture
def torn(pair: og.Graph) -> og.Graph:
    """A graph with one whole branch, and one of which the ref got no name."""
    for branch in ("whole", "torn"):
        pair.create_branch(branch)
        add(pair, "person", branch=branch, name=branch)
    people = pair.snapshot().entries["node:Person"].table_path
    for dataset in ("__manifest", people):
        lose_ref(f"{pair.uri}/{dataset}", "torn")
    return pair


def test_a_ref_without_its_name_is_no_branch(torn: og.Graph) -> None:
    again = reopen(torn)

    assert again.branches() == ["main", "whole"]
    assert names(again, "whole") == ["ann", "bob", "whole"]
    assert again.verify().is_clean


def test_branches_live_on_beside_a_ref_without_its_name(torn: og.Graph) -> None:
    again = reopen(torn)

    again.create_branch("torn")
    add(again, "person", branch="torn", name="anew")
    assert names(again, "torn") == ["anew", "ann", "bob"]
    for branch in ("whole", "torn"):
        again.delete_branch(branch)
    again.apply_schema(SCHEMA.replace("stars: I32?", "stars: I32?  shelf: String?"))
    assert again.branches() == ["main"]


def test_cleanup_removes_old_leftovers_and_spares_those_of_a_writer_at_work(
    torn: og.Graph,
) -> None:
    root = Path(torn.uri)
    refs = sorted(root.rglob("*.json.tmp.*"))
    text = root / "_schema.pg#123"
    text.write_text("half")
    long_ago = time.time() - 2 * LEFTOVER_SECONDS
    for each in (refs[0], text):
        os.utime(each, (long_ago, long_ago))

    report = torn.cleanup(keep=1, confirm=True)

    assert not any(row.error for row in report.tables)
    assert sorted(root.rglob("*.json.tmp.*")) == refs[1:]
    assert not text.exists()
    assert names(torn) == ["ann", "bob"]
