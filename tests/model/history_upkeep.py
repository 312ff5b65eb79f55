"""Upkeep in the history model: compaction, indexes, clean-up, reopening, and schema changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from omnigraph.errors import ConflictError, NotFoundError
from tests.model.history_base import Touched
from tests.model.history_branches import Branches
from tests.model.history_schema import (
    Column,
    Schema,
    Type,
    add_column,
    carry_over,
    drop_column,
    new_type,
    rename_column,
)


class Upkeep(Branches):
    """The steps that change how a graph is kept, or its schema."""

    def do_optimize(self) -> Touched:
        self.actor.call("optimize")
        return ["main"]

    def do_indices(self, branch: str) -> Touched:
        if branch not in self.history.heads:
            return None
        self.actor.call("ensure_indices", branch)
        return [branch]

    def do_cleanup(self, keep: int) -> Touched:
        """Remove history: what the policy keeps must stay, the rest may answer or be gone."""
        report = self.actor.call("cleanup", keep=keep, confirm=True)
        assert [each.error for each in report.tables if each.error] == []
        lines = [self.history.line(head)[:keep] for head in self.history.heads.values()]
        kept = {id_ for line in lines for id_ in line} - self.maybe_gone
        self.maybe_gone = set(self.history.commits) - kept
        return list(self.history.heads)

    def do_reopen(self) -> Touched:
        self.actor.reopen()
        return []

    # Schema changes: only `main` may be there

    def do_rename_type(self, role: str, name: str) -> Touched:
        names = {each.name for each in self.schema.types}
        if self.schema.type(role) is None or name in names:
            return None
        return self._apply(self.schema.with_type(role, lambda t: replace(t, name=name)))

    def do_rename_property(self, role: str, column: str, name: str) -> Touched:
        type_ = self.schema.type(role)
        if type_ is None or type_.column(column) is None or _has_name(type_, name):
            return None
        return self._apply(self.schema.with_type(role, lambda t: rename_column(t, column, name)))

    def do_drop_property(self, role: str, column: str, for_good: bool = False) -> Touched:
        type_ = self.schema.type(role)
        if type_ is None or type_.column(column) is None:
            return None
        changed = self.schema.with_type(role, lambda t: drop_column(t, column))
        return self._apply(changed, [type_.identity] if for_good else [])

    def do_add_property(self, role: str, column: str, name: str, declared: str) -> Touched:
        type_ = self.schema.type(role)
        if type_ is None or type_.column(column) is not None or _has_name(type_, name):
            return None
        made = Column(next(self.identities), column, name, declared)
        return self._apply(self.schema.with_type(role, lambda t: add_column(t, made)))

    def do_drop_type(self, roles: Sequence[str], for_good: bool = False) -> Touched:
        schema = self.schema
        kept = tuple(each for each in schema.types if each.role not in roles)
        if kept == schema.types or any(e in roles for t in kept for e in t.ends or ()):
            return None
        gone = [each.identity for each in schema.types if each not in kept]
        return self._apply(Schema(kept), gone if for_good else [])

    def do_add_type(self, role: str, name: str) -> Touched:
        schema = self.schema
        if schema.type(role) is not None or any(each.name == name for each in schema.types):
            return None
        made = new_type(role, name, self.identities)
        if any(schema.type(end) is None for end in made.ends or ()):
            return None
        return self._apply(Schema((*schema.types, made)))

    def _apply(self, schema: Schema, purged: Sequence[int] = ()) -> list[str]:
        """Change the schema; the types of `purged` lose what they drop in the past as well."""
        self._delete_all_branches()
        main = self.history.head("main")
        options = {"allow_data_loss": True} if purged else {}
        try:
            result = self.actor.call("apply_schema", schema.text(main.schema), **options)
        except ConflictError:
            if not self._show(purged) & set(self.tags.values()):
                raise
            self._count("purges refused")
            return ["main"]
        assert result.applied
        self.note_commit(result.commit_id, "main", schema, carry_over(main.state, schema))
        if purged:
            self._count("purges")
            assert not self._show(purged) & set(self.tags.values()), "a tag lost what it keeps"
            self.maybe_gone |= self._show(purged) - {result.commit_id}
            if any(main.state[each] for each in purged):
                with pytest.raises(NotFoundError):
                    self.reader.call("export", commit=main.id)
        return ["main"]

    def _show(self, types: Sequence[int]) -> set[str]:
        """The commits that have one of the types."""
        commits = self.history.commits.values()
        return {e.id for e in commits if any(e.schema.by_identity(each) for each in types)}

    def _delete_all_branches(self) -> None:
        while others := [each for each in self.history.heads if each != "main"]:
            for name in others:
                self.do_delete(name)
            assert len(self.history.heads) <= len(others), "every branch needs another one"


def _has_name(type_: Type, name: str) -> bool:
    return any(each.name == name for each in type_.columns)
