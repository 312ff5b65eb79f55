"""Pictures: a read as the page draws it, the read that also tells what each of its rows matched.

A row of a result has values, not nodes. The picture's query is the trace of the read (see
`compiler/trace.py`) with one more column per node: the property that a person would know it by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from omnigraph.catalog import Catalog
from omnigraph.catalog.labels import find_label
from omnigraph.compiler import compile_query
from omnigraph.compiler.trace import TracedEdge, trace_matches
from omnigraph.ir.query import Expand, NodeScan, Operator, OptionalMatch, QueryIR
from omnigraph.syntax.print_query import print_query
from omnigraph.syntax.query_tree import Projection, PropertyExpr, QueryDecl, QueryTree

Json = dict[str, Any]

PICTURE_ROWS_MAX = 30_000


def describe_picture(query: QueryDecl, catalog: Catalog) -> Json | None:
    """The query of a picture and what its columns are; None where there is nothing to draw."""
    traced = trace_matches(query, PICTURE_ROWS_MAX)
    if not traced.nodes:
        return None
    types = _find_types(traced.query, catalog)
    nodes, labels = [], []
    for place, node in enumerate(traced.nodes):
        label = find_label(catalog, types.get(node.variable, ""))
        column = None if label is None else f"label_{place}"
        if label is not None:
            labels.append(Projection(PropertyExpr(node.variable, label), column))
        nodes.append(
            {
                "variable": node.variable,
                "type_column": node.type_column,
                "id_column": node.id_column,
                "label_column": column,
            }
        )
    returns = (*traced.query.returns, *labels)
    return {
        "query": print_query(QueryTree((replace(traced.query, returns=returns),))),
        "nodes": nodes,
        "edges": [_describe_edge(each, catalog) for each in traced.edges],
    }


def _describe_edge(edge: TracedEdge, catalog: Catalog) -> Json:
    declared = catalog.edge(edge.name)
    assert declared is not None  # the query was compiled with this catalogue
    return {
        "type": declared.name,
        "id_column": edge.column,
        "source": edge.source,
        "target": edge.target,
        "nodes_column": edge.nodes_column,
    }


def _find_types(query: QueryDecl, catalog: Catalog) -> dict[str, str]:
    """The node type of every variable, by what the compiler makes of the query."""
    ir = compile_query(print_query(QueryTree((query,))), catalog, query.name).ir
    assert isinstance(ir, QueryIR)
    found: dict[str, str] = {}
    for step in _list_steps(ir.pipeline):
        match step:
            case NodeScan(variable, type_name):
                found.setdefault(variable, type_name)
            case Expand():
                found.setdefault(step.target, step.target_type)
    return found


def _list_steps(pipeline: Iterable[Operator]) -> Iterator[Operator]:
    for each in pipeline:
        yield each
        if isinstance(each, OptionalMatch):
            yield from _list_steps(each.inner)
