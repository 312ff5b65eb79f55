"""Steps of the history model: which kinds there are, how often, and with what arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tests.model.history_base import Step
from tests.model.history_schema import ENDS, pair_id
from tests.model.history_world import World

BRANCHES = ["b", "c", "d/e", "f"]
HELPERS = ["s", "t/u"]
"""Branches that last for a few steps only."""
PEOPLE = ["ann", "bob", "cy", "d'e", "É", "flo"]
FIRMS = ["x", "y", "z"]
TAGS = ["v1", "v1/a", "Übung"]
EDGES = ["e1", "e2", "e3"]

WRITES = {"put": 10, "set": 8, "set_many": 2, "drop": 5, "link": 3, "unlink": 2, "load": 4}
WRITES |= {"rate": 4, "unrate": 1}
BRANCHING = {"branch": 6, "reset": 4, "delete": 2, "merge": 8, "preview": 2, "resolve": 2}
CROSSING = {"hotfix": 3, "cross": 3}
LOOKS = {"read": 6, "diff": 4, "changes": 3}
UPKEEP = {"optimize": 1, "indices": 1, "reopen": 1}
CLEANUP = {"cleanup": 2}
SCHEMA = {
    "rename_type": 2,
    "rename_property": 3,
    "drop_property": 1,
    "add_property": 2,
    "drop_type": 1,
    "add_type": 2,
}
UNDO = {"revert": 9, "pick": 6, "restore": 5, "bisect": 3}
NAMING = {"tag": 4, "untag": 1, "look_at_tag": 1, "branch_at": 4}
ALL = WRITES | BRANCHING | CROSSING | UNDO | NAMING | LOOKS | UPKEEP | CLEANUP | SCHEMA

NODE_NAMES = ["Person", "Human", "Firm", "Guild"]
EDGE_NAMES = ["Works", "Serves", "Runs", "Rates"]
PROPERTY_NAMES = ["age", "years", "size", "tags", "since", "extra", "name", "code"]
PLAIN_PROPERTIES = [
    ("person", "age"),
    ("person", "tags"),
    ("person", "extra"),
    ("firm", "size"),
    ("firm", "extra"),
    ("works", "since"),
    ("rates", "stars"),
]


class Chooser:
    """Chooses steps by a seed; what it looks at of the world is its branches and commits."""

    def __init__(self, seed: int, weights: Mapping[str, int]) -> None:
        self._random = random.Random(seed)
        self._weights = weights

    def steps(self, world: World, count: int) -> Iterator[Step]:
        """So many steps, chosen one by one while the world runs them."""
        yield from islice(self._endless(world), count)

    def _endless(self, world: World) -> Iterator[Step]:
        nodes = [("person", each) for each in PEOPLE] + [("firm", each) for each in FIRMS]
        yield 0, "load", "main", "append", [(role, id_, self._values(role)) for role, id_ in nodes]
        while True:
            for step in self._kind(world):
                yield self._random.randrange(len(world.actors)), *step

    def _kind(self, world: World) -> Iterator[Step]:
        """One step, or a few that belong together."""
        if len(world.history.heads) == 1 and self._random.random() < 0.8:
            yield self._branch(world)
        kind = self._pick(*zip(*self._weights.items(), strict=True))
        match kind:
            case "hotfix":
                yield from self._hotfix(world)
            case "cross":
                yield from self._cross(world)
            case "pick":
                yield self._pick_step(world)
            case _:
                yield getattr(self, f"_{kind}")(world)

    def _pick(self, kinds: Any, weights: Any = None) -> Any:
        return self._random.choices(list(kinds), weights)[0]

    def _live(self, world: World) -> str:
        return str(self._pick(world.history.heads))

    def _two(self, world: World) -> list[str]:
        """Two branches; one and a name of none when there is only one."""
        names = list(world.history.heads)
        return self._random.sample(names if len(names) > 1 else [*names, "none"], 2)

    def _node(self) -> tuple[str, str]:
        role = self._pick(["person", "firm"], [3, 1])
        return role, self._pick(PEOPLE if role == "person" else FIRMS)

    def _number(self) -> int | None:
        found: int | None = self._pick([None, 1, 2, 3])
        return found

    def _values(self, role: str) -> dict[str, Any]:
        if role == "firm":
            return {"size": self._number(), "extra": self._number()}
        return {
            "age": self._number(),
            "email": self._pick([None, "p", "q"], [10, 1, 1]),
            "tags": self._pick([None, [], ["s"], ["s", "t"]]),
            "extra": self._number(),
        }

    # Writes

    def _put(self, world: World) -> Step:
        role, id_ = self._node()
        return "put", self._live(world), role, id_, self._values(role)

    def _set(self, world: World) -> Step:
        role, id_ = self._node()
        type_ = world.schema.type(role)
        there = [each.role for each in type_.columns] if type_ else []
        values = {role: v for role, v in self._values(role).items() if role in there}
        return "set", self._live(world), role, id_, *self._pick(values.items() or [("age", 1)])

    def _set_many(self, world: World) -> Step:
        role, column = self._pick([("person", "age"), ("firm", "size"), ("person", "extra")])
        return "set_many", self._live(world), role, column, self._pick([1, 2]), self._pick([2, 3])

    def _drop(self, world: World) -> Step:
        return "drop", self._live(world), *self._node()

    def _link(self, world: World) -> Step:
        return "link", self._live(world), self._pick(PEOPLE), self._pick(FIRMS), self._number()

    def _unlink(self, world: World) -> Step:
        return "unlink", self._live(world), self._pick(PEOPLE)

    def _rate(self, world: World) -> Step:
        return "rate", self._live(world), self._pick(PEOPLE), self._pick(FIRMS), self._number()

    def _unrate(self, world: World) -> Step:
        return "unrate", self._live(world), self._pick(PEOPLE), self._pick(FIRMS)

    def _load(self, world: World) -> Step:
        mode = self._pick(["merge", "append", "overwrite"], [5, 2, 1])
        records: dict[tuple[str, str], Any] = {}
        for _ in range(self._pick([1, 2, 3])):
            role, id_ = self._node()
            records[role, id_] = (role, id_, self._values(role))
        if self._pick([True, False]):
            id_, since = self._pick(EDGES), {"since": self._number()}
            ends = self._pick(PEOPLE), self._pick(FIRMS)
            records["works", id_] = ("works", id_, since, *ends)
            pair = pair_id(*ends)
            records["rates", pair] = ("rates", pair, {"stars": self._number()}, *ends)
        return "load", self._live(world), mode, list(records.values())

    # Branches

    def _branch(self, world: World) -> Step:
        return "branch", self._pick(BRANCHES), self._live(world)

    def _delete(self, world: World) -> Step:
        return "delete", self._pick([*BRANCHES, *HELPERS])

    def _reset(self, world: World) -> Step:
        return "reset", self._live(world), self._pick([1, 2, 3, 5])

    def _merge(self, world: World) -> Step:
        delete = self._pick([False, True], [9, 1])
        return "merge", *self._two(world), None, delete

    def _preview(self, world: World) -> Step:
        return "preview", *self._two(world)

    def _resolve(self, world: World) -> Step:
        return "merge", *self._two(world), self._pick(["ours", "theirs"])

    def _hotfix(self, world: World) -> Iterator[Step]:
        """A change on a branch of its own, merged into two; its branch may go before or after."""
        one, other = self._two(world)
        side, nodes = HELPERS[0], self._few_nodes()
        yield "branch", side, one
        yield self._write(side, nodes)
        yield "merge", side, one, self._side()
        if self._random.random() < 0.5:
            yield self._write(one, nodes)
        yield "merge", side, other, self._side()
        if self._random.random() < 0.7:
            yield "delete", side
        yield from self._meet(one, other, nodes)

    def _cross(self, world: World) -> Iterator[Step]:
        """Two branches change, and each merges what the other was: they have two bases then.

        Done again before they are merged, the bases have two bases as well. A row that both
        changed and each kept as its own is one on which the bases do not agree.
        """
        one, other = self._two(world)
        nodes = self._few_nodes()
        for _ in range(self._pick([1, 2, 3], [4, 2, 1])):
            yield self._write(one, nodes)
            yield self._write(other, nodes)
            yield "branch", HELPERS[0], one
            yield "branch", HELPERS[1], other
            yield "merge", HELPERS[1], one, self._side()
            yield "merge", HELPERS[0], other, self._side()
            if self._random.random() < 0.8:
                yield "delete", HELPERS[0]
                yield "delete", HELPERS[1]
        yield from self._meet(one, other, nodes)

    def _meet(self, one: str, other: str, nodes: list[tuple[str, str]]) -> Iterator[Step]:
        """After what they share, each goes on, or not; then one merges the other."""
        for name in self._random.sample([one, other], 2):
            if self._random.random() < 0.6:
                yield self._write(name, nodes)
        yield "merge", *self._random.sample([one, other], 2), self._side()

    def _side(self) -> str | None:
        side: str | None = self._pick([None, "ours", "theirs"], [4, 1, 1])
        return side

    def _few_nodes(self) -> list[tuple[str, str]]:
        """So few that changes meet."""
        return [self._node() for _ in range(2)]

    def _write(self, branch: str, nodes: list[tuple[str, str]]) -> Step:
        """Put, change or delete one of a few nodes."""
        role, id_ = self._pick(nodes)
        match self._pick(["put", "set", "drop", "rate"], [3, 2, 3, 2]):
            case "put":
                return "put", branch, role, id_, self._values(role)
            case "set":
                column = "age" if role == "person" else "size"
                return "set", branch, role, id_, column, self._number()
            case "rate":
                person, firm = (id_, FIRMS[0]) if role == "person" else (PEOPLE[0], id_)
                return "rate", branch, person, firm, self._number()
            case _:
                return "drop", branch, role, id_

    # Looking back

    def _any_commit(self, world: World) -> int:
        return self._random.randrange(len(world.history.commits))

    def _read(self, world: World) -> Step:
        return "read", self._any_commit(world)

    def _diff(self, world: World) -> Step:
        return "diff", self._any_commit(world), self._any_commit(world)

    def _changes(self, world: World) -> Step:
        return "changes", self._live(world), self._any_commit(world)

    # Undoing

    def _revert(self, world: World) -> Step:
        branch = self._live(world)
        line = world.history.line(world.history.heads[branch])
        numbers = [world.history.commits[each].number for each in line]
        # What was done lately, mostly: what is older meets what others built on it.
        near = [self._pick(numbers[:6]) for _ in range(self._pick([1, 2, 3], [4, 2, 1]))]
        chosen = self._pick([near, [self._any_commit(world)]], [5, 1])
        return "revert", branch, chosen, self._side()

    def _pick_step(self, world: World) -> Step:
        branch, other = self._two(world)
        line = world.history.line(world.history.heads.get(other, world.history.heads["main"]))
        numbers = [world.history.commits[each].number for each in line]
        near = [self._pick(numbers[:6]) for _ in range(self._pick([1, 2, 3], [4, 2, 1]))]
        chosen = self._pick([near, [self._any_commit(world)]], [4, 1])
        return "pick", branch, chosen, self._side()

    def _restore(self, world: World) -> Step:
        role, id_ = self._node()
        what = self._pick([(None, None), (role, None), (role, id_)])
        return "restore", self._live(world), self._any_commit(world), *what

    def _bisect(self, world: World) -> Step:
        return "bisect", self._live(world), *self._node()

    def _tag(self, world: World) -> Step:
        return "tag", self._pick(TAGS), self._any_commit(world)

    def _untag(self, world: World) -> Step:
        return "untag", self._pick(TAGS)

    def _look_at_tag(self, world: World) -> Step:
        return "look_at_tag", self._pick(TAGS)

    def _branch_at(self, world: World) -> Step:
        return "branch_at", self._pick(BRANCHES), self._any_commit(world)

    # Upkeep

    def _optimize(self, world: World) -> Step:
        return ("optimize",)

    def _indices(self, world: World) -> Step:
        return "indices", self._live(world)

    def _reopen(self, world: World) -> Step:
        return ("reopen",)

    def _cleanup(self, world: World) -> Step:
        return "cleanup", self._pick([1, 2, 4, 10])

    # Schema changes

    def _rename_type(self, world: World) -> Step:
        role = self._pick([each.role for each in world.schema.types])
        return "rename_type", role, self._free_name(world, role)

    def _free_name(self, world: World, role: str) -> str:
        """A type name that is not in use; it may have been the name of another type."""
        names = EDGE_NAMES if role in ENDS else NODE_NAMES
        used = {each.name for each in world.schema.types}
        return str(self._pick([each for each in names if each not in used]))

    def _free_property_name(self, world: World, role: str) -> str:
        type_ = world.schema.type(role)
        used = {each.name for each in type_.columns} if type_ else set()
        return str(self._pick([each for each in PROPERTY_NAMES if each not in used]))

    def _property(self, world: World, *, is_there: bool) -> tuple[str, str]:
        """A property without rules, of a type that is there when one is."""
        known = {(t.role, c.role) for t in world.schema.types for c in t.columns}
        places = [each for each in PLAIN_PROPERTIES if (each in known) == is_there]
        usable = [each for each in places if world.schema.type(each[0]) is not None]
        place: tuple[str, str] = self._pick(usable or places or PLAIN_PROPERTIES)
        return place

    def _rename_property(self, world: World) -> Step:
        plain = self._property(world, is_there=True)
        role, column = self._pick([plain, ("person", "name"), ("person", "email")], [3, 1, 1])
        return "rename_property", role, column, self._free_property_name(world, role)

    def _drop_property(self, world: World) -> Step:
        return "drop_property", *self._property(world, is_there=True), self._pick([False, True])

    def _add_property(self, world: World) -> Step:
        role, column = self._property(world, is_there=False)
        declared = "[String]?" if column == "tags" else "I32?"
        name = self._free_property_name(world, role)
        return "add_property", role, column, name, declared

    def _drop_type(self, world: World) -> Step:
        roles = self._pick([["works"], ["rates"], ["firm", *ENDS]])
        return "drop_type", roles, self._pick([False, True])

    def _add_type(self, world: World) -> Step:
        missing = [each for each in ("firm", *ENDS) if world.schema.type(each) is None]
        role = (missing or ["works"])[0]
        return "add_type", role, self._free_name(world, role)
