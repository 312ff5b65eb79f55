"""Stages: the best rows of a first match, from which the next one goes on.

A stage keeps the first rows in its order; ties break as they do in `order`. What follows starts
from these rows and sees them as outer variables, so that nothing it asks changes which were kept.
A row is a combination of variables: what a query cannot spell has to exist, and is no row of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequestError
from omnigraph.executor.evaluate import evaluate
from omnigraph.executor.filters import RowColumns
from omnigraph.executor.folding import fold_rows
from omnigraph.executor.match import Wanted, match_rows
from omnigraph.executor.ranking import rank_rows, tie_columns
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run, Staged
from omnigraph.executor.scores import Scores
from omnigraph.executor.sorting import SortColumn, array_column, property_column, sort_indices
from omnigraph.index.columns import to_sort_keys
from omnigraph.ir.expressions import (
    Aggregate,
    AliasRef,
    Bm25,
    Collect,
    GroupColumn,
    Nearest,
    NodeRef,
    Param,
    PropertyRef,
    Rrf,
    SortKey,
)
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import StagePlan


def run_stages(run: Run, stages: Sequence[StagePlan]) -> None:
    """Leave the rows of the last stage where the match finds them."""
    for stage in stages:
        count = count_rows(run, stage)
        rows, score = _rank(run, stage, count) if _is_ranking(stage) else _sort(run, stage, count)
        visible = stage.plan.match.pattern.visible_variables()
        rows = replace(
            rows, nodes={name: rows.nodes[name] for name in visible if name in rows.nodes}
        )
        if stage.score is not None:
            run.made[stage.score] = Scores(score)
            rows.edges[stage.score] = np.arange(rows.count)
        kept = replace(rows, weight=None, sums={}, extremes={}, seeds=None, distinct=None)
        run.staged = Staged(kept, stage.plan.match.pattern)
        run.note("kept the first rows of a stage", rows.count)


def count_rows(run: Run, stage: StagePlan) -> int:
    """How many rows a stage keeps."""
    if isinstance(stage.count, int):
        return stage.count
    return read_count(run, stage.count, "top")


def read_count(run: Run, count: Param, word: str) -> int:
    """A number of rows that a parameter gives."""
    found = int(run.values.scalar(count).as_py())
    if found < 0:
        raise BadRequestError(f"{word} must not be negative: ${count.name} is {found}")
    return found


def _is_ranking(stage: StagePlan) -> bool:
    return isinstance(stage.plan.order[0].expression, (Nearest, Bm25, Rrf))


def _rank(run: Run, stage: StagePlan, count: int) -> tuple[Rows, pa.Array]:
    plan, key = stage.plan, stage.plan.order[0].expression
    assert isinstance(key, (Nearest, Bm25, Rrf))
    rows = _distinct(stage, match_rows(run, plan.match, Wanted(exists=True)))
    rows, scores = rank_rows(run, plan.match.pattern, key, rows, count)
    return rows.take(slice(0, count)), pa.array(scores[:count], pa.float64())


def _sort(run: Run, stage: StagePlan, count: int) -> tuple[Rows, pa.Array]:
    pattern, order = stage.plan.match.pattern, stage.plan.order

    def cut(rows: Rows) -> Rows:
        rows = _distinct(stage, rows)
        columns = [
            _sort_column(run, pattern, each.expression, rows, descending=each.descending)
            for each in order
        ]
        columns += tie_columns(run, pattern, rows)
        return rows.take(sort_indices(columns, rows.count, count)[:count])

    rows = cut(match_rows(run, stage.plan.match, Wanted(exists=True, cut=cut)))
    return rows, _values(run, pattern, order[0].expression, rows)


def _distinct(stage: StagePlan, rows: Rows) -> Rows:
    return fold_rows(rows, exists=True) if stage.repeats else rows


def _sort_column(
    run: Run, pattern: Pattern, key: SortKey, rows: Rows, *, descending: bool
) -> SortColumn:
    if isinstance(key, PropertyRef):
        view = run.view_of(key.variable, pattern)
        positions = rows.positions(key.variable)
        return property_column(view, key.property, positions, descending=descending)
    return array_column(to_sort_keys(_values(run, pattern, key, rows)), descending=descending)


def _values(run: Run, pattern: Pattern, key: SortKey, rows: Rows) -> pa.Array:
    assert not isinstance(key, (AliasRef, NodeRef, Aggregate, Collect, GroupColumn))
    assert not isinstance(key, (Nearest, Bm25, Rrf))
    values = evaluate(key, RowColumns(run, pattern, rows))
    return values.cast(key.type.arrow_type())
