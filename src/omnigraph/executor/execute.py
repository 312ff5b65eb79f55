"""Execute: plan, match, then rows or groups in order, then the columns of the result.

Properties are fetched last, for the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.embed import EmbedSource
from omnigraph.executor.counts import cut, fill_counts
from omnigraph.executor.evaluate import evaluate
from omnigraph.executor.filters import RowColumns
from omnigraph.executor.finish import GroupColumns, finish_groups
from omnigraph.executor.grouping import Groups, Key, compute_aggregate, make_groups
from omnigraph.executor.match import FirstRoots, Wanted, match_rows
from omnigraph.executor.ranking import id_columns, rank_rows, tie_columns
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run, Stage, Trace
from omnigraph.executor.score_columns import Fused
from omnigraph.executor.shown import show_columns
from omnigraph.executor.sorting import SortColumn, array_column, property_column, sort_indices
from omnigraph.executor.stages import run_stages
from omnigraph.executor.stream import is_streamed, stream_columns
from omnigraph.executor.values import Value, Values, column_type, values_of
from omnigraph.executor.weights import Payload
from omnigraph.executor.wide_groups import WideGroups, empty_value, group_wide
from omnigraph.index import RuntimeCache
from omnigraph.index.arrays import IntArray
from omnigraph.index.columns import to_sort_keys
from omnigraph.index.keys import PlanKey
from omnigraph.index.notes import notes_to
from omnigraph.index.query_memory import bounded_memory, hold, letting_go, measure
from omnigraph.ir.expressions import (
    Aggregate,
    AliasRef,
    Arithmetic,
    Bm25,
    Call,
    Case,
    Collect,
    Constant,
    Minus,
    Nearest,
    NodeRef,
    Null,
    Param,
    Projected,
    PropertyRef,
    Rrf,
    SortKey,
    Truth,
)
from omnigraph.ir.query import Finish, QueryIR
from omnigraph.ir.variables import expression_refs, ranking_variable
from omnigraph.ir.wide import is_wide
from omnigraph.manifest.model import Snapshot
from omnigraph.nonblocking import may_block
from omnigraph.planner import Plan, Statistics, make_plan
from omnigraph.planner.pattern import Pattern
from omnigraph.storage.tables import TableStorage
from omnigraph.syntax.query_tree import AggregateFunction

_COUNT_BITS = 8
_FEW_ROWS = 4_096
"""The positions of so few rows are no bytes to speak of."""
_EXTREMES = (AggregateFunction.MIN, AggregateFunction.MAX)


def execute(
    ir: QueryIR,
    params: Mapping[str, Any],
    snapshot: Snapshot,
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache,
    embedder: Callable[[], EmbedSource] | None = None,
    trace: Trace | None = None,
) -> pa.Table:
    """Run a read at a snapshot. `params` has every parameter bound, the instant of `now()` too."""
    notes = notes_to(trace.add) if trace is not None else nullcontext()
    with notes, bounded_memory():
        prepared = prepare_query(ir, snapshot, catalog, cache)
        plan, values = prepared.plan, Values(prepared.values, params)
        if not plan.is_point:
            may_block()
        run = Run(snapshot, catalog, tables, cache, values, embedder, trace)
        run.note("planned")
        plan = fill_counts(plan, values)
        if plan.finish is None:
            columns = _answer(run, plan)
        else:
            with letting_go():
                columns = _answer(run, plan)
            hold(measure(columns))
            columns = _finish(run, plan.finish, columns)
        first, count = cut(plan)
        return pa.Table.from_arrays(columns, schema=prepared.schema).slice(first, count)


def _finish(run: Run, finish: Finish, columns: list[pa.Array]) -> list[pa.Array]:
    shown = finish_groups(finish, GroupColumns(run.values, columns, len(columns[0])))
    run.note("finished", len(shown[0]))
    return shown


def _answer(run: Run, plan: Plan) -> list[pa.Array]:
    run_stages(run, plan.stages)
    if is_streamed(run, plan):
        columns = stream_columns(run, plan)
        if columns is not None:
            return columns
        return _groups_of_nothing(run, plan)
    return _group_rows(run, plan) if plan.is_grouped else _project_rows(run, plan)


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that a query needs before its parameters are known, cached for tables of one size.

    Holding the query keeps its identity from being used again.
    """

    ir: QueryIR
    plan: Plan
    values: tuple[Value, ...]
    schema: pa.Schema
    nbytes: int = 4096


