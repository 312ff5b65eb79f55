"""A graph beside its model: every step is done to both, and both must show the same.

A step is plain data, and one that makes no sense where it stands is skipped. So a list of steps
can be kept, run again, and cut shorter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    ConflictError,
    ExpectedVersionMismatch,
    KeyConflict,
    MergeConflicts,
    NotFoundError,
)
from tests.model.history_actors import OPTIONS, Actor, Local
from tests.model.history_model import (
    DIVERGENT,
    Commit,
    Conflict,
    History,
    Merge,
    diff,
    is_valid,
    settle,
)
from tests.model.history_schema import (
    NAMES,
    Column,
    Row,
    Schema,
    State,
    Type,
    add_column,
    carry_over,
    drop_column,
    new_type,
    rename_column,
)

Step: TypeAlias = tuple[Any, ...]
"""Number of the actor, kind of step, arguments."""


SKIPS_LISTS = True
CHECKS_LOG = False


@dataclass
class World:
    """A graph, the handles on it, and the model of what it should be."""

    actors: list[Actor]
    history: History = field(default_factory=History)
    births: dict[str, int] = field(default_factory=dict)
    origins: dict[str, tuple[str, int]] = field(default_factory=dict)
    facts: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    maybe_gone: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    identities: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @classmethod
    def create(cls, path: Path, kinds: Sequence[Callable[[str], Actor]] = (Local,)) -> World:
        """A new graph and its model, with an actor of each kind."""
        identities = itertools.count(1)
        schema = Schema(tuple(new_type(role, NAMES[role], identities) for role in NAMES))
        graph = og.init(path, schema=schema.text(), **OPTIONS)
        first = graph.commits(limit=1)[0].commit_id
        world = cls([kind(graph.uri) for kind in kinds], identities=identities)
        world.births["main"] = 0
        world._record(first, "main", schema, {each.identity: {} for each in schema.types})
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

    def _record(self, id_: str, branch: str, schema: Schema, state: State, *merged: str) -> Commit:
        commit = self.history.record(id_, branch, schema, state, *merged)
        seen = self.actors[0].call("commit", id_)
        assert (seen.branch, seen.parent_id, seen.merged_parent_id) == (
            branch,
            *(*commit.parents, None, None)[:2],
        )
        self.facts[id_] = (branch, self.births[branch], seen.manifest_version)
        return commit

    # Writes

    def do_put(self, branch: str, role: str, id_: str, values: Mapping[str, Any]) -> Any:
        """Insert a node by its key; one that is there is replaced."""
        key = "name" if role == "person" else "code"
        given = {key: id_, **values}

        def change(type_: Type, state: dict[int, dict[str, Row]]) -> bool:
            state[type_.identity][id_] = type_.row(given)
            return True

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            columns = [each for each in type_.columns if each.role in given]
            sets = ", ".join(f"{each.name}: ${each.role}" for each in columns)
            return f"insert {type_.name} {{ {sets} }}", {c.role: given[c.role] for c in columns}

        return self._mutate(branch, role, change, text)

    def do_set(self, branch: str, role: str, id_: str, column: str, value: Any) -> Any:
        """Give one property of one node a value."""
        key = "name" if role == "person" else "code"
        if SKIPS_LISTS and isinstance(value, list):
            return None

        def change(type_: Type, state: dict[int, dict[str, Row]]) -> bool:
            rows, place = state[type_.identity], type_.column(column)
            if place is None or id_ not in rows:
                return False
            rest = {k: v for k, v in rows[id_].items() if k != place.identity}
            rows[id_] = rest if value is None else {**rest, place.identity: value}
            return True

        def text(type_: Type) -> tuple[str, dict[str, Any]] | None:
            if type_.column(column) is None:
                return None
            where = f"where {type_.name_of(key)} = ${key}"
            sets = f"set {{ {type_.name_of(column)}: ${column} }}"
            return f"update {type_.name} {sets} {where}", {key: id_, column: value}

        return self._mutate(branch, role, change, text)

    def do_set_many(self, branch: str, role: str, column: str, low: int, value: int) -> Any:
        """Give a number to every node that has at least so much of it."""

        def change(type_: Type, state: dict[int, dict[str, Row]]) -> bool:
            place, rows = type_.column(column), state[type_.identity]
            if place is None:
                return False
            matched = [id_ for id_, row in rows.items() if row.get(place.identity, low - 1) >= low]
            rows.update({id_: {**rows[id_], place.identity: value} for id_ in matched})
            return bool(matched)

        def text(type_: Type) -> tuple[str, dict[str, Any]] | None:
            if type_.column(column) is None:
                return None
            name = type_.name_of(column)
            body = f"update {type_.name} set {{ {name}: ${column} }} where {name} >= {low}"
            return body, {column: value}

        return self._mutate(branch, role, change, text)

    def do_drop(self, branch: str, role: str, id_: str) -> Any:
        """Delete a node, and its edges with it."""
        key = "name" if role == "person" else "code"

        def change(type_: Type, state: dict[int, dict[str, Row]]) -> bool:
            is_there = state[type_.identity].pop(id_, None) is not None
            for edge in self.history.head(branch).schema.types:
                rows = state[edge.identity]
                ends = zip(("src", "dst"), edge.ends or ("", ""), strict=True)
                sides = [side for side, end in ends if end == role]
                for edge_id in [e for e, row in rows.items() if any(row[s] == id_ for s in sides)]:
                    del rows[edge_id]
            return is_there

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            return f"delete {type_.name} where {type_.name_of(key)} = ${key}", {key: id_}

        return self._mutate(branch, role, change, text)

    def do_unlink(self, branch: str, source: str) -> Any:
        """Delete every edge from a node."""

        def change(type_: Type, state: dict[int, dict[str, Row]]) -> bool:
            rows = state[type_.identity]
            gone = [id_ for id_, row in rows.items() if row["src"] == source]
            for id_ in gone:
                del rows[id_]
            return bool(gone)

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            return f"delete {type_.name} where from = $name", {"name": source}

        return self._mutate(branch, "works", change, text)

    def do_link(self, branch: str, source: str, target: str, since: int | None) -> Any:
        """Insert an edge; the graph chooses its id."""

        def change(type_: Type, state: dict[int, dict[str, Row]]) -> bool:
            made = type_.row({"since": since}, src=source, dst=target)
            state[type_.identity][""] = made
            return True

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            column = type_.column("since")
            sets = "" if column is None else f", {column.name}: $since"
            params = {"name": source, "code": target}
            body = f"insert {type_.name} {{ from: $name, to: $code{sets} }}"
            return body, params if column is None else {**params, "since": since}

        return self._mutate(branch, "works", change, text)

    def do_load(self, branch: str, mode: str, records: Sequence[tuple[Any, ...]]) -> Any:
        """Load nodes (role, id, values) and edges (role, id, values, from, to), as one commit."""
        if branch not in self.history.heads:
            return None
        schema = self.history.head(branch).schema
        if any(schema.type(each[0]) is None for each in records):
            return None
        state = _copy(self.history.head(branch).state)
        if mode == "overwrite":
            state |= {schema.need(each[0]).identity: {} for each in records}
        is_refused = False
        lines = []
        for role, id_, values, *ends in records:
            type_ = schema.need(role)
            sides = dict(zip(("src", "dst"), ends, strict=False))
            given = (
                dict(values) if ends else {("name" if role == "person" else "code"): id_, **values}
            )
            is_refused |= mode == "append" and id_ in state[type_.identity]
            state[type_.identity][id_] = type_.row(given, **sides)
            data = {c.name: given[c.role] for c in type_.columns if c.role in given}
            if ends:
                data |= {"id": id_}
                lines.append({"edge": type_.name, "from": ends[0], "to": ends[1], "data": data})
            else:
                lines.append({"type": type_.name, "data": data})
        is_refused |= not is_valid(schema, state)
        result = self._attempt(is_refused, "load", lines, mode=mode, branch=branch)
        if result is not None:
            self._record(result.commit_id, branch, schema, state)
        return [branch]

    def _mutate(
        self,
        branch: str,
        role: str,
        change: Callable[[Type, dict[int, dict[str, Row]]], bool],
        text: Callable[[Type], tuple[str, dict[str, Any]] | None],
    ) -> list[str] | None:
        if branch not in self.history.heads:
            return None
        schema = self.history.head(branch).schema
        type_ = schema.type(role)
        asked = None if type_ is None else text(type_)
        if type_ is None or asked is None:
            return None
        state = _copy(self.history.head(branch).state)
        is_changed = change(type_, state)
        is_refused = not is_valid(schema, state)
        body, params = asked
        source = _query(schema, body, params)
        result = self._attempt(is_refused, "mutate", source, params=params, branch=branch)
        if result is not None:
            assert (result.commit_id is not None) == is_changed
            if is_changed:
                self._name_new_edge(branch, schema, state)
                self._record(result.commit_id, branch, schema, state)
        return [branch]

    def _name_new_edge(self, branch: str, schema: Schema, state: dict[int, dict[str, Row]]) -> None:
        """Put an edge whose id only the graph knows under that id."""
        shown = schema.read_export(self.actor.call("export", branch=branch))
        for table, rows in state.items():
            if "" in rows:
                (made,) = set(shown[table]) - set(rows)
                rows[made] = rows.pop("")

    def _attempt(self, is_refused: bool, what: str, *args: Any, **options: Any) -> Any:
        """Call, once more when this handle was behind; it must be refused exactly when said."""
        for _ in range(2):
            try:
                found = self.actor.call(what, *args, **options)
            except ExpectedVersionMismatch:
                assert len(self.actors) > 1, "the only handle was behind"
            except (BadRequestError, KeyConflict):
                if not is_refused:
                    raise
                self._count("refused writes")
                return None
            else:
                assert not is_refused, "a write that breaks a rule was accepted"
                return found
        raise AssertionError("a handle was behind twice in a row, with no other at work")

    # Branches

    def do_branch(self, name: str, source: str) -> Any:
        """Create a branch; a name that was deleted is a new branch."""
        if name in self.history.heads or source not in self.history.heads:
            return None
        self._count("recreated branches" if name in self.births else "new branches")
        self.actor.call("create_branch", name, source)
        self.births[name] = self.births.get(name, 0) + 1
        self.origins[name] = (source, self.births[source])
        self.history.heads[name] = self.history.heads[source]
        return [name, source]

    def do_delete(self, name: str) -> Any:
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
        self.maybe_gone |= self._made_on(name)
        del self.history.heads[name]
        assert self.reader.call("branches") == ["main", *sorted(set(self.history.heads) - {"main"})]

    # Merges

    def do_merge(
        self, source: str, target: str, resolve: str | None = None, delete: bool = False
    ) -> Any:
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
            self._record(result.commit_id, target, ours.schema, state, theirs.id)
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
        settled = settle(expected, theirs, ours, resolve)
        if settled is not None and not expected.clashes and is_valid(ours.schema, settled):
            return settled
        assert expected.clashes or settled is not None, "a conflict that cannot be settled was"
        return self._settled_somehow(theirs, target)

    def _settled_somehow(self, theirs: Commit, target: str) -> State:
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
        settled = settle(expected, theirs, ours, resolve)
        is_open = settled is None or expected.clashes or not is_valid(ours.schema, settled)
        assert is_open, f"could have been settled: {conflicts}"
        self._count("merges that could not be settled")

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

    def do_preview(self, source: str, target: str) -> Any:
        """Ask what a merge would do; nothing may change."""
        if source == target or not {source, target} <= self.history.heads.keys():
            return None
        expected, ours = self.history.merge(source, target), self.history.head(target)
        shown = self.actor.call("merge", source, target, preview=True)
        assert shown["outcome"] == expected.outcome
        found = [(e["kind"], e["table_key"], e.get("row_id")) for e in shown["conflicts"]]
        self._same_conflicts(expected, ours.schema, found)
        assert self._read_changes(shown["changes"]["changes"], ours.schema, ours.schema) == diff(
            ours.state, expected.state
        )
        return [source, target]

    # Upkeep

    def do_optimize(self) -> Any:
        self.actor.call("optimize")
        return ["main"]

    def do_indices(self, branch: str) -> Any:
        if branch not in self.history.heads:
            return None
        self.actor.call("ensure_indices", branch)
        return [branch]

    def do_cleanup(self, keep: int) -> Any:
        """Remove history: what the policy keeps must stay, the rest may answer or be gone."""
        report = self.actor.call("cleanup", keep=keep, confirm=True)
        assert [each.error for each in report.tables if each.error] == []
        lines = [self.history.line(head)[:keep] for head in self.history.heads.values()]
        kept = {id_ for line in lines for id_ in line} - self.maybe_gone
        self.maybe_gone = set(self.history.commits) - kept
        return list(self.history.heads)

    def do_reopen(self) -> Any:
        self.actor.reopen()
        return []

    # Schema changes: only `main` may be there

    def do_rename_type(self, role: str, name: str) -> Any:
        kinds = [self.schema.type(role)]
        if kinds[0] is None or any(each.name == name for each in self.schema.types):
            return None
        return self._apply(self.schema.with_type(role, lambda t: replace(t, name=name)))

    def do_rename_property(self, role: str, column: str, name: str) -> Any:
        type_ = self.schema.type(role)
        if type_ is None or type_.column(column) is None or _has_name(type_, name):
            return None
        return self._apply(self.schema.with_type(role, lambda t: rename_column(t, column, name)))

    def do_drop_property(self, role: str, column: str) -> Any:
        type_ = self.schema.type(role)
        if type_ is None or type_.column(column) is None:
            return None
        return self._apply(self.schema.with_type(role, lambda t: drop_column(t, column)))

    def do_add_property(self, role: str, column: str, name: str, declared: str) -> Any:
        type_ = self.schema.type(role)
        if type_ is None or type_.column(column) is not None or _has_name(type_, name):
            return None
        made = Column(next(self.identities), column, name, declared)
        return self._apply(self.schema.with_type(role, lambda t: add_column(t, made)))

    def do_drop_type(self, roles: Sequence[str]) -> Any:
        schema = self.schema
        kept = tuple(each for each in schema.types if each.role not in roles)
        if kept == schema.types or any(e in roles for t in kept for e in t.ends or ()):
            return None
        return self._apply(Schema(kept))

    def do_add_type(self, role: str, name: str) -> Any:
        schema = self.schema
        if schema.type(role) is not None or any(each.name == name for each in schema.types):
            return None
        made = new_type(role, name, self.identities)
        if any(schema.type(end) is None for end in made.ends or ()):
            return None
        return self._apply(Schema((*schema.types, made)))

    @property
    def schema(self) -> Schema:
        """The schema of every branch that is there."""
        return self.history.head("main").schema

    def _apply(self, schema: Schema) -> list[str]:
        self._delete_all_branches()
        main = self.history.head("main")
        result = self.actor.call("apply_schema", schema.text(main.schema))
        assert result.applied
        self._record(result.commit_id, "main", schema, carry_over(main.state, schema))
        return ["main"]

    def _delete_all_branches(self) -> None:
        while others := [each for each in self.history.heads if each != "main"]:
            for name in others:
                self.do_delete(name)
            assert len(self.history.heads) <= len(others), "every branch needs another one"

    # Comparing

    def check_branch(self, branch: str) -> None:
        """A branch shows the model's rows, and its head and history are the model's."""
        head = self.history.head(branch)
        assert self.reader.call("commits", branch, limit=1)[0].commit_id == head.id
        shown = head.schema.read_export(self.reader.call("export", branch=branch))
        assert shown == head.state, f"branch '{branch}' shows other rows"

    def check_lineage(self, branch: str) -> None:
        """Every commit that a branch comes from is known, with its parents."""
        expected = self.history.ancestors(self.history.heads[branch])
        for id_ in expected:
            commit = self.reader.call("commit", id_)
            parents = (commit.parent_id, commit.merged_parent_id)
            assert parents == (*self.history.commits[id_].parents, None, None)[:2]
        if CHECKS_LOG:
            assert {each.commit_id for each in self.reader.call("log", branch)} == expected

    def check_queries(self, branch: str) -> None:
        """Queries over a branch find the model's rows."""
        self._compare_queries(self.history.head(branch), branch=branch)

    def do_read(self, number: int) -> Any:
        """Look at a commit as it was when it was head: by export, queries and single rows."""
        commit = self._commit(number)
        try:
            shown = commit.schema.read_export(self.reader.call("export", commit=commit.id))
            assert shown == commit.state, f"commit {commit.number} shows other rows"
            self._compare_queries(commit, commit=commit.id)
            self._compare_entities(commit)
        except NotFoundError:
            if commit.id not in self.maybe_gone:
                raise
            self._count("commits gone")
        return []

    def _commit(self, number: int) -> Commit:
        return list(self.history.commits.values())[number % len(self.history.commits)]

    def _compare_queries(self, commit: Commit, /, **where: str) -> None:
        for type_ in commit.schema.types:
            rows = commit.state[type_.identity]
            text, read = _scan(commit.schema, type_)
            found = [read(each) for each in self.reader.call("query", text, **where)]
            expected = [_shown(type_, id_, row) for id_, row in rows.items()]
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), text

    def _compare_entities(self, commit: Commit) -> None:
        branch, birth, version = self.facts[commit.id]
        if branch not in self.history.heads or self.births[branch] != birth:
            return
        for type_ in commit.schema.types:
            for id_, row in [*list(commit.state[type_.identity].items())[:1], ("none", None)]:
                shown = self.reader.call("entity_at", type_.table_key, id_, version, branch=branch)
                assert (None if shown is None else type_.read(shown)[1]) == row

    def do_diff(self, before: int, after: int) -> Any:
        """Compare two commits."""
        old, new = self._commit(before), self._commit(after)
        try:
            shown = self.reader.call("diff", old.id, new.id)
        except NotFoundError:
            if not {old.id, new.id} & self.maybe_gone:
                raise
            self._count("diffs gone")
            return []
        found = self._read_changes(shown, old.schema, new.schema)
        assert found == diff(old.state, new.state)
        return []

    def do_changes(self, branch: str, number: int) -> Any:
        """Replay what a branch's commits changed: each must give the next state."""
        if branch not in self.history.heads:
            return None
        line = self.history.line(self.history.heads[branch])
        line = line[: number % len(line) + 1]
        try:
            blocks = self.reader.call("changes", line[-1], branch=branch)
        except NotFoundError:
            if not set(line) & self.maybe_gone:
                raise
            self._count("changes gone")
            return []
        assert [id_ for id_, _ in blocks] == line[-2::-1]
        state, before = _copy(self.history.commits[line[-1]].state), line[-1]
        for id_, shown in blocks:
            old, new = self.history.commits[before], self.history.commits[id_]
            for (table, row_id), (was, row) in self._read_changes(
                shown, old.schema, new.schema
            ).items():
                rows = state.setdefault(table, {})
                assert rows.get(row_id) == was
                rows.pop(row_id, None)
                if row is not None:
                    rows[row_id] = row
            kept = {table: rows for table, rows in state.items() if rows or table in new.state}
            assert {**{t: {} for t in new.state}, **kept} == new.state
            before = id_
        return []

    def _read_changes(
        self, shown: Sequence[Mapping[str, Any]], old: Schema, new: Schema
    ) -> dict[tuple[int, str], tuple[Row | None, Row | None]]:
        """Changes by identity: images are in the schema of their side."""
        found: dict[tuple[int, str], tuple[Row | None, Row | None]] = {}
        for each in shown:
            key = f"{each['kind']}:{each['type']}"
            named = [s.by_key(key) for s in ((new, old) if "after" in each else (old, new))]
            type_ = next((t for t in named if t is not None), None)
            assert type_ is not None, f"there is no {key}"
            images = []
            for word, schema in (("before", old), ("after", new)):
                side = schema.by_identity(type_.identity)
                assert (side is not None) or word not in each
                images.append(side.read(each[word])[1] if side and word in each else None)
            op = "insert" if images[0] is None else "update" if images[1] is not None else "delete"
            assert each["op"] == op
            assert (type_.identity, each["id"]) not in found
            found[type_.identity, each["id"]] = (images[0], images[1])
        return found


def _copy(state: State) -> dict[int, dict[str, Row]]:
    return {table: dict(rows) for table, rows in state.items()}


def _has_name(type_: Type, name: str) -> bool:
    return any(each.name == name for each in type_.columns)


def _query(schema: Schema, body: str, params: Mapping[str, Any]) -> str:
    """A mutation with its parameters declared, by role, as the properties are."""
    declared = {c.role: c.declared.split(" ")[0] for t in schema.types for c in t.columns}
    heading = ", ".join(f"${name}: {declared.get(name, 'String')}" for name in params)
    return f"query q({heading}) {{ {body} }}"


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


def _shown(type_: Type, id_: str, row: Row) -> Any:
    values = [row.get(each.identity) for each in type_.columns]
    return values if type_.ends is None else [row["src"], row["dst"], *values]


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]
