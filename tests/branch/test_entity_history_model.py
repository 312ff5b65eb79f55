"""Random histories: what `history`, `blame` and `log` say of every entity, next to plain dicts.

The model knows the whole state that each commit left, and goes back commit by commit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, event, example, given, settings

import omnigraph as og
from omnigraph.errors import EntityNotFound, OmnigraphError
from omnigraph.storage import row_addresses, row_search
from tests.branch.people import State, change, new_people, state_of
from tests.depth import IS_TORTURE

pytestmark = pytest.mark.slow

NAMES = ["alice", "bob", "carol", "eve"]
TABLES = ["node:Person", "edge:Knows"]
RENAMED = {"years": "age"}
Change = tuple[str, str | None, Any, Any]
"""Commit, merge that it came through, and the row before and after it."""

names = st.sampled_from(NAMES)
places = st.integers(0, 3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("branch"), places),
        st.tuples(st.just("set"), places, names, st.integers(1, 3)),
        st.tuples(st.just("set"), places, names, st.integers(1, 3)),
        st.tuples(st.just("gone"), places, names),
        st.tuples(st.just("load"), places, st.sets(names, min_size=1), st.integers(1, 3)),
        st.tuples(st.just("link"), places, names, names),
        st.tuples(st.just("apart"), places, names),
        st.tuples(st.just("compact"), places),
        st.tuples(st.just("rename"), places),
        st.tuples(st.just("drop"), places),
        st.tuples(st.just("merge"), places, places, st.sampled_from(["ours", "theirs"])),
        st.tuples(st.just("merge"), places, places, st.sampled_from(["ours", "theirs"])),
    ),
    min_size=8,
    max_size=24,
)


ALL_AT_ONCE: list[tuple[Any, ...]] = [
    *(("set", 0, "alice", 1), ("rename", 0), ("branch", 0), ("set", 1, "alice", 2)),
    *(("branch", 1), ("gone", 2, "bob"), ("set", 2, "eve", 1), ("merge", 2, 1, "theirs")),
    *(("set", 0, "alice", 3), ("compact", 0), ("link", 1, "alice", "carol"), ("drop", 2)),
    *(("merge", 1, 0, "theirs"), ("set", 0, "bob", 2), ("load", 1, {"alice", "eve"}, 3)),
    *(("merge", 0, 1, "ours"), ("merge", 1, 0, "ours"), ("apart", 0, "alice"), ("drop", 1)),
    *(("rename", 0), ("set", 0, "eve", 2)),
]


class World:
    """A graph, and the state that each of its commits left."""

    def __init__(self, path: Path) -> None:
        self.graph = new_people(path, self_care=False)
        self.branches = ["main"]
        self.states: dict[str, State] = {}
        self.parents: dict[str, tuple[str | None, str | None]] = {}
        self.commits: dict[str, og.Commit] = {}
        self.is_renamed: dict[str, bool] = {}
        for commit in self.graph.log():
            self.add(commit, state_of_commit(self.graph, commit.commit_id), "main")

    def run(self, step: tuple[Any, ...]) -> None:
        what, place, *more = step
        branch = self.branches[place % len(self.branches)]
        try:
            self.act(what, branch, more)
        except OmnigraphError as error:
            event(f"refused: {what} {type(error).__name__}")
            return
        if branch in self.branches:
            self.remember(branch)

    def act(self, what: str, branch: str, more: list[Any]) -> None:
        match what, *more:
            case ["branch"]:
                name = f"b{len(self.states)}_{len(self.branches)}"
                self.graph.create_branch(name, branch)
                self.branches.append(name)
            case ["set", name, age]:
                is_there, word = name in self.people(branch), self.age_of(branch)
                text = f'update Person set {{ {word}: {age} }} where name = "{name}"'
                if not is_there:
                    text = f'insert Person {{ name: "{name}", {word}: {age} }}'
                self.graph.mutate(f"query q() {{ {text} }}", branch=branch, actor=f"by-{age}")
            case ["gone", name]:
                change(self.graph, "gone", branch, name=name)
            case ["load", several, age]:
                word = self.age_of(branch)
                rows = [
                    {"type": "Person", "data": {"name": each, word: age}}
                    for each in sorted(several)
                ]
                self.graph.load(rows, mode="merge", branch=branch)
            case ["link", first, second]:
                change(self.graph, "knows", branch, a=first, b=second)
            case ["apart", name]:
                change(self.graph, "apart", branch, a=name)
            case ["compact"]:
                self.graph.optimize()
            case ["rename"]:
                self.rename(branch)
            case ["drop"]:
                if branch != "main":
                    self.graph.delete_branch(branch)
                    self.branches.remove(branch)
            case ["merge", other, side]:
                target = self.branches[other % len(self.branches)]
                found = self.graph.merge(branch, target, resolve=side)
                event(f"merge: {found.outcome.value}")
                self.remember(target)

    def rename(self, branch: str) -> None:
        """Call a property otherwise, on one branch."""
        old = self.age_of(branch)
        new = "years" if old == "age" else "age"
        text = self.graph.branch_schema(branch).replace(f' @rename_from("{new}")', "")
        text = text.replace(f"{old}: I32?", f'{new}: I32? @rename_from("{old}")')
        text = text.replace(f"@range({old},", f"@range({new},")
        self.graph.apply_schema(text, branch=branch)

    def age_of(self, branch: str) -> str:
        return "years" if "years: I32?" in self.graph.branch_schema(branch) else "age"

    def people(self, branch: str) -> dict[str, Any]:
        return self.states[self.head(branch)]["node:Person"]

    def head(self, branch: str) -> str:
        return self.graph.commits(branch, limit=1)[0].commit_id

    def remember(self, branch: str) -> None:
        for commit in self.graph.log(branch, limit=2):
            if commit.commit_id not in self.states:
                self.add(commit, canonical(state_of(self.graph, branch)), branch)

    def add(self, commit: og.Commit, state: State, branch: str) -> None:
        self.commits[commit.commit_id] = commit
        self.states[commit.commit_id] = state
        self.parents[commit.commit_id] = commit.parent_id, commit.merged_parent_id
        self.is_renamed[commit.commit_id] = self.age_of(branch) == "years"

    # The model

    def row(self, commit_id: str, key: str, entity_id: str) -> dict[str, Any] | None:
        return self.states[commit_id][key].get(entity_id)

    def ancestors(self, commit_id: str | None) -> set[str]:
        pending, found = [commit_id], set[str]()
        while pending:
            each = pending.pop()
            if each is not None and each not in found:
                found.add(each)
                pending += self.parents[each]
        return found

    def changes(self, start: str, key: str, entity_id: str) -> Iterator[tuple[str, Any, Any]]:
        """What each commit of a line changed, newest first."""
        commit_id: str | None = start
        while commit_id is not None:
            parent = self.parents[commit_id][0]
            before = None if parent is None else self.row(parent, key, entity_id)
            after = self.row(commit_id, key, entity_id)
            if before != after:
                yield commit_id, before, after
            commit_id = parent

    def history(
        self,
        start: str,
        key: str,
        entity_id: str,
        allowed: set[str] | None = None,
        through: str | None = None,
    ) -> Iterator[Change]:
        for commit_id, before, after in self.changes(start, key, entity_id):
            if allowed is not None and commit_id not in allowed:
                return
            parent, source = self.parents[commit_id]
            if source is None or self.row(source, key, entity_id) != after:
                yield commit_id, through, before, after
            if source is not None:
                brought = self.ancestors(source) - self.ancestors(parent)
                brought = brought if allowed is None else brought & allowed
                yield from self.history(source, key, entity_id, brought, through or commit_id)

    def type_state(self, commit_id: str, key: str) -> Any:
        """The rows of a type, and what its property is called."""
        return self.states[commit_id][key], self.is_renamed[commit_id] and key == "node:Person"

    def type_log(self, start: str, key: str, allowed: set[str] | None = None) -> Iterator[str]:
        """The commits that changed a type, as `history` tells those that changed an entity."""
        commit_id: str | None = start
        while commit_id is not None and (allowed is None or commit_id in allowed):
            parent, source = self.parents[commit_id]
            after = self.type_state(commit_id, key)
            if parent is not None and self.type_state(parent, key) != after:
                if source is None or self.type_state(source, key) != after:
                    yield commit_id
                if source is not None:
                    brought = self.ancestors(source) - self.ancestors(parent)
                    brought = brought if allowed is None else brought & allowed
                    yield from self.type_log(source, key, brought)
            commit_id = parent

    def by_time(self, commit_ids: Iterable[str]) -> list[str]:
        return sorted(commit_ids, key=lambda each: (self.commits[each].created_at, each))[::-1]

    def blame(
        self, start: str, key: str, entity_id: str, wanted: set[str], through: str | None = None
    ) -> dict[str, tuple[str, str | None]]:
        found: dict[str, tuple[str, str | None]] = {}
        for commit_id, before, after in self.changes(start, key, entity_id):
            changed = {
                name for name in wanted if before is None or before.get(name) != after.get(name)
            }
            _, source = self.parents[commit_id]
            theirs = None if source is None else self.row(source, key, entity_id)
            if source is not None and theirs is not None:
                same = {name for name in changed if theirs.get(name) == after.get(name)}
                found |= self.blame(source, key, entity_id, same, through or commit_id)
                changed -= same
            found |= dict.fromkeys(changed, (commit_id, through))
            wanted = wanted - found.keys()
        return found

    def lost(self, start: str, key: str, entity_id: str, name: str) -> Iterator[tuple[Any, ...]]:
        """The values that merges gave up for one that an entity has, by what they noted."""
        commit_id: str | None = start
        while commit_id is not None:
            parent, source = self.parents[commit_id]
            after = self.row(commit_id, key, entity_id) or {}
            before = None if parent is None else self.row(parent, key, entity_id)
            if parent is not None and source is not None:
                yield from self.given_up(commit_id, parent, source, key, entity_id, name)
            if before is None or before.get(name) != after.get(name):
                theirs = None if source is None else self.row(source, key, entity_id)
                if source is not None and theirs and theirs.get(name) == after.get(name):
                    yield from self.lost(source, key, entity_id, name)
                return
            commit_id = parent

    def given_up(
        self, merge: str, parent: str, source: str, key: str, entity_id: str, name: str
    ) -> Iterator[tuple[Any, ...]]:
        for each in self.commits[merge].properties.get("resolved", ()):
            if (each["table_key"], each["row_id"]) != (key, entity_id):
                continue
            winner, loser = (parent, source) if each["take"] == "ours" else (source, parent)
            row, after = self.row(loser, key, entity_id), self.row(merge, key, entity_id) or {}
            own = self.ancestors(loser) - self.ancestors(winner)
            if row is None:
                writer = next(self.changes(loser, key, entity_id), (None,))[0]
            else:
                writer = self.blame(loser, key, entity_id, {name})[name][0]
            value = None if row is None else row.get(name)
            if value != after.get(name) and writer in own:
                yield value, merge, each["take"], writer, row is None

    def ids(self, key: str) -> set[str]:
        return {each for state in self.states.values() for each in state[key]}


def state_of_commit(graph: og.Graph, commit_id: str) -> State:
    found: State = {key: {} for key in TABLES}
    for key in TABLES:
        rows = graph.scan(key, commit=commit_id).to_arrow().to_pylist()
        found[key] = {row["id"]: row for row in rows}
    return canonical(found)


def canonical(state: State) -> State:
    """Rows whose properties have their first names, without nulls."""
    return {
        key: {
            each: {
                RENAMED.get(name, name): value for name, value in row.items() if value is not None
            }
            for each, row in rows.items()
        }
        for key, rows in state.items()
    }


def plain(image: Any) -> Any:
    return None if image is None else canonical({"": {"": dict(image)}})[""][""]


@pytest.fixture(params=["large", "small"] if IS_TORTURE else ["large"])
def tables(request: pytest.FixtureRequest) -> Iterator[None]:
    """Rows of large tables are looked up in other ways than those of small ones."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "large":
            patch.setattr(row_search, "ROWS_PER_LOOKUP", 0)
            patch.setattr(row_addresses, "LOOKUP_TABLE_ROWS_MIN", 0)
        yield