def prepare_query(
    ir: QueryIR, snapshot: Snapshot, catalog: Catalog, cache: RuntimeCache
) -> Prepared:
    """The plan of a query for tables of this size."""
    counts = {key: _round_count(entry.row_count) for key, entry in snapshot.entries.items()}

    def prepare() -> Prepared:
        schema = pa.schema([(item.column, column_type(item.expression)) for item in ir.columns])
        plan = make_plan(ir, catalog, Statistics(counts))
        return Prepared(ir, plan, tuple(values_of(ir)), schema)

    return cache.get(PlanKey(id(ir), tuple(counts.values())), prepare)


def _round_count(rows: int) -> int:
    """About so many rows: one more or less of many makes no other plan, so none is made for it."""
    spare_bits = max(rows.bit_length() - _COUNT_BITS, 0)
    return rows >> spare_bits << spare_bits


# Rows


def _project_rows(run: Run, plan: Plan) -> list[pa.Array]:
    rows, fused = _order_rows(run, plan)
    shown = [item.expression for item in plan.returns]
    return show_columns(run, plan.match.pattern, shown, rows, fused)


def _order_rows(run: Run, plan: Plan) -> tuple[Rows, Fused]:
    pattern = plan.match.pattern
    if not plan.order:
        rows = _match(run, plan, Wanted(limit=plan.limit))
        return _limit(rows, plan.limit), {}
    first = plan.order[0].expression
    if isinstance(first, (Nearest, Bm25, Rrf)):
        rows = _match(run, plan, Wanted(first=_first_roots(plan)))
        ranked, scores = rank_rows(run, pattern, first, rows, plan.limit)
        positions = ranked.nodes[ranking_variable(first)]
        by_position = np.full(int(positions.max(initial=0)) + 1, np.nan)
        by_position[positions] = scores
        return _limit(ranked, plan.limit), {first: by_position}

    def sort(rows: Rows) -> Rows:
        columns = [
            _row_column(run, plan, item.expression, rows, descending=item.descending)
            for item in plan.order
        ]
        columns += tie_columns(run, pattern, rows)
        return rows.take(sort_indices(columns, rows.count, plan.limit)[: plan.limit])

    cut = None if plan.limit is None else sort
    rows = _match(run, plan, Wanted(first=_first_roots(plan), cut=cut))
    rows = sort(rows)
    run.note("sorted", rows.count)
    return _limit(rows, plan.limit), {}


def _match(run: Run, plan: Plan, wanted: Wanted) -> Rows:
    rows = match_rows(run, plan.match, wanted)
    run.note("matched", rows.count)
    if rows.count > _FEW_ROWS:
        hold(rows.nbytes)
    return rows


def _first_roots(plan: Plan) -> FirstRoots | None:
    """The roots that the first key of a limited order leaves in question."""
    if plan.sort_root is None or plan.limit is None or plan.limit == 0:
        return None
    key = plan.resolve_alias(plan.order[0].expression)
    assert isinstance(key, PropertyRef)
    return FirstRoots(key.property, plan.order[0].descending, plan.limit)


def _limit(rows: Rows, limit: int | None) -> Rows:
    if limit is not None:
        rows = rows.take(slice(0, limit))
    return rows.unfold(limit)


