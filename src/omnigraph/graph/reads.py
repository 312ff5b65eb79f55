"""Reads: which engine answers a read, and its answer as a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.catalog import Catalog
from omnigraph.errors import BadRequestError
from omnigraph.executor import QueryResult, execute
from omnigraph.executor.values import properties_of
from omnigraph.graph.session import Session
from omnigraph.index import open_tables
from omnigraph.ir.expressions import PATH_ENTITIES, NodeRef, Projected, PropertyRef
from omnigraph.ir.query import AntiJoin, Expand, NodeScan, Operator, QueryIR
from omnigraph.manifest import Snapshot
from omnigraph.nonblocking import may_block
from omnigraph.pipeline.engine import SparkUse

if TYPE_CHECKING:
    from omnigraph.embed import EmbedSource
    from omnigraph.executor.explain import Explanation

READ_ENGINES = ("local", "spark", "auto")
_EDGE_BYTES = 32
"""What one edge takes in an adjacency: both directions, two numbers each."""


def require_engine(engine: str) -> None:
    """Refuse what is no engine for reads.

    Raises:
        BadRequestError: It is none.
    """
    if engine not in READ_ENGINES:
        known = ", ".join(f"'{each}'" for each in READ_ENGINES)
        raise BadRequestError(f"engine is {engine!r}, expected one of {known}")


def run_read(
    session: Session,
    ir: QueryIR,
    params: Mapping[str, Any],
    catalog: Catalog,
    snapshot: Snapshot,
    engine: str,
    started: float,
    make_picture: Callable[[int], Any] | None = None,
) -> QueryResult:
    """Answer a read at a snapshot."""
    facts: dict[str, Any] = {
        "query_name": ir.name,
        "branch": snapshot.branch,
        "commit_id": snapshot.head.commit_id,
        "manifest_version": snapshot.manifest_version,
        "make_picture": make_picture,
        "has_entities": any(_is_entity(each.expression) for each in ir.columns),
    }
    where = (snapshot, catalog, session.store.tables, session.cache)
    if choose_engine(session, ir, catalog, snapshot, engine) == "local":
        table = execute(ir, params, *where, lambda: session.embed_source)
        frame = partial(_make_frame, session.settings.spark)
        return QueryResult(table, **facts, elapsed_ms=_since(started), make_frame=frame)
    may_block()
    from omnigraph.pipeline.failure_reasons import naming_a_full_disk
    from omnigraph.pipeline.spark_query.execute import build_answer
    from omnigraph.pipeline.spark_query.result import SparkQueryResult

    spark = session.settings.spark.open()
    with naming_a_full_disk():
        answer = build_answer(spark, ir, params, *where, lambda: session.embed_source)
    return SparkQueryResult(answer, **facts, elapsed_ms=_since(started), make_frame=None)


def explain_read(
    session: Session,
    ir: QueryIR,
    params: Mapping[str, Any],
    catalog: Catalog,
    snapshot: Snapshot,
    *,
    engine: str,
    analyze: bool,
) -> Explanation:
    """Explain a read at a snapshot; on Spark with its plan there, which needs the parameters."""
    where = (snapshot, catalog, session.store.tables, session.cache)

    def embedder() -> EmbedSource:
        return session.embed_source

    if choose_engine(session, ir, catalog, snapshot, engine) == "local":
        from omnigraph.executor.explain import explain

        return explain(
            ir, *where, params=params, embedder=lambda: session.embed_source, analyze=analyze
        )
    from omnigraph.pipeline.spark_query.explain import explain_on_spark

    spark = session.settings.spark.open()
    return explain_on_spark(
        spark, ir, params, *where, lambda: session.embed_source, analyze=analyze
    )


def choose_engine(
    session: Session, ir: QueryIR, catalog: Catalog, snapshot: Snapshot, engine: str
) -> str:
    """`local` or `spark`: with `auto` this process, while what the read decodes fits its cache."""
    if engine != "auto":
        return engine
    tables = open_tables(snapshot, catalog, session.store.tables, session.cache)
    read = {(variable, name) for variable, name in _properties(ir)}
    held = 0
    for variable, table_key in _variables(ir.pipeline):
        view = tables.view(table_key)
        names = [name for owner, name in read if owner == variable and name in view.types]
        width = sum(view.row_bytes(name) for name in ["id", *names])
        held += view.size * (width + (_EDGE_BYTES if table_key.startswith("edge:") else 0))
    return "spark" if held > session.cache.budget_bytes else "local"


def _properties(ir: QueryIR) -> Iterator[tuple[str, str]]:
    for ref in properties_of(ir):
        yield ref.variable, ref.property


def _variables(operators: tuple[Operator, ...]) -> Iterator[tuple[str, str]]:
    """Every variable of a read with the table it is bound in."""
    for operator in operators:
        match operator:
            case NodeScan(variable, type_name):
                yield variable, f"node:{type_name}"
            case Expand():
                yield operator.target, f"node:{operator.target_type}"
                yield operator.edge_variable or "", f"edge:{operator.edge}"
            case AntiJoin(_, inner):
                yield from _variables(inner)


def _is_entity(returned: Projected) -> bool:
    """Whether a column is a node, or the nodes or edges of a path."""
    match returned:
        case NodeRef():
            return True
        case PropertyRef(property=name):
            return name in PATH_ENTITIES
    return False


def _make_frame(spark: SparkUse, table: pa.Table) -> Any:
    from omnigraph.pipeline.spark_query.columns import to_frame

    return to_frame(spark.open(), table)


def _since(started: float) -> float:
    return 1_000 * (perf_counter() - started)
