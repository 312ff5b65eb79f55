"""Random undoes on branches of different schemas: revert, pick, restore, reset, tags, cleanup.

The world of `schema_world.py`, with a past that is taken back, named and removed. A
state of another schema is seen through identities: what it has no property for is null.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import (
    BranchInUse,
    CommitNotReplayable,
    ConflictError,
    MergeConflicts,
    NotFoundError,
    OmnigraphError,
)
from tests.branch.schema_model import Commit, Image, Rows, State
from tests.branch.schema_world import World

TAGS = ("v1", "v2", "v3")


class UndoWorld(World):
    """A world that remembers the id of every commit, and which schema each is in."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(path, seed)
        first = self.heads["main"]
        self.ids = {first: self.graph.commits(limit=1)[0].commit_id}
        self.made_on = {first: "main"}
        self.schemas: dict[Commit, object] = {first: object()}
        self.tags: dict[str, Commit] = {}
        self.may_be_gone: set[Commit] = set()
        self.origins: dict[str, set[str]] = {}
        self.counts: dict[str, int] = {}

    def step(self) -> None:
        if self.random.random() < 0.6:
            super().step()
            return
        branch = self.random.choice(self.own)
        steps: dict[Callable[[str], None], int] = {
            self.revert: 6,
            self.pick: 4,
            self.restore: 4,
            self.reset: 2,
            self.tag: 2,
            self.cleanup: 1,
        }
        self.random.choices(list(steps), list(steps.values()))[0](branch)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def commit(self, branch: str, state: State, *parents: Commit) -> None:
        before = self.heads[branch]
        super().commit(branch, state, *parents)
        made = self.heads[branch]
        self.ids[made] = self.graph.commits(branch, limit=1)[0].commit_id
        self.made_on[made] = branch
        sides = [each for each in (before, *parents) if each.state.types == state.types]
        self.schemas[made] = self.schemas[sides[0]] if sides else object()

    def branch(self, source: str) -> None:
        known = set(self.heads)
        super().branch(source)
        for name in set(self.heads) - known:
            self.origins[name] = {source, *self.origins.get(source, ())}

    def check(self) -> None:
        super().check()
        for name, commit in self.tags.items():
            for type_, rows in commit.state.shown().items():
                assert self.read(type_, commit=f"tag:{name}") == rows, (name, type_, self.log)

    # Undoes

    def line(self, branch: str) -> list[Commit]:
        found = [self.heads[branch]]
        while found[-1].parents:
            found.append(found[-1].parents[0])
        return found

    def past(self, branch: str) -> list[Commit]:
        """All that a branch comes from, in the order it was made."""
        known = self.heads[branch].ancestors()
        return [each for each in self.ids if each in known]

    def has_rows_only(self, commit: Commit) -> bool:
        return bool(commit.parents) and commit.parents[0].state.types == commit.state.types

    def revert(self, branch: str) -> None:
        commit = self.random.choice(self.line(branch)[:6])
        if self.random.random() < 0.2:
            commit = self.random.choice(self.past(branch))
        if not self.has_rows_only(commit):
            self.refuse(branch, f"revert {commit.state.text()!r}", commit, self.graph.revert)
            return
        before = commit.parents[0]
        self.undo(
            branch,
            f"{branch}: revert {self.name(commit)}",
            (commit.state, before.state),
            {commit, before},
            lambda resolve: self.graph.revert(self.ids[commit], branch=branch, resolve=resolve),
        )

    def pick(self, branch: str) -> None:
        other = self.random.choice(list(self.heads))
        commit = self.random.choice(self.line(other)[:5])
        if not self.has_rows_only(commit):
            self.refuse(branch, "pick a schema change", commit, self.graph.cherry_pick)
            return
        before = commit.parents[0]
        if self.is_foreign(branch, commit, before):
            return
        self.undo(
            branch,
            f"{branch}: pick {self.name(commit)} of {other}",
            (before.state, commit.state),
            {commit, before},
            lambda resolve: self.graph.cherry_pick(self.ids[commit], into=branch, resolve=resolve),
        )

    def restore(self, branch: str) -> None:
        choices = self.past(branch)
        if self.random.random() < 0.3:
            choices = list(self.ids)
        then = self.random.choice(choices)
        if self.is_foreign(branch, then):
            return
        ours = self.heads[branch].state
        now, wanted = show(ours, ours), show(then.state, ours)
        options: dict[str, Any] = {}
        if ours.types and self.random.random() < 0.5:
            key = self.random.choice(list(ours.types))
            options["types"] = [ours.types[key].name]
            wanted = {**now, key: wanted[key]}
        made = deepcopy(ours)
        made.rows = wanted
        self.undo(
            branch,
            f"{branch}: restore {options} from {self.name(then)}",
            (ours, made),
            {then},
            lambda _: self.graph.restore(self.ids[then], branch=branch, **options),
            may_resolve=False,
        )

    def is_foreign(self, branch: str, *commits: Commit) -> bool:
        """Whether some are in a schema that the branch neither has nor had: that is refused."""
        head = self.heads[branch]
        known = head.ancestors()
        other = [
            each
            for each in commits
            if each not in known and self.schemas[each] is not self.schemas[head]
        ]
        if not any(each.state.types != head.state.types for each in other):
            return bool(other)
        calls: list[Callable[[], object]] = [
            lambda: self.graph.cherry_pick(self.ids[commits[0]], into=branch),
            lambda: self.graph.restore(self.ids[commits[0]], branch=branch),
        ]
        # A merge also changes a schema by its text.
        with pytest.raises((ConflictError, NotFoundError, CommitNotReplayable)):
            calls[len(commits) == 1]()
        self.count("foreign")
        return True

    def refuse(self, branch: str, what: str, commit: Commit, call: Callable[..., object]) -> None:
        self.log.append(f"{branch}: {what}")
        where = "into" if call.__name__ == "cherry_pick" else "branch"
        with pytest.raises((CommitNotReplayable, NotFoundError)):
            call(self.ids[commit], **{where: branch})
        self.count("refused")

    def name(self, commit: Commit) -> str:
        return f"{self.ids[commit]} of {self.made_on[commit]}"

    def undo(
        self,
        branch: str,
        what: str,
        change: tuple[State, State],
        needed: set[Commit],
        run: Callable[[Any], Any],
        *,
        may_resolve: bool = True,
    ) -> None:
        self.log.append(what)
        ours = self.heads[branch].state
        side = self.random.choice([None, None, "ours", "theirs"]) if may_resolve else None
        state, conflicts = make_change(ours, show(change[0], ours), show(change[1], ours), side)
        verb = what.split()[1]
        try:
            made = run(side)
        except MergeConflicts as error:
            found = {(each.table_key, str(each.row_id)) for each in error.conflicts}
            assert found == conflicts, self.log
            self.count(f"{verb}: conflicts")
            return
        except NotFoundError as error:
            error.add_note(str(self.log))
            if not needed & self.may_be_gone - set(self.tags.values()):
                raise
            self.count(f"{verb}: gone")
            return
        except CommitNotReplayable:
            # A merge also changes a schema by its text, or by what it finds to be one type.
            assert any(commit.parents[1:] for commit in needed), self.log
            self.count(f"{verb}: schema")
            return
        assert not conflicts, self.log
        is_changed = state.shown() != ours.shown()
        assert (made.commit_id is not None) == is_changed, self.log
        self.count(f"{verb}: {'done' if is_changed else 'nothing'}")
        if is_changed:
            self.commit(branch, state)

    # Going back, names, and what is removed

    def reset(self, branch: str) -> None:
        line = self.line(branch)
        target = self.random.choice(line[:4])
        if branch == "main":
            return
        self.log.append(f"{branch}: reset to {self.name(target)}")
        dropped = set(line[: line.index(target)])
        others = [head for name, head in self.heads.items() if name != branch]
        reached = {each for head in others for each in head.ancestors()}
        is_needed = any(self.is_made_on(branch, each) for each in dropped & reached)
        try:
            self.graph.reset_branch(branch, self.ids[target])
        except BranchInUse:
            assert is_needed or self.is_origin(branch), self.log
            self.count("reset: in use")
            return
        except (ConflictError, NotFoundError) as error:
            if not (target in self.may_be_gone or self.is_in_group(error)):
                raise
            self.count("reset: gone")
            return
        assert not is_needed, self.log
        self.heads[branch] = target
        self.may_be_gone |= dropped - reached
        self.count("reset: done")

    def is_made_on(self, branch: str, commit: Commit) -> bool:
        return self.made_on[commit] == branch

    def is_origin(self, branch: str) -> bool:
        """Whether another branch was made from this one, and may show what it wrote."""
        return any(branch in self.origins.get(name, ()) for name in self.heads)

    def is_in_group(self, error: OmnigraphError) -> bool:
        """Whether no manifest shows just that commit, since it came with others."""
        return False

    def tag(self, branch: str) -> None:
        name = self.random.choice(TAGS)
        if name in self.tags:
            self.log.append(f"untag {name}")
            self.graph.delete_tag(name)
            del self.tags[name]
            return
        commit = self.random.choice(self.line(branch))
        self.log.append(f"tag {name} at {self.name(commit)}")
        try:
            self.graph.tag(name, self.ids[commit])
        except NotFoundError:
            assert commit in self.may_be_gone, self.log
            return
        self.tags[name] = commit
        self.count("tag")

    def cleanup(self, _: str) -> None:
        keep = self.random.choice([1, 3])
        self.log.append(f"cleanup {keep}")
        report = self.graph.cleanup(keep=keep, confirm=True)
        errors = [each.error for each in report.tables if each.error]
        assert errors == [], (errors, self.log)
        kept = {each for name in self.heads for each in self.line(name)[:keep]}
        self.may_be_gone = set(self.ids) - (kept - self.may_be_gone)
        self.count("cleanup")


