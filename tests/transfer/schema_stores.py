"""Three stores whose branches change schemas, and exchange what they did, beside plain Python.

Each store is a world of branches in schemas of their own, with undoes, tags, resets, cleanups and
purges; commits and identities are shared, branches, tags and what was removed are its own. Between
them go pushes, pulls and fetches, which may die on the way and are repeated, and backups that
replace a store.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.errors import ConflictError, MergeConflicts, NotFastForward, OmnigraphError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from tests.branch.purge_world import PurgeWorld
from tests.branch.schema_model import Commit, find_bases
from tests.transfer.conftest import OPTIONS, find_damage
from tests.transfer.seeds import run_steps

STORES = ("red", "green", "blue")
BRANCHES = ("b", "c", "d")
EXCHANGES = {"push": 6, "pull": 6, "fetch": 1, "replace": 1}
DEATHS = (
    Failpoint.TRANSFER_BEFORE_FILE,
    Failpoint.TRANSFER_BEFORE_TABLE,
    Failpoint.TRANSFER_BEFORE_LINEAGES,
    Failpoint.TRANSFER_BEFORE_PUBLISH,
    Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
    Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT,
    Failpoint.TRANSFER_BEFORE_TAG,
    Failpoint.TRANSFER_BEFORE_BRANCH,
)


class SchemaStore(PurgeWorld):
    """One of the stores. It knows its own commits and those that it received."""

    store = STORES[0]

    @property
    def own(self) -> list[str]:
        """The branches that are not mirrors of other stores' ones."""
        return [each for each in self.heads if each.partition("/")[0] not in STORES]

    def name_branch(self) -> str:
        return self.random.choice([each for each in BRANCHES if each not in self.heads])

    # What was received belongs to the branch that received it: any other may need it.

    def is_made_on(self, branch: str, commit: Commit) -> bool:
        return False

    def is_origin(self, branch: str) -> bool:
        return True

    def may_refuse_purge(self, branch: str, key: int) -> bool:
        # A branch that is received begins with what main shows, and had the tables of that.
        return len(self.heads) > 1 or super().may_refuse_purge(branch, key)

    def is_in_group(self, error: OmnigraphError) -> bool:
        return "published together" in error.message

    def merge_from(self, source: str, target: str, run: Callable[[], object] | None = None) -> None:
        try:
            super().merge_from(source, target, run)
        except MergeConflicts:
            raise
        except ConflictError as error:
            # The base was removed here, and by the store that the source came from.
            bases = find_bases(self.heads[source], self.heads[target])
            if "no longer stored" not in error.message or self.may_be_gone.isdisjoint(bases):
                raise
            self.count("merges without a base")

    def receive(self, source: SchemaStore, head: Commit, branch: str) -> None:
        """A branch is at a head that came from another store, with all that it comes from."""
        before = {each for known in self.heads.values() for each in known.ancestors()}
        gained = head.ancestors() - before
        for commit, id_ in source.ids.items():
            if commit in gained:
                self.ids[commit] = id_
        self.may_be_gone -= gained - source.may_be_gone
        self.may_be_gone |= gained & source.may_be_gone
        self.heads[branch] = head
        after = {each for known in self.heads.values() for each in known.ancestors()}
        self.may_be_gone |= before - after

    def receive_tags(self, source: SchemaStore, head: Commit) -> None:
        """Tags of what was received are here, unless their names or states are not free."""
        reached = head.ancestors()
        coming = {name: each for name, each in source.tags.items() if each in reached}
        expected = {**coming, **self.tags}
        found = {each.name: each.commit_id for each in self.graph.tags()}
        for name, each in expected.items():
            if name in found:
                assert found.pop(name) == self.ids[each], (name, self.log)
                self.tags[name] = each
            else:
                assert name not in self.tags, (name, self.log)
                assert each in self.may_be_gone, (name, "did not come along", self.log)
        assert not found, self.log

    def check_lineages(self) -> None:
        """Every branch comes from the commits of the model, over the same parents."""
        for branch, head in self.heads.items():
            known = {each.commit_id: each for each in self.graph.log(branch)}
            assert known.keys() == {self.ids[each] for each in head.ancestors()}, self.log
            for commit in head.ancestors():
                found = known[self.ids[commit]]
                parents = [self.ids[each] for each in commit.parents]
                shown = [each for each in (found.parent_id, found.merged_parent_id) if each]
                assert shown == parents, self.log


