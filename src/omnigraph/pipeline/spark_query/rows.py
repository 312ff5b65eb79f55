"""Rows: matches as a frame. Each row binds some variables, and may stand for several matches.

`*weight` says for how many, when rows have it. Of a variable that is only counted, rows hold what
aggregates ask for: the sum of its values over those matches and how many are not null, or the
least or greatest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import Aggregate, PropertyRef
from omnigraph.pipeline.spark_query.columns import WEIGHT, property_of, variable_of
from omnigraph.syntax.query_tree import AggregateFunction
from omnigraph.types import PropertyType

_OTHER = "*other"


@dataclass(frozen=True, slots=True)
class Payload:
    """What aggregates ask of variables that are only counted."""

    sums: frozenset[PropertyRef] = frozenset()
    extremes: frozenset[Aggregate] = frozenset()

    def of(self, variables: Iterable[str]) -> Payload:
        """The part that is about these variables."""
        names = set(variables)
        return Payload(
            frozenset(ref for ref in self.sums if ref.variable in names),
            frozenset(each for each in self.extremes if _argument(each).variable in names),
        )

    def __or__(self, other: Payload) -> Payload:
        return Payload(self.sums | other.sums, self.extremes | other.extremes)


NOTHING = Payload()


@dataclass(frozen=True, slots=True)
class Rows:
    """`carried` is what has been summed so far, `variables` what is bound."""

    frame: DataFrame
    variables: frozenset[str]
    is_weighted: bool = False
    carried: Payload = NOTHING

    def weight(self) -> Column:

        return fn.col(WEIGHT) if self.is_weighted else fn.lit(1).cast("long")

    def bindings(self) -> list[str]:
        """The columns that are no numbers about matches."""
        return [name for name in self.frame.columns if not name.startswith("*")]

    def keep(self, frame: DataFrame) -> Rows:
        """The same columns, fewer rows."""
        return replace(self, frame=frame)


def sum_name(ref: PropertyRef) -> str:
    return f"*sum {property_of(ref.variable, ref.property)}"


def known_name(ref: PropertyRef) -> str:
    return f"*known {property_of(ref.variable, ref.property)}"


def extreme_name(aggregate: Aggregate) -> str:
    ref = _argument(aggregate)
    return f"*{aggregate.function} {property_of(ref.variable, ref.property)}"


def _argument(aggregate: Aggregate) -> PropertyRef:
    assert isinstance(aggregate.argument, PropertyRef)
    return aggregate.argument


def take_in(rows: Rows, payload: Payload) -> Rows:
    """Begin the sums of what a payload asks of variables that rows bind."""

    fresh = Payload(payload.sums - rows.carried.sums, payload.extremes - rows.carried.extremes)
    added: dict[str, Column] = {}
    for ref in fresh.sums:
        value = fn.col(property_of(ref.variable, ref.property))
        added[sum_name(ref)] = summand(value, rows.weight(), ref.type)
        added[known_name(ref)] = fn.when(value.isNotNull(), rows.weight()).otherwise(fn.lit(0))
    for each in fresh.extremes:
        ref = _argument(each)
        added[extreme_name(each)] = fn.col(property_of(ref.variable, ref.property))
    frame = rows.frame.withColumns(added) if added else rows.frame
    return replace(rows, frame=frame, carried=rows.carried | fresh)


def summand(value: Column, weight: Column, type_: PropertyType) -> Column:
    """What a row adds to a sum; what is no number is summed as nothing."""

    if not type_.is_numeric:
        return fn.lit(0.0)
    return fn.coalesce(value.cast("double"), fn.lit(0.0)) * weight.cast("double")


def forget(rows: Rows, names: Iterable[str], payload: Payload) -> Rows:
    """Rows without these variables, which leave behind what is to be summed of them."""
    gone = rows.variables.intersection(names)
    rows = take_in(rows, payload.of(gone))
    dropped = [name for name in rows.bindings() if variable_of(name) in gone]
    return replace(rows, frame=rows.frame.drop(*dropped), variables=rows.variables - gone)


def fold(rows: Rows, by: Sequence[str]) -> Rows:
    """Rows that are equal in `by` become one."""

    weight = fn.sum(WEIGHT) if rows.is_weighted else fn.count(fn.lit(1))
    numbers = [weight.alias(WEIGHT)]
    for ref in rows.carried.sums:
        numbers += [fn.sum(name).alias(name) for name in (sum_name(ref), known_name(ref))]
    for each in rows.carried.extremes:
        best = fn.min if each.function is AggregateFunction.MIN else fn.max
        numbers.append(best(extreme_name(each)).alias(extreme_name(each)))
    frame = rows.frame.groupBy(*map(fn.col, by)).agg(*numbers)
    return replace(rows, frame=frame, is_weighted=True)


def pair(left: Rows, right: Rows, on: Sequence[str] | Column) -> Rows:
    """Rows of both side by side; each stands for as many matches as both together."""

    other = right.frame.withColumnRenamed(WEIGHT, _OTHER)
    if isinstance(on, Sequence) and not on:
        frame = left.frame.crossJoin(other)
    else:
        frame = left.frame.join(other, list(on) if isinstance(on, Sequence) else on)
    carried = left.carried | right.carried
    scaled = {
        name: fn.col(name) * factor
        for rows, factor, is_scaled in (
            (left, fn.col(_OTHER), right.is_weighted),
            (right, fn.col(WEIGHT), left.is_weighted),
        )
        if is_scaled
        for ref in rows.carried.sums
        for name in (sum_name(ref), known_name(ref))
    }
    if right.is_weighted:
        scaled[WEIGHT] = fn.col(WEIGHT) * fn.col(_OTHER) if left.is_weighted else fn.col(_OTHER)
    frame = frame.withColumns(scaled).drop(_OTHER)
    return Rows(
        frame, left.variables | right.variables, left.is_weighted or right.is_weighted, carried
    )
