"""Writes of the history model: inserts, updates, deletes and loads, on any branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tests.model.history_base import Base, Touched, copy_state
from tests.model.history_model import is_valid
from tests.model.history_schema import KEYED_EDGES, Row, Schema, Type, pair_id

Rows: TypeAlias = dict[int, dict[str, Row]]


class Writes(Base):
    """The steps that change rows."""

    def do_put(self, branch: str, role: str, id_: str, values: Mapping[str, Any]) -> Touched:
        """Insert a node by its key; one that is there is replaced."""
        key = "name" if role == "person" else "code"
        given = {key: id_, **values}

        def change(type_: Type, state: Rows) -> bool:
            state[type_.identity][id_] = type_.row(given)
            return True

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            columns = [each for each in type_.columns if each.role in given]
            sets = ", ".join(f"{each.name}: ${each.role}" for each in columns)
            return f"insert {type_.name} {{ {sets} }}", {c.role: given[c.role] for c in columns}

        return self._mutate(branch, role, change, text)

    def do_set(self, branch: str, role: str, id_: str, column: str, value: Any) -> Touched:
        """Give one property of one node a value."""
        key = "name" if role == "person" else "code"

        def change(type_: Type, state: Rows) -> bool:
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

    def do_set_many(self, branch: str, role: str, column: str, low: int, value: int) -> Touched:
        """Give a number to every node that has at least so much of it."""

        def change(type_: Type, state: Rows) -> bool:
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

    def do_drop(self, branch: str, role: str, id_: str) -> Touched:
        """Delete a node, and its edges with it."""
        key = "name" if role == "person" else "code"

        def change(type_: Type, state: Rows) -> bool:
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

    def do_unlink(self, branch: str, source: str) -> Touched:
        """Delete every edge from a node."""

        def change(type_: Type, state: Rows) -> bool:
            rows = state[type_.identity]
            gone = [id_ for id_, row in rows.items() if row["src"] == source]
            for id_ in gone:
                del rows[id_]
            return bool(gone)

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            return f"delete {type_.name} where from = $name", {"name": source}

        return self._mutate(branch, "works", change, text)

    def do_link(self, branch: str, source: str, target: str, since: int | None) -> Touched:
        """Insert an edge; the graph chooses its id."""

        def change(type_: Type, state: Rows) -> bool:
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

    def do_rate(self, branch: str, source: str, target: str, stars: int | None) -> Touched:
        """Insert an edge by its ends; one that is there is replaced."""

        def change(type_: Type, state: Rows) -> bool:
            row = type_.row({"stars": stars}, src=source, dst=target)
            state[type_.identity][pair_id(source, target)] = row
            return True

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            column = type_.column("stars")
            sets = "" if column is None else f", {column.name}: $stars"
            params = {"name": source, "code": target}
            body = f"insert {type_.name} {{ from: $name, to: $code{sets} }}"
            return body, params if column is None else {**params, "stars": stars}

        return self._mutate(branch, "rates", change, text)

    def do_unrate(self, branch: str, source: str, target: str) -> Touched:
        """Delete an edge by its id."""

        def change(type_: Type, state: Rows) -> bool:
            return state[type_.identity].pop(pair_id(source, target), None) is not None

        def text(type_: Type) -> tuple[str, dict[str, Any]]:
            return f"delete {type_.name} where id = $id", {"id": pair_id(source, target)}

        return self._mutate(branch, "rates", change, text)

    def do_load(self, branch: str, mode: str, records: Sequence[tuple[Any, ...]]) -> Touched:
        """Load nodes (role, id, values) and edges (role, id, values, from, to), as one commit."""
        if branch not in self.history.heads:
            return None
        schema = self.history.head(branch).schema
        if any(schema.type(each[0]) is None for each in records):
            return None
        state = copy_state(self.history.head(branch).state)
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
                data |= {} if role in KEYED_EDGES else {"id": id_}
                lines.append({"edge": type_.name, "from": ends[0], "to": ends[1], "data": data})
            else:
                lines.append({"type": type_.name, "data": data})
        is_refused |= not is_valid(schema, state)
        result = self._attempt(is_refused, "load", lines, mode=mode, branch=branch)
        if result is not None and result.commit_id is None:
            assert state == self.history.head(branch).state, "a load with changes made no commit"
        elif result is not None:
            self.note_commit(result.commit_id, branch, schema, state)
        return [branch]

    def _mutate(
        self,
        branch: str,
        role: str,
        change: Callable[[Type, Rows], bool],
        text: Callable[[Type], tuple[str, dict[str, Any]] | None],
    ) -> Touched:
        if branch not in self.history.heads:
            return None
        schema = self.history.head(branch).schema
        type_ = schema.type(role)
        asked = None if type_ is None else text(type_)
        if type_ is None or asked is None:
            return None
        state = copy_state(self.history.head(branch).state)
        is_changed = change(type_, state)
        is_refused = not is_valid(schema, state)
        body, params = asked
        source = _query(schema, body, params)
        result = self._attempt(is_refused, "mutate", source, params=params, branch=branch)
        if result is not None:
            assert (result.commit_id is not None) == is_changed
            if is_changed:
                self._name_new_edge(branch, schema, state)
                self.note_commit(result.commit_id, branch, schema, state)
        return [branch]

    def _name_new_edge(self, branch: str, schema: Schema, state: Rows) -> None:
        """Put an edge whose id only the graph knows under that id."""
        shown = schema.read_export(self.actor.call("export", branch=branch))
        for table, rows in state.items():
            if "" in rows:
                (made,) = set(shown[table]) - set(rows)
                rows[made] = rows.pop("")


def _query(schema: Schema, body: str, params: Mapping[str, Any]) -> str:
    """A mutation with its parameters declared, by role, as the properties are."""
    declared = {c.role: c.declared.split(" ")[0] for t in schema.types for c in t.columns}
    heading = ", ".join(f"${name}: {declared.get(name, 'String')}" for name in params)
    return f"query q({heading}) {{ {body} }}"
