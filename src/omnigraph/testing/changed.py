"""Mutations of the reference evaluator: statements over dicts, one row after the other.

It shares the reading of expressions with the evaluator of reads, and no code with `write/`: no
batches, no staging, no columns. New ids are numbers, of as many digits as a generated id has.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.ir.expressions import TYPE_PROPERTY
from omnigraph.ir.mutations import (
    MATCHED,
    SELF,
    Assignment,
    Delete,
    DeleteBound,
    ForEach,
    Insert,
    MutationIR,
    PlainOp,
    ReturnedEntity,
    Update,
    UpdateBound,
    Upsert,
)
from omnigraph.ir.query import Parameter, RowType
from omnigraph.testing.evaluator import Evaluator, GraphData, to_plain
from omnigraph.testing.returned import Entity, Row, at_width, sortable
from omnigraph.types import INTEGER_BOUNDS, PropertyType

_ENDS = ("src", "dst")


@dataclass(frozen=True, slots=True)
class Changed:
    """The graph that a mutation leaves, what it reports, and what it gives back."""

    data: GraphData
    affected_nodes: int
    affected_edges: int
    returned: list[dict[str, Any]] | None


def change(ir: MutationIR, params: Mapping[str, Any], data: GraphData) -> Changed:
    """Run a mutation.

    Raises:
        BadRequestError: It is refused, and the graph is as it was.
    """
    return _Change(ir, params, data).run()


@dataclass(frozen=True, slots=True)
class _Given:
    """One row that a statement runs for, and the parameters that it sees."""

    params: Mapping[str, Any]
    row: Row
    is_matched: bool = False


class _Change:
    def __init__(self, ir: MutationIR, params: Mapping[str, Any], data: GraphData) -> None:
        self.ir = ir
        self.params = params
        self.data = data
        self.catalog = data.catalog
        self.tables: dict[str, dict[str, Entity]] = {
            **{f"node:{name}": dict(rows) for name, rows in data.nodes.items()},
            **{f"edge:{name}": {e["id"]: e for e in rows} for name, rows in data.edges.items()},
        }
        self.removed: dict[str, dict[str, Entity]] = {key: {} for key in self.tables}
        self.written = {"node": 0, "edge": 0}
        self.labelled: list[tuple[_Given, str]] = []
        self.numbers = itertools.count()

    def run(self) -> Changed:
        matched = [_Given(self.params, {})]
        if self.ir.match is not None:
            rows = Evaluator(self.params, self.data).query(self.ir.match, with_limit=True)
            matched = [_Given(self.params, {MATCHED: row}, is_matched=True) for row in rows]
        for op in self.ir.ops:
            if isinstance(op, ForEach):
                for given in self.elements(op):
                    for each in op.body:
                        self.statement(each, [given])
            else:
                self.statement(op, matched)
        self.check_ends()
        return Changed(self.left(), *self.counts(), self.returned(matched))

    def elements(self, op: ForEach) -> Iterable[_Given]:
        assert isinstance(op.rows.type, RowType)
        for element in self.params[op.rows.name] or []:
            fields = {each.name: _read(each, element) for each in op.rows.type.fields}
            named = {f"{op.variable}.{name}": value for name, value in fields.items()}
            yield _Given({**self.params, **named}, {op.variable: fields})

    def statement(self, op: PlainOp, givens: list[_Given]) -> None:
        entity = self.catalog.entity(f"{op.entity_kind}:{op.type_name}")
        match op:
            case Insert():
                self.write(entity, op, givens, keeps=False)
            case Upsert():
                self.write(entity, op, givens, keeps=True)
            case Update():
                for given in givens:
                    chosen = self.where(op, entity, given)
                    new = {
                        each["id"]: each | self.values(entity, op.assignments, given, each)
                        for each in chosen
                    }
                    self.tables[entity.table_key] |= new
                    self.written[op.entity_kind] += len(new)
                    self.label(op.label, given, new)
            case UpdateBound():
                self.update_bound(entity, op, givens)
            case Delete():
                for given in givens:
                    ids = [each["id"] for each in self.where(op, entity, given)]
                    self.remove(entity, ids)
                    self.label(op.label, given, ids)
            case DeleteBound():
                found = (given.row[MATCHED][op.target] for given in givens)
                self.remove(entity, [each for each in found if each is not None])

    def label(self, label: str | None, given: _Given, ids: Iterable[str]) -> None:
        if label is not None:
            self.labelled += [(given, each) for each in ids]

    def where(self, op: Update | Delete, entity: EntityType, given: _Given) -> list[Entity]:
        reader = Evaluator(given.params, self.data)
        rows = list(self.tables[entity.table_key].values())
        return [each for each in rows if reader.holds(op.predicate, given.row | {SELF: each})]

    def values(
        self,
        entity: EntityType,
        assignments: Iterable[Assignment],
        given: _Given,
        before: Entity | None = None,
    ) -> Entity:
        reader = Evaluator(given.params, self.data)
        row = given.row if before is None else given.row | {SELF: before}
        found = {each.property: reader.value(each.value, row) for each in assignments}
        return {
            name: value if name in _ENDS else _fit(value, entity.properties[name].type)
            for name, value in found.items()
        }

    def write(
        self, entity: EntityType, op: Insert | Upsert, givens: list[_Given], *, keeps: bool
    ) -> None:
        """Insert or upsert one row for each given one, the last of equals wins."""
        decided: dict[str, Entity] = {}
        wanted = [(given, self.values(entity, op.assignments, given)) for given in givens]
        for given, values in wanted:
            name = _name(entity, values, by_ends=keeps)
            if given.is_matched and name is not None:
                _agree(decided.setdefault(name, values), values)
        for given, values in wanted:
            ids = self.write_one(entity, values, keeps=keeps)
            self.written[op.entity_kind] += len(ids)
            self.label(op.label, given, ids)

    def write_one(self, entity: EntityType, values: Entity, *, keeps: bool) -> list[str]:
        table = self.tables[entity.table_key]
        name = _name(entity, values, by_ends=keeps)
        there = [e["id"] for e in table.values() if keeps and _name_of(entity, e) == name]
        for each in there:
            table[each] = table[each] | values
        if there:
            return there
        made: Entity = dict.fromkeys(entity.properties) | values
        made["id"] = name if entity.key is not None else f"{next(self.numbers):026d}"
        if isinstance(entity, NodeType):
            made[TYPE_PROPERTY] = entity.name
        table[made["id"]] = made
        return [made["id"]]

    def update_bound(self, entity: EntityType, op: UpdateBound, givens: list[_Given]) -> None:
        table = self.tables[entity.table_key]
        decided: dict[str, Entity] = {}
        for given in givens:
            wanted = given.row[MATCHED][op.target]
            if wanted is not None:
                values = self.values(entity, op.assignments, given)
                _agree(decided.setdefault(wanted, values), values)
        for each, values in decided.items():
            table[each] = table[each] | values
        self.written[op.entity_kind] += len(decided)

    def remove(self, entity: EntityType, ids: Iterable[str]) -> None:
        gone = set(ids)
        table = self.tables[entity.table_key]
        self.removed[entity.table_key] |= {each: table.pop(each) for each in gone & set(table)}
        for edge in self.catalog.edges.values() if isinstance(entity, NodeType) else ():
            ends = [end for end, name in zip(_ENDS, (edge.source, edge.target), strict=True)
                    if name == entity.name]  # fmt: skip
            rows = self.tables[edge.table_key].values()
            hanging = [e["id"] for e in rows if any(e[end] in gone for end in ends)]
            self.remove(edge, hanging)

    def check_ends(self) -> None:
        for edge in self.catalog.edges.values():
            for row in self.tables[edge.table_key].values():
                for end, name in zip(_ENDS, (edge.source, edge.target), strict=True):
                    if row[end] not in self.tables[f"node:{name}"]:
                        raise BadRequestError(f"{edge.name} ends at no {name}")

    def counts(self) -> tuple[int, int]:
        nodes, edges = (
            count + sum(len(rows) for key, rows in self.removed.items() if key.startswith(kind))
            for kind, count in self.written.items()
        )
        return nodes, edges

    def left(self) -> GraphData:
        nodes = {name: self.tables[f"node:{name}"] for name in self.data.nodes}
        edges = {name: list(self.tables[f"edge:{name}"].values()) for name in self.data.edges}
        return GraphData(self.catalog, nodes, edges)

    def returned(self, matched: list[_Given]) -> list[dict[str, Any]] | None:
        if self.ir.returned is None:
            return None
        has_label = any(each.column is None for each in self.ir.returned.entities)
        pairs = self.labelled if has_label else [(given, "") for given in matched]
        rows = []
        for given, labelled in pairs:
            named = {e.variable: self.last(e, given, labelled) for e in self.ir.returned.entities}
            reader = Evaluator(given.params, self.data)
            row = given.row | named
            rows.append({i.column: reader.value(i.expression, row) for i in self.ir.returned.items})
        if not self.ir.returned.distinct:
            return rows
        return list({sortable(row): row for row in rows}.values())

    def last(self, each: ReturnedEntity, given: _Given, labelled: str) -> Entity:
        """What the statements leave of an entity, or its last values; null has no columns."""
        wanted = labelled if each.column is None else given.row[MATCHED][each.column]
        kind = each.type_name
        if each.type_column is not None:
            kind = given.row[MATCHED][each.type_column]
        if wanted is None:
            return {}
        key = f"{each.entity_kind}:{kind}"
        return (self.removed[key] | self.tables[key])[wanted]


def _read(field: Parameter, element: Mapping[str, Any]) -> Any:
    assert isinstance(field.type, PropertyType)
    return to_plain(element[field.name], field.type)


def _name(entity: EntityType, values: Entity, *, by_ends: bool) -> str | None:
    """What tells the entity that is meant apart; None for one that is always new."""
    if isinstance(entity, EdgeType) and None in (values["src"], values["dst"]):
        raise BadRequestError(f"{entity.name} needs two ends")
    if entity.key is None and not by_ends:
        return None
    return _name_of(entity, values)


def _name_of(entity: EntityType, values: Entity) -> str:
    members = [values[name] for name in entity.key or _ENDS]
    if None in members:
        raise BadRequestError(f"{entity.name} needs its key")
    if len(members) == 1:
        return str(members[0])
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False)


def _agree(first: Entity, other: Entity) -> None:
    if first != other:
        raise BadRequestError("ambiguous")


def _fit(value: Any, type_: PropertyType) -> Any:
    """A value as a property holds it."""
    if value is None:
        return None
    if type_.is_list:
        return [_fit(each, type_.element()) for each in value]
    if type_.variants is not None and value not in type_.variants:
        raise BadRequestError(f"{value} is not one of {type_}")
    bounds = INTEGER_BOUNDS.get(type_.scalar)
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise BadRequestError(f"{value} does not fit {type_}")
    return at_width(float(value), type_) if type_.scalar.is_float else value
