"""`cleanup` removes no version that a branch, tag, merge or kept commit needs."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, ConflictError, NotFoundError, StorageError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.testing.inside import inside
from omnigraph.upkeep.cleanup import CleanupReport, TableCleaned, cleanup
from omnigraph.write.fork import open_pin
from tests.upkeep.graphs import (
    SCHEMA,
    answers,
    dataset,
    fill,
    handle_of,
    heads,
    pins,
    reopen,
    rows,
    sidecars,
    versions,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def old(library: og.Graph) -> og.Graph:
    """A library with seven commits."""
    for start in (100, 200, 300, 400, 500):
        fill(library, start, 2)
    return library


def row_of(report: CleanupReport, key: str) -> TableCleaned:
    return next(row for row in report.tables if row.table_key == key)


def test_a_dry_run_removes_nothing_and_reports_what_it_would_remove(old: og.Graph) -> None:
    before = versions(old, "node:Author")

    preview = old.cleanup(keep=2)

    assert versions(old, "node:Author") == before
    done = old.cleanup(keep=2, confirm=True)
    assert preview.tables == done.tables
    assert row_of(done, "node:Author").old_versions_removed > 0
    assert row_of(done, "__manifest").old_versions_removed > 0


def test_kept_commits_stay_readable_and_the_others_are_gone(old: og.Graph) -> None:
    commits = old.commits()
    before = {c.commit_id: answers(old, commit=c.commit_id)["authors"] for c in commits[:-1]}
    # Versions without a commit of their own: the newest three of a table all show the last commit.
    old.ensure_indices()
    old.optimize()

    old.cleanup(keep=3, confirm=True)

    for commit in commits[:3]:
        assert answers(old, commit=commit.commit_id)["authors"] == before[commit.commit_id]
    for commit in commits[3:-1]:
        with pytest.raises(NotFoundError):
            answers(old, commit=commit.commit_id)
    assert old.commits() == commits, "the history stays readable"
    again = reopen(old)
    assert answers(again) == answers(old)
    assert again.verify().errors == ()
    assert old.cleanup(keep=3, confirm=True).tables[0].old_versions_removed == 0


def test_age_alone_decides_when_it_is_the_policy(old: og.Graph) -> None:
    young = old.cleanup(older_than=timedelta(hours=1), confirm=True)
    assert sum(row.old_versions_removed for row in young.tables) == 0

    aged = old.cleanup(older_than=timedelta(0), confirm=True)
    assert versions(old, "node:Author") == [pins(old)["node:Author"]]
    assert aged.older_than_secs == 0
    assert old.verify().errors == ()


def test_with_both_a_version_must_be_outside_both(old: og.Graph) -> None:
    before = versions(old, "node:Author")

    old.cleanup(keep=1, older_than=timedelta(hours=1), confirm=True)

    assert versions(old, "node:Author") == before


def test_what_a_branch_only_inherits_stays(old: og.Graph) -> None:
    """Lance knows nothing of it: the branch has no fork of the table."""
    old.create_branch("review")
    then = answers(old, branch="review")
    for start in (600, 700, 800):
        fill(old, start, 2)

    old.cleanup(keep=1, confirm=True)

    assert answers(old, branch="review") == then
    assert answers(reopen(old), branch="review") == then
    assert old.verify().errors == ()


def test_a_branch_can_still_be_merged(old: og.Graph) -> None:
    """Both sides have moved on from the commit that the merge compares with."""
    old.create_branch("review")
    fill(old, 600, 2, branch="review")
    for start in (700, 800, 900):
        fill(old, start, 2)

    old.cleanup(keep=1, confirm=True)
    old.merge("review")

    assert {"a600", "a700", "a900"} <= {row["id"] for row in rows(old, "node:Author")}
    old.cleanup(keep=1, confirm=True)
    fill(old, 650, 2, branch="review")
    old.merge("review")
    assert "a650" in {row["id"] for row in rows(old, "node:Author")}
    assert old.verify().errors == ()


def test_a_branch_that_took_from_main_can_still_be_merged(old: og.Graph) -> None:
    """The merge compares with a commit of main that no fork stands on."""
    old.create_branch("review")
    fill(old, 600, 2, branch="review")
    fill(old, 610, 2)
    old.merge("main", into="review")
    for start in (700, 800, 900):
        fill(old, start, 2)

    old.cleanup(keep=1, confirm=True)
    old.merge("review")

    assert {"a600", "a610", "a900"} <= {row["id"] for row in rows(old, "node:Author")}
    assert old.verify().errors == ()


def test_a_tagged_version_stays(old: og.Graph) -> None:
    dataset(old, "node:Paper").tags.create("kept", 3)

    report = old.cleanup(keep=1, confirm=True)

    assert all(row.error is None for row in report.tables)
    assert 3 in versions(old, "node:Paper")
    assert 2 not in versions(old, "node:Paper")


@pytest.mark.accepts("S-013")
def test_files_of_an_abandoned_write_are_reclaimed(old: og.Graph) -> None:
    tables = inside(old).store.tables
    handle = handle_of(old, "node:Paper")
    staged = tables.rows.stage_append(handle, tables.reads.scan(handle, limit=1))
    folder = Path(handle.location.uri) / "data"
    left = {each.path for each in staged._operation.fragments[0].files}  # type: ignore[attr-defined]

    old.cleanup(keep=1, confirm=True)
    assert left <= {each.name for each in folder.iterdir()}, "a young file may be about to land"

    for name in left:
        week_ago = time.time() - 9 * 86_400
        os.utime(folder / name, (week_ago, week_ago))
    old.cleanup(keep=1, confirm=True)
    assert not left & {each.name for each in folder.iterdir()}
    assert len(rows(old, "node:Paper")) == 6


@pytest.mark.accepts("S-015")
def test_orphan_forks_are_removed_and_owned_ones_stay(old: og.Graph) -> None:
    old.create_branch("live")
    fill(old, 600, 2, branch="live")
    old.create_branch("child", from_="live")
    tables = inside(old).store.tables
    for key in ("node:Paper", "edge:Wrote"):
        entry = old.snapshot().entries[key]
        location = tables.root.table(entry.table_path)
        tables.fork_branch(location, entry.version, "gone")
        tables.fork_branch(location, entry.version, "child")
        tables.fork_branch(tables.root.table(entry.table_path, "gone"), entry.version, "gone2")

    preview = old.cleanup(keep=1)
    report = old.cleanup(keep=1, confirm=True)

    keys, forks = ("node:Paper", "edge:Wrote"), ("gone", "gone2", "child")
    orphans = {f"{key}:{fork}" for key in keys for fork in forks}
    assert set(preview.forks_removed) == set(report.forks_removed) == orphans
    uri = tables.root.child(old.snapshot().entries["node:Paper"].table_path)
    assert set(tables.forks.list(uri)) == {"live"}
    assert answers(old, branch="child") == answers(old, branch="live")
    assert old.verify().errors == ()


def test_a_dropped_type_goes_when_no_kept_commit_shows_it(library: og.Graph) -> None:
    path = library.snapshot().entries["edge:Wrote"].table_path
    library.apply_schema(SCHEMA.replace("edge Wrote: Author -> Paper { pos: I32? }\n", ""))

    library.cleanup(keep=2, confirm=True)
    assert list((Path(library.uri) / path / "data").iterdir()), "a kept commit shows it"

    library.cleanup(keep=1, confirm=True)
    assert not list((Path(library.uri) / path / "data").iterdir())
    library.apply_schema(SCHEMA)
    assert rows(library, "edge:Wrote") == []


NOTED = f"{SCHEMA}\nnode Note {{ slug: String @key }}\n"


def test_kept_commits_stay_readable_when_a_type_was_added_among_them(library: og.Graph) -> None:
    """The oldest commit that is kept does not know the type, so it says nothing of its versions."""
    library.apply_schema(NOTED)
    for slug in ("a", "b"):
        library.mutate(f'query q() {{ insert Note {{ slug: "{slug}" }} }}')
    commits = library.commits(limit=4)
    library.optimize()

    library.cleanup(keep=4, confirm=True)

    counts = [len(library.scan("Note", commit=each.commit_id).to_arrow()) for each in commits[:3]]
    assert counts == [2, 1, 0]


def test_kept_commits_stay_readable_when_a_type_came_and_went_among_them(
    library: og.Graph,
) -> None:
    """Neither the oldest commit that is kept nor the head shows the type."""
    library.apply_schema(NOTED)
    for slug in ("a", "b"):
        library.mutate(f'query q() {{ insert Note {{ slug: "{slug}" }} }}')
    library.optimize()
    library.apply_schema(SCHEMA)
    commits = library.commits(limit=4)

    library.cleanup(keep=5, confirm=True)

    counts = [len(library.scan("Note", commit=each.commit_id).to_arrow()) for each in commits[1:]]
    assert counts == [2, 1, 0]


def test_a_table_with_fewer_versions_than_are_kept_keeps_all(library: og.Graph) -> None:
    library.apply_schema(NOTED)
    library.mutate('query q() { insert Note { slug: "a" } }')
    for start in (100, 200, 300):
        fill(library, start, 2)

    library.cleanup(keep=3, confirm=True)

    assert versions(library, "node:Note") == [1, 2]


def test_scratch_of_dead_loads_is_removed(old: og.Graph) -> None:
    dead = Path(old.uri) / "__load" / "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    dead.mkdir(parents=True)
    (dead / "lock").touch()
    (dead / "junk").write_text("rows")

    report = old.cleanup(keep=1, confirm=True)

    assert report.loads_removed == 1
    assert not dead.exists()


# What is refused


@pytest.mark.parametrize("policy", [{}, {"keep": 0}, {"older_than": timedelta(seconds=-1)}])
def test_an_invalid_policy_is_refused(library: og.Graph, policy: dict[str, object]) -> None:
    with pytest.raises(BadRequestError):
        library.cleanup(**policy)  # type: ignore[arg-type]


def test_it_refuses_while_an_interrupted_write_is_pending(old: og.Graph) -> None:
    with (
        arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}),
        pytest.raises(FailpointError),
    ):
        fill(old, 900)

    with pytest.raises(ConflictError, match="interrupted Load is pending"):
        cleanup(inside(old).environment(), [], keep=1, confirm=True)

    assert len(sidecars(old)) == 1
    assert old.cleanup(keep=1, confirm=True).tables  # which recovers it first
    assert sidecars(old) == []


def test_it_refuses_while_a_table_has_drift(old: og.Graph) -> None:
    dataset(old, "node:Paper").delete("doi = 'nothing'")

    with pytest.raises(ConflictError, match="run `omnigraph repair`"):
        old.cleanup(keep=1, confirm=True)


def test_an_unreadable_branch_stops_the_whole_cleanup(old: og.Graph) -> None:
    old.create_branch("review")
    before = versions(old, "node:Author")

    def trouble() -> None:
        raise StorageError("the store does not answer")

    with (
        arm_failpoints({Failpoint.CLEANUP_RESOLVE_BRANCH_SNAPSHOT: trouble}),
        pytest.raises(ConflictError, match="nothing was removed"),
    ):
        old.cleanup(keep=1, confirm=True)

    assert versions(old, "node:Author") == before


@pytest.mark.parametrize("point", [Failpoint.CLEANUP_TABLE_GC, Failpoint.CLEANUP_RECONCILE_FORK])
def test_an_error_on_one_table_is_reported_and_the_others_are_cleaned(
    old: og.Graph, point: Failpoint
) -> None:
    tables, entry = inside(old).store.tables, old.snapshot().entries["edge:Wrote"]
    tables.fork_branch(tables.root.table(entry.table_path), entry.version, "gone")
    hits: list[int] = []

    def trouble() -> None:
        hits.append(1)
        if len(hits) == 1:
            raise StorageError("the store does not answer")

    with arm_failpoints({point: trouble}):
        report = old.cleanup(keep=1, confirm=True)

    assert row_of(report, "edge:Wrote").error == "the store does not answer"
    assert row_of(report, "node:Author").error is None
    assert row_of(report, "node:Author").old_versions_removed > 0
    assert old.cleanup(keep=1, confirm=True).tables[0].error is None
    assert heads(old) == pins(old)


def test_open_handles_keep_working_after_a_cleanup(old: og.Graph) -> None:
    other = reopen(old)
    before = answers(other)
    pinned = open_pin(inside(other).store.tables, other.snapshot().entries["node:Paper"])

    old.cleanup(keep=1, confirm=True)

    assert answers(other) == before
    assert pinned.row_count == 6
    fill(other, 950, 2)
    assert len(rows(old, "node:Paper")) == 7


def test_a_policy_that_keeps_more_than_an_earlier_one_keeps_what_is_left(old: og.Graph) -> None:
    old.cleanup(keep=2, confirm=True)
    kept = {each.commit_id: answers(old, commit=each.commit_id) for each in old.commits()[:2]}

    report = old.cleanup(keep=5, confirm=True)

    assert not [row.error for row in report.tables if row.error]
    assert {each: answers(old, commit=each) for each in kept} == kept
    with pytest.raises(NotFoundError, match="state is gone"):
        answers(old, commit=old.commits()[4].commit_id)


def test_an_open_handle_says_of_a_removed_version_that_it_is_gone(old: og.Graph) -> None:
    """Lance still has the version open; what fails is the read of a file."""
    other = reopen(old)
    oldest = old.commits()[-2].commit_id
    entry = inside(other).coordinator.commit_states.get(other.commit(oldest)).entries["node:Author"]
    handle = open_pin(inside(other).store.tables, entry)
    old.optimize()
    fill(old, 600, 2)  # the files of that version are now those of no commit that is kept

    old.cleanup(keep=1, confirm=True)

    with pytest.raises(NotFoundError):
        inside(other).store.tables.reads.scan(handle)


def test_what_an_optimize_replaced_goes_and_its_commit_is_read_from_what_it_wrote(
    old: og.Graph,
) -> None:
    """Otherwise every row would be on the disk twice until the next commit."""
    head = old.commits()[0].commit_id
    expected = answers(old)
    old.optimize()
    old.cleanup(keep=1, confirm=True)

    tables = old.snapshot().entries
    assert all(versions(old, key) == [entry.version] for key, entry in tables.items())
    assert answers(old, commit=head) == expected
    assert answers(reopen(old), commit=head) == expected
    assert old.verify().errors == ()


def test_a_branch_of_a_compacted_head_can_still_be_merged(old: og.Graph) -> None:
    """The base of the merge is a commit whose own manifest version is gone."""
    old.optimize()
    old.cleanup(keep=1, confirm=True)
    old.create_branch("review")
    fill(old, 800, 2, branch="review")
    fill(old, 900, 2)
    old.cleanup(keep=1, confirm=True)

    merged = reopen(old).merge("review", into="main")

    assert merged.outcome == "merged"
    assert {"a800", "a900", "a500"} <= {row["id"] for row in rows(reopen(old), "node:Author")}


def test_a_branch_from_before_an_optimize_keeps_what_it_shows(old: og.Graph) -> None:
    old.create_branch("review")
    expected = answers(old, branch="review")
    old.optimize()

    old.cleanup(keep=1, confirm=True)

    assert answers(reopen(old), branch="review") == expected
    fill(old, 800, 2, branch="review")
    assert old.merge("review", into="main").outcome == "fast_forward"
