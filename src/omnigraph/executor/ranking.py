"""Ranking: rows in the order that `nearest`, `bm25` or `rrf` gives to the nodes of one variable.

Every match predicate has been applied before: the ranking looks at the nodes that occur in rows
and at no others. All rows of one node share its rank; among them, bound edges decide by edge id,
then the other variables by theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import numpy as np

from omnigraph.embed import EmbedColumn, embed_query_text
from omnigraph.errors import BadRequestError
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.executor.search import RRF_K, fuse, rank
from omnigraph.executor.sorting import SortColumn, array_column, property_column, sort_indices
from omnigraph.executor.views import UnionView
from omnigraph.index import TableView
from omnigraph.index.arrays import IntArray, sort_distinct
from omnigraph.ir.expressions import Bm25, Nearest, Plain, PropertyRef, Ranking, Rrf
from omnigraph.ir.variables import ranking_variable
from omnigraph.planner.pattern import Pattern


def order_by_ranking(
    run: Run, pattern: Pattern, ranking: Ranking, rows: Rows, limit: int | None
) -> Rows:
    """The rows of ranked nodes, best first. Rows that cannot be ranked are left out."""
    return rank_rows(run, pattern, ranking, rows, limit)[0]


def rank_rows(
    run: Run, pattern: Pattern, ranking: Ranking, rows: Rows, limit: int | None
) -> tuple[Rows, np.ndarray]:
    """The same, and the score of each row: a distance, a relevance or a fused score."""
    variable = ranking_variable(ranking)
    view = run.entities(variable, pattern)
    assert isinstance(view, TableView), "the checker ranks no interface"
    positions = rows.nodes[variable]
    if _is_every_node(positions, view.size):
        best, scores = _best_positions(run, pattern, view, ranking, positions, limit)
        return rows.take(best[:limit]), scores[:limit]
    found = sort_distinct(positions)
    # Null is the position after the last one, and has no rank.
    candidates = found[found < view.size]
    best, scores = _best_positions(run, pattern, view, ranking, candidates, limit)
    rank_of = np.full(view.size + 1, -1, dtype=np.int64)
    rank_of[best] = np.arange(len(best))
    rows = rows.take(rank_of[positions] >= 0)
    columns = [array_column(rank_of[rows.nodes[variable]])]
    columns += tie_columns(run, pattern, rows, edges_first=True)
    rows = rows.take(sort_indices(columns, rows.count, limit))
    return rows, scores[rank_of[rows.nodes[variable]]]


def _is_every_node(positions: IntArray, size: int) -> bool:
    """Whether row n is node n, for all nodes: then the best nodes are the rows, and none ties."""
    if len(positions) != size or size == 0 or int(positions[-1]) != size - 1:
        return False
    return bool(np.all(positions[:-1] < positions[1:]))


def tie_columns(
    run: Run, pattern: Pattern, rows: Rows, *, edges_first: bool = False
) -> list[SortColumn]:
    """The ids of every bound variable, in name order."""
    names = [
        name for name in pattern.visible_variables() if name in rows.nodes or name in rows.edges
    ]
    if edges_first:
        names.sort(key=lambda name: name in rows.nodes)
    return [
        column for name in names for column in id_columns(run, pattern, name, rows.positions(name))
    ]


def id_columns(
    run: Run, pattern: Pattern, name: str, positions: IntArray, among: IntArray | None = None
) -> Iterator[SortColumn]:
    """The ids of the entities at these positions, or at those indices `among` them."""
    yield property_column(run.view_of(name, pattern), "id", positions, among=among)
    if isinstance(run.entities(name, pattern), UnionView):
        # Of equal ids the type name decides, and types are in the order of their names.
        yield array_column(positions if among is None else positions[among])


def _best_positions(
    run: Run,
    pattern: Pattern,
    view: TableView,
    ranking: Ranking,
    candidates: IntArray,
    limit: int | None,
) -> tuple[IntArray, np.ndarray]:
    """The candidates that are ranked, best first, and their scores."""
    wanted = candidates if len(candidates) < view.size else None

    def arm(single: Nearest | Bm25, most: int | None) -> tuple[IntArray, np.ndarray]:
        query = query_of(run, pattern, single)
        if query is None:
            return candidates[:0], np.empty(0)
        ranked, scores = rank(view, single, query, wanted, most)
        run.note(f"ranked {view.table_key} by {single.target.property}", len(ranked))
        return ranked, scores

    match ranking:
        case Nearest():
            best, squares = arm(ranking, limit)
            return best, np.sqrt(squares.astype(np.float64))
        case Bm25():
            return arm(ranking, limit)
        case Rrf(first, second, k):
            return fuse(
                arm(first, limit if isinstance(first, Nearest) else None)[0],
                arm(second, limit if isinstance(second, Nearest) else None)[0],
                fusion_constant(run, k),
            )
        case _:
            assert_never(ranking)


def query_of(run: Run, pattern: Pattern, ranking: Nearest | Bm25) -> str | list[float] | None:
    if isinstance(ranking.query, PropertyRef):
        raise BadRequestError(
            f"`${ranking.query.variable}.{ranking.query.property}` differs from row to row — "
            "a ranking compares with a literal or a parameter"
        )
    value: str | list[float] | None = run.values.scalar(ranking.query).as_py()
    if isinstance(value, str) and isinstance(ranking, Nearest):
        return _embed(run, pattern, ranking.target, value)
    return value


def _embed(run: Run, pattern: Pattern, target: PropertyRef, text: str) -> list[float]:
    type_name = str(pattern.node_type(target.variable))
    found = run.catalog.nodes[type_name].properties[target.property]
    declared = None if found.embed is None else found.embed.model
    assert target.type.dimension is not None
    column = EmbedColumn(
        target.property,
        "" if found.embed is None else found.embed.source,
        target.type.dimension,
        nullable=True,
        model=declared or run.snapshot.vector_models.get(found.property_id),
        type_name=type_name,
    )
    source = None if run.embedder is None else run.embedder()
    return embed_query_text(source, text, column)


def fusion_constant(run: Run, k: Plain | None) -> int:
    if k is None:
        return RRF_K
    if isinstance(k, PropertyRef):
        raise BadRequestError("k of rrf is a literal or a parameter, the same for every row")
    value = run.values.scalar(k).as_py()
    return RRF_K if value is None else int(value)
