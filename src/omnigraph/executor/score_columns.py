"""Scores: the values of a ranking as a column.

A distance is the root of the sum of squares over the stored values; the relevance of a text without
any word of the query is 0. Fused scores are those that ordered the rows.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.executor.ranking import query_of
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.executor.search import rank
from omnigraph.index import TableView
from omnigraph.index.arrays import sort_distinct
from omnigraph.ir.expressions import Bm25, Nearest, Ranking, Rrf
from omnigraph.ir.variables import ranking_variable
from omnigraph.planner.pattern import Pattern
from omnigraph.storage.vectors import to_components, to_query_vector

Fused: TypeAlias = "dict[Ranking, np.ndarray]"
"""The scores of a fusion, by position: they depend on all that was ranked."""


def score_rows(run: Run, pattern: Pattern, ranking: Ranking, rows: Rows, fused: Fused) -> pa.Array:
    """The score of every row; null where there is no vector, or nothing to score."""
    variable = ranking_variable(ranking)
    view = run.entities(variable, pattern)
    assert isinstance(view, TableView), "the checker ranks no interface"
    positions = rows.nodes[variable]
    # Null is the position after the last one.
    known = positions < view.size
    found = sort_distinct(positions[known])
    if isinstance(ranking, Rrf):
        # The checker shows it only where it orders.
        return pa.array(fused[ranking][positions])
    scores = np.full(view.size + 1, np.nan)
    match ranking:
        case Nearest():
            scores[found] = _distances(run, pattern, ranking, view, found)
        case Bm25():
            scores[found] = 0.0
            query = query_of(run, pattern, ranking)
            if query is not None:
                ranked, relevance = rank(view, ranking, query, found, None)
                scores[ranked] = relevance
    values = scores[positions]
    return pa.array(values, mask=np.isnan(values))


def _distances(
    run: Run, pattern: Pattern, ranking: Nearest, view: TableView, positions: np.ndarray
) -> np.ndarray:
    query = query_of(run, pattern, ranking)
    name, dimension = ranking.target.property, ranking.target.type.dimension
    assert dimension is not None
    assert not isinstance(query, str), "a text has been embedded"
    if query is None:
        return np.full(len(positions), np.nan)
    vectors = view.values([name], positions)[name]
    return distances_of(vectors, to_query_vector(query, dimension))


def distances_of(vectors: pa.Array, query: np.ndarray) -> np.ndarray:
    """The distance of every vector to a query; NaN where there is no vector."""
    known = vectors.is_valid().to_numpy(zero_copy_only=False)
    distances = np.full(len(vectors), np.nan)
    components = to_components(vectors.filter(vectors.is_valid()), len(query))
    difference = components.astype(np.float64) - query
    distances[known] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return distances
