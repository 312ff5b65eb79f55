"""Stream: a scan of a type that is too large to hold, one batch at a time.

A column that would take more than a quarter of the budget is never decoded as a whole. A read of
one variable that needs such a column runs here instead: the storage keeps the rows that the filters
keep, and what is held is one batch, and the answer so far.

    rows             those of the answer; with an order and a limit, the best so far
    groups           one partial result per group, folded together batch by batch
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.evaluate import decide, evaluate, repeat_value
from omnigraph.executor.filters import constants_hold, count_tried, split_pushable
from omnigraph.executor.objects import make_objects
from omnigraph.executor.run import Run
from omnigraph.executor.sorting import SortColumn, array_column, sort_indices
from omnigraph.executor.stream_groups import Partials
from omnigraph.executor.values import Values, column_type
from omnigraph.index import TableView
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.columns import to_sort_keys
from omnigraph.index.query_memory import require_bytes
from omnigraph.ir.expressions import (
    Aggregate,
    AliasRef,
    Bm25,
    Collect,
    Constant,
    GroupColumn,
    Nearest,
    NodeRef,
    ObjectRef,
    Param,
    Predicate,
    Projected,
    PropertyRef,
    Rrf,
    SortKey,
    TextMatch,
)
from omnigraph.ir.variables import expression_refs, has_search, predicate_refs
from omnigraph.ir.wide import is_wide
from omnigraph.planner.plan import Plan

BATCH_BYTES = 4 * 1024 * 1024
_BATCH_ROWS_MAX = 8_192
_ROWS_BEFORE_CUTTING = 4
_NOT_STREAMED = (Aggregate, Collect, GroupColumn, Nearest, Bm25, Rrf)


def is_streamed(run: Run, plan: Plan) -> bool:
    """Whether a plan is one scan that reads a column too large to hold."""
    match = plan.match
    pattern = match.pattern
    if len(match.trees) != 1 or pattern.hops or match.negations or match.blocks or plan.stages:
        return False
    root = match.trees[0].root
    if root is None:
        return False
    view = run.view_of(root, pattern)
    if not isinstance(view, TableView) or not view.has_wide_columns():
        return False
    predicates = pattern.filters.get(root, ())
    if any(map(has_search, predicates)):
        return False
    order = [plan.resolve_alias(item.expression) for item in plan.order]
    if any(isinstance(key, (Nearest, Bm25, Rrf)) for key in order):
        return False
    expressions = [item.expression for item in plan.returns]
    if any(isinstance(each, (Nearest, Bm25, Rrf)) for each in expressions):
        return False
    if plan.is_grouped and any(map(is_wide, expressions)):
        return False
    return any(view.is_too_wide(name) for name in _names(plan, predicates))


def stream_columns(run: Run, plan: Plan) -> list[pa.Array] | None:
    """The columns of the result; None for groups of nothing."""
    pattern = plan.match.pattern
    root = plan.match.trees[0].root
    assert root is not None
    scan = _Scan(run, run.nodes(pattern.nodes[root]), pattern.filters.get(root, ()))
    run.note(f"streaming {scan.view.table_key}")
    if not constants_hold(run, pattern.constants):
        scan = _Scan(run, scan.view, (), is_empty=True)
    return _groups(run, plan, scan) if plan.is_grouped else _rows(run, plan, scan)


class _Scan:
    """The rows of one table that every predicate keeps, batch by batch."""

    def __init__(
        self,
        run: Run,
        view: TableView,
        predicates: Sequence[Predicate],
        *,
        is_empty: bool = False,
    ) -> None:
        self.view = view
        self._run = run
        self._is_empty = is_empty
        self._pushed, self._checked = split_pushable(run, view, predicates)

    def batches(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Tables of these columns, none of them large."""
        if self._is_empty:
            return
        read = list(dict.fromkeys([*names, *_property_names(self._checked)])) or ["id"]
        width = sum(self.view.row_bytes(name) for name in read)
        rows = int(np.clip(BATCH_BYTES // max(width, 1), 1, _BATCH_ROWS_MAX))
        for batch in self.view.batches(read, self._pushed, rows=rows):
            kept = self._filter(batch)
            if kept.num_rows:
                yield pa.Table.from_batches([kept])

    def _filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for each in self._checked:
            count_tried(self._run, each, batch.num_rows)
            true, _ = decide(each, TableColumns(self._run.values, batch))
            batch = batch.filter(pa.array(true))
        return batch


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The rows of one table, at hand."""

    values: Values
    table: pa.Table | pa.RecordBatch

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    def property(self, ref: PropertyRef) -> pa.Array:
        column = self.table.column(ref.property)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def search(self, match: TextMatch) -> BoolArray:
        raise AssertionError(f"{match} is not streamed")

    def take(self, indices: IntArray) -> TableColumns:
        return TableColumns(self.values, self.table.take(pa.array(indices)))


def _names(plan: Plan, predicates: Sequence[Predicate]) -> list[str]:
    read: list[Projected | SortKey] = [item.expression for item in plan.returns]
    read += [plan.resolve_alias(item.expression) for item in plan.order]
    return [*_property_names(predicates), *(name for each in read for name in _columns_of(each))]


def _property_names(predicates: Sequence[Predicate]) -> list[str]:
    return [ref.property for each in predicates for ref in predicate_refs(each)]


def _columns_of(expression: Projected | SortKey) -> Iterator[str]:
    """The columns of the table that an expression is made of."""
    match expression:
        case NodeRef() | Aggregate(argument=NodeRef()):
            yield "id"
        case AliasRef() | Nearest() | Bm25() | Rrf():
            return
        case _:
            yield from (ref.property for ref in expression_refs(expression))


def _name(expression: object) -> str | None:
    match expression:
        case PropertyRef(_, name):
            return name
        case NodeRef():
            return "id"
        case _:
            return None


# Rows


def _rows(run: Run, plan: Plan, scan: _Scan) -> list[pa.Array]:
    expressions = [item.expression for item in plan.returns]
    keys = [plan.resolve_alias(item.expression) for item in plan.order]
    # Ties are broken by the id of the only variable.
    wanted = [*expressions, *keys] if not plan.order else [*expressions, *keys, NodeRef("", "")]
    names = list(dict.fromkeys(name for each in wanted for name in _columns_of(each)))
    held: list[pa.Table] = []
    count = size = 0
    for batch in scan.batches(names):
        held.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        require_bytes(size)
        if plan.limit is not None and not plan.order and count >= plan.limit:
            break
        if plan.limit is not None and count > _ROWS_BEFORE_CUTTING * max(plan.limit, 1_024):
            held = [_order(run, plan, pa.concat_tables(held))]
            count, size = held[0].num_rows, held[0].nbytes
    run.note("streamed", count)
    if not held:
        return [pa.array([], column_type(expression)) for expression in expressions]
    rows = _order(run, plan, pa.concat_tables(held)).slice(0, plan.limit)
    return [_project(run, expression, rows) for expression in expressions]


def _order(run: Run, plan: Plan, rows: pa.Table) -> pa.Table:
    """The rows in order, at most as many as the limit."""
    if not plan.order:
        return rows
    columns: list[SortColumn] = []
    for item in plan.order:
        key = plan.resolve_alias(item.expression)
        if not isinstance(key, (Constant, Param, Aggregate, AliasRef, Nearest, Bm25, Rrf)):
            numbers = to_sort_keys(_project(run, key, rows))
            columns.append(array_column(numbers, descending=item.descending))
    columns.append(array_column(to_sort_keys(rows.column("id").combine_chunks())))
    indices: IntArray = sort_indices(columns, rows.num_rows, plan.limit)[: plan.limit]
    return rows.take(pa.array(indices))


def _project(run: Run, expression: Projected, rows: pa.Table) -> pa.Array:
    name = _name(expression)
    if name is not None:
        return rows.column(name).combine_chunks()
    if isinstance(expression, ObjectRef):
        return make_objects(expression, TableColumns(run.values, rows).property)
    assert not isinstance(expression, (NodeRef, *_NOT_STREAMED))
    if isinstance(expression, (Constant, Param)):
        return repeat_value(run.values.to_column_type(expression), rows.num_rows)
    return evaluate(expression, TableColumns(run.values, rows)).cast(column_type(expression))


# Groups


def _groups(run: Run, plan: Plan, scan: _Scan) -> list[pa.Array] | None:
    keys = [each.expression for each in plan.returns if _name(each.expression) is not None]
    aggregates = [
        item.expression for item in plan.returns if isinstance(item.expression, Aggregate)
    ]
    key_names = list(filter(None, map(_name, keys)))
    partials = Partials(run.values, key_names, aggregates)
    read = [*key_names, *filter(None, (_name(each.argument) for each in aggregates))]
    names = list(dict.fromkeys(read))
    for batch in scan.batches(names):
        partials.add(batch)
    run.note("streamed", partials.rows)
    if partials.rows == 0:
        return None
    key_columns, values = partials.finish()
    found: dict[object, pa.Array] = dict(
        zip([*keys, *aggregates], [*key_columns, *values], strict=True)
    )
    order = [(plan.resolve_alias(item.expression), item.descending) for item in plan.order]
    columns = [
        array_column(to_sort_keys(found[key]), descending=descending)
        for key, descending in order
        if key in found
    ]
    columns += [array_column(to_sort_keys(column)) for column in key_columns]
    indices = np.arange(partials.groups)
    if plan.order:
        indices = sort_indices(columns, partials.groups, plan.limit)
    chosen = pa.array(indices[: plan.limit])
    return [
        repeat_value(run.values.to_column_type(each), len(chosen))
        if isinstance(each, (Constant, Param))
        else found[each].take(chosen)
        for each in (item.expression for item in plan.returns)
    ]
