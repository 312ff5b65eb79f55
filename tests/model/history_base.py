"""A graph beside its model: what every kind of step needs of both.

A step is plain data, and one that makes no sense where it stands is skipped. So a list of steps
can be kept, run again, and cut shorter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

import omnigraph as og
from omnigraph.errors import BadRequestError, ConflictError, KeyConflict
from tests.model.history_actors import OPTIONS, Actor, Local
from tests.model.history_model import Changes, Commit, History, diff
from tests.model.history_schema import NAMES, Row, Schema, State, Type, new_type

Step: TypeAlias = tuple[Any, ...]
"""Number of the actor, kind of step, arguments."""

Touched: TypeAlias = list[str] | None
"""The branches to compare after a step; None when it made no sense."""


@dataclass
class Base:
    """A graph, the handles on it, and the model of what it should be."""

    actors: list[Actor]
    history: History = field(default_factory=History)
    births: dict[str, int] = field(default_factory=dict)
    origins: dict[str, tuple[str, int]] = field(default_factory=dict)
    facts: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    maybe_gone: set[str] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)
    was_reset: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    identities: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @classmethod
    def create(cls, path: Path, kinds: Sequence[Callable[[str], Actor]] = (Local,)) -> Self:
        """A new graph and its model, with an actor of each kind."""
        identities = itertools.count(1)
        schema = Schema(tuple(new_type(role, NAMES[role], identities) for role in NAMES))
        graph = og.init(path, schema=schema.text(), **OPTIONS)
        first = graph.commits(limit=1)[0].commit_id
        world = cls([kind(graph.uri) for kind in kinds], identities=identities)
        world.births["main"] = 0
        world.note_commit(first, "main", schema, {each.identity: {} for each in schema.types})
        graph.close()
        return world

    def close(self) -> None:
        for actor in self.actors:
            actor.close()

    # Running steps

    def run(self, step: Step) -> None:
        """Do a step to the graph and to the model, and compare the branches it touched."""
        actor, kind, *args = step
        self.steps.append(step)
        self.actor = self.actors[actor % len(self.actors)]
        self.reader = self.actors[len(self.steps) % len(self.actors)]
        touched = getattr(self, f"do_{kind}")(*args)
        self._count(kind if touched is not None else f"{kind} skipped")
        for branch in touched or ():
            self.check_branch(branch)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def note_commit(
        self, id_: str, branch: str, schema: Schema, state: State, *merged: str
    ) -> Commit:
        commit = self.history.record(id_, branch, schema, state, *merged)
        seen = self.actors[0].call("commit", id_)
        assert (seen.branch, seen.parent_id, seen.merged_parent_id) == (
            branch,
            *(*commit.parents, None, None)[:2],
        )
        self.facts[id_] = (branch, self.births[branch], seen.manifest_version)
        return commit

    def may_be_gone(self, ids: Collection[str]) -> bool:
        """Whether the state of one of these commits need not be there any more."""
        return bool(set(ids) & self.maybe_gone - set(self.tags.values()))

    def _attempt(self, is_refused: bool, what: str, *args: Any, **options: Any) -> Any:
        """Call, once more when this handle was behind; it must be refused exactly when said."""
        for _ in range(2):
            try:
                found = self.actor.call(what, *args, **options)
            except (BadRequestError, KeyConflict):
                if not is_refused:
                    raise
                self._count("refused writes")
                return None
            except ConflictError:  # the branch moved, was reset, or was made again
                assert len(self.actors) > 1, "the only handle was behind"
            else:
                assert not is_refused, "a write that breaks a rule was accepted"
                return found
        raise AssertionError("a handle was behind twice in a row, with no other at work")

    # Comparing

    @property
    def schema(self) -> Schema:
        """The schema of every branch that is there."""
        return self.history.head("main").schema

    def check_branch(self, branch: str) -> None:
        """A branch shows the model's rows, and its head and history are the model's."""
        head = self.history.head(branch)
        assert self.reader.call("commits", branch, limit=1)[0].commit_id == head.id
        shown = head.schema.read_export(self.reader.call("export", branch=branch))
        assert shown == head.state, f"branch '{branch}' shows other rows"

    def read_changes(
        self, shown: Sequence[Mapping[str, Any]], before: Commit, after: Commit
    ) -> Changes:
        """Changes by identity: images are in the schema of their side.

        A change has the later name of its type, or the only one.
        """
        found: Changes = {}
        expected = diff(before.state, after.state)
        for each in shown:
            key = f"{each['kind']}:{each['type']}"
            named = (after.schema.by_key(key), before.schema.by_key(key))
            types = [type_ for type_ in named if type_ is not None]
            # The name of a dropped type may be that of another one now: then only the row can tell.
            fitting = [type_ for type_ in types if (type_.identity, each["id"]) in expected]
            assert fitting, f"no change of {key} '{each['id']}' was expected"
            place = (fitting[0].identity, each["id"])
            images = [
                _image(commit.schema.by_identity(place[0]), each.get(word))
                for word, commit in (("before", before), ("after", after))
            ]
            assert each["op"] == _op(*images)
            assert place not in found
            found[place] = (images[0], images[1])
        assert found == expected
        return found


def _image(type_: Type | None, image: Mapping[str, Any] | None) -> Row | None:
    if image is None:
        return None
    assert type_ is not None, "an image of a type that is not there"
    return type_.read(image)[1]


def _op(before: Row | None, after: Row | None) -> str:
    if before is None:
        return "insert"
    return "delete" if after is None else "update"


def copy_state(state: State) -> dict[int, dict[str, Row]]:
    return {table: dict(rows) for table, rows in state.items()}
