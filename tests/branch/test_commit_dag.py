"""Common ancestors, against their definition over random histories."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from types import FrameType
from typing import Any

import pytest

from omnigraph.branch.commit_dag import CommitDag, compare_histories, possible_bases
from omnigraph.manifest import GraphCommit, ManifestState
from omnigraph.manifest.rows import ancestor_to_row, commit_to_row, row_to_commit, rows_to_table

Commits = Mapping[str, GraphCommit]


def random_history(seed: int, count: int, *, skew: int = 0) -> Commits:
    """Commits with one or two earlier parents each; with `skew` their clocks may go back."""
    chance = random.Random(seed)
    made: dict[str, GraphCommit] = {}
    for number in range(count):
        recent = list(made)[-8:]
        parents = chance.sample(recent, min(len(recent), chance.choice((1, 1, 2))))
        time = number * 10 + chance.randint(-skew, skew)
        made[f"{number:026d}"] = commit(f"{number:026d}", time, *parents)
    return made


def commit(
    id_: str, time: int, parent: str | None = None, merged: str | None = None
) -> GraphCommit:
    return GraphCommit(id_, "main", 1, parent, merged, None, time)


def dag_of(line: Iterable[GraphCommit], merged: Iterable[GraphCommit] = ()) -> CommitDag:
    commits = list(line)
    state = ManifestState(
        branch="main",
        version=1,
        entries={},
        hidden={},
        paths={},
        hidden_paths=frozenset(),
        commit_rows=rows_to_table(map(commit_to_row, commits)),
        ancestor_rows=rows_to_table(map(ancestor_to_row, merged)),
        head=commits[-1],
    )
    return CommitDag([state])


def ancestors(commits: Commits, id_: str) -> set[str]:
    """A commit and all it comes from."""
    found, pending = set(), [id_]
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            known = commits[each]
            pending += [one for one in (known.parent_id, known.merged_parent_id) if one]
    return found


def best(commits: Commits, one: str, other: str) -> set[str]:
    """Common ancestors that no other common ancestor comes from."""
    common = ancestors(commits, one) & ancestors(commits, other)
    below = {each for known in common for each in ancestors(commits, known) if each != known}
    return common - below


def pairs(commits: Commits, seed: int) -> list[tuple[str, str]]:
    return random.Random(seed).sample(list(combinations(commits, 2)), 40)


@pytest.mark.parametrize("seed", range(20))
def test_the_bases_are_the_best_common_ancestors(seed: int) -> None:
    commits = random_history(seed, 40)
    dag = dag_of(commits.values())

    for one, other in pairs(commits, seed):
        found = compare_histories(dag, [commits[one]], [commits[other]])

        assert {each.commit_id for each in found.bases} == best(commits, one, other)
        only = ancestors(commits, one) - ancestors(commits, other)
        assert {each.commit_id for each in found.only_one} == only


@pytest.mark.parametrize("seed", range(20))
def test_clocks_that_went_back_hide_no_base(seed: int) -> None:
    commits = random_history(seed, 40, skew=100)
    dag = dag_of(commits.values())

    for one, other in pairs(commits, seed):
        found = compare_histories(dag, [commits[one]], [commits[other]])

        bases = {each.commit_id for each in found.bases}
        common = ancestors(commits, one) & ancestors(commits, other)
        assert best(commits, one, other) <= bases <= common


@pytest.mark.parametrize("skew", [0, 100])
@pytest.mark.parametrize("seed", range(10))
def test_what_any_later_merge_can_compare_with_is_among_the_possible_bases(
    seed: int, skew: int
) -> None:
    commits = random_history(seed, 40, skew=skew)
    heads = random.Random(seed).sample(list(commits), 5)

    found = possible_bases(dag_of(commits.values()), [commits[each] for each in heads])

    needed = set(heads)
    while True:
        more = {
            each for one, other in combinations(sorted(needed), 2)
            for each in best(commits, one, other)
        }  # fmt: skip
        if more <= needed:
            break
        needed |= more
    assert needed <= set(found)


def test_commits_that_a_merge_brought_are_found_beside_the_line() -> None:
    line = [commit("a", 1), commit("b", 2, "a"), commit("m", 4, "b", "x")]
    dag = dag_of(line, merged=[commit("x", 3, "a")])

    found = compare_histories(dag, [line[-1]], [commit("x", 3, "a")])

    assert [each.commit_id for each in found.bases] == ["x"]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of all commits that are read."""
    seen: list[str] = []

    def count(row: dict[str, Any]) -> GraphCommit:
        seen.append(row["object_id"])
        return row_to_commit(row)

    monkeypatch.setattr("omnigraph.branch.commit_dag.row_to_commit", count)
    return seen


@pytest.mark.slow
def test_finding_a_base_costs_its_distance_and_not_the_history(parsed: list[str]) -> None:
    ids = [f"{number:026d}" for number in range(20_000)]
    line = [commit(id_, place, ids[place - 1] if place else None) for place, id_ in enumerate(ids)]
    side = [commit("s1", 19_990, ids[19_980]), commit("s2", 19_991, "s1")]
    ours, theirs = dag_of(line)._lines, dag_of([*line[:19_981], *side])._lines
    dag = CommitDag([])
    dag._lines = [*ours, *theirs]

    found = compare_histories(dag, [side[-1]], [line[-1]])
    possible_bases(dag, [side[-1], line[-1]])

    assert [each.commit_id for each in found.bases] == [ids[19_980]]
    assert len(parsed) < 60
    indexed = [each.indexed for each in dag._lines]
    assert max(indexed) <= 1_024


def count_calls(work: Callable[[], object]) -> int:
    """How many functions of the DAG are called."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.endswith("commit_dag.py")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
def test_a_commit_is_found_by_one_look_however_many_branches_know_it() -> None:
    """Each branch starts at another commit of a line, and has those before it."""
    line = [commit(f"{n:026d}", n, f"{n - 1:026d}" if n else None) for n in range(2_000)]
    costs = []
    for branches in (1, 40):
        starts = [line[: len(line) - 45 * number] for number in range(branches)]
        dag = CommitDag([])
        dag._lines = [each for start in starts for each in dag_of(start)._lines]
        costs.append(count_calls(partial(own_line, dag, line[-1])))

    # Each line and that of its ancestors is read on a few times, in blocks that grow.
    assert costs[1] - costs[0] <= 39 * 2 * 8


def own_line(dag: CommitDag, commit: GraphCommit) -> None:
    while parents := list(dag.parents(commit)):
        commit = parents[0]
