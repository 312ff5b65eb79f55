"""Filters: predicates over one variable become selections, others are checked on rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ResourceLimitError
from omnigraph.executor.evaluate import Columns, Given, decide, evaluate
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.executor.values import Values
from omnigraph.executor.views import NullableView, UnionView, View, join_selections
from omnigraph.index import Selection, TableView
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.query_memory import BYTES_HELD, little_room
from omnigraph.ir.expressions import (
    TYPE_PROPERTY,
    And,
    Compare,
    CompareKind,
    Constant,
    IsIn,
    IsNull,
    Not,
    Or,
    Param,
    Plain,
    Predicate,
    PropertyRef,
    TextMatch,
)
from omnigraph.ir.variables import count_tests, has_search, predicate_refs
from omnigraph.planner.pattern import Pattern
from omnigraph.storage import predicates as stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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

BYTES_PER_PART = 64 * 1024**2


def select_positions(
    run: Run, view: TableView | UnionView, predicates: Sequence[Predicate]
) -> Selection:
    """The positions where every predicate is TRUE."""
    if isinstance(view, UnionView):
        return _select_in_union(run, view, predicates)
    selection = Selection(view.size)
    pushed, others = split_pushable(run, view, predicates)
    if pushed:
        selection = view.select(pushed)
    for predicate in others:
        count_tried(run, predicate, selection.count)
        selection = selection.intersect(_check(run, view, predicate, selection))
    return selection


def split_pushable(
    run: Run, view: TableView, predicates: Sequence[Predicate]
) -> tuple[list[stored.Predicate], list[Predicate]]:
    """Those that the storage layer decides, counted as tried on every row, and the others."""
    pushed: list[stored.Predicate] = []
    others: list[Predicate] = []
    for predicate in predicates:
        known = to_stored_predicate(run, predicate)
        if known is None:
            others.append(predicate)
        else:
            pushed.append(known)
            run.look_at(view.size * _count_more(known))
    return pushed, others


def count_tried(run: Run, predicate: Predicate, rows: int) -> None:
    """Count the tests of a condition beside its first, each on this many rows."""
    run.look_at(rows * (count_tests(predicate) - 1))


def _count_more(predicate: stored.Predicate) -> int:
    """How many tests each row meets beside the first; of a few values, each is looked up."""
    is_looked_up = bool(stored.list_equalities(predicate))
    return 0 if is_looked_up else sum(1 for _ in stored.leaves(predicate)) - 1


def _select_in_union(run: Run, view: UnionView, predicates: Sequence[Predicate]) -> Selection:
    """Decide per type what its table can; the type itself, and searches, on the whole."""
    own = [each for each in predicates if not has_search(each) and not _reads_type(each)]
    found = [select_positions(run, part, own) for part in view.parts]
    selection = join_selections(view, found) if found else Selection(0)
    for predicate in predicates:
        if has_search(predicate) or _reads_type(predicate):
            positions = selection.positions()
            kept = _decide_in_parts(ViewColumns(run, view, positions), predicate)
            selection = Selection(view.size, positions=positions[kept])
    return selection


def _reads_type(predicate: Predicate) -> bool:
    return any(ref.property == TYPE_PROPERTY for ref in predicate_refs(predicate))


def constants_hold(run: Run, predicates: Iterable[Predicate]) -> bool:
    """Whether every predicate that reads no variable is TRUE."""
    return all(bool(decide(each, NoColumns(run.values))[0][0]) for each in predicates)


def rows_where(run: Run, pattern: Pattern, predicate: Predicate, rows: Rows) -> BoolArray:
    """Where a predicate over several variables is TRUE."""
    match predicate:
        case Compare(PropertyRef() as left, kind, PropertyRef() as right) if _is_one_key(
            run, pattern, left, right, kind
        ):
            # Of one type, equal keys are one node.
            compare_nodes = np.not_equal if kind is CompareKind.NOT_EQUAL else np.equal
            return np.asarray(compare_nodes(rows.nodes[left.variable], rows.nodes[right.variable]))
        case _:
            count_tried(run, predicate, rows.count)
            return _decide_in_parts(RowColumns(run, pattern, rows), predicate)


def _decide_in_parts(rows: Columns, predicate: Predicate) -> BoolArray:
    """Where a predicate is TRUE: rows with long texts are read in several parts."""
    if rows.count > 1:
        try:
            with little_room(BYTES_PER_PART):
                return decide(predicate, rows)[0]
        except ResourceLimitError as error:
            if error.resource != BYTES_HELD:
                raise
        places = np.array_split(np.arange(rows.count), 2)
        return np.concatenate([_decide_in_parts(rows.take(each), predicate) for each in places])
    return decide(predicate, rows)[0]


def _is_one_key(
    run: Run, pattern: Pattern, left: PropertyRef, right: PropertyRef, kind: CompareKind
) -> bool:
    """Whether two nodes of a type are compared by its key, as equal or unequal."""
    types = pattern.node_type(left.variable), pattern.node_type(right.variable)
    if types[0] is None or types[0] != types[1] or left.property != right.property:
        return False
    if left.variable in pattern.nullable or right.variable in pattern.nullable:
        return False
    declared = run.catalog.node(types[0])
    is_key = declared is not None and declared.key == (left.property,)
    return is_key and kind in (CompareKind.EQUAL, CompareKind.NOT_EQUAL)


def property_values(run: Run, pattern: Pattern, ref: PropertyRef, rows: Rows) -> pa.Array:
    """The values of a property in every row."""
    view = run.view_of(ref.variable, pattern)
    return view.values([ref.property], rows.positions(ref.variable))[ref.property]


def _value(run: Run, side: Plain) -> pa.Scalar:
    if isinstance(side, PropertyRef):
        raise BadRequestError(
            f"`${side.variable}.{side.property}` differs from row to row — "
            "give a literal or a parameter here"
        )
    return run.values.scalar(side)


class HasValues(Protocol):
    """Knows what the literals and parameters of a query stand for."""

    @property
    def values(self) -> Given: ...


def to_stored_predicate(run: HasValues, predicate: Predicate) -> stored.Predicate | None:
    """The same predicate for the storage layer; None when it has no such predicate."""
    match predicate:
        case Compare(_, CompareKind.ENDS_WITH):
            return None
        case Compare(PropertyRef(_, column), kind, Constant() | Param() as side):
            return _to_stored_compare(column, kind, run.values.scalar(side))
        case Compare(Constant() | Param() as side, kind, PropertyRef(_, column)):
            value = run.values.scalar(side)
            if kind in _OPERATORS:
                return stored.Compare(column, _MIRRORED[_OPERATORS[kind]], value)
            if kind is CompareKind.LIST_CONTAINS and value.is_valid:
                return stored.IsIn(column, value.values)
        case IsIn(PropertyRef(_, column), values):
            members = run.values.scalar(values)
            return stored.IsIn(column, members.values) if members.is_valid else _unknown(column)
        case IsNull(PropertyRef(_, column)):
            return stored.IsNull(column)
        case Not(part):
            inner = to_stored_predicate(run, part)
            return None if inner is None else stored.Not(inner)
        case And(parts):
            all_known = _to_stored_parts(run, parts)
            return None if all_known is None else stored.And(all_known)
        case Or(parts):
            all_known = _to_stored_parts(run, parts)
            return None if all_known is None else stored.Or(all_known)
    return None


def _to_stored_parts(
    run: HasValues, parts: Iterable[Predicate]
) -> tuple[stored.Predicate, ...] | None:
    known = [to_stored_predicate(run, part) for part in parts]
    return None if None in known else tuple(filter(None, known))


def _unknown(column: str) -> stored.Predicate:
    """Unknown in every row, whatever is said about it."""
    return stored.Known(column, None)


def _to_stored_compare(column: str, kind: CompareKind, value: pa.Scalar) -> stored.Predicate:
    if kind in _OPERATORS:
        return stored.Compare(column, _OPERATORS[kind], value)
    if not value.is_valid:
        return _unknown(column)
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
        case _:
            positions = selection.positions()
            kept = _decide_in_parts(ViewColumns(run, view, positions), predicate)
            return Selection(view.size, positions=positions[kept])


def _select_text(run: Run, view: View, match: TextMatch, query: str | None) -> Selection:
    from omnigraph.executor.search import match_text

    if isinstance(view, NullableView):
        found = _select_text(run, view.base, match, query)
        return Selection(view.size, positions=found.positions())
    if isinstance(view, UnionView):
        return join_selections(
            view, [_select_in_part(run, each, match, query) for each in view.parts]
        )
    assert isinstance(view, TableView), "a path has no text"
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


def _select_in_part(run: Run, view: TableView, match: TextMatch, query: str | None) -> Selection:
    """The same in one type of an interface: its texts may be in a language of their own."""
    language = run.catalog.text_language(view.table_key, match.target.property)
    return _select_text(run, view, replace(match, language=language), query)


def _search_rows(
    run: Run, view: View, match: TextMatch, positions: IntArray, queries: pa.Array
) -> BoolArray:
    """Where a search finds the text beside it: once for each distinct text."""
    texts = queries.dictionary_encode()
    codes = texts.indices.fill_null(-1).to_numpy()
    answer = np.zeros(len(positions), dtype=bool)
    for code, query in enumerate(texts.dictionary.to_pylist()):
        here = codes == code
        answer[here] = _select_text(run, view, match, query).contains(positions[here])
    return answer


@dataclass(frozen=True, slots=True)
class NoColumns:
    """One row that binds nothing: for what is the same in all rows."""

    values: Values
    count: int = 1

    def property(self, ref: PropertyRef) -> pa.Array:
        raise AssertionError(f"{ref} differs from row to row")

    def search(self, match: TextMatch) -> BoolArray:
        raise AssertionError(f"{match} differs from row to row")

    def take(self, indices: IntArray) -> NoColumns:
        return NoColumns(self.values, len(indices))


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """Positions of one type or interface: every property is one of its columns."""

    run: Run
    view: TableView | UnionView
    positions: IntArray

    @property
    def values(self) -> Values:
        return self.run.values

    @property
    def count(self) -> int:
        return len(self.positions)

    def property(self, ref: PropertyRef) -> pa.Array:
        return self.view.values([ref.property], self.positions)[ref.property]

    def search(self, match: TextMatch) -> BoolArray:
        queries = evaluate(match.query, self)
        return _search_rows(self.run, self.view, match, self.positions, queries)

    def take(self, indices: IntArray) -> ViewColumns:
        return ViewColumns(self.run, self.view, self.positions[indices])


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Rows of bindings: every property is a column of its variable's table."""

    run: Run
    pattern: Pattern
    rows: Rows

    @property
    def values(self) -> Values:
        return self.run.values

    @property
    def count(self) -> int:
        return self.rows.count

    def property(self, ref: PropertyRef) -> pa.Array:
        return property_values(self.run, self.pattern, ref, self.rows)

    def search(self, match: TextMatch) -> BoolArray:
        view = self.run.view_of(match.target.variable, self.pattern)
        positions = self.rows.positions(match.target.variable)
        return _search_rows(self.run, view, match, positions, evaluate(match.query, self))

    def take(self, indices: IntArray) -> RowColumns:
        return RowColumns(self.run, self.pattern, self.rows.take(indices))
