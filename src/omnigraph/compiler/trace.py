"""Trace: a read that also returns what its pattern was matched with, node by node, edge by edge.

Every traversal gets a variable where it has none, and the ids of all variables become columns. A
query without aggregates keeps its own columns, order and limit, so it is traced for the rows that
it returns; of one that groups, every match is traced. What is inside `not` has no match, and the
edges inside `either` differ from alternative to alternative: both are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from omnigraph.compiler.walk import walk
from omnigraph.dataclass import dataclass
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    Binding,
    Clause,
    CollectExpr,
    FunctionExpr,
    OptionalClause,
    Projection,
    PropertyExpr,
    QueryDecl,
    Traversal,
    VariableExpr,
)

_PREFIX = "traced"
_ANONYMOUS = "_"


@dataclass(frozen=True, slots=True)
class TracedNode:
    """The columns of a node variable: the type and the id of what it was matched with."""

    variable: str
    type_column: str
    id_column: str


@dataclass(frozen=True, slots=True)
class TracedEdge:
    """A traversal, by the name of its edge as it is written and the places of its ends in `nodes`.

    `column` has the id of the edge; of a path the ids of its edges, and `nodes_column` those of
    its nodes, from the written left end to the right one.
    """

    name: str
    column: str
    source: int
    target: int
    nodes_column: str | None = None


@dataclass(frozen=True, slots=True)
class TracedQuery:
    """The query, and what its added columns are."""

    query: QueryDecl
    nodes: tuple[TracedNode, ...]
    edges: tuple[TracedEdge, ...]


def trace_matches(query: QueryDecl, rows_max: int) -> TracedQuery:
    """A query that returns what `query` was matched with, for at most so many rows."""
    numbers = count(1)
    stages = tuple(replace(each, clauses=_name_all(each.clauses, numbers)) for each in query.stages)
    match = _name_all(query.match, numbers)
    clauses = [*(clause for stage in stages for clause in stage.clauses), *match]
    columns = _Columns()
    nodes = tuple(
        TracedNode(each, columns.add(_call("type", each)), columns.add(VariableExpr(name=each)))
        for each in dict.fromkeys(_nodes(clauses))
    )
    places = {each.variable: place for place, each in enumerate(nodes)}
    edges = tuple(_trace(each, columns, places) for each in _traversals(clauses))
    groups = query.distinct or any(
        isinstance(part, AggregateExpr | CollectExpr) for part in walk(query.returns)
    )
    traced = replace(
        query,
        stages=stages,
        match=match,
        returns=tuple(columns.made) if groups else (*query.returns, *columns.made),
        distinct=False,
        having=(),
        order=() if groups else query.order,
        offset=None if groups else query.offset,
        limit=rows_max if groups or query.limit is None else query.limit,
    )
    return TracedQuery(traced, nodes, edges)


class _Columns:
    """The columns that a trace adds, each under a name of its own."""

    def __init__(self) -> None:
        self.made: list[Projection] = []

    def add(self, expression: VariableExpr | PropertyExpr | FunctionExpr) -> str:
        alias = f"{_PREFIX}_{len(self.made)}"
        self.made.append(Projection(expression=expression, alias=alias))
        return alias


def _name_all(clauses: tuple[Clause, ...], numbers: Iterator[int]) -> tuple[Clause, ...]:
    """The clauses with a variable for every traversal and every end of one."""
    named: list[Clause] = []
    for clause in clauses:
        match clause:
            case Traversal():
                named.append(
                    replace(
                        clause,
                        edge_variable=clause.edge_variable or f"{_PREFIX}_{next(numbers)}",
                        source=_name(clause.source, numbers),
                        target=_name(clause.target, numbers),
                    )
                )
            case OptionalClause():
                named.append(replace(clause, clauses=_name_all(clause.clauses, numbers)))
            case _:
                named.append(clause)
    return tuple(named)


def _name(variable: str, numbers: Iterator[int]) -> str:
    return f"{_PREFIX}_{next(numbers)}" if variable == _ANONYMOUS else variable


def _traversals(clauses: list[Clause] | tuple[Clause, ...]) -> Iterator[Traversal]:
    for clause in clauses:
        match clause:
            case Traversal():
                yield clause
            case OptionalClause():
                yield from _traversals(clause.clauses)


def _nodes(clauses: list[Clause] | tuple[Clause, ...]) -> Iterator[str]:
    for clause in clauses:
        match clause:
            case Binding() if clause.variable != _ANONYMOUS:
                yield clause.variable
            case Traversal():
                yield from (clause.source, clause.target)
            case OptionalClause():
                yield from _nodes(clause.clauses)


def _trace(traversal: Traversal, columns: _Columns, places: Mapping[str, int]) -> TracedEdge:
    ends = places[traversal.source], places[traversal.target]
    variable = traversal.edge_variable
    assert variable is not None  # `_name_all` gave it one
    if not _is_path(traversal):
        return TracedEdge(traversal.edge, columns.add(_id(variable)), *ends)
    parts = columns.add(_call("edges", variable)), columns.add(_call("nodes", variable))
    return TracedEdge(traversal.edge, parts[0], *ends, parts[1])


def _is_path(traversal: Traversal) -> bool:
    return traversal.has_bounds or traversal.shortest is not None


def _call(function: str, variable: str) -> FunctionExpr:
    return FunctionExpr(name=function, arguments=(VariableExpr(name=variable),))


def _id(variable: str) -> PropertyExpr:
    return PropertyExpr(variable=variable, property="id")
