"""Identity: the columns that tell entities apart, and joins by them.

A node of a type is its id. Of an interface two nodes may share one, so that rows hold the name of
the type beside it: `x:#type`. A score is its value. A variable that may be null is equal to itself
where it is null.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import SCORE_PROPERTY, TYPE_PROPERTY
from omnigraph.ir.query import SCORE
from omnigraph.pipeline.spark_query.columns import id_of, property_of
from omnigraph.planner.pattern import Pattern


def is_interface(catalog: Catalog, pattern: Pattern, variable: str) -> bool:
    """Whether a variable may be bound to nodes of several types."""
    found = pattern.node_type(variable)
    return found is not None and found not in catalog.nodes


def identity_of(catalog: Catalog, pattern: Pattern, variable: str) -> list[str]:
    """The columns that tell what a variable is bound to; ties are broken by them in this order."""
    if pattern.edge_types().get(variable) == SCORE:
        return [property_of(variable, SCORE_PROPERTY)]
    found = [id_of(variable)]
    if is_interface(catalog, pattern, variable):
        found.append(property_of(variable, TYPE_PROPERTY))
    return found


def identities_of(catalog: Catalog, pattern: Pattern, variables: Iterable[str]) -> list[str]:
    return [name for each in variables for name in identity_of(catalog, pattern, each)]


def enter_types(catalog: Catalog, outer: Pattern, inner: Pattern, frame: DataFrame) -> DataFrame:
    """The rows whose outer variables can be what an inner pattern has them be."""
    for name in inner.outer:
        if name in outer.nullable:
            frame = frame.where(fn.col(id_of(name)).isNotNull())
        if is_interface(catalog, outer, name) and not is_interface(catalog, inner, name):
            kind = fn.col(f"`{property_of(name, TYPE_PROPERTY)}`")
            frame = frame.where(kind == fn.lit(inner.nodes[name]))
    return frame


def with_type(
    catalog: Catalog, outer: Pattern, inner: Pattern, variable: str, frame: DataFrame
) -> DataFrame:
    """The frame with the type of a variable, where it is part of its identity outside."""
    column = property_of(variable, TYPE_PROPERTY)
    if not is_interface(catalog, outer, variable) or column in frame.columns:
        return frame
    return frame.withColumn(column, fn.lit(inner.node_type(variable)))


def equal_columns(left: DataFrame, right: DataFrame, names: Iterable[str], prefix: str) -> Column:
    """Where both frames have the same in these columns, null included.

    Those of the right frame have a prefix.
    """
    pairs = [left[f"`{name}`"].eqNullSafe(right[f"`{prefix}{name}`"]) for name in names]
    return reduce(lambda one, other: one & other, pairs, fn.lit(True))
