"""Undo in the history model: reverts, cherry-picks, restores, tags, branches in the past, bisects.

Each undo is a merge of plain states: the change of some commits, taken back or made again, with the
branch as the target. States of earlier schemas are seen through identities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from omnigraph.errors import (
    BadRequestError,
    CommitNotReplayable,
    ConflictError,
    MergeConflicts,
    NotFoundError,
    TagExists,
)
from tests.model.history_base import Touched
from tests.model.history_branches import Branches
from tests.model.history_model import Commit, Merge, merge_over
from tests.model.history_schema import State, carry_over

Change = tuple[State, State]
"""A state before and after, in the schema of the branch that it is made on."""


class Undo(Branches):
    """The steps that take changes back, make them again, or give states a name."""

    def do_revert(self, branch: str, numbers: Sequence[int], resolve: str | None = None) -> Touched:
        """Take commits back: conflicts and result are those of a merge with what was before."""
        if branch not in self.history.heads:
            return None
        commits = self._choose(numbers)
        known = self.history.ancestors(self.history.heads[branch])
        in_order = sorted(commits, key=lambda each: each.number)
        runs = find_runs(in_order)[::-1]
        if not all(each.id in known for each in commits) or not self._has_rows_only(commits):
            return self._refuse_undo(branch, "revert", *self._ids(commits), branch=branch)
        changes = [self._change(branch, run)[::-1] for run in runs]
        ids = {id_ for run in runs for id_ in (run[-1].id, run[0].parents[0])}
        return self._undo(branch, changes, ids, resolve, "revert", commits, branch=branch)

    def do_pick(self, branch: str, numbers: Sequence[int], resolve: str | None = None) -> Touched:
        """Make commits again, wherever they were made."""
        if branch not in self.history.heads:
            return None
        commits = self._choose(numbers)
        if not self._has_rows_only(commits):
            return self._refuse_undo(branch, "cherry_pick", *self._ids(commits), into=branch)
        runs = find_runs(commits)
        ends = [id_ for run in runs for id_ in (run[-1].id, run[0].parents[0])]
        known = self.history.ancestors(self.history.heads[branch])
        if any(id_ not in known and self._is_foreign(id_) for id_ in ends):
            return self._refuse_undo(branch, "cherry_pick", *self._ids(commits), into=branch)
        changes = [self._change(branch, run) for run in runs]
        return self._undo(branch, changes, set(ends), resolve, "cherry_pick", commits, into=branch)

    def do_restore(self, branch: str, number: int, role: str | None, id_: str | None) -> Touched:
        """Make a branch, a type or one node what a commit left."""
        if branch not in self.history.heads:
            return None
        head, then = self.history.head(branch), self._numbered(number)
        type_ = None if role is None else head.schema.type(role)
        if role is not None and type_ is None:
            return None
        state = carry_over(then.state, head.schema)
        chosen = {**head.state, **state} if type_ is None else dict(head.state)
        if type_ is not None:
            rows, wanted = dict(head.state[type_.identity]), state[type_.identity]
            if id_ is None:
                chosen[type_.identity] = wanted
            elif id_ in rows or id_ in wanted:
                rows.pop(id_, None)
                chosen[type_.identity] = rows | ({id_: wanted[id_]} if id_ in wanted else {})
            else:
                return self._refuse_undo(
                    branch, "restore", then.id, types=[type_.name], ids=[id_], branch=branch
                )
        known = self.history.ancestors(head.id)
        options = {
            "types": None if type_ is None else [type_.name],
            "ids": None if id_ is None else [id_],
            "branch": branch,
        }
        if then.id not in known and self._is_foreign(then.id):
            return self._refuse_undo(branch, "restore", then.id, **options)
        changes = [(head.state, chosen)]
        return self._undo(branch, changes, {then.id}, None, "restore", [then], **options)

    # What a change comes to

    def _undo(
        self,
        branch: str,
        changes: Sequence[Change],
        needed: set[str],
        resolve: str | None,
        what: str,
        commits: Sequence[Commit],
        /,
        **options: object,
    ) -> Touched:
        ours = self.history.head(branch)
        resolve = resolve if len(changes) == 1 else None
        if len(changes) == 1:
            theirs = replace(ours, state=changes[0][1])
            expected = merge_over(changes[0][0], theirs, ours)
        else:
            expected = fold_changes(ours, changes)
            theirs = replace(ours, state=expected.state)
        if resolve is not None:
            options["resolve"] = resolve
        try:
            result = self.actor.call(what, *self._ids(commits), **options)
        except MergeConflicts as error:
            assert what != "restore" or expected.clashes or expected.conflicts
            if len(changes) == 1:
                self._compare_conflicts(expected, theirs, ours, resolve, error.conflicts)
            elif expected.is_clean:
                raise
            self._count(f"{what} with conflicts")
            return [branch]
        except NotFoundError:
            if not self.may_be_gone(needed):
                raise
            self._count(f"{what} gone")
            return [branch]
        state = self._result(expected, theirs, branch, resolve)
        is_changed = {t: r for t, r in state.items() if r} != {
            t: r for t, r in ours.state.items() if r
        }
        assert (result.commit_id is not None) == is_changed, f"{what} made a commit or not"
        self._count(f"{what} done" if is_changed else f"{what} of nothing")
        if is_changed:
            self.note_commit(result.commit_id, branch, ours.schema, state)
        return [branch]

    def _refuse_undo(self, on: str, what: str, *ids: str, **options: object) -> Touched:
        try:
            self.actor.call(what, *ids, **options)
        except (BadRequestError, ConflictError, NotFoundError, CommitNotReplayable):
            self._count(f"{what} refused")
            return [on]
        raise AssertionError(f"{what} was accepted")

    def _change(self, branch: str, run: Sequence[Commit]) -> Change:
        schema = self.history.head(branch).schema
        before = self.history.commits[run[0].parents[0]]
        return carry_over(before.state, schema), carry_over(run[-1].state, schema)

    def _has_rows_only(self, commits: Sequence[Commit]) -> bool:
        """Whether none of them is the first one, or changed the schema."""
        return all(
            each.parents and self.history.commits[each.parents[0]].schema is each.schema
            for each in commits
        )

    def _is_foreign(self, id_: str) -> bool:
        return self.history.commits[id_].schema is not self.schema

    def _choose(self, numbers: Sequence[int]) -> list[Commit]:
        found = [self._numbered(each) for each in numbers]
        return list({each.id: each for each in found}.values())

    def _numbered(self, number: int) -> Commit:
        return list(self.history.commits.values())[number % len(self.history.commits)]

    @staticmethod
    def _ids(commits: Sequence[Commit]) -> list[str]:
        return [each.id for each in commits]

    # Names, and branches in the past

    def do_tag(self, name: str, number: int) -> Touched:
        """Give a commit a name: from then on it stays, whatever happens to its branch."""
        commit = self._numbered(number)
        known = self.tags.get(name)
        try:
            self.actor.call("tag", name, commit.id)
        except TagExists:
            assert known not in (None, commit.id)
            self._count("tags refused")
            return []
        except NotFoundError:
            if not self.may_be_gone({commit.id}):
                raise
            self._count("tags gone")
            return []
        assert known in (None, commit.id)
        self.tags[name] = commit.id
        return self.do_look_at_tag(name)

    def do_untag(self, name: str) -> Touched:
        if name not in self.tags:
            return None
        self.actor.call("delete_tag", name)
        del self.tags[name]
        return []

    def do_look_at_tag(self, name: str) -> Touched:
        """A tag shows what its commit left, and no cleanup, reset or deletion takes it away."""
        if name not in self.tags:
            return None
        commit = self.history.commits[self.tags[name]]
        for where in (f"tag:{name}", commit.id):
            shown = commit.schema.read_export(self.reader.call("export", commit=where))
            assert shown == commit.state, f"{where} shows other rows"
        assert {each.name: each.commit_id for each in self.reader.call("tags")} == self.tags
        return []

    def do_branch_at(self, name: str, number: int) -> Touched:
        """Start a branch at a commit that was; only those of the present schema are tried."""
        commit = self._numbered(number)
        if name in self.history.heads or commit.schema is not self.schema:
            return None
        source, birth, _ = self.facts[commit.id]
        is_there = source in self.history.heads and self.births[source] == birth
        try:
            self.actor.call("create_branch", name, commit.id)
        except (ConflictError, NotFoundError):
            # A branch starts where a manifest shows exactly that state.
            if is_there and source not in self.was_reset and not self.may_be_gone({commit.id}):
                raise
            self._count("branches in the past refused")
            return []
        self.births[name] = self.births.get(name, 0) + 1
        self.origins[name] = (source, birth)
        self.history.heads[name] = commit.id
        return [name]

    # Finding what broke

    def do_bisect(self, branch: str, role: str, id_: str) -> Touched:
        """Find a commit at which a node came to be or went, along the line of a branch."""
        if branch not in self.history.heads:
            return None
        head = self.history.head(branch)
        type_ = head.schema.type(role)
        if type_ is None:
            return None
        line = [self.history.commits[each] for each in self.history.line(head.id)][::-1]
        line = [each for each in line if each.schema is head.schema]
        has = [id_ in each.state[type_.identity] for each in line]
        if True not in has or False not in has:
            return None
        key = type_.name_of("name" if role == "person" else "code")
        text = f'query q() {{ match {{ $x: {type_.name} {{ {key}: "{id_}" }} }} return {{ $x }} }}'
        good = has.index(False)
        if True not in has[good:]:
            return None
        bad = len(has) - 1 - has[::-1].index(True)
        try:
            found = self.reader.call("bisect", text, good=line[good].id, bad=line[bad].id)
        except NotFoundError:
            if not self.may_be_gone({each.id for each in line[good : bad + 1]}):
                raise
            self._count("bisects gone")
            return []
        breaks = {
            after.id
            for (before, was), (after, now) in pairwise(zip(line, has, strict=True))
            if not was and now
        }
        assert found.commit_id in breaks
        return []


def find_runs(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Commits that follow one another directly are one change."""
    runs: list[list[Commit]] = []
    for each in commits:
        if runs and each.parents and each.parents[0] == runs[-1][-1].id:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def fold_changes(ours: Commit, changes: Sequence[Change]) -> Merge:
    """Several changes, each over what the one before left; a row that is in the way stays so."""
    now = ours
    conflicts: frozenset[tuple[str, int, str]] = frozenset()
    for before, after in changes:
        merged = merge_over(before, replace(now, state=after), now)
        conflicts |= {each for each in merged.conflicts if each[0] != "orphan_edge"}
        now = replace(now, state=merged.state)
    whole = merge_over(ours.state, now, ours)
    return replace(whole, conflicts=whole.conflicts | conflicts)
