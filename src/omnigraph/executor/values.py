"""Values: the literals and parameters of a query as Arrow scalars.

Numbers keep their natural width (I64, F64), so that a comparison is exact with any other type.
Date and DateTime texts are read here, which is when the language says they are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequestError
from omnigraph.executor.members import Members, make_members
from omnigraph.ir.expressions import (
    Bm25,
    Collect,
    Constant,
    GroupColumn,
    Nearest,
    NodeRef,
    ObjectRef,
    Param,
    Projected,
    PropertyRef,
    Rrf,
    TextMatch,
)
from omnigraph.syntax.query_tree import DateText, DateTimeText, ListLiteral
from omnigraph.types import PropertyType, Scalar, parse_date, parse_datetime

Value = Constant | Param

_TEXT = pa.utf8()


class Values:
    """The value of every literal and parameter of one execution, those of `values_of` its query."""

    def __init__(self, values: Iterable[Value], params: Mapping[str, Any]) -> None:
        self._params = params
        # By identity: the query holds them, and comparing typed values costs more than this does.
        # All of them now: a malformed date is an error even when no row is ever compared with it.
        self._scalars = {id(value): _scalar(value.type, self._plain(value)) for value in values}
        self._members: dict[tuple[int, bool], Members | None] = {}

    def scalar(self, value: Value) -> pa.Scalar:
        """The value, null when a parameter is."""
        found = self._scalars.get(id(value))
        return _scalar(value.type, self._plain(value)) if found is None else found

    def members(self, value: Value, *, is_narrow: bool) -> Members | None:
        """The values of a list, floats at 32 bits if `is_narrow`; None for null."""
        key = id(value), is_narrow
        if key not in self._members:
            found = make_members(self.scalar(value), is_narrow=is_narrow)
            if id(value) not in self._scalars:
                return found
            self._members[key] = found
        return self._members[key]

    def to_column_type(self, value: Value) -> pa.Scalar:
        """The value in the type its result column has."""
        scalar = self.scalar(value)
        wanted = value.type.arrow_type()
        if scalar.type == wanted:
            return scalar
        if value.type.is_vector:
            return pa.scalar(scalar.as_py(), wanted)
        return scalar.cast(wanted)

    def _plain(self, value: Value) -> Any:
        match value:
            case Constant(literal):
                return literal
            case Param(name):
                if name not in self._params:
                    raise BadRequestError(f"parameter '{name}' not provided")
                return self._params[name]
            case _:
                assert_never(value)


def column_type(expression: Projected) -> pa.DataType:
    """The type of a result column; a node is shown as its id."""
    match expression:
        case NodeRef():
            return pa.utf8()
        case ObjectRef(fields=fields):
            return pa.struct([(each.property, each.type.arrow_type()) for each in fields])
        case Collect(argument):
            return pa.list_(column_type(argument))
        case Nearest() | Bm25() | Rrf():
            return pa.float64()
        case GroupColumn(shows=shows):
            return column_type(shows)
        case _:
            return expression.type.arrow_type()


def _scalar(type_: PropertyType, value: Any) -> pa.Scalar:
    if type_.is_vector:
        items = value.items if isinstance(value, ListLiteral) else value
        # What is too large for F32 becomes infinite, and the search refuses it by name.
        with np.errstate(over="ignore"):
            floats = None if items is None else np.asarray(items, dtype=np.float32)
        return pa.scalar(floats, pa.list_(pa.float32()))
    if type_.is_list:
        items = value.items if isinstance(value, ListLiteral) else value
        element = _natural(type_.scalar)
        if items is None:
            return pa.scalar(None, pa.list_(element))
        members = items
        if type_.scalar in (Scalar.DATE, Scalar.DATETIME):
            # Not by way of Python's values: a date of Python has no time of day.
            members = [_one(type_.scalar, item) for item in items]
        ends = pa.array([0, len(members)], pa.int32())
        return pa.ListArray.from_arrays(ends, pa.array(members, element))[0]
    return _one(type_.scalar, value)


def _one(scalar: Scalar, value: Any) -> pa.Scalar:
    if scalar is Scalar.STRING:
        return pa.scalar(value, _TEXT)
    natural = _natural(scalar)
    if value is None:
        return pa.scalar(None, natural)
    if scalar is Scalar.DATE:
        text = value.text if isinstance(value, DateText) else value
        return pa.scalar(parse_date(text), pa.int32()).cast(natural)
    if scalar is Scalar.DATETIME:
        text = value.text if isinstance(value, DateTimeText) else value
        ticks = text if isinstance(text, int) else parse_datetime(text)
        return pa.scalar(ticks, pa.int64()).cast(natural)
    return pa.scalar(value, natural)


def _natural(scalar: Scalar) -> pa.DataType:
    if scalar.is_integer:
        return pa.int64()
    if scalar.is_float:
        return pa.float64()
    return PropertyType(scalar).arrow_type()


def values_of(part: object) -> Iterator[Value]:
    """Every literal and parameter that a query, or a part of it, mentions."""
    yield from _parts_of(part, (Constant, Param))


def properties_of(part: object) -> Iterator[PropertyRef]:
    """Every property that a query, or a part of it, reads."""
    yield from _parts_of(part, (PropertyRef,))


def searches_of(part: object) -> Iterator[TextMatch]:
    """Every text search of a query, or a part of it."""
    yield from _parts_of(part, (TextMatch,))


def _parts_of(part: object, kinds: tuple[type, ...]) -> Iterator[Any]:
    if isinstance(part, kinds):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _parts_of(each, kinds)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _parts_of(getattr(part, field.name), kinds)
