"""Schemas of the history model: types and properties with identities that outlive their names.

A row is kept by identity: column identity → value, without nulls, and for edges "src" and "dst".
So a rename changes no row, an added property changes no row, and a dropped one changes only the
rows that hold a value in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[int | str, Any]
Table: TypeAlias = Mapping[str, Row]
State: TypeAlias = Mapping[int, Table]
"""Table identity → row id → row. Never changed in place."""


@dataclass(frozen=True)
class Column:
    """A property. `role` is what the steps know it by; its name may change."""

    identity: int
    role: str
    name: str
    declared: str


@dataclass(frozen=True)
class Type:
    """A node type, or an edge type between the roles in `ends`."""

    identity: int
    role: str
    name: str
    columns: tuple[Column, ...]
    ends: tuple[str, str] | None = None

    @property
    def kind(self) -> str:
        return "edge" if self.ends else "node"

    @property
    def table_key(self) -> str:
        return f"{self.kind}:{self.name}"

    def column(self, role: str) -> Column | None:
        return next((each for each in self.columns if each.role == role), None)

    def name_of(self, role: str) -> str:
        column = self.column(role)
        assert column is not None
        return column.name

    def read(self, image: Mapping[str, Any]) -> tuple[str, Row]:
        """The id and the row of what the engine shows; it must show every property, and no other.

        An edge's image has `src` and `dst`.
        """
        ends = {"src", "dst"} if self.ends else set()
        assert set(image) == {"id", *ends, *(each.name for each in self.columns)}, (
            f"{self.table_key} shows {sorted(image)}"
        )
        row: dict[int | str, Any] = {each: image[each] for each in sorted(ends)}
        row |= {c.identity: image[c.name] for c in self.columns if image[c.name] is not None}
        return image["id"], row

    def row(self, values: Mapping[str, Any], **ends: str) -> Row:
        """A row from values by role; what the type has no property for is left out."""
        columns = {each.role: each.identity for each in self.columns}
        kept: dict[int | str, Any] = {
            columns[r]: v for r, v in values.items() if r in columns and v is not None
        }
        return kept | ends


@dataclass(frozen=True)
class Schema:
    """Every type there is, by role."""

    types: tuple[Type, ...]

    def type(self, role: str) -> Type | None:
        return next((each for each in self.types if each.role == role), None)

    def need(self, role: str) -> Type:
        found = self.type(role)
        assert found is not None, f"there is no {role}"
        return found

    def by_key(self, table_key: str) -> Type | None:
        return next((each for each in self.types if each.table_key == table_key), None)

    def by_identity(self, identity: int) -> Type | None:
        return next((each for each in self.types if each.identity == identity), None)

    def with_type(self, role: str, change: Callable[[Type], Type | None]) -> Schema:
        changed = (change(each) if each.role == role else each for each in self.types)
        return Schema(tuple(each for each in changed if each is not None))

    def text(self, before: Schema | None = None) -> str:
        """The schema as it is applied; what is called otherwise in `before` says so."""
        old = {} if before is None else {each.identity: each for each in before.types}
        return "\n".join(self._type_text(each, old.get(each.identity)) for each in self.types)

    def _type_text(self, type_: Type, before: Type | None) -> str:
        old = {} if before is None else {each.identity: each.name for each in before.columns}
        columns = [
            f"{each.name}: {each.declared}{_hint(each.name, old.get(each.identity))}"
            for each in type_.columns
        ]
        if type_.role in KEYED_EDGES:
            columns.append("@key(src, dst)")
        ends = "" if type_.ends is None else ": " + " -> ".join(map(self._name, type_.ends))
        hint = _hint(type_.name, before.name if before else None)
        return f"{type_.kind} {type_.name}{ends}{hint} {{\n  " + "\n  ".join(columns) + "\n}"

    def _name(self, role: str) -> str:
        return self.need(role).name

    def read_export(self, records: Iterable[Mapping[str, Any]]) -> State:
        """The state that an export in this schema shows."""
        found: dict[int, dict[str, Row]] = {each.identity: {} for each in self.types}
        for record in records:
            is_edge = "edge" in record
            key = f"edge:{record['edge']}" if is_edge else f"node:{record['type']}"
            ends = {"src": record["from"], "dst": record["to"]} if is_edge else {}
            type_ = self.by_key(key)
            assert type_ is not None, f"the export shows {key}, which the schema has not"
            id_, row = type_.read({**record["data"], **ends})
            assert id_ not in found[type_.identity], f"{key} shows '{id_}' twice"
            found[type_.identity][id_] = row
        return found


def _hint(name: str, old: str | None) -> str:
    return "" if old in (None, name) else f' @rename_from("{old}")'


ROLES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "person": {
        "name": ("name", "String @key"),
        "age": ("age", "I32?"),
        "email": ("email", "String? @unique"),
        "tags": ("tags", "[String]?"),
    },
    "firm": {"code": ("code", "String @key"), "size": ("size", "I32?")},
    "works": {"since": ("since", "I32?")},
    "rates": {"stars": ("stars", "I32?")},
}
"""Type role → column role → the name it starts with, and how it is declared."""

NAMES = {"person": "Person", "firm": "Firm", "works": "Works", "rates": "Rates"}
ENDS = {"works": ("person", "firm"), "rates": ("person", "firm")}
KEYED_EDGES = {"rates"}
"""The edge types of which there is one per pair of nodes."""


def pair_id(source: str, target: str) -> str:
    """The id of a keyed edge."""
    return json.dumps([source, target], separators=(",", ":"), ensure_ascii=False)


def new_type(role: str, name: str, identities: Iterable[int]) -> Type:
    """A type with identities that were never used."""
    fresh = iter(identities)
    columns = tuple(
        Column(next(fresh), column, title, declared)
        for column, (title, declared) in ROLES[role].items()
    )
    return Type(next(fresh), role, name, columns, ENDS.get(role))


def rename_column(type_: Type, role: str, name: str) -> Type:
    columns = tuple(replace(c, name=name) if c.role == role else c for c in type_.columns)
    return replace(type_, columns=columns)


def drop_column(type_: Type, role: str) -> Type:
    return replace(type_, columns=tuple(c for c in type_.columns if c.role != role))


def add_column(type_: Type, column: Column) -> Type:
    return replace(type_, columns=(*type_.columns, column))


def carry_over(state: State, schema: Schema) -> State:
    """The rows of a state after a schema change: less what the new schema has not."""
    kept: dict[int, Table] = {}
    for each in schema.types:
        columns = {"src", "dst", *(column.identity for column in each.columns)}
        rows = state.get(each.identity, {})
        kept[each.identity] = {
            id_: {name: value for name, value in row.items() if name in columns}
            for id_, row in rows.items()
        }
    return kept
