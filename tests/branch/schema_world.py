"""Branches in schemas of their own, moved together with their model in plain Python.

Every step writes, changes a schema or merges; a merge is refused exactly where the model finds that
the sides contradict each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from tests.branch.schema_model import Commit, Conflict, Prop, State, Type, find_bases, merge

TYPES = ("A", "B", "C")
PROPS = ("p", "q", "r")
SLUGS = ("one", "two", "three", "four")


class World:
    """A graph and its model, moved together."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = iter(range(1, 10**9))
        start = State({next(self.numbers): Type("A", {next(self.numbers): Prop("p", "String?")})})
        self.graph = og.init(path, schema=start.text(), durability="process", self_care=False)
        self.heads = {"main": Commit(start)}
        self.log: list[str] = []
        self.merges = self.conflicts = 0

    @property
    def own(self) -> list[str]:
        """The branches that are written here."""
        return list(self.heads)

    def step(self) -> None:
        branch = self.random.choice(self.own)
        steps = [self.write] * 6 + [self.change_schema] * 5 + [self.merge] * 5 + [self.branch]
        self.random.choice(steps)(branch)

    def check(self) -> None:
        for branch, head in self.heads.items():
            names = self.graph.branch_catalog(branch).nodes
            found = {name: self.read(name, branch=branch) for name in names}
            assert found == head.state.shown(), (branch, self.log)

    def read(self, name: str, **where: Any) -> dict[str, dict[str, Any]]:
        """Every row of a type, by its key."""
        rows = self.graph.scan(name, **where).to_arrow().to_pylist()
        found = {r.pop("slug"): {key: r[key] for key in r if key != "id"} for r in rows}
        assert len(found) == len(rows), f"keys of {name} occur twice"
        return found

    def commit(self, branch: str, state: State, *parents: Commit) -> None:
        self.heads[branch] = Commit(state, [self.heads[branch], *parents])

    def branch(self, source: str) -> None:
        if len(self.own) < 4:
            name = self.name_branch()
            self.log.append(f"branch {name} from {source}")
            self.graph.create_branch(name, source)
            self.heads[name] = self.heads[source]

    def name_branch(self) -> str:
        return f"b{len(self.log)}"

    # Rows

    def write(self, branch: str) -> None:
        state = deepcopy(self.heads[branch].state)
        if not state.types:
            return
        key = self.random.choice(list(state.types))
        rows, slug = state.rows.setdefault(key, {}), self.random.choice(SLUGS)
        if slug in rows and self.random.random() < 0.3:
            del rows[slug]
            text = f'delete {state.types[key].name} where slug = "{slug}"'
            self._mutate(branch, state, text)
            return
        props = state.types[key].props
        row = {number: self._value(prop) for number, prop in props.items()}
        if rows.get(slug) != row:
            rows[slug] = row
            self.insert(branch, state, key, slug)

    def insert(self, branch: str, state: State, key: int, slug: str) -> None:
        """Write a row of a state that is not yet there."""
        row = state.rows[key][slug]
        facts = [f'slug: "{slug}"']
        facts += [
            f"{prop.name}: {self._spell(row[n])}"
            for n, prop in state.types[key].props.items()
            if row[n] is not None
        ]
        text = f"insert {state.types[key].name} {{ {', '.join(facts)} }}"
        self._mutate(branch, state, text)

    def _mutate(self, branch: str, state: State, text: str) -> None:
        self.log.append(f"{branch}: {text}")
        made = self.graph.mutate(f"query q() {{ {text} }}", branch=branch)
        if made.commit_id is not None:
            self.commit(branch, state)

    def _value(self, prop: Prop) -> Any:
        if prop.kind.startswith("String"):
            return self.random.choice(["x", "y", None])
        return self.random.choice([1, 2, 7] if prop.default is not None else [1, 2, None])

    @staticmethod
    def _spell(value: Any) -> str:
        return f'"{value}"' if isinstance(value, str) else str(value)

    # Schemas

    def change_schema(self, branch: str) -> None:
        state = deepcopy(self.heads[branch].state)
        renamed: dict[int, str] = {}
        choose = self.random.choice
        changes = [self._add_type, self._add_prop, self._add_prop, self._add_default, self._rename]
        choose([*changes, self._rename, self._drop, self._widen])(state, renamed)
        text = state.text(renamed)
        names = [each.name for each in state.types.values()]
        if len(set(names)) < len(names) or state.types == self.heads[branch].state.types:
            return
        self.log.append(f"{branch}: schema {text!r}")
        assert self.graph.apply_schema(text, branch=branch).applied
        self.commit(branch, state)

    def _add_type(self, state: State, _: dict[int, str]) -> None:
        free = [name for name in TYPES if name not in {e.name for e in state.types.values()}]
        if free:
            kind = self.random.choice(["String?", "I32?"])
            props = {next(self.numbers): Prop("p", kind)}
            state.types[next(self.numbers)] = Type(self.random.choice(free), props)

    def _find_free(self, state: State) -> tuple[int, str] | None:
        if not state.types:
            return None
        key = self.random.choice(list(state.types))
        taken = {each.name for each in state.types[key].props.values()}
        free = [name for name in PROPS if name not in taken]
        return (key, self.random.choice(free)) if free else None

    def _add_prop(self, state: State, _: dict[int, str]) -> None:
        found = self._find_free(state)
        if found is not None:
            kind = self.random.choice(["String?", "I32?"])
            state.types[found[0]].props[next(self.numbers)] = Prop(found[1], kind)

    def _add_default(self, state: State, _: dict[int, str]) -> None:
        found = self._find_free(state)
        if found is not None:
            number = next(self.numbers)
            state.types[found[0]].props[number] = Prop(found[1], "I32", self.random.choice([5, 6]))
            for row in state.rows.get(found[0], {}).values():
                row[number] = state.types[found[0]].props[number].default

    def _rename(self, state: State, renamed: dict[int, str]) -> None:
        found = self._find_free(state)
        if found is None:
            return
        key, name = found
        props = state.types[key].props
        if props and self.random.random() < 0.6:
            number = self.random.choice(list(props))
            renamed[number], props[number].name = props[number].name, name
            return
        free = [each for each in TYPES if each not in {e.name for e in state.types.values()}]
        if free:
            renamed[key], state.types[key].name = state.types[key].name, self.random.choice(free)

    def _drop(self, state: State, _: dict[int, str]) -> None:
        if not state.types:
            return
        key = self.random.choice(list(state.types))
        props = state.types[key].props
        if props and self.random.random() < 0.7:
            number = self.random.choice(list(props))
            del props[number]
            for row in state.rows.get(key, {}).values():
                row.pop(number, None)
        elif len(state.types) > 1:
            del state.types[key]
            state.rows.pop(key, None)

    def _widen(self, state: State, _: dict[int, str]) -> None:
        narrow = [p for e in state.types.values() for p in e.props.values() if p.kind == "I32?"]
        if narrow:
            self.random.choice(narrow).kind = "I64?"

    # Merges

    def merge(self, target: str) -> None:
        others = [each for each in self.heads if each != target]
        if not others:
            return
        self.merge_from(self.random.choice(others), target)

    def merge_from(self, source: str, target: str, run: Callable[[], object] | None = None) -> None:
        """Merge, or `run` what comes to the same, and expect what the model says."""
        theirs, ours = self.heads[source], self.heads[target]
        bases = find_bases(theirs, ours)
        if len(bases) > 1:
            return  # what several bases come to is the subject of other tests
        self.log.append(f"merge {source} into {target}")
        (base,) = bases
        if base is theirs:
            assert self.graph.merge(source, target).outcome.value == "already_up_to_date"
            return
        run = run or (lambda: self.graph.merge(source, target))
        try:
            state = theirs.state if base is ours else merge(base.state, ours.state, theirs.state)
        except Conflict:
            self.conflicts += 1
            with pytest.raises(MergeConflicts):
                run()
            assert self.graph.merge(source, target, preview=True).conflicts, self.log
            return
        try:
            run()
        except MergeConflicts as error:
            raise AssertionError(f"{[e.message for e in error.conflicts]}: {self.log}") from error
        self.merges += 1
        self.commit(target, deepcopy(state), theirs)
