"""Three stores that do everything, and exchange what they did, beside one DAG of plain dicts.

Each store is a world of the history model, whose commits are shared and whose branches are its own:
writes that meet, merges with conflicts, undoes, tags, resets, clean-ups. Between them go pushes,
pulls and fetches, which may die on the way and are repeated, and backups that replace a store.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.errors import ConflictError, MergeConflicts, NotFastForward, VersionNotFound
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from tests.model.history_actors import Local
from tests.model.history_base import Step, Touched
from tests.model.history_model import Commit
from tests.model.history_schema import Schema, State
from tests.model.history_steps import (
    BRANCHING,
    CROSSING,
    LOOKS,
    NAMING,
    UNDO,
    UPKEEP,
    WRITES,
    Chooser,
)
from tests.model.history_world import World
from tests.transfer.conftest import find_damage

STORES = ("red", "green", "blue")
WEIGHTS = (
    WRITES | BRANCHING | CROSSING | UNDO | NAMING | LOOKS | UPKEEP | {"cleanup": 5, "optimize": 4}
)
EXCHANGES = {"push": 6, "pull": 6, "fetch": 2, "merge_mirror": 2, "replace": 1}
DEATHS = (
    Failpoint.TRANSFER_BEFORE_FILE,
    Failpoint.TRANSFER_BEFORE_LINEAGES,
    Failpoint.TRANSFER_BEFORE_PUBLISH,
    Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
    Failpoint.TRANSFER_BEFORE_TAG,
    Failpoint.TRANSFER_BEFORE_BRANCH,
)


@dataclass
class Store(World):
    """One of the stores. It knows its own commits and those that it received."""

    name: str = ""
    known: dict[str, Commit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.actor = self.reader = self.actors[0]

    @property
    def own_branches(self) -> list[str]:
        """The branches that are not mirrors of other stores' ones."""
        return [each for each in self.history.heads if each.partition("/")[0] not in STORES]

    def note_commit(
        self, id_: str, branch: str, schema: Schema, state: State, *merged: str
    ) -> Commit:
        self.known[id_] = super().note_commit(id_, branch, schema, state, *merged)
        return self.known[id_]

    def _commit(self, number: int) -> Commit:
        return list(self.known.values())[number % len(self.known)]

    _numbered = _commit

    def check_commits(self) -> None:
        for number in range(len(self.known)):
            self.do_read(number)
        for name in self.tags:
            self.do_look_at_tag(name)

    def _compare_entities(self, commit: Commit) -> None:
        """By the manifest of where it was made, which may go where a mirror has one as well."""
        try:
            super()._compare_entities(commit)
        except VersionNotFound:
            if "cleanup" not in self.counts:
                raise

    def _is_needed(self, name: str) -> bool:
        """What was received belongs to the branch that received it: any other may need it."""
        return True

    def _forget(self, name: str) -> None:
        before = self.history.ancestors(self.history.heads[name])
        super()._forget(name)
        self.maybe_gone |= before - self.history.ancestors(*self.history.heads.values())

    def do_reset(self, name: str, back: int) -> Touched:
        try:
            return super().do_reset(name, back)
        except ConflictError as error:
            # No manifest shows just that commit: it was received with others.
            if "published together" not in error.message:
                raise
            self._count("resets refused")
            return [name]

    def do_merge(
        self, source: str, target: str, resolve: str | None = None, delete: bool = False
    ) -> Touched:
        try:
            return super().do_merge(source, target, resolve, delete)
        except ConflictError as error:
            self.require_lost_base(error, self.history.heads[source], self.history.heads[target])
            return [source, target]

    def do_preview(self, source: str, target: str) -> Touched:
        try:
            return super().do_preview(source, target)
        except ConflictError as error:
            self.require_lost_base(error, self.history.heads[source], self.history.heads[target])
            return [source, target]

    def require_lost_base(self, error: ConflictError, one: str, other: str) -> None:
        """A merge is refused where the base was removed here, and by the store it came from."""
        if isinstance(error, MergeConflicts) or "no longer stored" not in error.message:
            raise error
        bases = self.history.ancestors(one) & self.history.ancestors(other)
        assert bases & self.maybe_gone
        self._count("merges without a base")

    def receive(self, source: Store, head: str, branch: str) -> None:
        """A branch is at a head that came from another store, with all that it comes from."""
        gained = self.history.ancestors(head)
        before = self.history.ancestors(*self.history.heads.values())
        for id_ in sorted(gained - before):
            self.known[id_] = self.history.commits[id_]
            self.facts[id_] = ("", 0, 0)  # what made it here before may be gone
            if id_ not in source.maybe_gone:
                self.maybe_gone.discard(id_)
        self.maybe_gone |= (gained - before) & source.maybe_gone
        if branch not in self.history.heads:
            self.births[branch] = self.births.get(branch, 0) + 1
            self.origins[branch] = ("", 0)
        self.history.heads[branch] = head
        self.maybe_gone |= before - self.history.ancestors(*self.history.heads.values())

    def receive_tags(self, source: Store, head: str) -> None:
        """Tags of what was received are here, unless their names or states are not free."""
        reached = self.history.ancestors(head)
        coming = {name: id_ for name, id_ in source.tags.items() if id_ in reached}
        expected = {**coming, **self.tags}
        found = {each.name: each.commit_id for each in self.actors[0].call("tags")}
        assert found.items() <= expected.items()
        lost = expected.keys() - found.keys()
        assert not lost & self.tags.keys()
        assert all(coming[each] in self.maybe_gone for each in lost), "a tag did not come along"
        self.tags = found