def _row_column(run: Run, plan: Plan, key: SortKey, rows: Rows, *, descending: bool) -> SortColumn:
    expression = plan.resolve_alias(key)
    match expression:
        case PropertyRef(variable, name):
            view = run.view_of(variable, plan.match.pattern)
            return property_column(view, name, rows.positions(variable), descending=descending)
        case NodeRef(variable):
            view = run.view_of(variable, plan.match.pattern)
            return property_column(view, "id", rows.nodes[variable], descending=descending)
        case Null() | Arithmetic() | Minus() | Call() | Case() | Truth():
            values = evaluate(expression, RowColumns(run, plan.match.pattern, rows))
            return array_column(to_sort_keys(values), descending=descending)
        case _:
            # A literal or a parameter is the same in every row.
            return array_column(np.zeros(rows.count, dtype=np.int8))


# Groups


def _group_rows(run: Run, plan: Plan) -> list[pa.Array]:
    if any(is_wide(item.expression) for item in plan.returns):
        return _group_wide(run, plan)
    pattern = plan.match.pattern
    keys: list[Key] = [
        item.expression
        for item in plan.returns
        if isinstance(item.expression, (PropertyRef, NodeRef))
    ]
    told_apart = frozenset(key.variable for key in keys)
    payload = Payload(*asked_of_counted(plan))
    rows = _match(run, plan, Wanted(payload, groups_by=told_apart))
    if rows.count == 0:
        return _groups_of_nothing(run, plan)
    groups = make_groups(run, pattern, keys, rows)
    values = {
        item.expression: compute_aggregate(run, pattern, item.expression, rows, groups)
        for item in plan.returns
        if isinstance(item.expression, Aggregate)
    }
    run.note("grouped", groups.count)
    indices = _order_groups(run, plan, keys, rows, groups, values)
    chosen = rows.take(groups.rows_of(indices))
    # A parameter is a key as well, but one value makes no groups.
    shown = [e for e in (item.expression for item in plan.returns) if not isinstance(e, Aggregate)]
    key_columns = iter(show_columns(run, pattern, shown, chosen))
    return [
        values[item.expression].take(pa.array(indices))
        if isinstance(item.expression, Aggregate)
        else next(key_columns)
        for item in plan.returns
    ]


def _group_wide(run: Run, plan: Plan) -> list[pa.Array]:
    """Groups whose keys and aggregates are computed for each row."""
    pattern = plan.match.pattern
    expressions = [item.expression for item in plan.returns]
    has_lists = any(isinstance(each, Collect) for each in expressions)
    told_apart = None if has_lists else frozenset(_told_apart(expressions))
    payload = Payload(*asked_of_counted(plan))
    rows = _match(run, plan, Wanted(payload, groups_by=told_apart))
    if rows.count == 0:
        return _groups_of_nothing(run, plan)
    if has_lists:
        rows = rows.unfold()
    keys = [each for each in expressions if not isinstance(each, (Aggregate, Collect))]
    show = partial(_show_one, run, pattern)
    varying = [key for key in keys if not isinstance(key, (Constant, Param))]
    groups = group_wide(run, pattern, varying, rows, show)
    run.note("grouped", groups.count)
    wide = WideGroups(run, plan, rows, groups, show)
    # Of a group one row is read.
    firsts = rows if groups.first is None else rows.take(groups.first)
    shown = show_columns(run, pattern, keys, firsts)
    found: dict[Projected, pa.Array] = dict(zip(keys, shown, strict=True))
    hold(measure(found.values()))
    for each in expressions:
        if isinstance(each, (Aggregate, Collect)) and each not in found:
            found[each] = wide.compute(each)
            hold(found[each].nbytes)
    indices = pa.array(_order_found(run, plan, keys, found, rows, groups))
    return [found[each].take(indices).cast(column_type(each)) for each in expressions]


def _show_one(run: Run, pattern: Pattern, expression: Projected, rows: Rows) -> pa.Array:
    return show_columns(run, pattern, [expression], rows)[0]


