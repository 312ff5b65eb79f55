"""Lists: what `collect` makes of the rows of each group.

Spark brings the members of a group together, each with what it is ordered by. The functions of the
local engine put them in order, for many groups at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.executor.sorting import array_column, sort_indices
from omnigraph.executor.values import column_type
from omnigraph.executor.wide_groups import collect_lists, first_in_order
from omnigraph.index.columns import rank_values, to_sort_keys
from omnigraph.ir.expressions import TYPE_PROPERTY, Collect, NodeRef
from omnigraph.pipeline.datasource import spark_batch, spark_schema
from omnigraph.pipeline.spark_query.columns import property_of, to_local, to_struct
from omnigraph.pipeline.spark_query.order import tie_columns
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.shown import shown_column, shown_name, told_apart
from omnigraph.planner.plan import Plan

_VALUE, _TYPE = "value", "type"


@dataclass(frozen=True, slots=True)
class GroupList:
    """A list of each group: its members with their keys and ties, as columns of one struct."""

    collect: Collect
    name: str
    ties: tuple[str, ...]
    types: pa.Schema
    """What the columns of a member are in this process."""
    is_typed: bool

    @classmethod
    def of(cls, plan: Plan, rows: Rows, collect: Collect) -> GroupList:
        bound = [name for name in plan.match.pattern.visible_variables() if name in rows.variables]
        ties = tie_columns(rows.frame, bound)
        fields = [(_VALUE, column_type(collect.argument))]
        fields += [(f"key{n}", key.type.arrow_type()) for n, (key, _) in enumerate(collect.order)]
        argument = collect.argument
        is_typed = isinstance(argument, NodeRef) and len(told_apart(argument, rows.frame)) > 1
        if is_typed:
            fields.append((_TYPE, pa.utf8()))
        return cls(collect, shown_name(collect), tuple(ties), pa.schema(fields), is_typed)

    def gather(self, run: SparkRun) -> Column:
        """The members of a group that are not null, in any order."""
        return fn.collect_list(self.member(run))

    def member(self, run: SparkRun) -> Column:
        """What a row adds to the list of its group, null where its value is."""
        value = shown_column(run, self.collect.argument)
        columns = [value, *(shown_column(run, key) for key, _ in self.collect.order)]
        if self.is_typed:
            assert isinstance(self.collect.argument, NodeRef)
            variable = self.collect.argument.variable
            columns.append(fn.col(f"`{property_of(variable, TYPE_PROPERTY)}`"))
        member = [c.alias(name) for c, name in zip(columns, self.types.names, strict=True)]
        ties = [fn.col(f"`{name}`").alias(f"tie{n}") for n, name in enumerate(self.ties)]
        return fn.when(value.isNotNull(), fn.struct(*member, *ties))

    def sort(self, gathered: pa.ListArray) -> pa.Array:
        """The lists of a batch of groups, by the rules of the local engine."""
        members = gathered.flatten()
        columns = {
            field.name: to_local(members.field(place), field.type)
            for place, field in enumerate(self.types)
        }
        of_row = pc.list_parent_indices(gathered).to_numpy().astype(np.int64)
        ties = map(members.field, range(len(self.types), len(self.types) + len(self.ties)))
        keys = [
            array_column(to_sort_keys(columns[f"key{n}"]), descending=descending)
            for n, (_, descending) in enumerate(self.collect.order)
        ]
        keys += [array_column(to_sort_keys(each)) for each in ties]
        order = sort_indices([*keys, array_column(np.zeros(len(members)))], len(members), None)
        values = columns[_VALUE]
        if self.collect.is_distinct:
            told = [values, columns[_TYPE]] if self.is_typed else [values]
            entity = pa.StructArray.from_arrays(told, [str(n) for n in range(len(told))])
            order = first_in_order(rank_values(entity).codes.astype(np.int64), order, of_row)
        return collect_lists(self.collect, values, order, of_row, len(gathered))


def sort_lists(frame: DataFrame, lists: Sequence[GroupList]) -> DataFrame:
    """The groups with each list as it is shown."""
    shown = pa.schema([(each.name, column_type(each.collect)) for each in lists])
    kinds = {field.name: field.dataType for field in to_struct(shown).fields}
    schema = frame.select(
        *(
            fn.lit(None).cast(kinds[name]).alias(name) if name in kinds else fn.col(f"`{name}`")
            for name in frame.columns
        )
    ).schema
    return frame.mapInArrow(partial(_sort_batches, tuple(lists), shown), schema)


def _sort_batches(
    lists: Sequence[GroupList], shown: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sorted_ = [each.sort(batch.column(each.name)) for each in lists]
        made = spark_batch(pa.RecordBatch.from_arrays(sorted_, schema=shown), spark_schema(shown))
        for name in shown.names:
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, name, made.column(name))
        yield batch
