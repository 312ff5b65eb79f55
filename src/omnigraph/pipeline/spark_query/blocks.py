"""Blocks: `optional` as a left join with the matches of its pattern, `either` as a join with the
distinct bindings that its alternatives find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import PropertyRef
from omnigraph.pipeline.spark_query.columns import WEIGHT, id_of, variable_of
from omnigraph.pipeline.spark_query.identity import (
    enter_types,
    equal_columns,
    identities_of,
    with_type,
)
from omnigraph.pipeline.spark_query.match import Matcher
from omnigraph.pipeline.spark_query.needs import needs_of_match
from omnigraph.pipeline.spark_query.rows import Rows, known_name, sum_name
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import BlockPlan, MatchPlan

_OUTER = "*outer "
_TIMES = "*times"


def add_block(
    run: SparkRun, outer: Pattern, rows: Rows, block: BlockPlan, needs: frozenset[PropertyRef]
) -> Rows:
    """The rows with what a block adds to them."""
    catalog = run.local.catalog
    keys = identities_of(catalog, outer, block.outer)
    rows = rows.keep(run.cut(rows.frame))
    seeds = seeds_of(rows, block.outer)
    own = frozenset(ref for ref in needs if ref.variable in block.variables)
    parts = [_match(run, outer, block, plan, seeds, own) for plan in block.plans]
    read = [name for name in block.variables if all(name in plan.read for plan in block.plans)]
    # An alternative may read more of a variable for itself than is read of it outside.
    shared = [
        each for each in parts[0].frame.columns if all(each in p.frame.columns for p in parts)
    ]
    added = _list_added(shared, read)
    frames = [part.frame.select(*_quote([*keys, *added, *_weights(part)])) for part in parts]
    found = frames[0]
    if not block.is_optional:
        visible = [*keys, *identities_of(catalog, outer, read)]
        found = reduce(DataFrame.unionByName, frames).dropDuplicates(visible)
    renamed = found.withColumnsRenamed({name: _OUTER + name for name in keys} | {WEIGHT: _TIMES})
    condition = equal_columns(rows.frame, renamed, keys, _OUTER)
    how = "left" if block.is_optional else "inner"
    joined = rows.frame.join(renamed, condition, how).drop(*(_OUTER + name for name in keys))
    return _scale(
        replace(rows, frame=joined, variables=rows.variables | set(read)), parts[0].is_weighted
    )


def seeds_of(rows: Rows, outer: Iterable[str]) -> Rows:
    """What rows bind some variables to, each combination once."""
    names = frozenset(outer)
    columns = [name for name in rows.bindings() if variable_of(name) in names]
    return Rows(rows.frame.select(*_quote(columns)).distinct(), names)


def _match(
    run: SparkRun,
    outer: Pattern,
    block: BlockPlan,
    plan: MatchPlan,
    seeds: Rows,
    own: frozenset[PropertyRef],
) -> Rows:
    catalog = run.local.catalog
    needs = own.union(needs_of_match(plan))
    matcher = Matcher(run, plan, needs, exists=not block.is_optional)
    found = matcher.match(seeds.keep(enter_types(catalog, outer, plan.pattern, seeds.frame)))
    for name in block.nodes:
        if id_of(name) in found.frame.columns:
            found = found.keep(with_type(catalog, outer, plan.pattern, name, found.frame))
    return found


def _list_added(columns: Iterable[str], read: Iterable[str]) -> list[str]:
    names = set(read)
    return [each for each in columns if not each.startswith("*") and variable_of(each) in names]


def _weights(rows: Rows) -> list[str]:
    return [WEIGHT] if rows.is_weighted else []


def _scale(rows: Rows, is_weighted: bool) -> Rows:
    """Rows that stand for as many matches as what was added to them does; null is one."""
    if not is_weighted:
        return rows
    times = fn.coalesce(fn.col(_TIMES), fn.lit(1).cast("long"))
    scaled = {
        name: fn.col(name) * times
        for ref in rows.carried.sums
        for name in (sum_name(ref), known_name(ref))
    }
    frame = rows.frame.withColumns(scaled | {WEIGHT: rows.weight() * times}).drop(_TIMES)
    return replace(rows, frame=frame, is_weighted=True)


def _quote(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]
