"""Derived arrays over table versions: safe to delete, built only for what a query touches.

In: tables of a snapshot. Out: positions, decoded columns and adjacency, by table version.

    cache.py        everything derived, under one byte budget
    live.py         which positions can still be part of an answer
    columns.py      decoded values and their ranks
    table_view.py   one table addressed by position: decode, fetch, filter
    adjacency.py    edges as runs of neighbour positions, both ways
    relations.py    the adjacency of an edge table, kept
"""

from omnigraph.index.cache import RuntimeCache
from omnigraph.index.live import Live
from omnigraph.index.relations import EdgeIndex
from omnigraph.index.table_view import TableView

__all__ = ["EdgeIndex", "Live", "RuntimeCache", "TableView"]
