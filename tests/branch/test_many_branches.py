"""What many branches cost, and that every answer is the one of a plain computation."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from unittest import mock

import lance
import pytest

import omnigraph as og
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.graph.session import Mode
from omnigraph.manifest import GraphCommit, freshness, history
from omnigraph.manifest.line_states import LineStates
from omnigraph.storage import file_times
from omnigraph.storage.counters import Counters, counting
from omnigraph.storage.garbage import Garbage
from omnigraph.testing.inside import inside
from tests.branch.people import AGES, change, merged, new_people, state_of
from tests.depth import depth
from tests.model.history_model import History
from tests.model.history_schema import Schema

pytestmark = pytest.mark.slow

Versions = dict[str, set[int]]
"""Path of a table, or `__manifest` → its versions on the main line."""


def read_itself(*_: object) -> None:
    """In the place of what one manifest tells of another one: each is read."""


class World:
    """A graph that changes at random, and the plain DAG of its commits."""

    def __init__(self, path: Path, seed: int) -> None:
        self.graph = new_people(path, self_care=False)
        self.history = History()
        self.facts: dict[str, GraphCommit] = {}
        self.chance = random.Random(seed)
        self.note("main")

    def note(self, branch: str, *merged_ids: str) -> None:
        """Record the head of a branch, and all that was before the first one of main."""
        commits = [inside(self.graph).coordinator.fresh(branch).head]
        while not self.facts and commits[-1].parent_id is not None:
            commits.append(self.graph.commit(commits[-1].parent_id))
        for commit in reversed(commits):
            self.facts[commit.commit_id] = commit
            self.history.record(commit.commit_id, branch, Schema(()), {}, *merged_ids)

    def step(self) -> None:
        branches = list(self.history.heads)
        branch, other = self.chance.choice(branches), self.chance.choice(branches)
        kinds = ["write", "make", "start", "tag", "merge", "delete"]
        match self.chance.choices(kinds, [5, 3, 2, 1, 4, 1])[0]:
            case "write":
                name = self.chance.choice(list(AGES))
                change(self.graph, "age", branch, name=name, age=self.chance.randrange(100))
                self.note(branch)
            case "make":
                name = self.chance.choice(["b", "c", "d/e", "f"])
                if name not in branches:
                    self.graph.create_branch(name, branch)
                    self.history.heads[name] = self.history.heads[branch]
            case "start":
                # Before the last of these there was no row whose age could be changed.
                self.start_in_past(self.chance.choice(self.commits(branch)[:-1]))
            case "tag":
                with suppress(og.errors.CommitStateGone):
                    commit = self.chance.choice(self.commits(branch))
                    self.graph.tag(f"t{len(self.graph.tags())}", commit.commit_id)
            case "merge" if branch != other:
                self.merge(branch, other)
            case "delete" if branch != "main":
                try:
                    self.graph.delete_branch(branch)
                except og.errors.ConflictError:
                    return  # another branch came from it
                del self.history.heads[branch]

    def start_in_past(self, commit: GraphCommit) -> None:
        name = f"p{len(self.facts)}"
        with suppress(og.errors.ConflictError, og.errors.NotFoundError):  # it was cleaned up
            self.graph.create_branch(name, commit.commit_id)
            self.history.heads[name] = commit.commit_id

    def merge(self, source: str, target: str) -> None:
        theirs, ours = self.history.heads[source], self.history.heads[target]
        bases = self.history.best_common([theirs], [ours])
        result = merged(self.graph, source, target, resolve="theirs")
        if theirs in bases:
            assert result.commit_id is None
            return
        self.note(target, theirs)
        noted = self.facts[self.history.heads[target]].properties
        assert noted["merge_outcome"] == ("fast_forward" if ours in bases else "merged")
        assert noted.get("merge_bases", [noted["merge_base"]]) == bases

    # What a plain computation says

    def log(self, branch: str) -> list[GraphCommit]:
        ids = self.history.ancestors(self.history.heads[branch])
        commits = [self.facts[each] for each in ids]
        return sorted(commits, key=lambda each: (each.created_at, each.commit_id), reverse=True)

    def commits(self, branch: str) -> list[GraphCommit]:
        return [self.facts[each] for each in self.history.line(self.history.heads[branch])]

    def possible_bases(self) -> set[str]:
        """What the heads, or what follows them, can be merged over, by definition."""
        found = set(self.history.heads.values())
        while True:
            pairs = combinations(sorted(found), 2)
            more = {each for a, b in pairs for each in self.history.best_common([a], [b])}
            if more <= found:
                return found
            found |= more

    def forks(self) -> set[tuple[str, str]]:
        """Every fork of a table that some branch shows, or a state that outlives its branch."""
        coordinator = inside(self.graph).coordinator
        bases = self.possible_bases()
        states = [
            *(coordinator.fresh(each).snapshot() for each in self.history.heads),
            *(each for each in coordinator.retained if each.head.commit_id in bases),
            *(each for _, each in coordinator.tags),
        ]
        return {
            (key, entry.table_branch)
            for state in states
            for key, entry in state.entries.items()
            if entry.table_branch is not None
        }

    def needed_versions(self, keep: int) -> Versions:
        """What cleanup has to keep, one commit after the other; versions of forks among them."""
        coordinator = inside(self.graph).coordinator
        needed: Versions = {path: {max(all_)} for path, all_ in self.versions().items()}
        floors: dict[str, int] = {}
        for branch in self.history.heads:
            kept = self.commits(branch)[:keep]
            readable = [each for each in kept if coordinator.commit_states.find(each) is not None]
            shown = [
                coordinator.fresh(branch).snapshot(),
                coordinator.commit_states.get(readable[-1]),
            ]
            for entry in (entry for each in shown for entry in each.entries.values()):
                path = entry.table_path
                floors[path] = min(floors.get(path, entry.version), entry.version)
            needed["__manifest"] |= {c.manifest_version for c in kept if c.branch == "main"}
            if branch == "main":
                floors["__manifest"] = readable[-1].manifest_version
        for base in (self.facts[each] for each in self.possible_bases()):
            snapshot = coordinator.commit_states.find(base)
            for entry in snapshot.entries.values() if snapshot is not None else ():
                needed[entry.table_path].add(entry.version)
            if base.branch == "main":
                needed["__manifest"].add(base.manifest_version)
        for _, state in coordinator.tags:
            for entry in state.entries.values():
                needed[entry.table_path].add(entry.version)
            if state.branch == "main":
                needed["__manifest"].add(state.manifest_version)
        for path, all_ in self.versions().items():
            newest = sorted(all_)[-keep:]
            needed[path] |= {each for each in all_ if each in newest or each >= floors[path]}
        return needed

    def versions(self) -> Versions:
        tables = inside(self.graph).store.tables
        garbage = Garbage(tables.storage_options)
        paths = [entry.table_path for entry in self.graph.snapshot().entries.values()]
        return {
            path: set(garbage.versions(tables.root.table(path))) for path in [*paths, "__manifest"]
        }

    def fork_bases(self) -> Versions:
        """Versions of the main line that a fork stands on: Lance keeps them."""
        tables = inside(self.graph).store.tables
        return {
            path: {
                int(each.identifier.split(":")[0])
                for each in tables.forks.list(tables.root.child(path)).values()
            }
            for path in self.versions()
        }

    def all_forks(self) -> set[tuple[str, str]]:
        tables = inside(self.graph).store.tables
        return {
            (key, fork)
            for key, entry in self.graph.snapshot().entries.items()
            for fork in tables.forks.list(tables.root.child(entry.table_path))
        }

    # Comparing

    def check(self) -> None:
        for branch in self.history.heads:
            log, commits = self.log(branch), self.commits(branch)
            for limit in (None, 0, 1, 3, 20):
                assert self.graph.log(branch, limit=limit) == log[:limit]
                assert self.graph.commits(branch, limit=limit) == commits[:limit]
        assert self.graph.branches() == ["main", *sorted(set(self.history.heads) - {"main"})]

    def clean_up(self, keep: int) -> None:
        with mock.patch.multiple(LineStates, at=read_itself, entries_at=read_itself):
            before, needed, forks = self.versions(), self.needed_versions(keep), self.forks()

        reopen(self.graph).cleanup(keep=keep, confirm=True)

        after, under = self.versions(), self.fork_bases()
        for path, all_ in after.items():
            assert all_ == before[path] & (needed[path] | under[path]), path
        assert forks <= self.all_forks()


@pytest.mark.parametrize("seed", range(depth(1, 20)))
def test_random_histories_are_answered_as_their_definition_says(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log, commits, merge bases, and what cleanup keeps, also in a handle that knows nothing."""
    monkeypatch.setattr(history, "FEW_COMMITS", 0)
    world = World(tmp_path / "graph", seed)
    for count in range(1, depth(24, 60)):
        world.step()
        if count % 12 == 0:
            world.clean_up(keep=world.chance.choice([1, 2, 4]))
            world.check()
            world.graph = reopen(world.graph)
    world.check()
    assert world.graph.verify().errors == ()


