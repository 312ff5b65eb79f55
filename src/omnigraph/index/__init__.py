"""Derived arrays over table versions: safe to delete, built only for what a query touches.

In: tables of a snapshot. Out: positions, decoded columns and adjacency, by table version.

    cache.py        everything derived, under one byte budget
    notes.py        what reading did, for `explain`
    live.py         which positions can still be part of an answer
    arrays.py       the kinds of array positions and weights are kept in
    columns.py      decoded values and their ranks
    number_masks.py a numeric column compared with one value
    table_view.py   one table addressed by position: decode, fetch, filter
    adjacency.py    edges as runs of neighbour positions, both ways
    relations.py    the adjacency of an edge table, kept, or a few edges looked up
    earlier.py      what a version shares with one before it, carried over instead of decoded
    ahead.py        what queries will want of a version, derived before it is shown
    open_tables.py  the views and edge indexes of one snapshot
    derived.py      adjacency as files beside the graph, mapped by the next open
"""

from omnigraph.index.ahead import derive_ahead
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.derived import DerivedStore
from omnigraph.index.live import Live
from omnigraph.index.open_tables import OpenTables, open_tables
from omnigraph.index.relations import EdgeIndex, Walk
from omnigraph.index.table_view import TableView

__all__ = [
    "DerivedStore",
    "EdgeIndex",
    "Live",
    "OpenTables",
    "RuntimeCache",
    "TableView",
    "Walk",
    "derive_ahead",
    "open_tables",
]
