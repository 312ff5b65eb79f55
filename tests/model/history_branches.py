"""Branches of the history model: made, reset, deleted, made again, merged in every direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omnigraph.errors import BranchInUse, ConflictError, MergeConflicts, NotFoundError
from tests.model.history_base import Base, Touched
from tests.model.history_model import (
    DIVERGENT,
    Commit,
    Conflict,
    Merge,
    is_valid,
    resolve_conflicts,
)
from tests.model.history_schema import Schema, State


class Branches(Base):
    """The steps that make, reset, delete and merge branches."""

    def do_branch(self, name: str, source: str) -> Touched:
        """Create a branch; a name that was deleted is a new branch."""
        if name in self.history.heads or source not in self.history.heads:
            return None
        self._count("recreated branches" if name in self.births else "new branches")
        self.actor.call("create_branch", name, source)
        self.births[name] = self.births.get(name, 0) + 1
        self.origins[name] = (source, self.births[source])
        self.history.heads[name] = self.history.heads[source]
        return [name, source]

    def do_delete(self, name: str) -> Touched:
        """Delete a branch, unless another one needs it."""
        if name not in self.history.heads or name == "main":
            return None
        try:
            self.actor.call("delete_branch", name)
        except ConflictError:
            if not self._is_needed(name):
                raise
            self._count("refused deletes")
            return [name]
        self._forget(name)
        return list(self.history.heads)

    def do_reset(self, name: str, back: int) -> Touched:
        """Go back along the line of a branch, unless another one comes from what that drops."""
        if name not in self.history.heads or name == "main":
            return None
        line = self.history.line(self.history.heads[name])
        target = line[back % len(line)]
        if self.history.commits[target].schema != self.schema:
            return None  # branches in different schemas have a model of their own
        others = [head for each, head in self.history.heads.items() if each != name]
        own = set(line[: line.index(target)]) & self._made_on(name)
        is_needed = bool(own & self.history.ancestors(*others))
        before = self.history.ancestors(*self.history.heads.values())
        try:
            done = self.actor.call("reset_branch", name, target)
        except (BranchInUse, ConflictError, NotFoundError) as error:
            is_refusal = isinstance(error, BranchInUse)
            # One that came from it may show an index or a compaction that it has made since.
            may_refuse = is_needed or self._is_needed(name)
            if not (may_refuse if is_refusal else self.may_be_gone({target})):
                raise
            self._count("refused resets" if is_refusal else "resets gone")
            return [name]
        assert not is_needed, "a commit that another branch comes from was dropped"
        assert (done.commit_id, done.commits_dropped) == (target, line.index(target))
        self.history.heads[name] = target
        self.was_reset.add(name)
        self.maybe_gone |= before - self.history.ancestors(*self.history.heads.values())
        return list(self.history.heads)

    def _is_needed(self, name: str) -> bool:
        """Whether another branch comes from this one, or has merged it."""
        made = self._made_on(name)
        others = [each for each in self.history.heads if each != name]
        return any(
            self.origins.get(each) == (name, self.births[name])
            or made & self.history.ancestors(self.history.heads[each])
            for each in others
        )

    def _made_on(self, name: str) -> set[str]:
        birth = self.births[name]
        return {id_ for id_, (branch, b, _) in self.facts.items() if (branch, b) == (name, birth)}

    def _forget(self, name: str) -> None:
        made = self._made_on(name)
        del self.history.heads[name]
        # What another head comes from outlives the branch.
        self.maybe_gone |= made - self.history.ancestors(*self.history.heads.values())
        assert self.reader.call("branches") == ["main", *sorted(set(self.history.heads) - {"main"})]

    # Merges

    def do_merge(
        self, source: str, target: str, resolve: str | None = None, delete: bool = False
    ) -> Touched:
        """Merge, and compare the outcome, the conflicts or the result."""
        if source == target or not {source, target} <= self.history.heads.keys():
            return None
        expected = self.history.merge(source, target)
        theirs, ours = self.history.head(source), self.history.head(target)
        if len(self.history.best_common([theirs.id], [ours.id])) > 1:
            self._count("merges over several bases")
        try:
            result = self.actor.call(
                "merge", source, target, resolve=resolve, delete_branch=delete and source != "main"
            )
        except MergeConflicts as error:
            self._compare_conflicts(expected, theirs, ours, resolve, error.conflicts)
            return [source, target]
        assert result.outcome.value == expected.outcome
        self._count(result.outcome.value)
        if expected.outcome != "already_up_to_date":
            state = self._result(expected, theirs, target, resolve)
            self.note_commit(result.commit_id, target, ours.schema, state, theirs.id)
        if result.branch_deleted:
            self._forget(source)
            return [target]
        return [source, target]

    def _result(self, expected: Merge, theirs: Commit, target: str, resolve: str | None) -> State:
        """The state that a merge must have left."""
        ours = self.history.head(target)
        if expected.is_clean:
            return expected.state
        assert resolve is not None, f"conflicts were merged over: {expected.conflicts}"
        self._count("resolved merges")
        resolved = resolve_conflicts(expected, theirs, ours, resolve)
        if resolved is not None and not expected.clashes and is_valid(ours.schema, resolved):
            return resolved
        assert expected.clashes or resolved is not None, "a conflict that cannot be resolved was"
        return self._resolve_by_any_rule(theirs, target)

    def _resolve_by_any_rule(self, theirs: Commit, target: str) -> State:
        """Where a unique property is in the way: each row is of one side, and every rule holds."""
        ours = self.history.head(target)
        shown = ours.schema.read_export(self.actor.call("export", branch=target))
        for table, rows in shown.items():
            for id_ in {*rows, *ours.state[table], *theirs.state[table]}:
                sides = [each.state[table].get(id_) for each in (theirs, ours)]
                assert rows.get(id_) in sides
        assert is_valid(ours.schema, shown)
        return shown

    def _compare_conflicts(
        self,
        expected: Merge,
        theirs: Commit,
        ours: Commit,
        resolve: str | None,
        conflicts: Sequence[Any],
    ) -> None:
        assert expected.outcome == "merged", "conflicts where one side only went on"
        if resolve is None:
            self._count("merges with conflicts")
            found = [(each.kind, each.table_key, each.row_id) for each in conflicts]
            self._same_conflicts(expected, ours.schema, found)
            return
        resolved = resolve_conflicts(expected, theirs, ours, resolve)
        is_open = resolved is None or expected.clashes or not is_valid(ours.schema, resolved)
        assert is_open, f"could have been resolved: {conflicts}"
        self._count("merges that could not be resolved")

    def _same_conflicts(
        self, expected: Merge, schema: Schema, found: Sequence[tuple[str, str, str]]
    ) -> None:
        by_id: set[Conflict] = set()
        for kind, key, row_id in found:
            type_ = schema.by_key(key)
            assert type_ is not None
            by_id.add((kind, type_.identity, row_id))
        clashing = {each for each in by_id if each[0] == "unique_violation"}
        free = {(t, id_) for kind, t, id_ in expected.conflicts if kind == DIVERGENT}
        rows = {
            (DIVERGENT if (t, id_) in free and kind.startswith(DIVERGENT) else kind, t, id_)
            for kind, t, id_ in by_id - clashing
        }
        assert rows == expected.conflicts
        named = {(table, id_) for _, table, id_ in clashing}
        assert named <= {(table, id_) for table, ids in expected.clashes for id_ in ids}
        assert all(any((t, id_) in named for id_ in ids) for t, ids in expected.clashes)

    def do_preview(self, source: str, target: str) -> Touched:
        """Ask what a merge would do; nothing may change."""
        if source == target or not {source, target} <= self.history.heads.keys():
            return None
        expected, ours = self.history.merge(source, target), self.history.head(target)
        shown = self.actor.call("merge", source, target, preview=True)
        assert shown["outcome"] == expected.outcome
        found = [(e["kind"], e["table_key"], e.get("row_id")) for e in shown["conflicts"]]
        self._same_conflicts(expected, ours.schema, found)
        self.read_changes(shown["changes"]["changes"], ours, replace(ours, state=expected.state))
        return [source, target]