# What it costs


def cost(work: Callable[[], object]) -> int:
    """How many manifests, refs and other small files a call reads."""
    with counting() as counters:
        work()
    return files_read(counters)


def files_read(counters: Counters) -> int:
    # Not counted is how often the latest version is looked up: that depends on the clock.
    return counters.control_reads + counters.text_reads


def add_branches(graph: og.Graph, names: Iterable[str]) -> None:
    """Branches that have a commit and a fork each, from commits of main of their own."""
    for name in names:
        change(graph, "age", name="alice", age=len(name))
        graph.create_branch(name)
        change(graph, "age", name, name="bob", age=1)


def test_a_refresh_reads_what_changed_however_many_branches_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch that was never read is read when it is asked for, and one that is gone is not."""
    monkeypatch.setattr(file_times, "STABLE_NS", 0)
    graph = new_people(tmp_path / "graph", self_care=False)
    costs = []
    for names in ("ab", "cdefgh"):
        add_branches(graph, names)
        reopen(graph).close()  # brings the history up to date with all branches
        reader, writer = og.open(graph.uri, mode="r"), reopen(graph)
        costs.append((cost(reader.refresh), cost(writer.refresh)))
    assert costs[0] == costs[1]

    before = state_of(reader, "c")
    change(graph, "age", "c", name="bob", age=77)
    writer.delete_branch("h")
    reader.refresh()

    assert state_of(reader, "c") == state_of(graph, "c") != before
    assert "h" not in reader.branches()


def test_a_cleanup_reads_few_manifests_of_main_however_many_branches_came_from_it(
    tmp_path: Path,
) -> None:
    """Each branch came from another commit of main, which it is compared with in a merge."""
    graph = new_people(tmp_path / "graph", self_care=False)
    costs = []
    for names in ("abc", "defghijk"):
        add_branches(graph, names)
        with counting() as counters:
            graph.cleanup(keep=1)
        costs.append(counters.control_reads)

    assert costs[0] == costs[1]


def test_the_format_is_looked_up_once_for_all_branches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = new_people(tmp_path / "graph", self_care=False)
    add_branches(graph, "abcd")
    reader = og.open(graph.uri, mode="r")
    looks: list[object] = []
    monkeypatch.setattr(freshness, "read_stamp", looks.append)

    for branch in "abcd":
        state_of(reader, branch)

    assert len(looks) <= 1


def test_a_deletion_reads_the_branches_that_come_from_it_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a handle that has seen no branch yet."""
    monkeypatch.setattr(file_times, "STABLE_NS", 0)
    graph = new_people(tmp_path / "graph", self_care=False)
    costs = []
    for gone, names in (("x", "ab"), ("y", "cdefghij")):
        add_branches(graph, [gone, *names])
        reopen(graph).close()  # brings the history up to date with all branches
        other = reopen(graph)
        with counting() as counters:
            other.delete_branch(gone)
        costs.append(counters.control_reads)

    assert costs[0] == costs[1]


