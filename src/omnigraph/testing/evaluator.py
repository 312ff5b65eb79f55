"""A reference evaluator: the read semantics of the language in plain Python, slow and plain.

Rows are dicts of entities, an entity is a dict of its columns, and every operator does what the
language reference says, one row at a time. It shares no code with the executor but the parsers of
date texts, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import (
    SCORE_PROPERTY,
    TYPE_PROPERTY,
    Arithmetic,
    Bm25,
    Call,
    Case,
    Compare,
    Constant,
    Minus,
    Nearest,
    NodeRef,
    Null,
    ObjectRef,
    Param,
    Predicate,
    PropertyRef,
    Ranking,
    Rrf,
    SameNode,
    Truth,
)
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.ir.query import (
    HOP_VARIABLE,
    AntiJoin,
    Direction,
    EitherMatch,
    Expand,
    Filter,
    Narrow,
    NodeScan,
    Operator,
    OptionalMatch,
    QueryIR,
    Top,
    WalkMode,
)
from omnigraph.ir.variables import ranking_variable
from omnigraph.manifest.model import Snapshot
from omnigraph.storage.tables import TableStorage
from omnigraph.syntax.query_tree import DateText, DateTimeText, ListLiteral
from omnigraph.testing.computed import compute, decide
from omnigraph.testing.ranked import rank_rows, score
from omnigraph.testing.returned import (
    Entity,
    Reader,
    Row,
    at_width,
    identify,
    named,
    order_rows,
    return_rows,
)
from omnigraph.testing.walks import Path, PathEntity, ScoreEntity, find_cheapest, list_walks
from omnigraph.types import PropertyType, Scalar, parse_date, parse_datetime


@dataclass(frozen=True, slots=True)
class GraphData:
    """Every entity of a snapshot. Dates are day numbers, instants milliseconds."""

    catalog: Catalog
    nodes: Mapping[str, Mapping[str, Entity]]
    edges: Mapping[str, list[Entity]]


def read_graph(snapshot: Snapshot, catalog: Catalog, tables: TableStorage) -> GraphData:
    """Read all tables of a snapshot into dicts."""

    def entities(table_key: str) -> list[Entity]:
        entry = snapshot.entries[table_key]
        location = tables.root.table(entry.table_path, entry.table_branch)
        table = tables.reads.scan(tables.open_at(location, entry.version))
        for place, field in enumerate(table.schema):
            if pa.types.is_date(field.type):
                ticks = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
                table = table.set_column(place, field.name, table.column(place).cast(ticks))
        return list(table.to_pylist())

    nodes = {
        n.name: {e["id"]: e | {TYPE_PROPERTY: n.name} for e in entities(n.table_key)}
        for n in catalog.nodes.values()
    }
    edges = {edge.name: entities(edge.table_key) for edge in catalog.edges.values()}
    return GraphData(catalog, nodes, edges)


def evaluate(
    ir: QueryIR, params: Mapping[str, Any], data: GraphData, *, with_limit: bool = True
) -> list[dict[str, Any]]:
    """The rows of a read, by column name, in order when there is one."""
    return Evaluator(params, data).query(ir, with_limit)


class Evaluator:
    """Reads expressions, conditions and patterns of one snapshot."""

    def __init__(self, params: Mapping[str, Any], data: GraphData) -> None:
        self.params = params
        self.data = data
        self.fused: dict[tuple[str, Any], float] = {}

    def query(self, ir: QueryIR, with_limit: bool) -> list[dict[str, Any]]:
        rows = self.run(ir.pipeline, [{}])
        limit = self.count(ir.limit)
        best = None if limit is None else limit + (self.count(ir.offset) or 0)

        def rank(ranking: Ranking, rows: list[Row]) -> list[Row]:
            return [row for row, _ in self.rank(ranking, rows, best)]

        answer = return_rows(ir, rows, replace(self.reader, rank=rank))
        return self.cut(ir, answer) if with_limit else answer

    @property
    def reader(self) -> Reader:
        return Reader(self.value, self.holds, lambda _, rows: rows)

    def rank(self, ranking: Ranking, rows: list[Row], limit: int | None) -> list[tuple[Row, float]]:
        found = rank_rows(ranking, rows, limit, self.data.nodes, lambda each: self.value(each, {}))
        self.fused = {
            (repr(ranking), identify(row[ranking_variable(ranking)])): score for row, score in found
        }
        return found

    def cut(self, ir: QueryIR, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows that `limit` and `offset` leave."""
        first = self.count(ir.offset) or 0
        limit = self.count(ir.limit)
        return rows[first:] if limit is None else rows[first : first + limit]

    def count(self, count: int | Param | None) -> int | None:
        return self.params[count.name] if isinstance(count, Param) else count

    def run(self, operators: Iterable[Operator], rows: list[Row]) -> list[Row]:
        for operator in operators:
            if isinstance(operator, Top):
                rows = self.top(operator, rows)
            else:
                rows = [out for row in rows for out in self.step(operator, row)]
        return rows

    def top(self, top: Top, rows: list[Row]) -> list[Row]:
        """The first rows of a stage, each combination of variables once."""
        distinct = {repr([(n, identify(row[n])) for n in named(row)]): row for row in rows}
        kept = list(distinct.values())
        count = self.count(top.count)
        first = top.order[0].expression
        if isinstance(first, (Nearest, Bm25, Rrf)):
            scored = self.rank(first, kept, count)[:count]
        else:
            kept = order_rows(top.order, kept, self.reader)[:count]
            scored = [(row, self.value(first, row)) for row in kept]
        if top.score is None:
            return [row for row, _ in scored]
        return [row | {top.score: ScoreEntity({SCORE_PROPERTY: score})} for row, score in scored]

    def step(self, operator: Operator, row: Row) -> Iterator[Row]:
        match operator:
            case NodeScan(variable, type_name, filters):
                for each in self.data.catalog.types_of(type_name):
                    for node in self.data.nodes[each].values():
                        grown = row | {variable: node}
                        if all(self.holds(predicate, grown) for predicate in filters):
                            yield grown
            case Expand():
                for grown in self.expand(operator, row):
                    if all(self.holds(each, grown) for each in operator.target_filters):
                        yield grown
            case Filter(predicate):
                if self.holds(predicate, row):
                    yield row
            case AntiJoin(_, inner):
                if not self.run(inner, [row]):
                    yield row
            case Narrow(variable, type_name):
                if row[variable].get(TYPE_PROPERTY) == type_name:
                    yield row
            case OptionalMatch(_, inner, nodes, edges):
                names = [name for name, _ in (*nodes, *edges)]
                found = self.run(inner, [row])
                for grown in found or [{name: {} for name in names}]:
                    yield row | {name: grown[name] for name in names}
            case EitherMatch(_, alternatives, nodes, edges):
                names = [name for name, _ in (*nodes, *edges)]
                seen = set()
                for inner in alternatives:
                    for grown in self.run(inner, [row]):
                        key = tuple(identify(grown[name]) for name in names)
                        if key not in seen:
                            seen.add(key)
                            yield row | {name: grown[name] for name in names}

    def expand(self, expand: Expand, row: Row) -> Iterator[Row]:
        targets = self.data.nodes[expand.target_type]
        start = row[expand.source].get("id")
        if start is None:
            return
        if expand.is_walk and (expand.edge_variable or expand.mode is not WalkMode.REACH):
            for end, path in self.walks(expand, start):
                bound = {} if expand.edge_variable is None else {expand.edge_variable: path}
                yield row | bound | {expand.target: targets[end]}
            return
        if expand.edge_variable is not None:
            for edge, end in self.leaving(expand, start):
                if end in targets:
                    yield row | {expand.edge_variable: edge, expand.target: targets[end]}
            return
        for end in self.reached(expand, start):
            if end in targets:
                yield row | {expand.target: targets[end]}

    def leaving(self, expand: Expand, start: str) -> Iterator[tuple[Entity, str]]:
        """Every stored edge at a node, with its other end; a loop once."""
        for edge in self.data.edges[expand.edge]:
            if not all(self.holds(each, {HOP_VARIABLE: edge}) for each in expand.hop_filters):
                continue
            if expand.direction is not Direction.IN and edge["src"] == start:
                yield edge, edge["dst"]
            elif expand.direction is not Direction.OUT and edge["dst"] == start:
                yield edge, edge["src"]

    def walks(self, expand: Expand, start: str) -> Iterator[tuple[str, Entity]]:
        """Where a walk leads, and the path that it takes there."""
        edge = self.data.catalog.edges[expand.edge]
        left, right = (self.data.nodes[name] for name in self.end_types(expand))
        at = 0 if expand.is_reversed else -1

        def leaving(node: str) -> Iterator[tuple[Entity, str]]:
            return self.leaving(expand, node)

        if expand.weight is None:
            chains = edge.source == edge.target
            for path in list_walks(expand, start, leaving, chains=chains):
                yield path[0][at], PathEntity(path, left, right)
            return
        for end, (cost, path) in self.cheapest(expand, start).items():
            yield end, PathEntity(path, left, right, cost)

    def end_types(self, expand: Expand) -> tuple[str, str]:
        """The types of the written left and right end."""
        edge = self.data.catalog.edges[expand.edge]
        is_turned = (expand.direction is Direction.IN) != expand.is_reversed
        return (edge.target, edge.source) if is_turned else (edge.source, edge.target)

    def cheapest(self, expand: Expand, start: str) -> dict[str, tuple[float, Path]]:
        """The cheapest paths, which cost what they do from their written left end."""
        assert expand.weight is not None
        left, right = self.end_types(expand)

        def search(walk: Expand, node: str) -> dict[str, tuple[float, Path]]:
            leaving = partial(self.leaving, walk)
            return find_cheapest(node, leaving, str(walk.weight), chains=left == right)

        if not expand.is_reversed:
            return search(expand, start)
        turned = replace(expand, direction=expand.direction.reverse())
        found = {node: search(turned, node) for node in self.data.nodes[left]}
        return {node: best[start] for node, best in found.items() if start in best}

    def reached(self, expand: Expand, start: str) -> list[str]:
        edge = self.data.catalog.edges[expand.edge]
        most = expand.max_hops if edge.source == edge.target else 1
        assert most is not None
        emitted, frontier = [], [start]
        # A node of another type may have the same id, and is not where the walk began.
        visited = {start} if edge.source == edge.target else set()
        for hop in range(1, most + 1):
            ahead: list[str] = []
            for node in frontier:
                for _, end in self.leaving(expand, node):
                    is_new = end not in visited
                    is_loop = end == node and edge.source == edge.target
                    if (is_new or is_loop) and end not in emitted and hop >= expand.min_hops:
                        emitted.append(end)
                    if is_new:
                        visited.add(end)
                        ahead.append(end)
            frontier = ahead
            if not frontier:
                break
        return emitted

    def holds(self, predicate: Predicate, row: Row) -> bool:
        return self.decide(predicate, row) is True

    def decide(self, predicate: Predicate, row: Row) -> bool | None:
        def is_equal(operand: Operand, wanted: Any, member: Any) -> bool:
            is_stored = isinstance(operand, PropertyRef)
            return bool(wanted == (at_width(member, operand.type) if is_stored else member))

        return decide(
            predicate,
            lambda each: self.value(each, row),
            lambda leaf: self.compare(leaf, row),
            is_equal,
        )

    def compare(self, predicate: Predicate, row: Row) -> bool | None:
        if isinstance(predicate, SameNode):
            found = row[predicate.left].get("id")
            return found is not None and bool(found == row[predicate.right].get("id"))
        assert isinstance(predicate, Compare), "text search has tests of its own"
        left, right = self.value(predicate.left, row), self.value(predicate.right, row)
        if left is None or right is None:
            return None
        match predicate.kind.value:
            case "text_contains":
                return right in left
            case "starts_with":
                return bool(left.startswith(right))
            case "ends_with":
                return bool(left.endswith(right))
            case "list_contains":
                return self.contains(predicate, left, right)
        # A float that is given, not stored, is rounded to the width of the column it meets.
        if isinstance(predicate.left, PropertyRef) and _is_given(predicate.right):
            right = at_width(right, predicate.left.type)
        if isinstance(predicate.right, PropertyRef) and _is_given(predicate.left):
            left = at_width(left, predicate.right.type)
        return _compared(left, predicate.kind.value, right)

    def contains(self, predicate: Compare, items: list[Any], wanted: Any) -> bool:
        if isinstance(predicate.left, PropertyRef):
            wanted = at_width(wanted, predicate.left.type)
        else:
            items = [at_width(item, predicate.right.type) for item in items]
        return any(item is not None and item == wanted for item in items)

    def value(self, expression: object, row: Row) -> Any:
        match expression:
            case PropertyRef(variable, name):
                return row[variable].get(name)
            case NodeRef(variable):
                return row[variable].get("id")
            case ObjectRef(variable, fields):
                entity = row[variable]
                return {f.property: entity.get(f.property) for f in fields} if entity else None
            case Nearest() | Bm25():
                entity = row[expression.target.variable]
                return score(expression, entity, self.data.nodes, lambda each: self.value(each, {}))
            case Rrf():
                return self.fused[repr(expression), identify(row[ranking_variable(expression)])]
            case Constant(literal, type_):
                return to_plain(literal, type_)
            case Param(name, type_):
                return to_plain(self.params[name], type_)
            case Null() | Arithmetic() | Minus() | Call() | Case() | Truth():
                return compute(
                    expression,
                    lambda each: self.value(each, row),
                    lambda condition: self.decide(condition, row),
                )
        raise AssertionError(expression)


def _is_given(expression: Operand) -> bool:
    return isinstance(expression, (Constant, Param))


def _compared(left: Any, kind: str, right: Any) -> bool:
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return bool(
        {
            "=": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[kind]
    )


def to_plain(value: Any, type_: PropertyType) -> Any:
    """A literal or parameter as the evaluator has it: dates are numbers, lists are lists."""
    match value:
        case None:
            return None
        case ListLiteral(items) if type_.is_vector:
            return list(items)
        case ListLiteral(items):
            return [to_plain(item, type_.element()) for item in items]
        case list() if type_.is_list:
            return [to_plain(item, type_.element()) for item in value]
        case DateText(text):
            return parse_date(text)
        case DateTimeText(text):
            return parse_datetime(text)
        case str() if type_.scalar is Scalar.DATE:
            return parse_date(value)
        case str() if type_.scalar is Scalar.DATETIME:
            return parse_datetime(value)
    return value