def show(state: State, wanted: State) -> Rows:
    """The rows of a state as another schema shows them: what it has no property for is null."""
    known = state.respelled({**state.same, **wanted.same})
    return {
        key: {
            slug: {number: row.get(number) for number in type_.props}
            for slug, row in (known.rows.get(key, {}) if key in known.types else {}).items()
        }
        for key, type_ in wanted.types.items()
    }


def make_change(
    ours: State, before: Rows, after: Rows, side: str | None
) -> tuple[State, set[tuple[str, str]]]:
    """The state after a change, and the rows that stand in its way."""
    made, conflicts = deepcopy(ours), set[tuple[str, str]]()
    now = show(ours, ours)
    for key, type_ in ours.types.items():
        required = [number for number, prop in type_.props.items() if not prop.kind.endswith("?")]
        rows: Image = dict(now[key])
        for slug in {*before[key], *after[key]}:
            old, new, found = (each[key].get(slug) for each in (before, after, now))
            if new in (old, found) or (found != old and side == "ours"):
                continue
            if found != old and side is None:
                conflicts.add((f"node:{type_.name}", slug))
            elif new is None:
                rows.pop(slug, None)
            elif any(new[number] is None for number in required):
                if side != "ours":
                    conflicts.add((f"node:{type_.name}", slug))
            else:
                rows[slug] = new
        made.rows[key] = rows
    return made, conflicts
