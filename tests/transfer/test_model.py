"""Random work on three stores, with pushes and pulls between them, beside plain-Python git.

Every person belongs to one branch of one store, which alone changes it: so nothing conflicts, and
what a merge leaves is the latest age of everyone. Types come from a small pool and are declared
alike, so stores add the same ones at the same time; a merge has those of both sides. A check
refuses merges and moves to states in which a person is too old. Commits, heads, parents and what
may be pushed are those of git.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest

import omnigraph as og
from omnigraph.errors import (
    ChecksFailed,
    CommitStateGone,
    ConflictError,
    NotFastForward,
    TableVersionNotFound,
)
from omnigraph.manifest.checks import Check
from tests.depth import depth, sample
from tests.graph.reading import SCHEMA, TABLES, add, ages, new_graph
from tests.transfer.conftest import OPTIONS, find_damage

pytestmark = pytest.mark.slow

People: TypeAlias = Mapping[str, tuple[int, int]]
"""Name → when it was last written, and the age."""

TOO_OLD = 141
CHECK = Check(
    "old", f"query old() {{ match {{ $p: Person $p.age >= {TOO_OLD} }} return {{ $p.name }} }}"
)
TYPES = 3
BASE_TYPES = [each.partition(":")[2] for each in TABLES]


@dataclass
class Git:
    """Commits with their parents and states, and the heads of the branches of every store."""

    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    states: dict[str, People] = field(default_factory=dict)
    types: dict[str, frozenset[str]] = field(default_factory=dict)
    heads: dict[tuple[str, str], str] = field(default_factory=dict)

    def breaks_check(self, people: People) -> bool:
        return any(age >= TOO_OLD for _, age in people.values())

    def reach(self, commit: str) -> set[str]:
        found, pending = set(), [commit]
        while pending:
            each = pending.pop()
            if each not in found:
                found.add(each)
                pending += self.parents[each]
        return found

    def branches(self, store: str) -> list[str]:
        return [branch for where, branch in self.heads if where == store]


class World:
    """Three stores of one graph, and the model of them."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.git = Git()
        self.counter = 0
        self.done: list[str] = []
        self.names = ["a", "b", "c"]
        self.paths = {name: path / name for name in self.names}
        first = new_graph(self.paths["a"], self_care=False)
        self.graphs = {"a": first}
        genesis = first.commits()[0].commit_id
        self.git.parents[genesis], self.git.states[genesis] = (), {}
        self.git.types[genesis] = frozenset()
        self.git.heads["a", "main"] = genesis
        checked = first.apply_checks([CHECK]).commit_id
        assert checked is not None
        self.commit("a", "main", checked, (genesis,), {}, frozenset())
        self.write("a", "main")
        for name in self.names[1:]:
            og.clone(self.paths["a"], self.paths[name], durability="process")
            self.graphs[name] = og.open(self.paths[name], **OPTIONS)
            self.git.heads[name, "main"] = self.git.heads["a", "main"]

    def step(self) -> None:
        store = self.random.choice(self.names)
        branch = self.random.choice(self.git.branches(store))
        other = self.random.choice([each for each in self.names if each != store])
        kinds = ["write"] * 5 + ["branch", "merge", "upkeep", "reopen"] + ["push", "pull"] * 3
        kinds += ["schema"] * 2
        kind = self.random.choice([*kinds, "fetch", "cleanup"])
        self.done.append(f"{kind} {store} {branch} {other}")
        match kind:
            case "write":
                self.write(store, branch)
            case "schema":
                self.add_type(store, branch)
            case "branch":
                self.create(store, branch)
            case "merge":
                self.merge(store, self.random.choice(self.git.branches(store)), branch)
            case "upkeep":
                self.graphs[store].optimize()
            case "cleanup":
                self.graphs[store].cleanup(keep=self.random.choice([1, 3]), confirm=True)
            case "reopen":
                self.graphs[store].close()
                self.graphs[store] = og.open(self.paths[store], **OPTIONS)
            case "push":
                self.push(store, other, branch)
            case "pull":
                self.pull(store, other, self.random.choice(self.git.branches(other)))
            case "fetch":
                self.graphs[store].fetch(self.paths[other], name=f"from-{other}")
                for each in self.git.branches(other):
                    head = self.graphs[store].commits(f"from-{other}/{each}")[0].commit_id
                    assert head == self.git.heads[other, each], self.done
        self.compare(store)

    def write(self, store: str, branch: str) -> None:
        self.counter += 1
        name = f"{store} {branch} {self.random.randrange(3)}"
        age = TOO_OLD if self.random.random() < 0.1 else self.counter % TOO_OLD
        graph, head = self.graphs[store], self.git.heads[store, branch]
        made = add(graph, "person", branch, name=name, age=age).commit_id
        assert made is not None
        people = {**self.git.states[head], name: (self.counter, age)}
        self.commit(store, branch, made, (head,), people, self.git.types[head])

    def add_type(self, store: str, branch: str) -> None:
        """Add a type of the pool, with a row that every store writes alike."""
        name = f"T{self.random.randrange(TYPES)}"
        graph, head = self.graphs[store], self.git.heads[store, branch]
        types = self.git.types[head]
        if name not in types:
            declared = "".join(f"node {each} {{ n: I32 @key }}\n" for each in {*types, name})
            made = graph.apply_schema(f"{SCHEMA}{declared}", branch=branch).commit_id
        else:
            query = f"query q() {{ insert {name} {{ n: {len(types)} }} }}"
            made = graph.mutate(query, branch=branch).commit_id
        assert made is not None
        self.commit(store, branch, made, (head,), self.git.states[head], types | {name})

    def commit(
        self,
        store: str,
        branch: str,
        made: str,
        parents: tuple[str, ...],
        state: People,
        types: frozenset[str],
    ) -> None:
        self.git.parents[made], self.git.states[made] = parents, state
        self.git.types[made] = types
        self.git.heads[store, branch] = made

    def create(self, store: str, origin: str) -> None:
        self.counter += 1
        name = f"{store}-{self.counter}"
        self.graphs[store].create_branch(name, from_=origin)
        self.git.heads[store, name] = self.git.heads[store, origin]

    def merge(self, store: str, source: str, target: str) -> None:
        ours, theirs = self.git.heads[store, target], self.git.heads[store, source]
        if source == target or theirs in self.git.reach(ours):
            return
        people = self.join(ours, theirs)
        try:
            made = self.graphs[store].merge(source, into=target).commit_id
        except ChecksFailed:
            assert self.git.breaks_check(people), self.done
            self.follow_undo(store, target)
            return
        assert made is not None
        assert not self.git.breaks_check(people), self.done
        self.commit(store, target, made, (ours, theirs), people, self.join_types(ours, theirs))

    def follow_undo(self, store: str, branch: str) -> None:
        """A merge of schemas that is refused is undone by a commit without changes."""
        now, head = self.graphs[store].commits(branch)[0], self.git.heads[store, branch]
        if now.commit_id != head:
            assert (now.actor, now.parent_id) == ("omnigraph:recovery", head), self.done
            facts = self.git.states[head], self.git.types[head]
            self.commit(store, branch, now.commit_id, (head,), *facts)

    def join(self, one: str, other: str) -> People:
        first, second = self.git.states[one], self.git.states[other]
        never = (0, 0)
        return {
            name: max(first.get(name, never), second.get(name, never)) for name in {*first, *second}
        }

    def join_types(self, one: str, other: str) -> frozenset[str]:
        return self.git.types[one] | self.git.types[other]

    def push(self, store: str, other: str, branch: str) -> None:
        ours, theirs = self.git.heads[store, branch], self.git.heads.get((other, branch))
        is_forward = theirs is None or theirs in self.git.reach(ours)
        is_behind = theirs is not None and ours in self.git.reach(theirs)
        try:
            self.graphs[store].push(self.paths[other], branch)
        except NotFastForward:
            assert not is_forward, self.done
            assert not is_behind, self.done
            return
        except ChecksFailed:
            assert is_forward, self.done
            assert self.git.breaks_check(self.git.states[ours]), self.done
            assert theirs is not None, self.done
            self.compare(other)
            return
        assert is_forward or is_behind, self.done
        if not is_behind:
            assert theirs is None or not self.git.breaks_check(self.git.states[ours]), self.done
            self.git.heads[other, branch] = ours
        self.compare(other)

    def pull(self, store: str, other: str, branch: str) -> None:
        theirs, ours = self.git.heads[other, branch], self.git.heads.get((store, branch))
        try:
            self.graphs[store].pull(self.paths[other], branch, name=f"from-{other}")
        except ChecksFailed:
            assert ours is not None, self.done
            after = theirs if ours in self.git.reach(theirs) else None
            people = self.git.states[after] if after else self.join(ours, theirs)
            assert self.git.breaks_check(people), self.done
            self.follow_undo(store, branch)
            return
        except ConflictError as error:
            # Each store keeps what its own branches compare with, and knows nothing of others.
            if "no longer stored" not in error.message:
                raise
            assert self.has_cleaned(store, other), self.done
            return
        head = self.graphs[store].commits(branch)[0]
        if ours is None or ours in self.git.reach(theirs):
            assert head.commit_id == theirs, self.done
            self.git.heads[store, branch] = theirs
        elif theirs in self.git.reach(ours):
            assert head.commit_id == ours, self.done
        else:
            assert (head.parent_id, head.merged_parent_id) == (ours, theirs), self.done
            facts = self.join(ours, theirs), self.join_types(ours, theirs)
            self.commit(store, branch, head.commit_id, (ours, theirs), *facts)

    def has_cleaned(self, *stores: str) -> bool:
        return all(any(each.startswith(f"cleanup {s} ") for each in self.done) for s in stores)

    def compare(self, store: str) -> None:
        graph = self.graphs[store]
        own = {each for each in graph.branches() if not each.startswith("from-")}
        assert own == set(self.git.branches(store)), self.done
        for branch in own:
            head = self.git.heads[store, branch]
            assert graph.commits(branch)[0].commit_id == head, self.done
            expected = {name: age for name, (_, age) in self.git.states[head].items()}
            assert ages(graph, branch) == expected, self.done
            tables = {each.partition(":")[2] for each in graph.snapshot(branch).entries}
            assert tables - set(BASE_TYPES) == self.git.types[head], self.done
            assert graph.checks(branch) == [CHECK], self.done

    def finish(self) -> None:
        """The past, row by row, and every file."""
        for store, graph in self.graphs.items():
            for branch in self.git.branches(store):
                for commit in self.git.reach(self.git.heads[store, branch]):
                    found = graph.commit(commit)
                    parents = (found.parent_id, found.merged_parent_id)
                    assert tuple(filter(None, parents)) == self.git.parents[commit], self.done
                    self.compare_past(graph, commit)
            graph.close()
            assert find_damage(self.paths[store]) == [], self.done

    def compare_past(self, graph: og.Graph, commit: str) -> None:
        try:
            rows = list(graph.export(commit=commit, types=["Person"]))
            types = {row["type"] for row in graph.export(commit=commit) if "type" in row}
        except (CommitStateGone, TableVersionNotFound):
            assert any(each.startswith("cleanup") for each in self.done), (commit, self.done)
            return
        found = {row["data"]["name"]: row["data"]["age"] for row in rows}
        expected = {name: age for name, (_, age) in self.git.states[commit].items()}
        assert found == expected, self.done
        assert types - set(BASE_TYPES) <= self.git.types[commit], self.done


SEEDS = [(seed, depth(24, 60)) for seed in range(depth(1, 60))]
# One version was followed by two others of the same number, which came from different stores.
# The base of a merge was removed by a cleanup, and came back from the other store.
# A branch was made from a manifest whose tables a cleanup had removed.
# One transaction had two versions in a store, and both came to one lineage of another.
# The base of a merge was on the line of a mirror alone, and beside that of the branch.
# A version that a cleanup had removed was taken for a later one of its number.
# The head of a received branch was a commit that no manifest showed.
FOUND = [(8, 45), (27, 45), (13, 45), (42, 45), (13, 50), (70012, 47), (70180, 40)]


@pytest.mark.parametrize(("seed", "steps"), [*SEEDS, *sample(FOUND, every=7)])
def test_stores_that_exchange_branches_are_what_git_would_make_of_them(
    tmp_path: Path, seed: int, steps: int
) -> None:
    world = World(tmp_path, seed)

    for _ in range(steps):
        world.step()

    world.finish()
