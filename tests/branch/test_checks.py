"""Checks: a merge, and where asked every commit, that breaks one is refused and leaves nothing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, ChecksFailed, ConflictError, MergeConflicts
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.manifest.checks import Check
from omnigraph.write.pending_checks import PendingChecks
from tests.depth import depth

SCHEMA = """
node Paper { doi: String @key  year: I32? }
node Author { name: String @key }
edge Wrote: Author -> Paper
"""
WRITES = """
query paper($doi: String, $year: I32?) { insert Paper { doi: $doi, year: $year } }
query author($name: String) { insert Author { name: $name } }
query wrote($a: String, $p: String) { insert Wrote { from: $a, to: $p } }
query unwrote($p: String) { delete Wrote where to = $p }
query drop_author($name: String) { delete Author where name = $name }
"""
ORPHANS = Check(
    "orphans", "query orphans() { match { $p: Paper not { $_ wrote $p } } return { $p.doi } }"
)
DATED = Check(
    "dated", "query dated() { match { $p: Paper $p.year is null } return { $p.doi } }",
    every_commit=True,
)  # fmt: skip


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """A paper with its author, and a branch beside main."""
    graph = og.init(tmp_path / "g", schema=SCHEMA, durability="process")
    change(graph, "author", name="ada")
    change(graph, "paper", doi="p1", year=2000)
    change(graph, "wrote", a="ada", p="p1")
    return graph


def change(graph: og.Graph, query: str, branch: str = "main", **params: Any) -> None:
    graph.mutate(WRITES, query, params, branch=branch)


def state_of(graph: og.Graph, branch: str = "main") -> Any:
    rows = sorted(str(row) for row in graph.export(branch=branch))
    return rows, [each.commit_id for each in graph.commits(branch)], graph.checks(branch)


def test_a_merge_that_breaks_a_check_is_refused_with_its_rows_and_leaves_nothing(
    graph: og.Graph,
) -> None:
    graph.apply_checks([ORPHANS])
    diverge_on(graph)
    before = state_of(graph)

    with pytest.raises(ChecksFailed, match=r"'orphans' returns 1 rows.*nothing was written") as no:
        graph.merge("review")

    assert no.value.failures[0].rows == ({"p.doi": "p2"},)
    assert state_of(graph) == before
    assert graph.recoveries() == []
    assert graph.verify().is_clean
    change(graph, "wrote", "review", a="ada", p="p2")
    assert graph.merge("review").outcome == "merged"
    assert graph.run_checks() == []


@pytest.mark.parametrize("seed", range(depth(6, 60)))
def test_a_preview_says_of_every_check_what_the_merge_does(graph: og.Graph, seed: int) -> None:
    """Rows that come, change and go on both sides, and edges that lose or get their ends."""
    some = random.Random(seed)
    crowd = "query crowd() { match { $a: Author $a wrote $p } return { count($p) as n } }"
    late = "query late() { match { $p: Paper $p.year > 2005 } return { $p.doi } }"
    for number in range(4):
        change(graph, "paper", doi=f"q{number}", year=2000)
        change(graph, "wrote", a="ada", p=f"q{number}")
    graph.apply_checks([ORPHANS, Check("late", late), Check("crowd", crowd, ({"n": 5},))])
    graph.create_branch("review")
    for branch in ("main", "review"):
        for number in range(some.randrange(1, 4)):
            doi = f"{branch}{number}"
            change(graph, "paper", branch, doi=doi, year=some.choice([2000, 2000, 2010]))
            if some.random() < 0.6:
                change(graph, "wrote", branch, a="ada", p=doi)
        if some.random() < 0.6:
            change(graph, "unwrote", branch, p=f"q{some.randrange(4)}")
        if some.random() < 0.6:
            paper = {"doi": f"q{some.randrange(4)}", "year": some.choice([2001, 2010])}
            change(graph, "paper", branch, **paper)
        if some.random() < 0.2:
            change(graph, "drop_author", branch, name="ada")
    preview = graph.merge("review", preview=True)

    try:
        graph.merge("review")
        broken: set[str] = set()
    except ChecksFailed as error:
        broken = {each.name for each in error.failures}
    except MergeConflicts:
        assert {each.holds for each in preview.checks} == {None}
        return

    assert {each.name: each.holds for each in preview.checks} == {
        each.name: each.name not in broken for each in graph.checks()
    }


def test_a_preview_says_that_a_check_does_not_fit_the_merged_schema(graph: og.Graph) -> None:
    graph.create_branch("review")
    graph.apply_checks([DATED, ORPHANS])
    graph.apply_schema(SCHEMA.replace("year: I32?", ""), branch="review")

    preview = graph.merge("review", preview=True)

    assert {each.name: each.holds for each in preview.checks} == {"dated": False, "orphans": True}
    with pytest.raises(BadRequestError, match="'dated' cannot be run"):
        graph.merge("review")


def test_a_preview_leaves_checks_of_large_tables_to_the_merge(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.apply_checks(
        [
            ORPHANS,
            Check("none", 'query none() { match { $a: Author { name: "x" } } return { $a } }'),
        ]
    )
    diverge_on(graph)
    monkeypatch.setattr("omnigraph.branch.forecast.ROWS_MAX", 2)

    shown = graph.merge("review", preview=True).checks

    assert {each.name: each.holds for each in shown} == {"none": True, "orphans": None}


def diverge_on(graph: og.Graph) -> None:
    graph.create_branch("review")
    change(graph, "paper", "review", doi="p2", year=2001)
    graph.load(
        [
            {"type": "Author", "data": {"name": "bob"}},
            {"type": "Paper", "data": {"doi": "p3", "year": 2002}},
            {"edge": "Wrote", "from": "bob", "to": "p3", "data": {}},
        ],
        mode="append",
    )


def test_a_fast_forward_is_checked_too(graph: og.Graph) -> None:
    graph.apply_checks([ORPHANS])
    graph.create_branch("review")
    change(graph, "paper", "review", doi="p2", year=2001)
    before = state_of(graph)

    with pytest.raises(ChecksFailed):
        graph.merge("review")

    assert state_of(graph) == before


def test_a_check_of_every_commit_refuses_mutations_and_loads(graph: og.Graph) -> None:
    graph.apply_checks([ORPHANS, DATED])
    before = state_of(graph)

    with pytest.raises(ChecksFailed, match="'dated'"):
        change(graph, "paper", doi="p2")
    with pytest.raises(ChecksFailed, match="'dated'"):
        graph.load([{"type": "Paper", "data": {"doi": "p2"}}], mode="append")

    assert state_of(graph) == before
    change(graph, "paper", doi="p2", year=1)  # breaks `orphans`, which only a merge is held to
    assert [each.name for each in graph.run_checks()] == ["orphans"]


def test_a_write_that_dies_before_its_checks_have_held_is_undone(graph: og.Graph) -> None:
    """Recovery must not finish what a check would have refused."""
    graph.apply_checks([DATED])
    before = state_of(graph)

    with arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}), pytest.raises(FailpointError):
        change(graph, "paper", doi="p2")
    again = og.open(graph.uri, durability="process")

    rows, _, checks = state_of(again)
    assert (rows, checks) == (before[0], before[2])
    assert [each.kind for each in again.recoveries()] == ["RolledBack"]


def test_checks_go_with_branches_merges_and_time(graph: og.Graph) -> None:
    start = graph.commits(limit=1)[0].commit_id
    graph.create_branch("review")
    graph.apply_checks([ORPHANS], branch="review", message="no orphans")

    assert graph.checks() == []
    assert graph.checks("review") == [ORPHANS]
    graph.merge("review")
    assert graph.checks() == [ORPHANS]
    assert graph.checks(start) == []
    assert og.open(graph.uri).checks() == [ORPHANS]


def test_a_merge_is_held_to_the_checks_that_it_brings(graph: og.Graph) -> None:
    graph.create_branch("review")
    graph.apply_checks([ORPHANS], branch="review")
    change(graph, "paper", doi="p2", year=1)

    with pytest.raises(ChecksFailed):
        graph.merge("review")

    assert graph.checks() == []


def test_a_check_that_both_sides_changed_is_a_conflict(graph: og.Graph) -> None:
    graph.create_branch("review")
    graph.apply_checks([ORPHANS], branch="review")
    other = Check("orphans", ORPHANS.query.replace("$p.doi }", "$p.doi, $p.year }"))
    graph.apply_checks([other])

    with pytest.raises(MergeConflicts, match="divergent_check"):
        graph.merge("review")


def test_checks_are_applied_only_when_they_hold_fit_and_change_something(graph: og.Graph) -> None:
    none = Check("none", "query none() { match { $p: Paper } return { $p.doi } }")
    count = "query n() { match { $p: Paper } return { count($p) as n } }"
    before = state_of(graph)

    for wrong, error in [
        (none, ChecksFailed),
        (Check("x", "query x() { match { $p: Papr } return { $p.doi } }"), BadRequestError),
        (Check("x", "query x($a: I32) { match { $p: Paper } return { $p.doi } }"), BadRequestError),
        (Check("x", 'query x() { delete Paper where doi = "p1" }'), BadRequestError),
        (Check("x", "nonsense"), BadRequestError),
    ]:
        with pytest.raises(error):
            graph.apply_checks([wrong])
        assert state_of(graph) == before

    done = graph.apply_checks([ORPHANS, Check("n", count, ({"n": 1},))])
    assert (done.added, done.removed) == (("n", "orphans"), ())
    assert graph.apply_checks([ORPHANS, Check("n", count, ({"n": 1},))]).commit_id is None
    assert graph.apply_checks([ORPHANS]).removed == ("n",)


def test_two_writes_that_break_a_check_only_together_are_not_both_made(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone passes, and they touch different tables: the second publish has to be refused."""
    both = """query both() {
        match { $p: Paper { doi: "bad" } $a: Author { name: "bad" } } return { $p.doi, $a.name }
    }"""
    graph.apply_checks([Check("both", both, every_commit=True)])
    other = og.open(graph.uri, durability="process")
    require = PendingChecks.require

    def late(self: PendingChecks, changes: Any) -> None:
        require(self, changes)
        monkeypatch.setattr(PendingChecks, "require", require)
        change(other, "author", name="bad")

    monkeypatch.setattr(PendingChecks, "require", late)
    with pytest.raises((ChecksFailed, ConflictError), match=r"nothing was written|stale view"):
        change(graph, "paper", doi="bad", year=1)

    assert len(og.open(graph.uri).query("query q() { match { $p: Paper } return { $p.doi } }")) == 1
    assert graph.run_checks() == []