@pytest.mark.usefixtures("tables")
@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, *((Phase.reuse, Phase.generate) if IS_TORTURE else ())],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@example(ALL_AT_ONCE)
@given(steps)
def test_history_blame_and_log_of_random_histories_are_those_of_the_model(
    script: list[tuple[Any, ...]],
) -> None:
    """Over merges, resolutions, deleted branches, renames, compactions and second lives."""
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory) / "g.omni")
        for step in script:
            world.run(step)

        for branch in world.branches:
            for key in TABLES:
                compare_log(world, branch, key)
                for entity_id in sorted(world.ids(key)):
                    compare(world, branch, key, entity_id)
        world.graph.close()


def ids_of(commits: Iterable[og.Commit]) -> list[str]:
    return [each.commit_id for each in commits]


def compare_log(world: World, branch: str, key: str) -> None:
    """The commits that changed a type: all at once, in pages, and with other conditions."""
    graph, head = world.graph, world.head(branch)
    expected = world.by_time(world.type_log(head, key))
    assert ids_of(graph.log(branch, type=key)) == expected
    assert ids_of(graph.log(branch, type=key, limit=2)) == expected[:2]
    if expected:
        assert ids_of(graph.log(branch, type=key, after=expected[0])) == expected[1:]
        since = world.commits[expected[len(expected) // 2]].time
        recent = expected[: len(expected) // 2 + 1]
        assert ids_of(graph.log(branch, type=key, since=since)) == recent
        assert ids_of(graph.log(branch, type=key, until=since)) == expected[len(recent) - 1 :]
    by_one = [each for each in expected if world.commits[each].actor == "by-1"]
    assert ids_of(graph.log(branch, type=key, actor="by-1")) == by_one
    line, commit_id = list[str](), head
    while (parent := world.parents[commit_id][0]) is not None:
        if world.type_state(parent, key) != world.type_state(commit_id, key):
            line.append(commit_id)
        commit_id = parent
    assert ids_of(graph.commits(branch, type=key)) == line
    for patch in graph.log_patches(branch, type=key, changes=100):
        before = world.states[str(patch.commit.parent_id)][key]
        after = world.states[patch.commit.commit_id][key]
        differing = {each for each in {*before, *after} if before.get(each) != after.get(each)}
        assert patch.changes is not None
        assert {each["id"] for each in patch.changes} == differing
        assert sum(each.inserts + each.updates + each.deletes for each in patch.tables) == len(
            differing
        )


def compare(world: World, branch: str, key: str, entity_id: str) -> None:
    head = world.head(branch)
    expected = list(world.history(head, key, entity_id))
    if not expected:
        with pytest.raises(EntityNotFound, match="was never on branch"):
            world.graph.history(key, entity_id, branch=branch)
        return
    found = world.graph.history(key, entity_id, branch=branch)
    told = [
        (each.commit.commit_id, each.through, plain(each.before), plain(each.after))
        for each in found
        if each.commit is not None
    ]
    assert told == expected
    event(f"through merges: {any(each.through for each in found)}")
    logged = ids_of(world.graph.log(branch, type=key, id=entity_id))
    assert logged == world.by_time(each[0] for each in expected)
    on_line = [each[0] for each in world.changes(head, key, entity_id)]
    assert ids_of(world.graph.commits(branch, type=key, id=entity_id)) == on_line
    row = world.row(head, key, entity_id)
    if row is None:
        with pytest.raises(EntityNotFound, match="deleted it"):
            world.graph.blame(key, entity_id, branch=branch)
        return
    blamed = world.graph.blame(key, entity_id, branch=branch)
    by_name = {RENAMED.get(name, name): each for name, each in blamed.items()}
    assert {name: each.value for name, each in by_name.items() if each.value is not None} == {
        name: value for name, value in row.items() if name != "id"
    }
    wanted = set(by_name)
    expected_blame = world.blame(head, key, entity_id, wanted)
    assert {
        name: (each.commit_id, each.through) for name, each in by_name.items()
    } == expected_blame
    for name, each in by_name.items():
        told_lost = [
            (one.value, one.merge_id, one.kept, one.commit_id, one.is_deletion) for one in each.lost
        ]
        assert told_lost == list(world.lost(head, key, entity_id, name))
        event(f"lost: {bool(told_lost)}")
