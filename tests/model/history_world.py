"""The world of the history model: every step, and looking back at every commit there was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omnigraph.errors import NotFoundError
from tests.depth import IS_TORTURE
from tests.model.history_base import Touched, copy_state
from tests.model.history_model import Changes, Commit
from tests.model.history_schema import Row, Schema, Type
from tests.model.history_undo import Undo
from tests.model.history_upkeep import Upkeep
from tests.model.history_writes import Writes


class World(Writes, Upkeep, Undo):
    """A graph, the handles on it, and the model of what it should be."""

    def check_branches(self) -> None:
        """Every branch shows the model's rows and comes from the model's commits."""
        for branch in list(self.history.heads):
            self.check_branch(branch)
            self.check_lineage(branch)
            head = self.history.head(branch)
            self._compare_queries(head, head.schema.types, branch=branch)

    def check_commits(self) -> None:
        """Every commit that ever was answers as it did when it was head, or may be gone."""
        for commit in self.history.commits.values():
            self.do_read(commit.number)
        for name in self.tags:
            self.do_look_at_tag(name)

    def check_lineage(self, branch: str) -> None:
        """Every commit that a branch comes from is known, with its parents."""
        expected = self.history.ancestors(self.history.heads[branch])
        for id_ in expected:
            commit = self.reader.call("commit", id_)
            parents = (commit.parent_id, commit.merged_parent_id)
            assert parents == (*self.history.commits[id_].parents, None, None)[:2]
        assert {each.commit_id for each in self.reader.call("log", branch)} == expected

    def do_read(self, number: int) -> Touched:
        """Look at a commit as it was when it was head: by export, queries and single rows."""
        commit = self._commit(number)
        try:
            shown = commit.schema.read_export(self.reader.call("export", commit=commit.id))
            assert shown == commit.state, f"commit {commit.number} shows other rows"
            self._compare_queries(commit, _choose_types(commit), commit=commit.id)
            self._compare_entities(commit)
        except NotFoundError:
            if not self.may_be_gone({commit.id}):
                raise
            self._count("commits gone")
        return []

    def _commit(self, number: int) -> Commit:
        return list(self.history.commits.values())[number % len(self.history.commits)]

    def _compare_queries(self, commit: Commit, types: Sequence[Type], /, **where: str) -> None:
        for type_ in types:
            rows = commit.state[type_.identity]
            text, read = _scan(commit.schema, type_)
            found = [read(each) for each in self.reader.call("query", text, **where)]
            expected = [_show(type_, id_, row) for id_, row in rows.items()]
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), text

    def _compare_entities(self, commit: Commit) -> None:
        branch, birth, version = self.facts[commit.id]
        if branch not in self.history.heads or self.births[branch] != birth:
            return
        for type_ in _choose_types(commit):
            for id_, row in [*list(commit.state[type_.identity].items())[:1], ("none", None)]:
                shown = self.reader.call("entity_at", type_.table_key, id_, version, branch=branch)
                assert (None if shown is None else type_.read(shown)[1]) == row

    def do_diff(self, before: int, after: int) -> Touched:
        """Compare two commits."""
        old, new = self._commit(before), self._commit(after)
        try:
            shown = self.reader.call("diff", old.id, new.id)
        except NotFoundError:
            if not self.may_be_gone({old.id, new.id}):
                raise
            self._count("diffs gone")
            return []
        self.read_changes(shown, old, new)
        return []

    def do_changes(self, branch: str, number: int) -> Touched:
        """Replay what a branch's commits changed: each must give the next state."""
        if branch not in self.history.heads:
            return None
        line = self.history.line(self.history.heads[branch])
        line = line[: number % len(line) + 1]
        try:
            blocks = self.reader.call("changes", line[-1], branch=branch)
        except NotFoundError:
            if not self.may_be_gone(line):
                raise
            self._count("changes gone")
            return []
        assert [id_ for id_, _ in blocks] == line[-2::-1]
        before = self.history.commits[line[-1]]
        state = copy_state(before.state)
        for id_, shown in blocks:
            after = self.history.commits[id_]
            _replay(state, self.read_changes(shown, before, after))
            assert {t: rows for t, rows in state.items() if rows} == {
                t: rows for t, rows in after.state.items() if rows
            }
            before = after
        return []


def _choose_types(commit: Commit) -> Sequence[Type]:
    """One of them, in turn: the export has shown the rows of all."""
    types = commit.schema.types
    return types if IS_TORTURE else [types[commit.number % len(types)]]


def _replay(state: dict[int, dict[str, Row]], changes: Changes) -> None:
    for (table, id_), (before, after) in changes.items():
        rows = state.setdefault(table, {})
        assert rows.pop(id_, None) == before
        if after is not None:
            rows[id_] = after


def _scan(schema: Schema, type_: Type) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
    """A query for every row of a type, and how to read a row of its answer."""
    columns = [each.name for each in type_.columns]
    shown = [f"$x.{name} as c{at}" for at, name in enumerate(columns)]
    if type_.ends is None:
        match = f"$x: {type_.name}"
    else:
        match = f"$a: {schema.need(type_.ends[0]).name} $a $x:{_lower(type_.name)} $b"
        ends = [(schema.need(role), var) for role, var in zip(type_.ends, "ab", strict=True)]
        shown += [
            f"${var}.{end.name_of('name' if end.role == 'person' else 'code')} as {var}"
            for end, var in ends
        ]

    def read(row: Mapping[str, Any]) -> Any:
        values = [row[f"c{at}"] for at in range(len(columns))]
        return values if type_.ends is None else [row["a"], row["b"], *values]

    return f"query q() {{ match {{ {match} }} return {{ {', '.join(shown)} }} }}", read


def _show(type_: Type, id_: str, row: Row) -> Any:
    values = [row.get(each.identity) for each in type_.columns]
    return values if type_.ends is None else [row["src"], row["dst"], *values]


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]