def test_a_deletion_keeps_what_a_branch_needs_that_took_from_it_through_another(
    tmp_path: Path,
) -> None:
    """`z` merged `y`, which had merged `x`; both go, each deleted by a process of its own."""
    graph = new_people(tmp_path / "graph", self_care=False)
    add_branches(graph, ["x", "y", "z", "w"])
    change(graph, "age", "x", name="carol", age=71)
    graph.merge("x", into="y")
    graph.merge("y", into="z")
    taken = [each.commit_id for each in graph.commits("x") if each.branch == "x"]

    for name in ("y", "x"):
        reopen(graph).delete_branch(name)

    after = reopen(graph)
    known = {each.commit_id for each in after.log("z")}
    assert set(taken) <= known
    for commit in taken:
        found = after.query("query q() { match { $p: Person } return { $p.name } }", commit=commit)
        assert found.rows()
    assert after.merge("z", into="w").outcome == "merged"
    assert after.verify().errors == ()


def test_an_open_costs_the_same_with_few_branches_and_with_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_times, "STABLE_NS", 0)
    graph = new_people(tmp_path / "graph")
    modes: tuple[Mode, ...] = ("r", "rw")
    costs = []
    for names in ("abc", "defghijklmno"):
        for name in names:
            graph.create_branch(name)
        reopen(graph)
        costs.append([cost(partial(reopen, graph, mode)) for mode in modes])

    assert costs[0] == costs[1]


