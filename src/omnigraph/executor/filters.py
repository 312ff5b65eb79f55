"""Filters: predicates over one variable become selections, others are checked on rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequestError
from omnigraph.executor.compare import Side, compare
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.index import Selection, TableView
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.ir.expressions import (
    Compare,
    CompareKind,
    Constant,
    Param,
    Predicate,
    PropertyRef,
    SameNode,
    Scalar,
    TextMatch,
)
from omnigraph.planner.pattern import Pattern
from omnigraph.storage import predicates as stored

if TYPE_CHECKING:
    from collections.abc import Iterable

_OPERATORS = {
    CompareKind.EQUAL: stored.CompareOp.EQ,
    CompareKind.NOT_EQUAL: stored.CompareOp.NE,
    CompareKind.LESS: stored.CompareOp.LT,
    CompareKind.LESS_EQUAL: stored.CompareOp.LE,
    CompareKind.GREATER: stored.CompareOp.GT,
    CompareKind.GREATER_EQUAL: stored.CompareOp.GE,
}
_MIRRORED = {
    stored.CompareOp.EQ: stored.CompareOp.EQ,
    stored.CompareOp.NE: stored.CompareOp.NE,
    stored.CompareOp.LT: stored.CompareOp.GT,
    stored.CompareOp.LE: stored.CompareOp.GE,
    stored.CompareOp.GT: stored.CompareOp.LT,
    stored.CompareOp.GE: stored.CompareOp.LE,
}


def select_positions(run: Run, view: TableView, predicates: Iterable[Predicate]) -> Selection:
    """The positions of one table where every predicate is TRUE."""
    selection = Selection(view.size)
    pushed: list[stored.Predicate] = []
    others: list[Predicate] = []
    for predicate in predicates:
        known = to_stored_predicate(run, predicate)
        if known is None:
            others.append(predicate)
        else:
            pushed.append(known)
    if pushed:
        selection = view.select(pushed)
    for predicate in others:
        selection = selection.intersect(_check(run, view, predicate, selection))
    return selection


def constants_hold(run: Run, predicates: Iterable[Predicate]) -> bool:
    """Whether every predicate that reads no variable is TRUE."""
    return all(
        isinstance(each, Compare)
        and bool(compare(_value(run, each.left), each.kind, _value(run, each.right), 1)[0])
        for each in predicates
    )


def rows_where(run: Run, pattern: Pattern, predicate: Predicate, rows: Rows) -> BoolArray:
    """Where a predicate over several variables is TRUE."""
    match predicate:
        case Compare(PropertyRef() as left, kind, PropertyRef() as right) if _is_one_key(
            run, pattern, left, right, kind
        ):
            # Of one type, equal keys are one node.
            compare_nodes = np.not_equal if kind is CompareKind.NOT_EQUAL else np.equal
            return np.asarray(compare_nodes(rows.nodes[left.variable], rows.nodes[right.variable]))
        case Compare(left, kind, right):
            sides = [_side(run, pattern, side, rows) for side in (left, right)]
            return compare(sides[0], kind, sides[1], rows.count)
        case TextMatch():
            return _text_rows(run, pattern, predicate, rows)
        case SameNode():
            raise AssertionError("the planner turns these into closing hops")
        case _:
            assert_never(predicate)


def _is_one_key(
    run: Run, pattern: Pattern, left: PropertyRef, right: PropertyRef, kind: CompareKind
) -> bool:
    """Whether two nodes of a type are compared by its key, as equal or unequal."""
    types = pattern.nodes.get(left.variable), pattern.nodes.get(right.variable)
    if types[0] is None or types[0] != types[1] or left.property != right.property:
        return False
    is_key = run.catalog.nodes[types[0]].key == (left.property,)
    return is_key and kind in (CompareKind.EQUAL, CompareKind.NOT_EQUAL)


def property_values(run: Run, pattern: Pattern, ref: PropertyRef, rows: Rows) -> pa.Array:
    """The values of a property in every row."""
    view = run.view_of(ref.variable, pattern)
    return view.values([ref.property], rows.positions(ref.variable))[ref.property]


def _side(run: Run, pattern: Pattern, side: Scalar, rows: Rows) -> Side:
    if isinstance(side, PropertyRef):
        return property_values(run, pattern, side, rows)
    return run.values.scalar(side)


def _value(run: Run, side: Scalar) -> pa.Scalar:
    if isinstance(side, PropertyRef):
        raise BadRequestError(
            f"`${side.variable}.{side.property}` differs from row to row — "
            "give a literal or a parameter here"
        )
    return run.values.scalar(side)


def to_stored_predicate(run: Run, predicate: Predicate) -> stored.Predicate | None:
    """The same predicate for the storage layer; None when it has no such predicate."""
    match predicate:
        case Compare(PropertyRef(_, column), kind, Constant() | Param() as side):
            return _to_stored_compare(column, kind, run.values.scalar(side))
        case Compare(Constant() | Param() as side, kind, PropertyRef(_, column)):
            value = run.values.scalar(side)
            if kind in _OPERATORS:
                return stored.Compare(column, _MIRRORED[_OPERATORS[kind]], value)
            if kind is CompareKind.LIST_CONTAINS and value.is_valid:
                return stored.IsIn(column, value.values)
    return None


def _to_stored_compare(column: str, kind: CompareKind, value: pa.Scalar) -> stored.Predicate:
    if kind in _OPERATORS:
        return stored.Compare(column, _OPERATORS[kind], value)
    if not value.is_valid:
        return stored.Known(column, False)
    if kind is CompareKind.LIST_CONTAINS:
        return stored.ListContains(column, value)
    if kind is CompareKind.TEXT_CONTAINS:
        return stored.TextContains(column, value.as_py())
    return stored.TextStartsWith(column, value.as_py())


def _check(run: Run, view: TableView, predicate: Predicate, selection: Selection) -> Selection:
    """Check a predicate that the storage layer does not have, on the selected positions."""
    match predicate:
        case TextMatch(_, _, Constant() | Param() as query):
            return _select_text(run, view, predicate, run.values.scalar(query).as_py())
        case TextMatch(_, _, PropertyRef(_, column)):
            found = np.zeros(view.size, dtype=bool)
            queries = view.lookup.ranks(column)
            for rank in np.unique(queries.codes[selection.positions()]):
                if rank > 0:
                    text = queries.values[int(rank) - 1].as_py()
                    matching = _select_text(run, view, predicate, text).mask()
                    found |= matching & (queries.codes == rank)
            return Selection(view.size, mask=found)
        case Compare(left, kind, right):
            positions = selection.positions()
            sides = [_at(run, view, side, positions) for side in (left, right)]
            kept = compare(sides[0], kind, sides[1], len(positions))
            return Selection(view.size, positions=positions[kept])
        case _:
            raise AssertionError(f"{predicate} reads no single variable")


def _at(run: Run, view: TableView, side: Scalar, positions: IntArray) -> Side:
    if isinstance(side, PropertyRef):
        return view.values([side.property], positions)[side.property]
    return run.values.scalar(side)


def _select_text(run: Run, view: TableView, match: TextMatch, query: str | None) -> Selection:
    from omnigraph.executor.search import match_text

    max_edits = None
    if match.max_edits is not None:
        max_edits = _value(run, match.max_edits).as_py()
        if max_edits is None:
            return Selection.empty(view.size)
    if query is None:
        return Selection.empty(view.size)
    positions = match_text(view, match, query, max_edits)
    run.note(f"{match.function} on {match.target.property} of {view.table_key}", len(positions))
    return Selection(view.size, positions=np.sort(positions))


def _text_rows(run: Run, pattern: Pattern, match: TextMatch, rows: Rows) -> BoolArray:
    """A search whose text is a property of another variable: once for each distinct text."""
    assert isinstance(match.query, PropertyRef)
    view = run.view_of(match.target.variable, pattern)
    positions = rows.nodes[match.target.variable]
    queries = property_values(run, pattern, match.query, rows).dictionary_encode()
    codes = queries.indices.fill_null(-1).to_numpy()
    answer = np.zeros(rows.count, dtype=bool)
    for code, query in enumerate(queries.dictionary.to_pylist()):
        here = codes == code
        answer[here] = _select_text(run, view, match, query).contains(positions[here])
    return answer
