"""A branch that is pushed or pulled is held to its checks, as it is by a merge."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ChecksFailed, ConflictError
from omnigraph.manifest.checks import Check
from omnigraph.write.pending_checks import PendingChecks
from tests.depth import IS_TORTURE
from tests.graph.reading import add, names
from tests.storage.conftest import Store
from tests.transfer.conftest import OPTIONS, find_damage, show

pytestmark = pytest.mark.slow

BAD = Check(
    "bad", 'query bad() { match { $p: Person { name: "bad" } } return { $p.name, $p.age } }'
)
BOTH = Check(
    "both",
    """query both() {
        match { $p: Person { name: "bad" } $f: Firm { code: "bad" } } return { $p.name, $f.code }
    }""",
    every_commit=True,
)


def open_pair(home: Path, away: Path, *checks: Check) -> tuple[og.Graph, og.Graph]:
    """Two stores of one graph with these checks."""
    graph = og.open(home, **OPTIONS)
    graph.apply_checks(checks)
    og.clone(home, away, durability="process")
    return graph, og.open(away, **OPTIONS)


def test_a_push_that_breaks_a_check_is_refused_with_its_rows_and_changes_nothing(
    home: Path, tmp_path: Path
) -> None:
    here, there = open_pair(home, tmp_path / "away", BAD)
    add(there, "person", name="bad", age=3)
    before = show(home)

    for _ in range(2):
        with pytest.raises(ChecksFailed, match=r"'bad' returns 1 rows.*nothing was written") as no:
            there.push(home)

    assert no.value.failures[0].rows == ({"p.name": "bad", "p.age": 3},)
    assert show(home) == before
    assert find_damage(home) == []
    add(there, "gone", name="bad")
    assert there.push(home).commits == 2  # a line is judged by its head
    assert here.run_checks() == []
    assert names(here) == names(there)


def test_a_pull_that_only_moves_the_branch_is_checked_and_a_fetch_is_not(
    home: Path, tmp_path: Path
) -> None:
    here, there = open_pair(home, tmp_path / "away", BAD)
    add(there, "person", name="bad")
    before = here.commits()[0].commit_id

    for _ in range(2):
        with pytest.raises(ChecksFailed):
            here.pull(tmp_path / "away")

    assert here.commits()[0].commit_id == before
    assert "bad" in names(here, "origin/main")
    add(there, "person", name="more")
    assert here.fetch(tmp_path / "away").commits == 1
    assert "more" in names(here, "origin/main")
    here.pull(tmp_path / "away", "team/a")  # has no such check
    with pytest.raises(ChecksFailed):
        here.merge("origin/main")


def test_checks_that_come_along_hold_too(home: Path, tmp_path: Path) -> None:
    _, there = open_pair(home, tmp_path / "away")
    there.apply_checks([BAD])
    add(there, "person", name="bad")
    before = show(home)

    with pytest.raises(ChecksFailed):
        there.push(home)

    assert show(home) == before


def test_checks_of_a_commit_whose_state_is_gone_arrive(home: Path, tmp_path: Path) -> None:
    here, there = open_pair(home, tmp_path / "away")
    add(there, "person", name="first")
    there.apply_checks([BAD])
    for number in range(3):
        add(there, "person", name=f"later {number}")
    there.cleanup(keep=1, confirm=True)

    there.push(home)
    there.push(home, "main")

    assert here.checks() == [BAD]
    assert og.open(home, mode="r").checks() == [BAD]


def test_a_push_and_a_write_that_break_a_check_only_together_are_not_both_made(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone passes, and they touch different tables."""
    here, there = open_pair(home, tmp_path / "away", BOTH)
    add(there, "person", name="bad")
    require = PendingChecks.require
    writes: list[Future[Any]] = []

    with ThreadPoolExecutor(1) as pool:

        def late(self: PendingChecks, changes: Any) -> None:
            require(self, changes)
            monkeypatch.setattr(PendingChecks, "require", require)
            writes.append(pool.submit(add, here, "firm", code="bad"))

        monkeypatch.setattr(PendingChecks, "require", late)
        there.push(home)

    with pytest.raises((ChecksFailed, ConflictError)):
        writes[0].result()
    assert here.run_checks() == []
    assert "bad" in names(here)


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_checks_hold_on_an_object_store(home: Path, s3_store: Store) -> None:
    uri, options = s3_store.root.uri, s3_store.storage_options
    with og.open(home, **OPTIONS) as here:
        here.apply_checks([BAD])
        og.clone(home, uri, target_options=options)
        add(here, "person", name="bad")

        with pytest.raises(ChecksFailed) as no:
            here.push(uri, storage_options=options)

    assert no.value.failures[0].name == "bad"
    with og.open(uri, mode="r", storage_options=options) as there:
        assert "bad" not in names(there)
