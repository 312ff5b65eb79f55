"""Random histories with reverts, cherry-picks and restores, next to dicts that do as git does.

The model knows the rows that every commit left, and no tables, versions or pins. A change is two
states; it is made row by row, where the row is what the change starts from.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import event, given

import omnigraph as og
from omnigraph.branch.merge import MergeOutcome
from omnigraph.errors import MergeConflicts
from tests.branch.people import State, state_of
from tests.branch.test_model import EXAMPLES, World, names, places, steps

pytestmark = pytest.mark.slow

Conflicts = set[tuple[str, str]]
ENDS = {"edge:Knows": ("node:Person", "node:Person"), "edge:WorksAt": ("node:Person", "node:Firm")}

numbers = st.lists(st.integers(0, 30), min_size=1, max_size=3)
undo_steps = st.lists(
    st.one_of(
        st.tuples(st.just("revert"), places, numbers),
        st.tuples(st.just("revert"), places, numbers),
        st.tuples(st.just("pick"), places, numbers),
        st.tuples(st.just("restore"), places, st.integers(0, 30)),
        st.tuples(st.just("restore ids"), places, st.integers(0, 30), names),
        st.tuples(st.just("set"), places, names, st.integers(1, 3)),
        st.tuples(st.just("gone"), places, names),
        st.tuples(st.just("merge"), places, places),
    ),
    min_size=3,
    max_size=10,
)


class UndoWorld(World):
    """A world whose past can be taken back."""

    def run(self, step: tuple[Any, ...]) -> None:
        what, place, *more = step
        branch = self.branches[place % len(self.branches)]
        match what, *more:
            case ["revert", which]:
                known = [each for each in self.graph.log(branch) if self.is_known(each)]
                self.revert(branch, choose(known, which))
            case ["pick", which]:
                everywhere = {c.commit_id: c for b in self.branches for c in self.graph.log(b)}
                known = [c for _, c in sorted(everywhere.items()) if self.is_known(c)]
                self.pick(branch, choose(known, which))
            case ["restore", which]:
                self.restore(branch, sorted(self.states)[which % len(self.states)])
            case ["restore ids", which, name]:
                self.restore(branch, sorted(self.states)[which % len(self.states)], name)
            case _:
                super().run(step)

    def is_known(self, commit: og.Commit) -> bool:
        """Whether the model has the states before and after a commit."""
        return commit.commit_id in self.states and commit.parent_id in self.states

    def revert(self, branch: str, commits: Sequence[og.Commit]) -> None:
        if not commits:
            return
        in_order = sorted(commits, key=lambda each: (each.created_at, each.commit_id))
        changes = [
            (self.states[run[-1].commit_id], self.states[str(run[0].parent_id)])
            for run in reversed(find_runs(in_order))
        ]
        ids = [each.commit_id for each in commits]
        self.expect(branch, changes, "revert", lambda: self.graph.revert(*ids, branch=branch))

    def pick(self, branch: str, commits: Sequence[og.Commit]) -> None:
        if not commits:
            return
        changes = [
            (self.states[str(run[0].parent_id)], self.states[run[-1].commit_id])
            for run in find_runs(commits)
        ]
        ids = [each.commit_id for each in commits]
        self.expect(branch, changes, "pick", lambda: self.graph.cherry_pick(*ids, into=branch))

    def restore(self, branch: str, commit_id: str, name: str | None = None) -> None:
        now, then = self.state(branch), self.states[commit_id]
        after = deepcopy(then)
        if name is not None:
            if name not in {**now["node:Person"], **then["node:Person"]}:
                return
            after = deepcopy(now)
            after["node:Person"].pop(name, None)
            if name in then["node:Person"]:
                after["node:Person"][name] = then["node:Person"][name]
        ids = None if name is None else [name]
        self.expect(
            branch,
            [(now, after)],
            "restore",
            lambda: self.graph.restore(commit_id, ids=ids, branch=branch),
        )

    def expect(
        self, branch: str, changes: Sequence[tuple[State, State]], what: str, run: Any
    ) -> None:
        before, head = self.state(branch), self.head(branch)
        expected, conflicts = make_changes(before, changes)
        if conflicts:
            event(f"{what}: conflicts")
            with pytest.raises(MergeConflicts) as raised:
                run()
            found = {(each.table_key, str(each.row_id)) for each in raised.value.conflicts}
            assert found == conflicts
            assert (state_of(self.graph, branch), self.head(branch)) == (before, head)
            return
        result = run()
        assert state_of(self.graph, branch) == expected
        is_changed = expected != before
        event(f"{what}: {'done' if is_changed else 'nothing to do'}")
        assert (result.commit_id is not None) == is_changed
        if not is_changed:
            assert self.head(branch) == head
            return
        self.remember(branch)
        made = self.graph.commits(branch, limit=1)[0]
        assert (made.commit_id, made.parent_id) == (result.commit_id, head)
        assert made.merged_parent_id is None
        if what != "restore":
            assert result.outcome is MergeOutcome.MERGED


def choose(commits: Sequence[og.Commit], which: Sequence[int]) -> list[og.Commit]:
    picked = [commits[each % len(commits)] for each in which] if commits else []
    return list({each.commit_id: each for each in picked}.values())


def find_runs(commits: Sequence[og.Commit]) -> list[list[og.Commit]]:
    """Commits that follow one another directly are one change."""
    runs: list[list[og.Commit]] = []
    for each in commits:
        if runs and each.parent_id == runs[-1][-1].commit_id:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def make_changes(target: State, changes: Sequence[tuple[State, State]]) -> tuple[State, Conflicts]:
    """The state after changes, one after the other, and the rows that stand in their way."""
    now, conflicts = deepcopy(target), Conflicts()
    for before, after in changes:
        for key in target:
            for id_ in {*before[key], *after[key]}:
                old, new, found = (state[key].get(id_) for state in (before, after, now))
                if old == new or found == new:
                    continue
                if found != old:
                    conflicts.add((key, id_))
                elif new is None:
                    del now[key][id_]
                else:
                    now[key][id_] = new
    for key, id_ in conflicts:
        now[key].pop(id_, None)
        if id_ in target[key]:
            now[key][id_] = target[key][id_]
    for key, (source, end) in ENDS.items():
        for id_, edge in now[key].items():
            if edge["src"] not in now[source] or edge["dst"] not in now[end]:
                conflicts.add((key, id_))
    return now, conflicts


@EXAMPLES
@given(steps, undo_steps)
def test_random_undoes_do_what_dicts_would(script: list[Any], undoes: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as path:
        world = UndoWorld(Path(path) / "graph")
        world.run(("branch", 0))
        for step in (*script, *undoes):
            world.run(step)
        assert world.graph.verify().is_clean
