"""Branches in different schemas, some of whose types and properties are dropped for good.

What a purge promises, beside a plain graph: every earlier state of the branch that shows the type
is gone with its bytes, and whatever another branch, a tag or a later merge needs stays as it was.
It may be refused only while a tag or another branch has or had the type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import takewhile
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError, NotFoundError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from tests.branch.schema_model import Commit, State
from tests.branch.undo_world import UndoWorld

DEATHS = (
    Failpoint.SCHEMA_APPLY_AFTER_LOCK,
    Failpoint.SCHEMA_APPLY_BEFORE_STAGING_WRITE,
    Failpoint.SCHEMA_APPLY_AFTER_TABLE,
    Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
    Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT,
)


class PurgeWorld(UndoWorld):
    """A world in which branches are deleted, and data goes for good."""

    def step(self) -> None:
        draw = self.random.random()
        if draw < 0.12:
            self.purge(self.random.choice(self.own))
        elif draw < 0.18:
            self.delete(self.random.choice(list(self.heads)))
        else:
            super().step()

    # Purging

    def purge(self, branch: str) -> None:
        """Drop a type or a property of a branch with its data, and look for what is left of it."""
        types = self.heads[branch].state.types
        if not types:
            return
        free = [each for each in types if not self._may_need(branch, each)]
        key = self.random.choice(free if free and self.random.random() < 0.8 else list(types))
        props = types[key].props
        number = self.random.choice(list(props)) if props and self.random.random() < 0.6 else None
        if number is None and len(types) == 1:
            return
        marker = self._mark(branch, key, props if number is None else [number])
        before = self.heads[branch]
        state = deepcopy(before.state)
        if number is None:
            del state.types[key]
            state.rows.pop(key, None)
        else:
            del state.types[key].props[number]
            for row in state.rows.get(key, {}).values():
                row.pop(number, None)
        what = f"{types[key].name}{'' if number is None else '.' + props[number].name}"
        self.log.append(f"{branch}: purge {what}")
        try:
            self._apply_for_good(branch, state)
        except ConflictError:
            assert self.may_refuse_purge(branch, key), self.log
            self.count("purge: refused")
            return
        if self.heads[branch].state.types != state.types:
            return
        self.count("purge: done")
        self._require_gone(branch, before, key, marker)

    def _mark(self, branch: str, key: int, numbers: Collection[int]) -> bytes:
        """Write a text that no other row has into what will be dropped, if it holds texts."""
        state = deepcopy(self.heads[branch].state)
        props = state.types[key].props
        texts = [each for each in numbers if props[each].kind.startswith("String")]
        if not texts:
            return b""
        marker = f"marker {len(self.log)} of {branch}"
        row = {number: self._value(prop) for number, prop in props.items()} | {texts[0]: marker}
        state.rows.setdefault(key, {})["one"] = row
        self.insert(branch, state, key, "one")
        return marker.encode()

    def _apply_for_good(self, branch: str, state: State) -> None:
        """Apply a schema; one of four changes dies on the way, and what it left is recovered."""
        if self.random.random() < 0.75:
            assert self.graph.apply_schema(
                state.text(), branch=branch, allow_data_loss=True
            ).applied
            self.commit(branch, state)
            return
        point = self.random.choice(DEATHS)
        self.log.append(f"dies at {point}")
        before = self.heads[branch]
        with arm_failpoints({point: "raise"}), suppress(FailpointError):
            self.graph.apply_schema(state.text(), branch=branch, allow_data_loss=True)
        self.reopen()
        self.count("purge: died")
        made = takewhile(lambda e: e.commit_id != self.ids[before], self.graph.commits(branch))
        for each in list(made)[::-1]:
            # A recovery publishes what it undid or finished, which changes no row.
            is_recovery = each.actor == "omnigraph:recovery"
            self.commit(branch, deepcopy(self.heads[branch].state) if is_recovery else state)
            self.ids[self.heads[branch]] = each.commit_id

    def may_refuse_purge(self, branch: str, key: int) -> bool:
        return self._may_need(branch, key)

    def _may_need(self, branch: str, key: int) -> bool:
        """Whether a tag or another branch has, or had, the type."""
        others = [head for name, head in self.heads.items() if name != branch]
        needed = {each for head in others for each in head.ancestors()} | set(self.tags.values())
        return any(self._shows(each, branch, key) for each in needed)

    def _shows(self, commit: Commit, branch: str, key: int) -> bool:
        ours = self.heads[branch].state
        same = {**commit.state.same, **ours.same}
        return key in commit.state.respelled(same).types

    def _require_gone(self, branch: str, before: Commit, key: int, marker: bytes) -> None:
        others = [head for name, head in self.heads.items() if name != branch]
        kept = {each for head in others for each in head.ancestors()} | set(self.tags.values())
        shown = {each for each in self.ids if self._shows(each, branch, key)}
        losing = shown - kept - {self.heads[branch]}
        for commit in losing & before.ancestors():
            same = {**commit.state.same, **before.state.same}
            for number, each in commit.state.types.items():
                if _find(same, number) == key and commit.state.rows.get(number):
                    with pytest.raises(NotFoundError):
                        self.graph.scan(each.name, commit=self.ids[commit]).to_arrow()
        # So may be what another branch comes from and does not show: that has a table of its own.
        self.may_be_gone |= shown - {*self.heads.values(), *self.tags.values()}
        if marker:
            found = [each for each in self.list_files() if marker in each.read_bytes()]
            assert found == [], (marker, self.log)

    def list_files(self) -> Iterator[Path]:
        return Path(self.graph.uri, "nodes").rglob("*.lance")

    # Deleting

    def delete(self, branch: str) -> None:
        if branch == "main":
            return
        self.log.append(f"delete {branch}")
        others = [head for name, head in self.heads.items() if name != branch]
        reached = {each for head in others for each in head.ancestors()}
        try:
            self.graph.delete_branch(branch)
        except ConflictError:
            assert self.is_needed(branch), self.log
            self.count("delete: refused")
            return
        self.may_be_gone |= self.heads.pop(branch).ancestors() - reached
        self.count("delete: done")

    def is_needed(self, branch: str) -> bool:
        """Whether another branch comes from this one, or has commits of it."""
        others = [head for name, head in self.heads.items() if name != branch]
        made = {each for each in self.ids if self.is_made_on(branch, each)}
        return self.is_origin(branch) or any(made & each.ancestors() for each in others)

    # Looking back

    def check_commits(self) -> None:
        """Every commit that ever was shows what it left, in its own schema, or may be gone."""
        for commit, id_ in self.ids.items():
            try:
                found = {
                    name: self.read(name, commit=id_)
                    for name in (each.name for each in commit.state.types.values())
                }
            except NotFoundError as error:
                if commit not in self.may_be_gone - set(self.tags.values()):
                    error.add_note(f"{id_}: {self.log}")
                    raise
                self.count("commits gone")
                continue
            assert found == commit.state.shown(), (id_, found, commit.state.shown(), self.log)

    def reopen(self) -> None:
        self.graph.close()
        self.graph = og.open(self.graph.uri, durability="process", self_care=False)


def _find(same: dict[int, int], number: int) -> int:
    while number in same:
        number = same[number]
    return number
