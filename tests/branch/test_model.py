"""Random branches, edits and merges, next to a model of plain dicts that knows no tables."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

import omnigraph as og
from omnigraph.branch.compare import (
    candidates_by_id,
    candidates_by_row_version,
    differences,
    drop_equal_rows,
)
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.branch.merge import MergeOutcome
from omnigraph.errors import MergeConflicts
from omnigraph.testing.inside import inside
from omnigraph.upkeep.content_keeping import TableWork, commit_work, to_stage
from omnigraph.write.environment import queue_keys
from omnigraph.write.sidecar import WriterKind
from tests.branch.people import State, change, joined, merged, new_people, state_of
from tests.depth import depth

pytestmark = pytest.mark.slow

NAMES = ["alice", "bob", "carol", "eve"]
TABLES = ["node:Person", "edge:Knows"]

names = st.sampled_from(NAMES)
places = st.integers(0, 3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("branch"), places),
        st.tuples(st.just("set"), places, names, st.integers(1, 3)),
        st.tuples(st.just("gone"), places, names),
        st.tuples(st.just("link"), places, names, names),
        st.tuples(st.just("apart"), places, names),
        st.tuples(st.just("compact"), places),
        st.tuples(st.just("merge"), places, places),
        st.tuples(st.just("merge"), places, places),
    ),
    min_size=4,
    max_size=14,
)

EXAMPLES = settings(
    max_examples=depth(3, 50),
    deadline=None,
    # A failing script is short as it is, and every attempt to shorten it costs seconds.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


class World:
    """A graph and its model: the state that every commit left, kept by commit id."""

    def __init__(self, path: Path) -> None:
        self.graph = new_people(path, self_care=False)
        self.branches = ["main"]
        self.states: dict[str, State] = {self.head("main"): state_of(self.graph)}

    def head(self, branch: str) -> str:
        return self.graph.commits(branch, limit=1)[0].commit_id

    def state(self, branch: str) -> State:
        return self.states[self.head(branch)]

    def remember(self, branch: str) -> None:
        self.states[self.head(branch)] = state_of(self.graph, branch)

    def run(self, step: tuple[Any, ...]) -> None:
        what, place, *more = step
        branch = self.branches[place % len(self.branches)]
        match what, *more:
            case ["branch"]:
                name = f"b{len(self.branches)}"
                self.graph.create_branch(name, branch)
                self.branches.append(name)
            case ["set", name, age]:
                is_there = name in self.state(branch)["node:Person"]
                change(self.graph, "age" if is_there else "person", branch, name=name, age=age)
                self.remember(branch)
            case ["gone", name]:
                change(self.graph, "gone", branch, name=name)
                self.remember(branch)
            case ["link", a, b] if {a, b} <= self.state(branch)["node:Person"].keys():
                change(self.graph, "knows", branch, a=a, b=b)
                self.remember(branch)
            case ["apart", name]:
                change(self.graph, "apart", branch, a=name)
                self.remember(branch)
            case ["compact"]:
                compact(self.graph, branch)
                assert state_of(self.graph, branch) == self.state(branch)
            case ["merge", other]:
                self.merge(branch, self.branches[other % len(self.branches)])

    def merge(self, source: str, target: str) -> None:
        if source == target:
            return
        base = self.base(source, target)
        before, theirs = self.state(target), self.state(source)
        expected, conflicts = three_way(self.states[base], theirs, before)
        if base == self.head(source):
            assert merged(self.graph, source, target).outcome is MergeOutcome.ALREADY_UP_TO_DATE
        elif conflicts:
            event("conflicts")
            with pytest.raises(MergeConflicts) as raised:
                merged(self.graph, source, target)
            found = {(each.kind, each.table_key, each.row_id) for each in raised.value.conflicts}
            assert found == conflicts
            assert state_of(self.graph, target) == before
        else:
            is_forward = base == self.head(target)
            event("fast forward" if is_forward else "merged")
            result = merged(self.graph, source, target)
            assert result.outcome.value == ("fast_forward" if is_forward else "merged")
            self.remember(target)
            assert self.state(target) == expected
            again = merged(self.graph, source, target)
            assert again.outcome is MergeOutcome.ALREADY_UP_TO_DATE

    def base(self, source: str, target: str) -> str:
        """The merge base by its definition, over every commit there is."""
        commits = {c.commit_id: c for branch in self.branches for c in self.graph.commits(branch)}

        def steps_from(head: str) -> dict[str, int]:
            found, layer, count = {head: 0}, [head], 0
            while layer:
                count += 1
                parents = [
                    parent
                    for each in layer
                    for parent in (commits[each].parent_id, commits[each].merged_parent_id)
                    if parent is not None and parent not in found
                ]
                layer = list(dict.fromkeys(parents))
                found.update(dict.fromkeys(layer, count))
            return found

        one, other = steps_from(self.head(source)), steps_from(self.head(target))
        common = one.keys() & other.keys()
        nearest = min(one[each] + other[each] for each in common)
        tied = [each for each in common if one[each] + other[each] == nearest]
        return min(tied, key=lambda each: (-commits[each].manifest_version, each))


def three_way(
    base: State, source: State, target: State
) -> tuple[State, set[tuple[str, str, str | None]]]:
    """The merged state without what is in conflict, and every conflict."""
    conflicts: set[tuple[str, str, str | None]] = set()
    calm = {key: dict(rows) for key, rows in source.items()}
    for key in TABLES:
        for id_ in {*base[key], *source[key], *target[key]}:
            old, theirs, ours = (state[key].get(id_) for state in (base, source, target))
            if old in (theirs, ours) or theirs == ours:
                continue
            kind = "divergent_update"
            if theirs is None or ours is None:
                kind = "delete_vs_update"
            elif old is None:
                kind = "divergent_insert"
            conflicts.add((kind, key, id_))
            calm[key].pop(id_, None)
            if old is not None:
                calm[key][id_] = old
    result = joined(base, calm, target)
    people = result["node:Person"]
    for id_, edge in result["edge:Knows"].items():
        if edge["src"] not in people or edge["dst"] not in people:
            conflicts.add(("orphan_edge", "edge:Knows", id_))
    return result, conflicts


def compact(graph: og.Graph, branch: str) -> None:
    """Compact the people of a branch, as self-care would after many writes."""
    environment = inside(graph).environment()
    entry = graph.snapshot(branch).entries["node:Person"]
    if entry.table_branch != (None if branch == "main" else branch):
        return
    handle = open_entry(environment.tables, entry)
    staged = environment.tables.compaction.stage(handle)
    if staged is not None:
        work = TableWork(entry, handle, (to_stage(staged),))
        with environment.queues.acquire_many(queue_keys(["node:Person"], branch)):
            commit_work(environment, branch, WriterKind.OPTIMIZE, {"node:Person": work})


def check_diffs(world: World) -> None:
    """Between all pairs: applying a diff gives the other state, and both paths agree."""
    tables = inside(world.graph).store.tables
    for one, other in itertools.permutations(world.branches, 2):
        state = {key: dict(rows) for key, rows in world.state(one).items()}
        for each in world.graph.diff(one, other):
            assert state[each.table_key].get(each.id) == each.before
            if each.after is None:
                del state[each.table_key][each.id]
            else:
                state[each.table_key][each.id] = dict(each.after)
        assert state == world.state(other)
        for key in TABLES:
            before, after = (
                open_entry(tables, world.graph.snapshot(name).entries[key]) for name in (one, other)
            )
            descent = Descent(tables)
            ancestor = descent.common_ancestor(before, after)
            assert ancestor is not None, "every line of descent can be proved here"
            by_version = candidates_by_row_version(tables, before, after, ancestor)
            by_id = candidates_by_id(tables, before, after)
            found = drop_equal_rows(tables, before, after, by_version).rows
            assert found == drop_equal_rows(tables, before, after, by_id).rows
            assert found == differences(descent, before, after).rows


@EXAMPLES
@given(steps)
def test_random_branches_edits_and_merges_do_what_dicts_would(script: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as path:
        world = World(Path(path) / "graph")
        world.run(("branch", 0))
        for step in script:
            world.run(step)
        check_diffs(world)


edits = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(1, 3)),
        st.tuples(st.just("gone")),
        st.tuples(st.just("link")),
    ),
    min_size=1,
    max_size=3,
)


@EXAMPLES
@given(edits, edits)
def test_disjoint_edits_commute(first: list[Any], second: list[Any]) -> None:
    """Whichever of two branches is merged first, the graph ends up the same."""
    with tempfile.TemporaryDirectory() as path:
        world = World(Path(path) / "graph")
        graph = world.graph
        for name, subject, script in (("one", "alice", first), ("two", "dan", second)):
            graph.create_branch(name)
            for what, *more in script:
                match what:
                    case "set" if subject in state_of(graph, name)["node:Person"]:
                        change(graph, "age", name, name=subject, age=more[0])
                    case "gone":
                        change(graph, "gone", name, name=subject)
                    case "link" if subject in state_of(graph, name)["node:Person"]:
                        change(graph, "knows", name, a=subject, b="carol")
        for order in (("one", "two"), ("two", "one")):
            graph.create_branch("-".join(order))
            for name in order:
                merged(graph, name, "-".join(order))

        assert state_of(graph, "one-two") == state_of(graph, "two-one")
