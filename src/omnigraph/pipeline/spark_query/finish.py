"""Finish: from groups to the rows of the result, by the functions of the local engine.

Tasks decide `having` and compute what is shown; Spark keeps one of equal rows, and sorts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.executor.counts import cut
from omnigraph.executor.evaluate import decide
from omnigraph.executor.finish import GroupColumns
from omnigraph.executor.values import column_type
from omnigraph.ir.expressions import AliasRef, Projected
from omnigraph.ir.query import Finish
from omnigraph.pipeline.datasource import spark_batch, spark_schema
from omnigraph.pipeline.spark_query.checks import Filled, fill_values
from omnigraph.pipeline.spark_query.columns import to_local, to_struct
from omnigraph.pipeline.spark_query.order import limit_frame, skip_rows, sort_column
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.plan import Plan


def finish_groups(run: SparkRun, plan: Plan, finish: Finish, groups: DataFrame) -> DataFrame:
    """The rows of the result. Columns of groups are in the order of the plan's `return`."""
    shown = [f"c{place}" for place in range(len(finish.returns))]
    keys = [f"key{place}" for place in range(len(finish.order))]
    ties = [f"tie{place}" for place in range(len(finish.ties))]
    types = map(column_type, _computed(finish))
    schema = pa.schema(list(zip([*shown, *keys, *ties], types, strict=True)))
    local = [column_type(item.expression) for item in plan.returns]
    filled = fill_values(finish, run.local.values, by_variable=True)
    frame = groups.mapInArrow(partial(_finish, finish, local, filled, schema), to_struct(schema))
    if finish.is_distinct:
        frame = frame.dropDuplicates(ties)
    if finish.order:
        orders = [
            sort_column(name, is_descending=item.descending)
            for name, item in zip(keys, finish.order, strict=True)
        ]
        frame = frame.orderBy(*orders, *map(sort_column, ties))
    first, count = cut(plan)
    frame = limit_frame(frame, None if count is None else first + count)
    return skip_rows(frame, first).select(*shown)


def _computed(finish: Finish) -> list[Projected]:
    """What is computed of each group: what is shown, then the keys of the order, then its ties."""
    keys = [item.expression for item in finish.order]
    assert all(not isinstance(key, AliasRef) for key in keys), "lowering resolves names of groups"
    return [*(item.expression for item in finish.returns), *keys, *finish.ties]  # type: ignore[list-item]


def _finish(
    finish: Finish,
    local: list[pa.DataType],
    filled: Filled,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [to_local(each, type_) for each, type_ in zip(batch.columns, local, strict=True)]
        groups = GroupColumns(filled, columns, batch.num_rows)
        for predicate in finish.having:
            groups = groups.take(np.flatnonzero(decide(predicate, groups)[0]))
        values = [groups.show(each) for each in _computed(finish)]
        made = pa.RecordBatch.from_arrays(values, schema=schema)
        yield spark_batch(made, spark_schema(schema))
