"""Describe: what a query returns, reads and writes, for people and tools that call it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from omnigraph.catalog.model import Catalog, EntityKind
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import (
    Bm25,
    Collect,
    GroupColumn,
    Nearest,
    NodeRef,
    ObjectRef,
    Projected,
    Rrf,
)
from omnigraph.ir.mutations import Delete, DeleteBound, Insert, MutationIR, PlainOp, Upsert
from omnigraph.ir.query import (
    AntiJoin,
    EitherMatch,
    Expand,
    Filter,
    Narrow,
    NodeScan,
    Operator,
    OptionalMatch,
    QueryIR,
    ReturnItem,
    Top,
)
from omnigraph.json_form import JsonForm, without_empty
from omnigraph.types import PropertyType, Scalar

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.BLOB: "blob",
    Scalar.VECTOR: "vector",
}


@dataclass(frozen=True, slots=True)
class ResultField(JsonForm):
    """One column of a result. `kind` of a bare node is `object`; its value is the node's id.

    An object that is a value has `fields`, and so has a list of them.
    """

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None
    fields: tuple[ResultField, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return without_empty(JsonForm.to_json(self))


@dataclass(frozen=True, slots=True)
class TypeUse(JsonForm):
    """A type that an operation touches."""

    kind: EntityKind
    type_name: str


@dataclass(frozen=True, slots=True)
class Operation(JsonForm):
    """What a query returns, reads and writes; types are sorted nodes first, then by name."""

    result: tuple[ResultField, ...]
    reads: tuple[TypeUse, ...]
    writes: tuple[TypeUse, ...]


def describe(ir: QueryIR | MutationIR, catalog: Catalog) -> Operation:
    """Return what `ir` gives back and touches."""
    if isinstance(ir, QueryIR):
        fields = tuple(map(_field, ir.columns))
        return Operation(fields, _sort(_pipeline_uses(ir.pipeline, catalog)), ())
    ops = ir.list_plain_ops()
    matched = () if ir.match is None else _pipeline_uses(ir.match.pipeline, catalog)
    reads = _sort([*matched, *(use for op in ops for use in _mutation_reads(op, catalog))])
    writes = _sort(use for op in ops for use in _mutation_writes(op, catalog))
    items = () if ir.returned is None else ir.returned.items
    return Operation(tuple(map(_field, items)), reads, writes)


def _field(item: ReturnItem) -> ResultField:
    return _describe(item.column, item.expression)


def _describe(name: str, expression: Projected) -> ResultField:
    match expression:
        case NodeRef():
            return ResultField(name, "object", nullable=expression.nullable)
        case ObjectRef():
            shown = tuple(result_field(each.property, each.type) for each in expression.fields)
            return ResultField(name, "object", nullable=True, fields=shown)
        case Collect(argument):
            item = _describe(name, argument)
            # A list of nodes holds their ids.
            kind = "string" if isinstance(argument, NodeRef) else item.kind
            return ResultField(name, "list", False, item_kind=kind, fields=item.fields)
        case Nearest() | Bm25() | Rrf():
            return ResultField(name, "float", nullable=isinstance(expression, Nearest))
        case GroupColumn(shows=shows):
            return _describe(name, shows)
        case _:
            return result_field(name, expression.type)


def result_field(name: str, found: PropertyType) -> ResultField:
    """Describe one value of a property type; parameters are described the same way."""
    kind = _KINDS[found.scalar]
    if found.is_list:
        return ResultField(name, "list", found.nullable, item_kind=kind)
    return ResultField(name, kind, found.nullable, vector_dim=found.dimension)


def _pipeline_uses(pipeline: Iterable[Operator], catalog: Catalog) -> Iterator[TypeUse]:
    for operator in pipeline:
        match operator:
            case NodeScan(type_name=type_name):
                yield from (TypeUse("node", name) for name in catalog.types_of(type_name))
            case Expand(edge=edge):
                yield from _edge_uses(edge, catalog)
            case AntiJoin(inner=inner) | OptionalMatch(inner=inner):
                yield from _pipeline_uses(inner, catalog)
            case EitherMatch(alternatives=alternatives):
                for inner in alternatives:
                    yield from _pipeline_uses(inner, catalog)
            case Filter() | Narrow() | Top():
                pass
            case _:
                assert_never(operator)


def _edge_uses(name: str, catalog: Catalog) -> Iterator[TypeUse]:
    edge = catalog.edges[name]
    yield TypeUse("edge", edge.name)
    yield TypeUse("node", edge.source)
    yield TypeUse("node", edge.target)


def _mutation_reads(operation: PlainOp, catalog: Catalog) -> Iterator[TypeUse]:
    if isinstance(operation, (Insert, Upsert)) and operation.entity_kind == "edge":
        yield from _edge_uses(operation.type_name, catalog)
    else:
        yield from _mutation_writes(operation, catalog)


def _mutation_writes(operation: PlainOp, catalog: Catalog) -> Iterator[TypeUse]:
    yield TypeUse(operation.entity_kind, operation.type_name)
    if isinstance(operation, (Delete, DeleteBound)) and operation.entity_kind == "node":
        for edge in catalog.edges_of(operation.type_name):
            yield TypeUse("edge", edge.name)


def _sort(uses: Iterable[TypeUse]) -> tuple[TypeUse, ...]:
    return tuple(sorted(set(uses), key=lambda use: (use.kind != "node", use.type_name)))
