"""Interface: the nodes of every type that implements it, one frame after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import ID_PROPERTY, TYPE_PROPERTY, And, Not, Or, Predicate, TextMatch
from omnigraph.ir.variables import predicate_refs
from omnigraph.pipeline.spark_query.columns import property_of, to_frame
from omnigraph.pipeline.spark_query.row_filters import keep_rows
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.pattern import Pattern


def read_interface(
    run: SparkRun,
    pattern: Pattern,
    variable: str,
    filters: Sequence[Predicate],
    names: Iterable[str],
) -> Rows:
    """The nodes that a variable may be bound to, with these properties and the names of types."""
    on_rows = [each for each in filters if _reads_type(each)]
    own = [each for each in filters if not _reads_type(each)]
    read = {ref.property for each in on_rows for ref in predicate_refs(each)}
    wanted = sorted(read.union(names) - {TYPE_PROPERTY, ID_PROPERTY})
    column = property_of(variable, TYPE_PROPERTY)
    frames = [
        run.read_nodes(
            variable, name, [_in_language(run, name, each) for each in own], wanted
        ).withColumn(column, fn.lit(name))
        for name in run.local.catalog.types_of(pattern.nodes[variable])
    ]
    if not frames:
        frames = [_no_rows(run, pattern, variable, wanted)]
    rows = Rows(reduce(DataFrame.unionByName, frames), frozenset([variable]))
    for each in on_rows:
        rows = keep_rows(run, pattern, rows, each)
    return rows


def _reads_type(predicate: Predicate) -> bool:
    return any(ref.property == TYPE_PROPERTY for ref in predicate_refs(predicate))


def _in_language(run: SparkRun, type_name: str, predicate: Predicate) -> Predicate:
    """The same with searches in the language that a type's texts are in."""
    match predicate:
        case TextMatch(target=target):
            table_key = f"node:{type_name}"
            return replace(
                predicate, language=run.local.catalog.text_language(table_key, target.property)
            )
        case Not(part):
            return Not(_in_language(run, type_name, part))
        case And(parts):
            return And(tuple(_in_language(run, type_name, each) for each in parts))
        case Or(parts):
            return Or(tuple(_in_language(run, type_name, each) for each in parts))
        case _:
            return predicate


def _no_rows(run: SparkRun, pattern: Pattern, variable: str, names: Sequence[str]) -> DataFrame:
    """What no type implements has no rows, and the columns of its properties."""
    declared = run.local.catalog.interfaces[pattern.nodes[variable]].properties
    fields = [(property_of(variable, ID_PROPERTY), pa.utf8())]
    fields += [(property_of(variable, name), declared[name].type.arrow_type()) for name in names]
    fields.append((property_of(variable, TYPE_PROPERTY), pa.utf8()))
    return to_frame(run.spark, pa.schema(fields).empty_table())