def test_a_schema_change_that_a_check_does_not_fit_is_refused(graph: og.Graph) -> None:
    graph.apply_checks([DATED])

    with pytest.raises(BadRequestError, match="check 'dated' cannot be run"):
        graph.apply_schema(SCHEMA.replace("  year: I32?", ""))

    assert "year" in graph.schema


def test_checks_are_read_from_a_folder_with_settings(graph: og.Graph, tmp_path: Path) -> None:
    folder = tmp_path / "checks"
    folder.mkdir()
    (folder / "papers.gq").write_text(
        f"{ORPHANS.query}\nquery n() {{ match {{ $p: Paper }} return {{ count($p) as n }} }}"
    )
    (folder / "checks.yaml").write_text("every_commit: [orphans]\nexpect:\n  n: [{n: 1}]\n")

    graph.apply_checks(folder)

    assert [(c.name, c.expected, c.every_commit) for c in graph.checks()] == [
        ("n", ({"n": 1},), False),
        ("orphans", (), True),
    ]
    (folder / "checks.yaml").write_text("every_commit: [orphan]\n")
    with pytest.raises(BadRequestError, match=r"no check 'orphan'.*`orphans`"):
        graph.apply_checks(folder)
    (folder / "checks.yaml").write_text("expct: {}\n")
    with pytest.raises(BadRequestError, match="expected `every_commit`"):
        graph.apply_checks(folder)


def test_a_merge_that_brings_a_schema_is_checked_in_it_and_leaves_nothing_when_refused(
    graph: og.Graph,
) -> None:
    graph.create_branch("review")
    graph.apply_schema(SCHEMA.replace("year: I32?", "year: I32?  pages: I32?"), branch="review")
    long = Check(
        "long", "query long() { match { $p: Paper $p.pages > 9 } return { $p.doi, $p.pages } }"
    )
    graph.apply_checks([long], branch="review")
    grow = 'query grow($n: I32) { update Paper set { pages: $n } where doi = "p1" }'
    graph.mutate(grow, params={"n": 10}, branch="review")
    change(graph, "paper", doi="p2", year=1)
    before = state_of(graph)

    with pytest.raises(ChecksFailed, match="'long'"):
        graph.merge("review")

    rows, _, checks = state_of(graph)
    assert (rows, checks) == (before[0], before[2])
    assert "pages" not in graph.schema
    assert graph.verify().is_clean
    graph.mutate(grow, params={"n": 9}, branch="review")
    assert graph.merge("review").outcome == "merged"
    assert graph.checks() == [long]
    assert "pages" in graph.schema
