"""Point reads: at most one node, found by a value that no other has. Their cost has no size."""

from __future__ import annotations

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.ir.expressions import Compare, CompareKind, Constant, Param, Predicate, PropertyRef
from omnigraph.ir.query import QueryIR
from omnigraph.planner.pattern import Pattern


def is_point(ir: QueryIR, pattern: Pattern, catalog: Catalog, *, is_grouped: bool) -> bool:
    """Whether a read looks up one node and returns what it has."""
    if len(pattern.nodes) != 1 or pattern.hops or pattern.closing or pattern.negations:
        return False
    if is_grouped or ir.order:
        return False
    [(variable, type_name)] = pattern.nodes.items()
    filters = pattern.filters.get(variable, ())
    declared = catalog.nodes[type_name]
    return all(isinstance(each, Compare) for each in filters) and any(
        _finds_one(each, declared) for each in filters
    )


def _finds_one(predicate: Predicate, declared: NodeType) -> bool:
    match predicate:
        case Compare(PropertyRef(_, name), CompareKind.EQUAL, Constant() | Param()):
            return (name,) in (declared.key, *declared.uniques)
        case _:
            return False
