"""Cache keys: one class per kind of entry in the runtime cache.

A key names what is cached, and of which table versions. Its `slot` is the same key without the
versions, so that all versions of one thing share a slot:

    >>> key = ColumnKey(TableId("nodes/a", None, 7, "tx-7"), "age")
    >>> key.slot == ColumnKey(TableId("nodes/a", None, 8, "tx-8"), "age").slot
    True
    >>> key == RanksKey(key.table, key.name)
    False

Every look into the cache hashes a key, so keys are tuples. The first field is the class, which
keeps keys of different kinds apart.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, Protocol, Self

from omnigraph.storage.handles import ShownColumns

_ANY_VERSION = -1


class Key(Hashable, Protocol):
    """What the runtime cache files an entry under."""

    @property
    def slot(self) -> Hashable: ...


class TableId(NamedTuple):
    """A table version in its own columns, or in those `shown`.

    Branches that share a version share what is derived from it.
    """

    path: str
    branch: str | None
    version: int
    transaction: str | None
    shown: ShownColumns | None = None

    @property
    def slot(self) -> TableId:
        return TableId(self.path, self.branch, _ANY_VERSION, None, self.shown)


class EdgeTables(NamedTuple):
    """An edge table and the node tables it joins."""

    edges: TableId
    sources: TableId
    targets: TableId

    @property
    def slot(self) -> EdgeTables:
        return EdgeTables(self.edges.slot, self.sources.slot, self.targets.slot)


class _Column(NamedTuple):
    kind: type
    table: TableId
    name: str


class _ColumnKey(_Column):
    """Something of one column, or without a name of the whole table."""

    def __new__(cls, table: TableId, name: str = "") -> Self:
        return tuple.__new__(cls, (cls, table, name))

    @property
    def slot(self) -> Self:
        return type(self)(self.table.slot, self.name)


class RowIdsKey(_ColumnKey):
    """The stable row id of every position."""


class IdIndexKey(_ColumnKey):
    """Where the entity with an id stands."""


class FragmentsKey(_ColumnKey):
    """The fragments that a table version consists of."""


class ColumnKey(_ColumnKey):
    """All values of a column, decoded."""


class NumbersKey(_ColumnKey):
    """All values of a column as doubles."""


class RanksKey(_ColumnKey):
    """The rank of every value of a column."""


class PostingsKey(_ColumnKey):
    """The positions of every rank of a column."""


class RepeatedPairsKey(_ColumnKey):
    """Hashes of the pairs of ends that several edges have: `both` without regard to direction."""


class LookupsKey(_ColumnKey):
    """How often single values of a column were looked up; counted, never cached."""


class FullTextKey(NamedTuple):
    """The full text of a column in a language. Branches share a slot: they share data files."""

    table: TableId
    name: str
    language: str

    @property
    def slot(self) -> FullTextKey:
        table = TableId(self.table.path, None, _ANY_VERSION, None)
        return FullTextKey(table, self.name, self.language)


class VectorsKey(NamedTuple):
    """The vectors of a column. Branches share a slot: they share data files."""

    table: TableId
    name: str

    @property
    def slot(self) -> VectorsKey:
        return VectorsKey(TableId(self.table.path, None, _ANY_VERSION, None), self.name)


class _Since(NamedTuple):
    kind: type
    table: TableId
    base: TableId
    name: str


class _SinceKey(_Since):
    """Something of the rows that a table version has and its earlier version `base` has not."""

    def __new__(cls, table: TableId, base: TableId, name: str = "") -> Self:
        return tuple.__new__(cls, (cls, table, base, name))

    @property
    def slot(self) -> Self:
        return type(self)(self.table.slot, self.base.slot, self.name)


class DeltaKey(_SinceKey):
    """Which rows were added and removed."""


class TailKey(_SinceKey):
    """The values of a column in the added rows."""


class TailLookupKey(_SinceKey):
    """Where each value of a column stands among the added rows."""


class _Edges(NamedTuple):
    kind: type
    tables: EdgeTables
    both: bool


class _EdgesKey(_Edges):
    def __new__(cls, tables: EdgeTables, both: bool = False) -> Self:
        return tuple.__new__(cls, (cls, tables, both))

    @property
    def slot(self) -> Self:
        return type(self)(self.tables.slot, self.both)


class EndpointsKey(_EdgesKey):
    """The positions of both ends of every edge."""


class DistinctKey(_EdgesKey):
    """The adjacency with each pair of nodes once."""


class PerEdgeKey(_EdgesKey):
    """The adjacency with one entry per stored edge."""


class PlanKey(NamedTuple):
    """The plan of the query object with this identity, for tables of these sizes."""

    query_identity: int
    row_counts: tuple[int, ...]

    @property
    def slot(self) -> int:
        return self.query_identity
