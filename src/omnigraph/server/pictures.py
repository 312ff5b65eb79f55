"""Pictures: from a read to the read that also tells which nodes and edges each of its rows is.

A row of a result has values, not nodes. The picture's query is the same with two more columns for
every node of the pattern: its id, and the property that a person would know it by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from omnigraph.catalog import Catalog
from omnigraph.ir.query import Direction, Expand, NodeScan, Operator, OptionalMatch, QueryIR
from omnigraph.syntax.print_query import print_query
from omnigraph.syntax.query_tree import Projection, PropertyExpr, QueryDecl, QueryTree, VariableExpr

Json = dict[str, Any]

LABELS = ("name", "title", "label", "subject", "text")
"""The properties that people know a thing by, the best first."""


def describe_picture(query: QueryDecl, ir: QueryIR, catalog: Catalog) -> Json | None:
    """The query of a picture and what its columns are; None where a row is not one match."""
    if ir.is_grouped or ir.finish is not None or query.distinct or query.stages:
        return None
    operators = list(_list_steps(ir.pipeline))
    types = {each.variable: each.type_name for each in operators if isinstance(each, NodeScan)}
    steps = [each for each in operators if isinstance(each, Expand)]
    for step in steps:
        types.setdefault(step.target, step.target_type)
    if not types:
        return None
    nodes = [_node(place, *each, catalog) for place, each in enumerate(types.items())]
    columns = [column for node in nodes for column in _columns(node)]
    text = print_query(QueryTree((replace(query, returns=(*query.returns, *columns)),)))
    places = {node["variable"]: place for place, node in enumerate(nodes)}
    edges = [_edge(step, places) for step in steps if step.source in places]
    return {"query": text, "nodes": nodes, "edges": edges}


def _list_steps(pipeline: Iterable[Operator]) -> Iterator[Operator]:
    for each in pipeline:
        yield each
        if isinstance(each, OptionalMatch):
            yield from _list_steps(each.inner)


def _node(place: int, variable: str, type_name: str, catalog: Catalog) -> Json:
    label = find_label(catalog, type_name)
    return {
        "variable": variable,
        "type": type_name,
        "id_column": f"picture_id_{place}",
        "label_column": None if label is None else f"picture_label_{place}",
        "label": label,
    }


def find_label(catalog: Catalog, type_name: str) -> str | None:
    """The property that a node of the type is known by; its id serves where there is none."""
    declared = catalog.nodes.get(type_name)
    if declared is None:
        return None
    texts = [each.name for each in declared.properties.values() if each.type.is_text]
    return next((name for name in LABELS if name in texts), None)


def _columns(node: Json) -> Iterator[Projection]:
    yield Projection(VariableExpr(node["variable"]), node["id_column"])
    if node["label"] is not None:
        yield Projection(PropertyExpr(node["variable"], node["label"]), node["label_column"])


def _edge(step: Expand, places: dict[str, int]) -> Json:
    ends = places[step.source], places[step.target]
    is_in = step.direction is Direction.IN
    return {
        "type": step.edge,
        "source": ends[1] if is_in else ends[0],
        "target": ends[0] if is_in else ends[1],
        "hops_max": step.max_hops,
    }