def test_merges_and_logs_cost_the_same_with_few_branches_and_with_many(tmp_path: Path) -> None:
    """In a handle that has seen no branch yet."""
    graph = new_people(tmp_path / "graph", self_care=False)
    costs = []
    for name, more in (("x", "abc"), ("y", "defghijklmno")):
        for each in (name, *more):
            graph.create_branch(each)
        change(graph, "age", name, name="bob", age=1)
        change(graph, "age", name="dan", age=len(more))
        other = reopen(graph)
        merging = cost(partial(other.merge, name))
        costs.append([merging, *(cost(partial(read, name)) for read in (other.log, other.commits))])

    assert costs[0] == costs[1]


def reopen(graph: og.Graph, mode: Mode = "rw") -> og.Graph:
    return og.open(graph.uri, mode=mode, durability="process", self_care=False)


def test_the_history_table_has_the_commits_of_all_branches_after_an_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the mark of the last time is there, damaged, or of a clock that was set back."""
    monkeypatch.setattr(history, "FRAGMENTS_MAX", 2)
    graph = new_people(tmp_path / "graph", self_care=False)
    add_branches(graph, ["b", "c"])
    later = history.write_mark(time.time_ns() + 10**15)
    for mark in (None, None, "", "{}", '{"reconciled_at_ns": "x"}', later, "damaged"):
        change(graph, "age", "b", name="dan", age=7)
        if mark == "damaged":  # in a way that would hide this change
            time.sleep(0.1)
            mark = history.write_mark(1).replace("1", str(time.time_ns()), 1)
        if mark is not None:
            (tmp_path / "graph" / history.MARK).write_text(mark)

        reopen(graph)

        table = lance.dataset(str(tmp_path / "graph" / history.TABLE))
        known = table.to_table()[history.KEY].to_pylist()
        commits = {each.commit_id for branch in "bc" for each in graph.commits(branch)}
        assert sorted(known) == sorted(commits), mark
        assert len(table.get_fragments()) <= 2


def test_a_cleanup_looks_at_every_branch_a_fixed_number_of_times(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph", self_care=False)
    costs = []
    for number in range(3):
        add_branches(graph, [f"b{number}{each}" for each in range(3)])
        costs.append(cost(lambda: graph.cleanup(keep=1, confirm=True)))

    assert costs[2] - costs[1] <= costs[1] - costs[0]


def test_a_fork_that_is_claimed_while_a_cleanup_looks_around_stays(tmp_path: Path) -> None:
    """The cleanup has read branch `a` already when that forks a table."""
    graph = new_people(tmp_path / "graph", self_care=False)
    for name in "ab":
        graph.create_branch(name)
    other = reopen(graph)
    looks: list[None] = []

    def write() -> None:
        looks.append(None)
        if len(looks) == len(graph.branches()):
            change(other, "firm", "a", code="new")

    with arm_failpoints({Failpoint.CLEANUP_RESOLVE_BRANCH_SNAPSHOT: write}):
        report = graph.cleanup(keep=1, confirm=True)

    assert report.forks_removed == ()
    assert "new" in state_of(graph, "a")["node:Firm"]


def test_orphan_forks_are_removed_with_one_look_at_the_branches(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph", self_care=False)
    add_branches(graph, "abcd")
    tables, entry = inside(graph).store.tables, graph.snapshot().entries["node:Firm"]
    costs = []
    for number in (2, 6):
        names = [f"left{number}-{each}" for each in range(number)]
        for name in names:
            tables.fork_branch(tables.root.table(entry.table_path), entry.version, name)
        with counting() as counters:
            report = graph.cleanup(keep=1, confirm=True)
        costs.append(files_read(counters))
        assert report.forks_removed == tuple(f"node:Firm:{name}" for name in sorted(names))

    # One ref of each fork is read twice: to find it, and to see that none came from it.
    assert costs[1] - costs[0] <= 2 * (6 - 2)