class SchemaStores:
    """Three stores of one graph. What was done to them is in the log that they share."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        first = SchemaStore(path / STORES[0], seed)
        self.random, self.log = first.random, first.log
        first.branch("main")
        self.stores = {STORES[0]: first}
        self.counts: dict[str, int] = first.counts
        for name in STORES[1:]:
            self.add_copy(name, first, og.clone)

    def add_copy(self, name: str, source: SchemaStore, make: Callable[..., object]) -> None:
        """A store with all that another one has."""
        place = self.path / f"{name}-{len(self.log)}"
        make(source.graph.uri, place, durability="process")
        made = copy.copy(source)
        made.store, made.graph = name, og.open(place, **OPTIONS)
        made.heads, made.ids, made.tags = dict(source.heads), dict(source.ids), dict(source.tags)
        made.may_be_gone = set(source.may_be_gone)
        self.stores[name] = made

    def step(self) -> None:
        store = self.stores[self.random.choice(STORES)]
        if self.random.random() < 0.65:
            self.log.append(f"-- {store.store}")
            store.step()
            store.check()
            return
        other = self.stores[self.random.choice([each for each in STORES if each != store.store])]
        kind = self.random.choices(list(EXCHANGES), list(EXCHANGES.values()))[0]
        branch = self.random.choice((store if kind == "push" else other).own)
        self.log.append(f"-- {store.store}: {kind} {branch}, {other.store}")
        store.count(kind)
        getattr(self, f"do_{kind}")(store, other, branch)
        for each in (store, other):
            self.stores[each.store].check()

    def call(self, store: SchemaStore, what: str, *args: Any, **options: Any) -> None:
        """Make a transfer; one of three dies somewhere, and is made again."""
        if self.random.random() < 0.33:
            point, number = self.random.choice(DEATHS), self.random.choice([1, 1, 2, 3])
            self.log.append(f"dies at {point}@{number}")
            with arm_failpoints({point: f"raise@{number}"}), suppress(FailpointError):
                getattr(store.graph, what)(*args, **options)
                return
            store.count("deaths")
        getattr(store.graph, what)(*args, **options)

    def do_push(self, store: SchemaStore, other: SchemaStore, branch: str) -> None:
        ours, theirs = store.heads[branch], other.heads.get(branch)
        is_behind = theirs is not None and ours in theirs.ancestors()
        is_forward = theirs is None or theirs in ours.ancestors()
        try:
            self.call(store, "push", other.graph.uri, branch)
        except NotFastForward:
            assert not is_forward, self.log
            assert not is_behind, self.log
            store.count("pushes refused")
            return
        assert is_forward or is_behind, self.log
        if not is_behind:
            other.receive(store, ours, branch)
        other.receive_tags(store, ours)

    def do_fetch(self, store: SchemaStore, other: SchemaStore, branch: str) -> bool:
        head = other.heads[branch]
        try:
            self.call(store, "fetch", other.graph.uri, name=other.store, branch=branch)
        except ConflictError:
            # A mirror that others come from is not made again in another form.
            mirror = store.heads.get(f"{other.store}/{branch}")
            assert mirror is not None, self.log
            assert mirror not in head.ancestors(), self.log
            store.count("fetches refused")
            return False
        store.receive(other, head, f"{other.store}/{branch}")
        store.receive_tags(other, head)
        return True

    def do_pull(self, store: SchemaStore, other: SchemaStore, branch: str) -> None:
        """What it brings is fetched; then it goes forward, or is a merge like any other."""
        if not self.do_fetch(store, other, branch):
            return
        ours, theirs = store.heads.get(branch), other.heads[branch]
        options: dict[str, Any] = {"name": other.store}
        if ours is None or ours in theirs.ancestors():
            self.call(store, "pull", other.graph.uri, branch, **options)
            store.receive(other, theirs, branch)
        elif theirs not in ours.ancestors():
            uri, mirror = other.graph.uri, f"{other.store}/{branch}"
            store.merge_from(mirror, branch, lambda: store.graph.pull(uri, branch, **options))
            store.count("pulls that merge")

    def do_replace(self, store: SchemaStore, other: SchemaStore, branch: str) -> None:
        """A store goes up in smoke, and comes back from its backup."""
        place = self.path / f"backup-{len(self.log)}"
        store.graph.backup(place)
        self.add_copy(store.store, store, lambda _, to, **kw: og.restore_backup(place, to, **kw))
        store.graph.close()

    def finish(self) -> None:
        """Everything that ever was, and every file."""
        for store in self.stores.values():
            store.check()
            store.check_lineages()
            store.check_commits()
            store.graph.close()
            damage = find_damage(store.graph.uri)
            assert damage == [], (damage, self.log)


def run_seed(path: Path, seed: int, steps: int) -> SchemaStores:
    """Do so many steps, chosen by a seed."""
    stores = SchemaStores(path, seed)
    run_steps(stores, seed, steps)
    return stores