class StoreChooser(Chooser):
    """Writes on branches of the store itself: a mirror is moved by fetches only."""

    def _live(self, world: World) -> str:
        assert isinstance(world, Store)
        return str(self._pick(world.own_branches))

    def _two(self, world: World) -> list[str]:
        assert isinstance(world, Store)
        names = world.own_branches
        return self._random.sample(names if len(names) > 1 else [*names, "none"], 2)

    def next_steps(self, world: World) -> Iterator[Step]:
        yield from self._kind(world)


class Stores:
    """Three stores of one graph; everything that was done to them, in `done`."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.path = path
        self.done: list[Any] = []
        self.counts: dict[str, int] = {}
        first = Store.create(path / STORES[0], (Local,))
        assert isinstance(first, Store)
        first.name = STORES[0]
        self.stores = {STORES[0]: first}
        self.choosers = {each: StoreChooser(seed * 7 + n, WEIGHTS) for n, each in enumerate(STORES)}
        start = next(self.choosers[STORES[0]].steps(first, 1))
        self.run(first, start)
        for name in STORES[1:]:
            self.add_copy(name, first, og.clone)

    def add_copy(self, name: str, source: Store, copy: Any) -> None:
        """A store with all that another one has."""
        place = self.path / f"{name}-{len(self.done)}"
        copy(self.uri(source), place, durability="process")
        made = Store([Local(str(place))], identities=source.identities, name=name)
        made.history.commits = source.history.commits
        for each in ("births", "origins", "facts", "tags", "known"):
            setattr(made, each, dict(getattr(source, each)))
        made.history.heads = dict(source.history.heads)
        made.maybe_gone, made.was_reset = set(source.maybe_gone), set(source.was_reset)
        if "cleanup" in source.counts:  # a copy lacks what its source had removed
            made.counts["cleanup"] = source.counts["cleanup"]
        self.stores[name] = made

    @staticmethod
    def uri(store: Store) -> str:
        actor = store.actors[0]
        assert isinstance(actor, Local)
        return str(actor.graph.uri)

    def run(self, store: Store, step: Step) -> None:
        self.done.append((store.name, *step))
        store.run(step)

    def step(self) -> None:
        store = self.stores[self.random.choice(STORES)]
        if self.random.random() < 0.65:
            for each in self.choosers[store.name].next_steps(store):
                self.run(store, (0, *each))
            return
        other = self.stores[self.random.choice([each for each in STORES if each != store.name])]
        kind = self.random.choices(list(EXCHANGES), list(EXCHANGES.values()))[0]
        branches = other.own_branches if kind in ("pull", "fetch") else store.own_branches
        branch = self.random.choice(branches)
        self.done.append((store.name, kind, other.name, branch))
        self.counts[kind] = self.counts.get(kind, 0) + 1
        getattr(self, f"do_{kind}")(store, other, branch)

    def call(self, store: Store, what: str, *args: Any, **options: Any) -> Any:
        """Make a transfer; one of three dies somewhere, and is made again."""
        if self.random.random() < 0.33:
            point, number = self.random.choice(DEATHS), self.random.choice([1, 1, 2, 3])
            self.done.append((store.name, "dies", str(point), number))
            with arm_failpoints({point: f"raise@{number}"}), suppress(FailpointError):
                return store.actors[0].call(what, *args, **options)
            self.counts["deaths"] = self.counts.get("deaths", 0) + 1
        return store.actors[0].call(what, *args, **options)

    def do_push(self, store: Store, other: Store, branch: str) -> None:
        ours, theirs = store.history.heads[branch], other.history.heads.get(branch)
        reach = store.history.ancestors
        is_behind = theirs is not None and ours in reach(theirs)
        is_forward = theirs is None or theirs in reach(ours)
        try:
            self.call(store, "push", self.uri(other), branch)
        except NotFastForward:
            assert not is_forward
            assert not is_behind
            self.counts["pushes refused"] = self.counts.get("pushes refused", 0) + 1
            return
        assert is_forward or is_behind
        if not is_behind:
            other.receive(store, ours, branch)
        other.receive_tags(store, ours)
        other.check_branch(branch)
        other.check_lineage(branch)

    def do_fetch(self, store: Store, other: Store, branch: str) -> None:
        head = other.history.heads[branch]
        try:
            self.call(store, "fetch", self.uri(other), name=other.name, branch=branch)
        except ConflictError:
            # A mirror that others come from is not made again in another form.
            mirror = store.history.heads.get(f"{other.name}/{branch}")
            assert mirror is not None
            assert mirror not in store.history.ancestors(head)
            self.counts["fetches refused"] = self.counts.get("fetches refused", 0) + 1
            return
        self._mirror(store, other, branch, head)

    def _mirror(self, store: Store, other: Store, branch: str, head: str) -> None:
        mirror = f"{other.name}/{branch}"
        store.receive(other, head, mirror)
        store.receive_tags(other, head)
        store.check_branch(mirror)

    def do_merge_mirror(self, store: Store, other: Store, branch: str) -> None:
        mirror = f"{other.name}/{branch}"
        if mirror in store.history.heads:
            side = self.random.choice([None, "ours", "theirs"])
            self.run(store, (0, "merge", mirror, branch, side))

    def do_pull(self, store: Store, other: Store, branch: str) -> None:
        """What it brings is fetched; then it goes forward, or is a merge like any other."""
        known = set(store.history.heads)
        self.do_fetch(store, other, branch)
        theirs = other.history.heads[branch]
        if store.history.heads.get(f"{other.name}/{branch}") != theirs:
            return
        ours = store.history.heads.get(branch)
        if branch not in known or ours is None or ours in store.history.ancestors(theirs):
            self.call(store, "pull", self.uri(other), branch, name=other.name)
            store.receive(other, theirs, branch)
            store.check_branch(branch)
            store.check_lineage(branch)
            return
        self._pull_merge(store, other, branch, ours, theirs)

    def _pull_merge(self, store: Store, other: Store, branch: str, ours: str, theirs: str) -> None:
        mirror = f"{other.name}/{branch}"
        expected = store.history.merge(mirror, branch)
        side = self.random.choice([None, "ours", "theirs"])
        options = {"name": other.name, "resolve": side}
        try:
            store.actors[0].call("pull", self.uri(other), branch, **options)
        except MergeConflicts as error:
            sides = (store.history.commits[theirs], store.history.commits[ours])
            store._compare_conflicts(expected, *sides, side, error.conflicts)
            self.counts["pulls in conflict"] = self.counts.get("pulls in conflict", 0) + 1
            return
        except ConflictError as error:
            store.require_lost_base(error, ours, theirs)
            return
        if expected.outcome != "already_up_to_date":
            head = store.actors[0].call("commits", branch, limit=1)[0].commit_id
            state = store._result(expected, store.history.commits[theirs], branch, side)
            schema = store.history.commits[ours].schema
            store.note_commit(head, branch, schema, state, theirs)
        store.check_branch(branch)

    def do_replace(self, store: Store, other: Store, branch: str) -> None:
        """A store goes up in smoke, and comes back from its backup."""
        place = self.path / f"backup-{len(self.done)}"
        store.actors[0].call("backup", place)
        self.add_copy(store.name, store, lambda _, to, **kw: og.restore_backup(place, to, **kw))
        store.close()
        self.stores[store.name].check_branches()

    def finish(self) -> None:
        """Everything that ever was, and every file."""
        for store in self.stores.values():
            store.check_branches()
            store.check_commits()
            uri = self.uri(store)
            store.close()
            assert find_damage(uri) == []


def run_seed(path: Path, seed: int, steps: int) -> Stores:
    """Do so many steps, chosen by a seed."""
    stores = Stores(path, seed)
    try:
        for _ in range(steps):
            stores.step()
        stores.finish()
    except Exception as error:
        listed: Sequence[Any] = stores.done
        error.add_note(f"seed {seed}, the steps so far: {listed}")
        raise
    return stores
