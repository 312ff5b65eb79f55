"""Returns of the reference evaluator: groups, `having`, distinct rows, order, in plain Python.

Every value is looked at row by row, lists are Python lists and objects are dicts. It shares no code
with the executor, and decides ties by itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import (
    GROUP_VARIABLE,
    TYPE_PROPERTY,
    Aggregate,
    AliasRef,
    Bm25,
    Collect,
    GroupColumn,
    Nearest,
    NodeRef,
    Param,
    Predicate,
    Rrf,
)
from omnigraph.ir.query import HIDDEN_PREFIX, OrderItem, QueryIR
from omnigraph.testing.walks import ScoreEntity
from omnigraph.types import PropertyType, Scalar

Entity = dict[str, Any]
Row = dict[str, Entity]
"""What each variable is bound to; a variable that is null has no columns."""
_RANKINGS = (Nearest, Bm25, Rrf)


@dataclass(frozen=True, slots=True)
class Reader:
    """How an expression is read in a row, a condition decided, and rows are ranked."""

    value: Callable[[object, Row], Any]
    holds: Callable[[Predicate, Row], bool]
    rank: Callable[[Any, list[Row]], list[Row]]


def return_rows(ir: QueryIR, rows: list[Row], read: Reader) -> list[dict[str, Any]]:
    """The rows of the result by column name, all of them, in order when there is one."""
    if ir.is_grouped:
        return _return_groups(ir, rows, read)
    rows = order_rows(ir.order, rows, read, lambda key: _resolve(ir, key))
    return [{i.column: _shown(i.expression, row, read) for i in ir.returns} for row in rows]


def _shown(expression: object, row: Row, read: Reader) -> Any:
    """A value as a column has it: a parameter at the width of its type."""
    value = read.value(expression, row)
    return at_width(value, expression.type) if isinstance(expression, Param) else value


def at_width(value: Any, column: PropertyType) -> Any:
    """A float rounded to F32 when the column it meets is one; anything else as it is."""
    if column.scalar is Scalar.F32 and isinstance(value, float):
        return float(struct.unpack("f", struct.pack("f", value))[0])
    return value


def order_rows(
    order: Iterable[OrderItem],
    rows: list[Row],
    read: Reader,
    resolve: Callable[[object], object] = lambda key: key,
) -> list[Row]:
    """The rows by these keys, then by the ids of all variables; a ranking decides alone."""
    keys = [(resolve(item.expression), item.descending) for item in order]
    if not keys:
        return rows
    if isinstance(keys[0][0], _RANKINGS):
        return read.rank(keys[0][0], rows)
    return _sort(rows, keys, read)


def _sort(rows: list[Row], keys: list[tuple[Any, bool]], read: Reader) -> list[Row]:
    rows = sorted(rows, key=tie)
    for key, descending in reversed(keys):
        rows.sort(
            key=lambda row, of=key: sortable(read.value(of, row)),  # type: ignore[misc]
            reverse=descending,
        )
    return rows


def tie(row: Row) -> list[Any]:
    """The ids of the variables of a row, in the order of their names."""
    return [tie_of(row[name]) for name in named(row)]


def tie_of(entity: Entity) -> tuple[Any, Any]:
    """The id of an entity; of equal ones the type decides."""
    return sortable(entity.get("id")), sortable(entity.get(TYPE_PROPERTY))


def named(row: Row) -> list[str]:
    """The nodes, edges and paths of a row; a score is none."""
    names = (name for name in row if not name.startswith(HIDDEN_PREFIX))
    return sorted(name for name in names if not isinstance(row[name], ScoreEntity))


def identify(entity: Entity) -> tuple[Any, Any]:
    """What tells an entity apart: its type and its id."""
    return entity.get(TYPE_PROPERTY), entity.get("id")


def sortable(value: Any) -> tuple[bool, Any]:
    """A value that Python can sort: null first, lists and objects element by element."""
    match value:
        case None:
            return False, 0
        case str():
            return True, value.encode()
        case list() | tuple():
            return True, tuple(sortable(each) for each in value)
        case dict():
            return True, tuple(sortable(each) for each in value.values())
    return True, value


@dataclass(frozen=True, slots=True)
class _Cell:
    """A value of a group, and what tells it apart and sorts it: of a variable id and type."""

    value: Any
    tie: Any
    is_key: bool = False


def _return_groups(ir: QueryIR, rows: list[Row], read: Reader) -> list[dict[str, Any]]:
    groups = _group([item.expression for item in ir.returns], rows, read)
    order, is_distinct = ir.order, False
    if ir.finish is not None:
        order, is_distinct = ir.finish.order, ir.finish.is_distinct
        groups = [g for g in groups if all(read.holds(c, _as_row(g)) for c in ir.finish.having)]
    answers = [(_show(ir, group, read), group) for group in groups]
    if is_distinct:
        answers = list({tuple(c.tie for c in cells): (cells, g) for cells, g in answers}.values())
    if order:
        answers.sort(key=lambda answer: [c.tie for c in answer[0] if c.is_key or is_distinct])
    for item in reversed(order):
        answers.sort(
            key=lambda answer, of=item.expression: sortable(_key(ir, of, answer, read)),  # type: ignore[misc]
            reverse=item.descending,
        )
    return [
        {item.column: cell.value for item, cell in zip(ir.columns, cells, strict=True)}
        for cells, _ in answers
    ]


def _show(ir: QueryIR, group: list[_Cell], read: Reader) -> list[_Cell]:
    """The columns of the result: keys and aggregates, and what is computed of them."""
    if ir.finish is None:
        return group
    return [_over_group(item.expression, group, read) for item in ir.finish.returns]


def _over_group(expression: object, group: list[_Cell], read: Reader) -> _Cell:
    if isinstance(expression, GroupColumn):
        return group[expression.place]
    value = read.value(expression, _as_row(group))
    return _Cell(value, sortable(value))


def _key(ir: QueryIR, key: object, answer: tuple[list[_Cell], list[_Cell]], read: Reader) -> object:
    cells, group = answer
    if ir.finish is not None:
        return _over_group(key, group, read).value
    wanted = _resolve(ir, key)
    return next(
        cell.value
        for cell, item in zip(cells, ir.returns, strict=True)
        if item.expression == wanted
    )


def _as_row(group: list[_Cell]) -> Row:
    """A group as the row that expressions over groups read."""
    return {GROUP_VARIABLE: {str(place): cell.value for place, cell in enumerate(group)}}


def _group(columns: list[Any], rows: list[Row], read: Reader) -> list[list[_Cell]]:
    """The keys and aggregates of each group; without keys there is one group, of all rows."""
    keys = [each for each in columns if not isinstance(each, (Aggregate, Collect))]
    groups: dict[tuple[Any, ...], list[Row]] = {} if keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(_tell_apart(key, row, read) for key in keys), []).append(row)
    return [[_cell(each, members, read) for each in columns] for members in groups.values()]


def _tell_apart(expression: object, row: Row, read: Reader) -> Any:
    """What equal values have in common; of a variable it is the entity."""
    if isinstance(expression, NodeRef):
        return tie_of(row[expression.variable])
    return sortable(read.value(expression, row))


def _cell(expression: object, rows: list[Row], read: Reader) -> _Cell:
    match expression:
        case Aggregate():
            value = _aggregate(expression, rows, read)
            return _Cell(value, sortable(value))
        case Collect():
            value = _collect(expression, rows, read)
            return _Cell(value, sortable(value))
    row = rows[0]
    return _Cell(_shown(expression, row, read), _tell_apart(expression, row, read), is_key=True)


def _aggregate(aggregate: Aggregate, rows: list[Row], read: Reader) -> Any:
    argument = aggregate.argument
    rows = [row for row in rows if read.value(argument, row) is not None]
    known = [read.value(argument, row) for row in rows]
    match aggregate.function.value:
        case "count" if aggregate.is_distinct:
            return len({_tell_apart(argument, row, read) for row in rows})
        case "count":
            return len(known)
        case "sum":
            return float(sum(known)) if known else None
        case "avg":
            return float(sum(known)) / len(known) if known else None
        case "min":
            return min(known, default=None, key=sortable)
    return max(known, default=None, key=sortable)


def _collect(collect: Collect, rows: list[Row], read: Reader) -> list[Any]:
    found, seen = [], set()
    for row in _sort(rows, list(collect.order), read):
        value = read.value(collect.argument, row)
        mark = _tell_apart(collect.argument, row, read)
        if value is not None and not (collect.is_distinct and mark in seen):
            seen.add(mark)
            found.append(value)
    return found


def _resolve(ir: QueryIR, key: object) -> object:
    if isinstance(key, AliasRef):
        return next(item.expression for item in ir.returns if item.alias == key.alias)
    return key
