"""Algorithms: whole-graph numbers about nodes, as rows or written back as one commit."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.algorithms import OneBlock, check_params, run_algorithm
from omnigraph.catalog import Catalog
from omnigraph.errors import BadRequestError
from omnigraph.executor import QueryResult
from omnigraph.executor.kernels import expand
from omnigraph.graph.session import Session
from omnigraph.index import OpenTables, open_tables
from omnigraph.manifest import Snapshot

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.pipeline.spark_blocks import SparkBlocks

_EDGE_BYTES = 96
"""What one edge takes while an algorithm runs: three lists of pairs."""


def require_types(catalog: Catalog, node: str, edge: str) -> None:
    """Refuse what is no graph: an edge type that does not join nodes of the type.

    Raises:
        BadRequestError: There is no such type, or it joins others.
    """
    if node not in catalog.nodes:
        known = ", ".join(catalog.nodes)
        raise BadRequestError(f"there is no node type '{node}' — the schema has {known}")
    found = catalog.edges.get(edge)
    if found is None:
        known = ", ".join(catalog.edges)
        raise BadRequestError(f"there is no edge type '{edge}' — the schema has {known}")
    if (found.source, found.target) != (node, node):
        raise BadRequestError(
            f"'{edge}' leads from {found.source} to {found.target} — an algorithm needs edges "
            f"between nodes of one type, here {node}"
        )


def compute(
    session: Session,
    catalog: Catalog,
    snapshot: Snapshot,
    name: str,
    node: str,
    edge: str,
    params: Mapping[str, Any],
    engine: str,
) -> QueryResult:
    """Run an algorithm at a snapshot."""
    started = perf_counter()
    check_params(name, params)
    require_types(catalog, node, edge)
    tables = open_tables(snapshot, catalog, session.store.tables, session.cache)
    if engine == "auto":
        held = tables.view(f"edge:{edge}").size * _EDGE_BYTES
        engine = "spark" if held > session.cache.budget_bytes else "local"
    ids, order = _sort_ids(tables, node)
    if engine == "local":
        found = run_algorithm(name, params, _make_one_block(tables, edge, order), ids)
    else:
        with _spread_blocks(session, tables, edge, ids) as blocks:
            found = run_algorithm(name, params, blocks, ids)
    return QueryResult(
        found,
        name,
        snapshot.branch,
        snapshot.head.commit_id,
        snapshot.manifest_version,
        elapsed_ms=1_000 * (perf_counter() - started),
    )


def _sort_ids(tables: OpenTables, node: str) -> tuple[pa.Array, np.ndarray]:
    """The ids of all nodes in order, and the positions they are at."""
    view = tables.view(f"node:{node}")
    ids = view.values(["id"], np.arange(view.size))["id"]
    order = pc.sort_indices(ids)
    return ids.take(order), order.to_numpy()


def _make_one_block(tables: OpenTables, edge: str, order: np.ndarray) -> OneBlock:
    """All edges in this process."""
    vertex_at = np.empty(len(order), dtype=np.int64)
    vertex_at[order] = np.arange(len(order))
    runs = tables.edges(edge).distinct(both=False).forward
    sources, entries = expand(runs, np.arange(len(order)))
    return OneBlock(len(order), vertex_at[sources], vertex_at[runs.neighbours(entries)])


def _spread_blocks(session: Session, tables: OpenTables, edge: str, ids: pa.Array) -> SparkBlocks:
    """The edges on Spark."""
    from omnigraph.pipeline.spark_blocks import SparkBlocks

    view, spark = tables.view(f"edge:{edge}"), session.settings.spark.open()
    return SparkBlocks(spark, session.store.tables, view.handle, ids)


def write_back(
    graph: Graph, found: QueryResult, node: str, column: str, branch: str, **commit_options: Any
) -> str | None:
    """Write a value column to a property of the nodes, as one commit on the state it is from."""
    properties = graph.catalog.nodes[node].properties
    if column not in properties:
        known = ", ".join(properties)
        raise BadRequestError(f"{node} has no property '{column}' to write to — it has {known}")
    values = found.table.column(1)
    wanted = properties[column].type.arrow_type()
    try:
        values = values.cast(wanted)
    except pa.ArrowException:
        raise BadRequestError(
            f"'{found.table.column_names[1]}' is {values.type}, and {node}.{column} is "
            f"{properties[column].type} — declare a property of a type that can hold it"
        ) from None
    rows = graph.nodes(node, version=found.manifest_version, branch=branch).to_arrow()
    places = pc.index_in(rows.column("id"), value_set=found.table.column("id").combine_chunks())
    filled = values.take(places)
    rows = rows.set_column(rows.column_names.index(column), column, filled)
    result = graph.load_dataframe(
        rows, type=node, mode="merge", branch=branch, if_commit=found.commit_id, **commit_options
    )
    return result.commit_id
