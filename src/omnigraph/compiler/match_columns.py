"""Match columns: what the statements after a `match` want to know of each matched row.

Values are those of the graph before the query, so the match itself projects them: its result has
one column per different value, and the statements name the columns.
"""

from __future__ import annotations

from omnigraph.catalog.model import EdgeType
from omnigraph.compiler.scope import ID, ID_TYPE, Bound
from omnigraph.compiler.walk import walk
from omnigraph.ir.expressions import TYPE_PROPERTY, Constant, NodeRef, Projected, PropertyRef
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.ir.mutations import MATCHED
from omnigraph.ir.print import format_expression
from omnigraph.ir.query import ReturnItem
from omnigraph.types import PropertyType, Scalar


class MatchColumns:
    """The projections of a match that are asked for so far."""

    def __init__(self) -> None:
        self._columns: dict[str, Projected] = {}

    def add_id(self, variable: str, owner: Bound) -> PropertyRef:
        """The column with the ids of a variable."""
        if isinstance(owner, EdgeType):
            return self._add(PropertyRef(variable, ID, ID_TYPE), ID_TYPE)
        return self._add(NodeRef(variable, owner.name), ID_TYPE)

    def add_type(self, variable: str) -> PropertyRef:
        """The column with the names of the types of an interface variable."""
        return self._add(PropertyRef(variable, TYPE_PROPERTY, ID_TYPE), ID_TYPE)

    def project(self, value: Operand | NodeRef) -> Operand:
        """The column with a value; what is the same in all rows needs none."""
        if isinstance(value, NodeRef):
            return self._add(value, ID_TYPE)
        if not any(hasattr(each, "variable") for each in walk(value)):
            return value
        return self._add(value, value.type)

    def list_items(self) -> tuple[ReturnItem, ...]:
        """What the match returns: something in any case, since its rows count."""
        columns = self._columns or {"1": Constant(1, PropertyType(Scalar.I64))}
        return tuple(ReturnItem(value, name) for name, value in columns.items())

    def _add(self, value: Projected, type_: PropertyType) -> PropertyRef:
        name = format_expression(value)
        self._columns[name] = value
        return PropertyRef(MATCHED, name, type_)