def _told_apart(expressions: Sequence[Projected]) -> Iterator[str]:
    for each in expressions:
        match each:
            case Aggregate(argument=NodeRef(variable)) if each.is_distinct:
                yield variable
            case Aggregate() if not is_wide(each):
                continue
            case NodeRef(variable):
                yield variable
            case _:
                yield from (ref.variable for ref in expression_refs(each))


def _order_found(
    run: Run,
    plan: Plan,
    keys: Sequence[Projected],
    found: Mapping[Projected, pa.Array],
    rows: Rows,
    groups: Groups,
) -> IntArray:
    """The groups in order. Ties break by the values of the grouping keys, in projected order."""
    if not plan.order:
        return np.arange(groups.count)[: plan.limit]
    order = [(plan.resolve_alias(item.expression), item.descending) for item in plan.order]
    columns = [
        array_column(to_sort_keys(found[key]), descending=descending)
        for key, descending in order
        if not isinstance(key, AliasRef)
    ]
    for each in keys:
        if isinstance(each, NodeRef):
            positions = rows.positions(each.variable)
            columns += id_columns(run, plan.match.pattern, each.variable, positions, groups.first)
        else:
            columns.append(array_column(to_sort_keys(found[each])))
    return sort_indices(columns, groups.count, plan.limit)[: plan.limit]


def asked_of_counted(plan: Plan) -> tuple[frozenset[PropertyRef], frozenset[Aggregate]]:
    """What aggregates need of variables that are only counted: sums, and extremes."""
    aggregates = [
        item.expression
        for item in plan.returns
        if isinstance(item.expression, Aggregate)
        and isinstance(item.expression.argument, PropertyRef)
        and not item.expression.is_distinct
    ]
    extremes = frozenset(each for each in aggregates if each.function in _EXTREMES)
    sums = frozenset(
        each.argument
        for each in aggregates
        if each not in extremes and isinstance(each.argument, PropertyRef)
    )
    return sums, extremes


def _groups_of_nothing(run: Run, plan: Plan) -> list[pa.Array]:
    grouped = (Aggregate, Collect)
    has_keys = any(not isinstance(item.expression, grouped) for item in plan.returns)
    columns = [_empty_column(item.expression) for item in plan.returns]
    keeps_none = has_keys or plan.limit == 0
    return [column.slice(0, 0) for column in columns] if keeps_none else columns


def _empty_column(expression: Projected) -> pa.Array:
    if isinstance(expression, (Aggregate, Collect)):
        return empty_value(expression)
    return pa.array([], column_type(expression))


def _order_groups(
    run: Run,
    plan: Plan,
    keys: list[Key],
    rows: Rows,
    groups: Groups,
    values: dict[Aggregate, pa.Array],
) -> IntArray:
    """The groups in order. Ties break by the values of the grouping keys, in projected order."""
    if not plan.order:
        return np.arange(groups.count)[: plan.limit]
    columns: list[SortColumn] = []
    for item in plan.order:
        expression = plan.resolve_alias(item.expression)
        if isinstance(expression, Aggregate):
            numbers = to_sort_keys(values[expression])
            columns.append(array_column(numbers, descending=item.descending))
        elif isinstance(expression, (PropertyRef, NodeRef)):
            columns.append(_key_column(run, plan, expression, rows, groups, item.descending))
    for key in keys:
        if isinstance(key, NodeRef):
            positions = rows.positions(key.variable)
            columns += id_columns(run, plan.match.pattern, key.variable, positions, groups.first)
        else:
            columns.append(_key_column(run, plan, key, rows, groups, False))
    return sort_indices(columns, groups.count, plan.limit)[: plan.limit]


def _key_column(
    run: Run, plan: Plan, key: Key, rows: Rows, groups: Groups, descending: bool
) -> SortColumn:
    name = "id" if isinstance(key, NodeRef) else key.property
    view = run.view_of(key.variable, plan.match.pattern)
    positions = rows.positions(key.variable)
    return property_column(view, name, positions, among=groups.first, descending=descending)


__all__ = ["Stage", "Trace", "execute", "prepare_query"]
