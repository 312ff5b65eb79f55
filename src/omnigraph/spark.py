"""`omnigraph.spark`: Omnigraph for programs that use Spark themselves.

session(config)    the SparkSession the pipeline uses
register(spark)    makes the data source `omnigraph` known to a session; with a graph also a view
                   of each of its types, for Spark SQL
graphframe(graph)  vertices and edges in the columns that GraphFrames expects
sink(graph, ...)   a function for `foreachBatch` that commits each batch once
build_archive()    makes now what makes sessions start in about half the time; else it is made
                   in the background when the first program with a session has ended
"""

from __future__ import annotations

from typing import Any

from omnigraph.pipeline.archive import build_archive
from omnigraph.pipeline.session import session
from omnigraph.pipeline.streaming import last_batch, sink

__all__ = ["build_archive", "graphframe", "last_batch", "register", "session", "sink"]


def graphframe(
    graph: Any, *, node: str, edge: str, branch: str = "main", commit: str | None = None
) -> tuple[Any, Any]:
    """The vertices and edges of one node and one edge type: `GraphFrame(*graphframe(...))`."""
    vertices = graph.nodes(node, branch=branch, commit=commit).to_spark()
    edges = graph.edges(edge, branch=branch, commit=commit).to_spark()
    return vertices, edges


def register(spark: Any, graph: Any = None, *, prefix: str = "", branch: str = "main") -> list[str]:
    """Make the data source `omnigraph` known to a session.

    With a graph, also a temporary view of each of its types, all at one snapshot: `select … from
    Person`. Their names, behind `prefix`, are returned.

    Raises:
        BadRequestError: Two views would have the same name.
    """
    # All are heavy, and only a program that reads or writes frames needs them.
    from omnigraph.graph import open as open_graph
    from omnigraph.pipeline.datasource import register as register_source
    from omnigraph.pipeline.views import create_views

    register_source(spark, open_graph)
    return [] if graph is None else create_views(spark, graph, prefix=prefix, branch=branch)
