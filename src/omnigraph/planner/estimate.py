"""Estimates: how many nodes a variable may be bound to, and how many a hop leads to.

They come from the sizes of the tables, from cardinalities that the schema declares, and from a
share for each kind of predicate. They decide in which order things happen, never what is found.
"""

from __future__ import annotations

from dataclasses import field

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import Compare, CompareKind, Predicate, PropertyRef
from omnigraph.ir.query import Direction
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.plan import Statistics

_SHARE_OF_EQUAL = 0.1
_SHARE_OF_OTHER = 0.3


@dataclass(slots=True)
class Estimates:
    """What is expected of one pattern."""

    pattern: Pattern
    catalog: Catalog
    statistics: Statistics
    _rows: dict[str, float] = field(default_factory=dict)
    _fans: dict[tuple[int, str], float] = field(default_factory=dict)
    _across: list[tuple[frozenset[str], float]] = field(init=False)

    def __post_init__(self) -> None:
        self._across = [(predicate_variables(p), _share_across(p)) for p in self.pattern.across]

    def size(self, variable: str) -> float:
        """How many nodes the type of a variable has."""
        types = self.catalog.types_of(self.pattern.nodes[variable])
        return sum(self._count(f"node:{name}") for name in types)

    def rows(self, variable: str) -> float:
        """How many of them may match the variable's own filters."""
        found = self._rows.get(variable)
        if found is None:
            found = self._rows[variable] = self._estimate_rows(variable)
        return found

    def _estimate_rows(self, variable: str) -> float:
        rows = self.size(variable)
        declared = self.catalog.node(self.pattern.nodes[variable])
        key = None if declared is None else declared.key
        for predicate in self.pattern.filters.get(variable, ()):
            name = equality_property(predicate)
            if name is not None and key == (name,):
                return min(rows, 1.0)
            rows *= _share(predicate)
        return rows

    def share(self, variable: str) -> float:
        """The part of a type that a variable's filters keep."""
        return self.rows(variable) / max(self.size(variable), 1.0)

    def share_across(self, bound: frozenset[str], child: str) -> float:
        """The part of the rows that predicates keep which can be applied once `child` is bound."""
        share = 1.0
        for names, kept in self._across:
            if child in names and names <= bound:
                share *= kept
        return share

    def fan_out(self, hop: Hop, start: str) -> float:
        """How many positions a hop leads to from one position of `start`."""
        # By identity: the pattern holds its hops, and hashing them costs more than this does.
        found = self._fans.get((id(hop), start))
        if found is None:
            found = self._fans[id(hop), start] = self._estimate_fan_out(hop, start)
        return found

    def _estimate_fan_out(self, hop: Hop, start: str) -> float:
        edge = self.catalog.edges[hop.edge]
        ends = self._count(f"node:{edge.source}"), self._count(f"node:{edge.target}")
        pairs = float(self.statistics.row_counts.get(edge.table_key, max(ends)))
        if hop.direction is Direction.BOTH:
            fan = 2 * pairs / max(ends[0], 1.0)
        elif (hop.direction is Direction.OUT) == (start == hop.source):
            fan = pairs / max(ends[0], 1.0)
            if edge.cardinality.maximum is not None:
                fan = min(fan, float(edge.cardinality.maximum))
        else:
            fan = pairs / max(ends[1], 1.0)
        if hop.edge_variable is not None:
            for predicate in self.pattern.filters.get(hop.edge_variable, ()):
                fan *= _share(predicate)
        for predicate in hop.filters:
            fan *= _share(predicate)
        return fan if hop.is_single else self._walk_out(hop, start, fan)

    def _walk_out(self, hop: Hop, start: str, fan: float) -> float:
        most = max(self.size(hop.other_end(start)), 1.0)
        reached = 0.0
        if hop.max_hops is None:
            return most
        for distance in range(hop.min_hops, min(hop.max_hops, hop.min_hops + 64) + 1):
            if fan > 1 and distance > 64:
                return most
            reached += fan**distance
            if reached >= most:
                return most
        return reached

    def _count(self, table_key: str) -> float:
        return float(self.statistics.row_counts.get(table_key, 0))


def equality_property(predicate: Predicate) -> str | None:
    """The property that has to equal something, if that is what a predicate says."""
    match predicate:
        case Compare(PropertyRef(_, name), CompareKind.EQUAL, _):
            return name
        case Compare(_, CompareKind.EQUAL, PropertyRef(_, name)):
            return name
        case _:
            return None


def _share(predicate: Predicate) -> float:
    return _SHARE_OF_EQUAL if equality_property(predicate) else _SHARE_OF_OTHER


def _share_across(predicate: Predicate) -> float:
    """Two variables mostly differ, so a predicate that says so keeps nearly every row."""
    is_unequal = isinstance(predicate, Compare) and predicate.kind is CompareKind.NOT_EQUAL
    return 1.0 if is_unequal else _share(predicate)
