"""Two stores that exchange branches while merge requests are open, beside rules in plain Python.

A request is of the store that it was opened in. What moves its branches may be a write, a merge, a
reset, a deletion, a branch that another store pushed, or one that was fetched or pulled. Each
store may be replaced by a copy of itself, which has its requests, or of the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from random import Random

import omnigraph as og
from omnigraph.errors import (
    ApprovalsMissing,
    BranchInUse,
    ConflictError,
    MergeRequestNotOpen,
    NotFastForward,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.policy import load_policy
from tests.branch.people import AGES, CHANGES, new_people
from tests.branch.request_model import (
    ACTORS,
    POLICY,
    REQUIRED,
    VERBS,
    Asked,
    Branch,
    Model,
    describe_graph,
    describe_model,
    try_call,
)
from tests.transfer.conftest import find_damage
from tests.transfer.seeds import run_steps

STORES = ("here", "there")
NAMES = ("a", "b", "c")
WANTED = ("approve", "approve", "merge", "merge", "merge")
"""Verbs that are chosen more often, beside all others."""
OTHERS: Mapping[str, int] = {
    "create": 2,
    "delete": 1,
    "write": 5,
    "open": 4,
    "retarget": 1,
    "direct": 2,
    "reset": 2,
    "die": 2,
    "push": 4,
    "pull": 3,
    "fetch": 2,
    "cleanup": 1,
    "replace": 1,
}
DEATHS = (
    Failpoint.MERGE_REQUEST_BEFORE_MERGING,
    Failpoint.MERGE_REQUEST_AFTER_MERGING,
    Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
    Failpoint.MERGE_REQUEST_BEFORE_MERGED,
    Failpoint.MERGE_REQUEST_AFTER_MERGED,
)


@dataclass
class Past:
    """The commits of both stores: who made them, on top of which, and the name each added."""

    count: int = 1
    actors: dict[int, str] = field(default_factory=dict)
    parents: dict[int, tuple[int, ...]] = field(default_factory=lambda: {0: ()})
    ids: dict[int, str] = field(default_factory=dict)
    added: dict[int, str] = field(default_factory=dict)

    def reach(self, commit: int) -> list[int]:
        """A commit and all that it comes from; itself is the last."""
        found, pending = {commit}, [commit]
        while pending:
            new = [each for each in self.parents[pending.pop()] if each not in found]
            found.update(new)
            pending += new
        return [*sorted(found - {commit}), commit]

    def line(self, commit: int) -> list[int]:
        found = [commit]
        while self.parents[found[-1]]:
            found.append(self.parents[found[-1]][0])
        return found


class StoreModel(Model):
    """The rules of one store; its commits are those of both."""

    def __init__(self, past: Past) -> None:
        super().__init__()
        self.past, self.actors = past, past.actors

    def new_commit(self, actor: str = "") -> int:
        self.past.count += 1
        self.past.actors[self.past.count] = actor
        return self.past.count

    def move(self, name: str, commit: int) -> None:
        """Show a commit as a branch, which is made if it is not there."""
        branch = self.branches.setdefault(name, Branch(self.new_commit(), []))
        branch.commits = self.past.reach(commit)

    def write(self, name: str, actor: str) -> None:
        head = self.branches[name].commits[-1]
        super().write(name, actor)
        self.past.parents[self.branches[name].commits[-1]] = (head,)

    def merge(self, source: str, target: str, actor: str) -> None:
        theirs, ours = (self.branches[each].commits[-1] for each in (source, target))
        super().merge(source, target, actor)
        made = self.branches[target].commits[-1]
        if made != ours:
            self.past.parents[made] = (ours, theirs)

    def head(self, name: str) -> int:
        return self.branches[name].commits[-1]

    def has(self, name: str, commit: int) -> bool:
        return commit in self.branches[name].commits


@dataclass
class Store:
    name: str
    graph: og.Graph
    model: StoreModel

    @property
    def own(self) -> list[str]:
        """The branches that are written here: no mirrors, and not main."""
        return [each for each in self.model.branches if each in NAMES]


class RequestStores:
    """Two stores and their models, moved together."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random, self.path = Random(seed), path
        self.log: list[str] = []
        self.counts: dict[str, int] = {}
        self.unrecorded: list[tuple[Store, int]] = []
        self.policy = load_policy(POLICY, name="team", resource="team")
        new_people(path / "here").close()
        og.clone(path / "here", path / "there", durability="process")
        past = Past()
        self.stores = {
            each: Store(each, self.open(path / each), StoreModel(past)) for each in STORES
        }
        past.ids[0] = self.stores["here"].graph.commits(limit=1)[0].commit_id
        for each in STORES:
            for verb in (self.do_create, self.do_write, self.do_open):
                verb(self.stores[each], self.stores[each], self.random.choice(ACTORS))

    def open(self, path: Path) -> og.Graph:
        return og.open(path, policy=self.policy, durability="process", self_care=False)

    def step(self) -> None:
        name = self.random.choice(STORES)
        store = self.stores[name]
        other = self.stores[STORES[STORES[0] == name]]
        actor = self.random.choice(ACTORS)
        self.record_merges()
        if self.random.random() < 0.4:
            self.say(store, self.random.choice([*VERBS, *WANTED]), actor)
        else:
            kind = self.random.choices(list(OTHERS), list(OTHERS.values()))[0]
            self.log.append(f"{name}: {kind} by {actor}")
            getattr(self, f"do_{kind}")(store, other, actor)
        for each in STORES:
            self.check(self.stores[each])

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # Comparing

    def check(self, store: Store) -> None:
        """Every branch shows the names of its commits, and every request what the rules say."""
        model, graph = store.model, store.graph
        assert set(graph.branches()) == set(model.branches), self.log
        for name, branch in model.branches.items():
            head = graph.commits(name, limit=1)[0].commit_id
            assert head == model.past.ids[branch.commits[-1]], (name, self.log)
            shown = {
                row["name"] for row in graph.scan("Person", branch=name).to_arrow().to_pylist()
            }
            added = {model.past.added[each] for each in branch.commits if each in model.past.added}
            assert shown == {*AGES, *added}, (name, self.log)
        for number in range(1, len(model.asked) + 1):
            expected = describe_model(model, number)
            found = describe_graph(graph, number)
            assert found == expected, (store.name, number, found, expected, self.log)

    def note_head(self, store: Store, branch: str) -> None:
        """Remember the id of a commit that was just made."""
        found = store.graph.commits(branch, limit=1)[0].commit_id
        assert store.model.past.ids.setdefault(store.model.head(branch), found) == found, self.log

    # Requests

    def say(self, store: Store, verb: str, actor: str) -> None:
        if not store.model.asked:
            return
        numbers = range(1, len(store.model.asked) + 1)
        live = [each for each in numbers if store.model.asked[each - 1].state == "open"]
        number = self.random.choice(live if live and self.random.random() < 0.8 else numbers)
        asked = store.model.asked[number - 1]
        self.log.append(f"{store.name}: {verb} {number} by {actor}")
        expected = store.model.say(number, verb, actor)
        self.count(verb if expected is None else f"{verb}: {expected.__name__}")
        try_call(lambda: VERBS[verb](store.graph, number, actor), expected)
        if verb == "merge" and expected is None:
            self.note_head(store, asked.target)

    def do_open(self, store: Store, other: Store, actor: str) -> None:
        model = store.model
        sources = [each for each in model.branches if each != "main"]
        if not sources or len(model.asked) >= 8:
            return
        source = self.random.choice(sources)
        targets = [each for each in ("main", *store.own) if each != source]
        target = self.random.choice([*targets, "main"])
        store.graph.open_merge_request(source, target, title="t", actor=actor)
        model.asked.append(Asked(source, model.branches[source].made, target, actor, "t"))

    def do_retarget(self, store: Store, other: Store, actor: str) -> None:
        if store.model.asked:
            number = self.random.randint(1, len(store.model.asked))
            target = self.random.choice([*NAMES, "main"])
            edit: Callable[[], object] = lambda: store.graph.edit_merge_request(  # noqa: E731
                number, target=target, actor=actor
            )
            try_call(edit, store.model.retarget(number, target))

    def do_die(self, store: Store, other: Store, actor: str) -> None:
        """Merge a request, and die on the way: the history says whether it is merged."""
        model = store.model
        ready = [
            number
            for number, each in enumerate(model.asked, 1)
            if each.state == "open"
            and model.source_of(each) == "present"
            and each.target in model.branches
            and not model.count_missing(each)
            and not (REQUIRED.get(each.target) and model.has_objection(each))
        ]
        if not ready:
            return
        number = self.random.choice(ready)
        asked = model.asked[number - 1]
        point = self.random.choice(DEATHS)
        self.log.append(f"dies at {point}, {number}")
        # One that has nothing to merge is merged when that is written down, and not before.
        is_recorded = point is Failpoint.MERGE_REQUEST_AFTER_MERGED
        with arm_failpoints({point: "raise"}), suppress(FailpointError):
            store.graph.complete_merge_request(number, actor=actor)
            is_recorded = True
        store.graph.close()
        store.graph = self.open(Path(store.graph.uri))
        self.count("deaths")
        if self.follow_recovery(store, asked, actor) or is_recorded:
            asked.state = "merged"
            self.unrecorded.append((store, number))

    def follow_recovery(self, store: Store, asked: Asked, actor: str) -> bool:
        """What a dead merge has left on its target; whether that has the source by now."""
        model, target = store.model, asked.target
        before = model.past.ids[model.head(target)]
        found = takewhile(lambda e: e.commit_id != before, store.graph.commits(target))
        is_merged = False
        for each in list(found)[::-1]:
            if each.merged_parent_id is not None:
                model.merge(asked.source, target, actor)
                is_merged = True
            else:  # a recovery publishes what it undid or finished, which changes no row
                head, made = model.head(target), model.new_commit(str(each.actor))
                model.past.parents[made] = (head,)
                model.branches[target].commits.append(made)
            model.past.ids[model.head(target)] = each.commit_id
        return is_merged

    def record_merges(self) -> None:
        """Say something about merges that died: until then the history of the target tells of them,
        and nothing does once that is deleted or goes back.
        """
        for store, number in self.unrecorded:
            store.graph.comment_on_merge_request(number, "x", actor=ACTORS[0])
            store.model.say(number, "comment", ACTORS[0])
        self.unrecorded.clear()

    # Branches

    def do_create(self, store: Store, other: Store, actor: str) -> None:
        free = [each for each in NAMES if each not in store.model.branches]
        if free:
            name = self.random.choice(free)
            store.graph.create_branch(name, actor=actor)
            store.model.move(name, store.model.head("main"))

    def do_delete(self, store: Store, other: Store, actor: str) -> None:
        names = [each for each in store.model.branches if each != "main"]
        if names:
            name = self.random.choice(names)
            with suppress(ConflictError):  # another branch may come from it
                store.graph.delete_branch(name, actor=actor)
                del store.model.branches[name]

    def do_write(self, store: Store, other: Store, actor: str) -> None:
        if store.own:
            branch, name = self.random.choice(store.own), f"p{len(self.log)}"
            params = {"name": name, "age": 1}
            store.graph.mutate(CHANGES, "person", params, branch=branch, actor=actor)
            store.model.write(branch, actor)
            store.model.past.added[store.model.head(branch)] = name
            self.note_head(store, branch)

    def do_direct(self, store: Store, other: Store, actor: str) -> None:
        names = [each for each in store.model.branches if each != "main"]
        targets = store.own
        if targets and len(names) > 1:
            target = self.random.choice(targets)
            source = self.random.choice([each for each in names if each != target])
            store.graph.merge(source, target, actor=actor)
            store.model.merge(source, target, actor)
            self.note_head(store, target)
            try_call(lambda: store.graph.merge(source, "main", actor=actor), ApprovalsMissing)

    def do_reset(self, store: Store, other: Store, actor: str) -> None:
        if not store.own:
            return
        name, model = self.random.choice(store.own), store.model
        target = self.random.choice(model.past.line(model.head(name))[:4])
        self.log.append(f"{name} to {target}")
        with suppress(BranchInUse, ConflictError):  # it is used, or came with others
            store.graph.reset_branch(name, model.past.ids[target], actor=actor)
            model.move(name, target)
            self.count("reset")

    def do_cleanup(self, store: Store, other: Store, actor: str) -> None:
        """It removes no state that a branch shows, and no event of a request."""
        with og.open(store.graph.uri, durability="process", self_care=False) as keeper:
            keeper.cleanup(keep=self.random.choice([1, 5]), confirm=True)

    # Exchanges

    def do_push(self, store: Store, other: Store, actor: str) -> None:
        branch = self.random.choice(["main", "main", *store.own])
        self.log.append(branch)
        ours = store.model.head(branch)
        theirs = other.model.branches.get(branch)
        is_behind = theirs is not None and ours in theirs.commits
        if theirs is not None and not is_behind and not store.model.has(branch, theirs.commits[-1]):
            try_call(lambda: store.graph.push(other.graph.uri, branch), NotFastForward)
            return
        store.graph.push(other.graph.uri, branch)
        self.count("push")
        if not is_behind:
            other.model.move(branch, ours)

    def do_fetch(self, store: Store, other: Store, actor: str) -> None:
        branch = self.random.choice(["main", *other.own])
        self.log.append(branch)
        self.mirror(store, other, branch, lambda: self.fetch(store, other, branch, actor))

    def fetch(self, store: Store, other: Store, branch: str, actor: str) -> None:
        store.graph.fetch(other.graph.uri, name=other.name, branch=branch, actor=actor)

    def mirror(self, store: Store, other: Store, branch: str, run: Callable[[], object]) -> bool:
        """Fetch a branch; one that neither went on nor was reset is made again."""
        name, head = f"{other.name}/{branch}", other.model.head(branch)
        known = store.model.branches.get(name)
        past = store.model.past
        try:
            run()
        except ConflictError:
            # A mirror that others come from is not made again.
            assert known is not None, self.log
            assert known.commits[-1] not in past.reach(head), self.log
            return False
        is_apart = known is not None and known.commits[-1] not in past.reach(head)
        if known is not None and is_apart and head not in past.line(known.commits[-1]):
            del store.model.branches[name]
        store.model.move(name, head)
        return True

    def do_pull(self, store: Store, other: Store, actor: str) -> None:
        branch = self.random.choice(["main", *other.own])
        self.log.append(branch)
        uri, model = other.graph.uri, store.model
        pull: Callable[[], object] = lambda: store.graph.pull(  # noqa: E731
            uri, branch, name=other.name, actor=actor
        )
        if branch in REQUIRED:
            try_call(pull, ApprovalsMissing)
            return
        mirror = f"{other.name}/{branch}"
        is_there = branch in model.branches
        if not self.mirror(store, other, branch, pull):
            return
        if not is_there or model.head(branch) in model.past.reach(model.head(mirror)):
            model.move(branch, model.head(mirror))
        else:
            model.merge(mirror, branch, actor)
            self.note_head(store, branch)
        self.count("pull")

    def do_replace(self, store: Store, other: Store, actor: str) -> None:
        """A store comes back from a backup, or as a clone, with its requests."""
        place = self.path / f"copy-{len(self.log)}"
        if self.random.random() < 0.5:
            og.clone(store.graph.uri, place, durability="process")
        else:
            store.graph.backup(f"{place}-backup")
            og.restore_backup(f"{place}-backup", place, durability="process")
        store.graph.close()
        store.graph = self.open(place)

    def finish(self) -> None:
        for store in self.stores.values():
            self.check(store)
            for number, asked in enumerate(store.model.asked, 1):
                if asked.state == "merged":
                    try_call(
                        lambda s=store, n=number: s.graph.approve_merge_request(n, actor="ada"),  # type: ignore[misc]
                        MergeRequestNotOpen,
                    )
            store.graph.close()
            damage = find_damage(store.graph.uri)
            assert damage == [], (damage, self.log)


def run_seed(path: Path, seed: int, steps: int) -> RequestStores:
    """Do so many steps, chosen by a seed."""
    stores = RequestStores(path, seed)
    run_steps(stores, seed, steps)
    return stores
