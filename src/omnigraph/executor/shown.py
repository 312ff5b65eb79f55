"""Shown columns: what is returned, or grouped by, in every row; of a large result counted first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.evaluate import evaluate, repeat_value
from omnigraph.executor.objects import make_objects
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.executor.score_columns import Fused, score_rows
from omnigraph.executor.values import Values, column_type
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.query_memory import measure, require_bytes
from omnigraph.ir.expressions import (
    Arithmetic,
    Bm25,
    Call,
    Case,
    Constant,
    Minus,
    Nearest,
    NodeRef,
    Null,
    ObjectRef,
    Param,
    Projected,
    PropertyRef,
    Rrf,
    TextMatch,
    Truth,
)
from omnigraph.ir.variables import expression_refs
from omnigraph.planner.pattern import Pattern

_COMPUTED = (Constant, Param, Null, Arithmetic, Minus, Call, Case, Truth)


def show_columns(
    run: Run,
    pattern: Pattern,
    expressions: Sequence[Projected],
    rows: Rows,
    fused: Fused | None = None,
) -> list[pa.Array]:
    """The values of every expression in every row; each table is read once."""
    names: dict[str, dict[str, None]] = {}
    for expression in expressions:
        if isinstance(expression, NodeRef):
            names.setdefault(expression.variable, {})["id"] = None
        if isinstance(expression, (Nearest, Bm25, Rrf)):
            continue
        for ref in expression_refs(expression):
            names.setdefault(ref.variable, {})[ref.property] = None
    fetched: dict[str, dict[str, pa.Array]] = {}
    size, is_counted = 0, rows.count > 1
    for variable, wanted in names.items():
        found = run.view_of(variable, pattern).values(list(wanted), rows.positions(variable))
        if is_counted:
            size += measure(found.values())
            require_bytes(size)
        fetched[variable] = found
    run.note("fetched", rows.count)
    columns: list[pa.Array] = []
    for expression in expressions:
        if isinstance(expression, (Nearest, Bm25, Rrf)):
            columns.append(score_rows(run, pattern, expression, rows, fused or {}))
            continue
        columns.append(_column(run, expression, fetched, rows.count))
        if is_counted and isinstance(expression, _COMPUTED):
            size += measure(columns[-1:])
            require_bytes(size)
    return columns


def _column(
    run: Run, expression: Projected, fetched: dict[str, dict[str, pa.Array]], rows: int
) -> pa.Array:
    match expression:
        case PropertyRef(variable, name):
            return fetched[variable][name]
        case NodeRef(variable):
            return fetched[variable]["id"]
        case Constant() | Param():
            return repeat_value(run.values.to_column_type(expression), rows)
        case ObjectRef():
            return make_objects(expression, lambda ref: fetched[ref.variable][ref.property])
        case Null() | Arithmetic() | Minus() | Call() | Case() | Truth():
            values = evaluate(expression, FetchedColumns(run.values, fetched, rows))
            return values.cast(column_type(expression))
        case _:
            raise AssertionError("groups and scores are projected elsewhere")


@dataclass(frozen=True, slots=True)
class FetchedColumns:
    """The columns of a result's rows, by variable and property."""

    values: Values
    fetched: Mapping[str, Mapping[str, pa.Array]]
    count: int

    def property(self, ref: PropertyRef) -> pa.Array:
        return self.fetched[ref.variable][ref.property]

    def search(self, match: TextMatch) -> BoolArray:
        raise AssertionError(f"{match} is no value")

    def take(self, indices: IntArray) -> FetchedColumns:
        require_bytes(sum(measure(columns.values()) for columns in self.fetched.values()))
        places = pa.array(indices)
        taken = {
            variable: {name: column.take(places) for name, column in columns.items()}
            for variable, columns in self.fetched.items()
        }
        return FetchedColumns(self.values, taken, len(indices))
