"""The engine against the reference model: the same random writes, compared after every step."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import omnigraph as og
from omnigraph.errors import BadRequestError, ConflictError, KeyConflict
from omnigraph.testing.inside import inside
from omnigraph.testing.together import run_together
from tests.depth import depth
from tests.graph.reading import new_graph, rows_at, sidecars
from tests.model.reference import SCHEMA, Likes, Link, Person, Refused, State

NAMES = st.sampled_from(["ann", "bob", "cy", "d'e", "É"])
AGES = st.none() | st.integers(0, 3)
EMAILS = st.none() | st.sampled_from(["x", "y"])
TOGETHER = ["insert", "link", "like", "pair"]
BRANCHES = st.sampled_from(["b", "c/d"])
PEOPLE = st.dictionaries(NAMES, st.tuples(AGES, EMAILS), max_size=3)
LINKS = st.lists(st.tuples(NAMES, NAMES), max_size=2)
ROWS = st.lists(st.tuples(NAMES, AGES), max_size=3)
LIKES = st.dictionaries(st.tuples(NAMES, NAMES), AGES, max_size=2)

QUERIES = """
query insert($name: String, $age: I32?, $email: String?) {
    insert Person { name: $name, age: $age, email: $email }
}
query link($a: String, $b: String) { insert Knows { from: $a, to: $b } }
query like($a: String, $b: String, $much: I32?, $more: I32?) {
    insert Likes { from: $a, to: $b, much: $much }
    insert Likes { from: $a, to: $b, much: $more }
}
query dislike($id: String) { delete Likes where id = $id }
query pair($a: String, $b: String) {
    insert Knows { from: $a, to: $b }
    insert Person { name: $a }
    insert Person { name: $b }
}
query age($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query email($age: I32, $email: String) { update Person set { email: $email } where age >= $age }
query gone($name: String) { delete Person where name = $name }
query young($age: I32) { delete Person where age < $age }
query unlink($a: String) { delete Knows where from = $a }
query put($rows: [{ name: String, age: I32? }]) {
    for $row in $rows { upsert Person { name: $row.name, age: $row.age } }
}
query put_one($name: String, $age: I32?) { upsert Person { name: $name, age: $age } }
query put_link($a: String, $b: String) { upsert Knows { from: $a, to: $b } }
query put_like($a: String, $b: String, $much: I32?) {
    upsert Likes { from: $a, to: $b, much: $much }
}
query set_like($a: String, $b: String, $much: I32?) {
    update Likes set { much: $much } where from = $a and to = $b
}
query cut($a: String, $b: String) { delete Knows where from = $a and to = $b }
query cut_young($age: I32) { match { $a: Person  $a.age < $age  $a $k:knows $_ } delete $k }
query grow() { match { $a knows $b } update $b set { age: coalesce($b.age, 0) + 1 } }
query copy() { match { $a knows $b } update $b set { age: $a.age } }
"""


def like_id(a: str, b: str) -> str:
    return json.dumps([a, b], separators=(",", ":"), ensure_ascii=False)


class GraphMachine(RuleBasedStateMachine):
    """Two handles on one graph take turns; either may be behind the other."""

    folder: str
    handles: list[og.Graph]

    @initialize()
    def create(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="omnigraph-model-")
        first = new_graph(Path(self.folder) / "graph", SCHEMA)
        self.handles = [first, og.open(first.uri, durability="process")]
        self.model: dict[str, State] = {"main": State()}
        self.parents: dict[str, str] = {}
        self.commits = {"main": 1}

    def teardown(self) -> None:
        if hasattr(self, "model"):
            for branch in self.model:
                self.compare(branch)
            shutil.rmtree(self.folder)

    # Writes

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, name=NAMES, age=AGES, email=EMAILS)
    def insert(
        self, which: int, at: str | None, name: str, age: int | None, email: str | None
    ) -> None:
        params = {"name": name, "age": age, "email": email}
        self.mutate(which, at, "insert", params, lambda s: s.upsert({name: (age, email)}))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES)
    def link(self, which: int, at: str | None, a: str, b: str) -> None:
        self.mutate(which, at, "link", {"a": a, "b": b}, lambda s: s.link([(a, b)]))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES, much=AGES, more=AGES)
    def like(
        self, which: int, at: str | None, a: str, b: str, much: int | None, more: int | None
    ) -> None:
        params = {"a": a, "b": b, "much": much, "more": more}
        likes = [((a, b), much), ((a, b), more)]
        self.mutate(which, at, "like", params, lambda s: s.like(likes))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES)
    def dislike(self, which: int, at: str | None, a: str, b: str) -> None:
        self.mutate(which, at, "dislike", {"id": like_id(a, b)}, lambda s: s.dislike((a, b)))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES)
    def pair(self, which: int, at: str | None, a: str, b: str) -> None:
        self.mutate(which, at, "pair", {"a": a, "b": b}, lambda s: s.pair(a, b))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, name=NAMES, age=st.integers(0, 3))
    def update_age(self, which: int, at: str | None, name: str, age: int) -> None:
        def changed(state: State) -> tuple[State, int, int]:
            return state.update(lambda n, _: n == name, lambda p: (age, p[1]))

        self.mutate(which, at, "age", {"name": name, "age": age}, changed)

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, age=st.integers(0, 3))
    def update_email(self, which: int, at: str | None, age: int) -> None:
        def changed(state: State) -> tuple[State, int, int]:
            return state.update(
                lambda _, p: p[0] is not None and p[0] >= age, lambda p: (p[0], "z")
            )

        self.mutate(which, at, "email", {"age": age, "email": "z"}, changed)

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, name=NAMES)
    def delete(self, which: int, at: str | None, name: str) -> None:
        self.mutate(which, at, "gone", {"name": name}, lambda s: s.delete(lambda n, _: n == name))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, age=st.integers(0, 4))
    def delete_young(self, which: int, at: str | None, age: int) -> None:
        def changed(state: State) -> tuple[State, int, int]:
            return state.delete(lambda _, p: p[0] is not None and p[0] < age)

        self.mutate(which, at, "young", {"age": age}, changed)

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES)
    def unlink(self, which: int, at: str | None, a: str) -> None:
        self.mutate(which, at, "unlink", {"a": a}, lambda s: s.unlink(a))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, rows=ROWS)
    def put(self, which: int, at: str | None, rows: list[tuple[str, int | None]]) -> None:
        params = {"rows": [{"name": name, "age": age} for name, age in rows]}
        self.mutate(which, at, "put", params, lambda s: s.put_ages(rows))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, name=NAMES, age=AGES)
    def put_one(self, which: int, at: str | None, name: str, age: int | None) -> None:
        params = {"name": name, "age": age}
        self.mutate(which, at, "put_one", params, lambda s: s.put_ages([(name, age)]))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES)
    def put_link(self, which: int, at: str | None, a: str, b: str) -> None:
        self.mutate(which, at, "put_link", {"a": a, "b": b}, lambda s: s.put_link((a, b)))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES, much=AGES)
    def put_like(self, which: int, at: str | None, a: str, b: str, much: int | None) -> None:
        params = {"a": a, "b": b, "much": much}
        self.mutate(which, at, "put_like", params, lambda s: s.like([((a, b), much)]))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES, much=AGES)
    def set_like(self, which: int, at: str | None, a: str, b: str, much: int | None) -> None:
        params = {"a": a, "b": b, "much": much}
        self.mutate(which, at, "set_like", params, lambda s: s.set_like((a, b), much))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, a=NAMES, b=NAMES)
    def cut(self, which: int, at: str | None, a: str, b: str) -> None:
        params = {"a": a, "b": b}
        self.mutate(which, at, "cut", params, lambda s: s.cut(lambda link: link == (a, b)))

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES, age=st.integers(0, 4))
    def cut_young(self, which: int, at: str | None, age: int) -> None:
        def changed(state: State) -> tuple[State, int, int]:
            young = {n for n, p in state.people.items() if p[0] is not None and p[0] < age}
            return state.cut(lambda link: link[0] in young)

        self.mutate(which, at, "cut_young", {"age": age}, changed)

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES)
    def grow(self, which: int, at: str | None) -> None:
        self.mutate(which, at, "grow", {}, lambda s: s.grow_known())

    @rule(which=st.integers(0, 1), at=st.none() | BRANCHES)
    def copy(self, which: int, at: str | None) -> None:
        self.mutate(which, at, "copy", {}, lambda s: s.copy_ages())

    @rule(
        which=st.integers(0, 1),
        at=st.none() | BRANCHES,
        mode=st.sampled_from(["merge", "append", "overwrite"]),
        people=PEOPLE,
        links=LINKS,
        likes=LIKES,
    )
    def load(
        self,
        which: int,
        at: str | None,
        mode: str,
        people: dict[str, Person],
        links: list[Link],
        likes: Likes,
    ) -> None:
        branch = self.branch(at)
        records: list[dict[str, Any]] = [
            {"type": "Person", "data": {"name": name, "age": age, "email": email}}
            for name, (age, email) in people.items()
        ]
        records += [{"edge": "Knows", "from": a, "to": b} for a, b in links]
        records += [
            {"edge": "Likes", "from": a, "to": b, "data": {"much": much}}
            for (a, b), much in likes.items()
        ]
        new = self.expected(lambda: self.model[branch].load(mode, people, links, likes))

        def act() -> object:
            return self.handles[which].load(records, mode=mode, branch=branch).commit_id

        commit_id = self.attempt(act, is_refused=new is None)
        if new is not None:
            assert (commit_id is not None) == bool(records)
            self.accept(branch, new, committed=commit_id is not None)
        self.compare(branch)

    @rule(
        which=st.integers(0, 1),
        at=st.none() | BRANCHES,
        inserts=st.lists(
            st.tuples(st.sampled_from(TOGETHER), NAMES, NAMES), min_size=2, max_size=4
        ),
    )
    def insert_together(
        self, which: int, at: str | None, inserts: list[tuple[str, str, str]]
    ) -> None:
        """Whatever comes at the same time, it is as if it had come in the order of the commits."""
        branch, graph = self.branch(at), self.handles[which]
        changes = [_make_insert(*each) for each in inserts]
        outcomes = run_together(
            graph,
            [partial(graph.mutate, QUERIES, n, p, branch=branch) for n, p, _ in changes],
            branch,
        )

        count = sum(isinstance(each, og.MutationResult) for each in outcomes)
        states, made = [self.model[branch]], {}
        for outcome, (*_, change) in zip(outcomes, changes, strict=True):
            made[getattr(outcome, "commit_id", None)] = outcome, change
        for commit in reversed(graph.commits(branch, limit=count) if count else []):
            result, change = made[commit.commit_id]
            state, nodes, edges = change(states[-1])
            assert (result.affected_nodes, result.affected_edges) == (nodes, edges)
            states.append(state)
        for outcome, (*_, change) in zip(outcomes, changes, strict=True):
            if not isinstance(outcome, og.MutationResult):
                assert isinstance(outcome, (BadRequestError, KeyConflict))
                assert any(self.expected(partial(change, each)) is None for each in states)
        self.model[branch] = states[-1]
        self.commits[branch] += count
        self.compare(branch)

    # Branches and handles

    @precondition(lambda self: len(self.model) < 3)
    @rule(which=st.integers(0, 1), name=BRANCHES, at=st.none() | BRANCHES)
    def create_branch(self, which: int, name: str, at: str | None) -> None:
        source = self.branch(at)
        if name in self.model:
            with pytest.raises(og.errors.BranchExists):
                self.handles[which].create_branch(name, source)
            return
        self.handles[which].create_branch(name, source)
        self.model[name] = self.model[source]
        self.commits[name] = self.commits[source]
        self.parents[name] = source
        self.compare(name)

    @rule(which=st.integers(0, 1), name=BRANCHES)
    def delete_branch(self, which: int, name: str) -> None:
        if name not in self.model:
            with pytest.raises(og.errors.BranchNotFound):
                self.handles[which].delete_branch(name)
        elif name in self.parents.values():
            with pytest.raises(ConflictError):
                self.handles[which].delete_branch(name)
        else:
            self.handles[which].delete_branch(name)
            del self.model[name], self.parents[name], self.commits[name]
        assert self.handles[1 - which].branches() == ["main", *sorted(set(self.model) - {"main"})]

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        uri = self.handles[which].uri
        self.handles[which].close()
        self.handles[which] = og.open(uri, durability="process")

    # Comparing

    def branch(self, wanted: str | None) -> str:
        return wanted if wanted in self.model else "main"

    def expected(self, compute: Callable[[], Any]) -> Any:
        try:
            return compute()
        except Refused:
            return None

    def attempt(self, act: Callable[[], Any], *, is_refused: bool) -> Any:
        """Do it, once more when this handle was behind; it must be refused exactly when said."""
        for _ in range(2):
            try:
                found = act()
            except (BadRequestError, KeyConflict):
                assert is_refused
                return None
            except ConflictError:
                continue
            assert not is_refused
            return found
        raise AssertionError("a handle was behind twice in a row, with no other writer")

    def mutate(
        self,
        which: int,
        at: str | None,
        name: str,
        params: dict[str, Any],
        change: Callable[[State], tuple[State, int, int]],
    ) -> None:
        branch = self.branch(at)
        new = self.expected(lambda: change(self.model[branch]))

        def act() -> og.MutationResult:
            return self.handles[which].mutate(QUERIES, name, params, branch=branch)

        result = self.attempt(act, is_refused=new is None)
        if new is not None:
            state, nodes, edges = new
            assert (result.affected_nodes, result.affected_edges) == (nodes, edges)
            assert (result.commit_id is not None) == bool(nodes or edges)
            self.accept(branch, state, committed=result.commit_id is not None)
        self.compare(branch)

    def accept(self, branch: str, state: State, *, committed: bool) -> None:
        self.model[branch] = state
        self.commits[branch] += committed

    def compare(self, branch: str) -> None:
        """A handle sees the model's rows, HEADs are pins, and every commit is in the history."""
        state = self.model[branch]
        graph = self.handles[len(state.people) % 2]
        snapshot = graph.snapshot(branch)
        people = {
            row["name"]: (row["age"], row["email"]) for row in rows_at(graph, snapshot, "Person")
        }
        links = [(row["src"], row["dst"]) for row in rows_at(graph, snapshot, "Knows")]
        likes = {
            row["id"]: (row["src"], row["dst"], row["much"])
            for row in graph.edges("Likes", branch=branch).to_arrow().to_pylist()
        }
        assert likes == {like_id(a, b): (a, b, much) for (a, b), much in state.likes.items()}
        assert people == state.people
        assert tuple(sorted(links)) == state.links
        tables = inside(graph).store.tables
        for entry in snapshot.entries.values():
            if entry.table_branch == (None if branch == "main" else branch):
                location = tables.root.table(entry.table_path, entry.table_branch)
                assert tables.head_version(location) == entry.version
        assert sidecars(graph) == []
        assert len(graph.commits(branch)) == self.commits[branch]


def _make_insert(
    kind: str, a: str, b: str
) -> tuple[str, dict[str, Any], Callable[[State], tuple[State, int, int]]]:
    """One of the queries that only insert, its parameters, and what it does to the model."""
    match kind:
        case "insert":
            return kind, {"name": a, "age": 1, "email": b}, lambda s: s.upsert({a: (1, b)})
        case "link":
            return kind, {"a": a, "b": b}, lambda s: s.link([(a, b)])
        case "like":
            params = {"a": a, "b": b, "much": 1, "more": 2}
            return kind, params, lambda s: s.like([((a, b), 1), ((a, b), 2)])
    return kind, {"a": a, "b": b}, lambda s: s.pair(a, b)


TestGraphModel = pytest.mark.xdist_group("model")(GraphMachine.TestCase)
TestGraphModel.settings = settings(
    max_examples=depth(10, 1_000),
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
