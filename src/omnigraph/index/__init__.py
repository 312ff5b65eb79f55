"""Derived arrays over table versions: safe to delete, built only for what a query touches.

In: tables of a snapshot. Out: positions, decoded columns and adjacency, by table version.

    cache.py        everything derived, under one byte budget
    keys.py         what the cache files entries under
    thresholds.py   from which sizes and how many uses on it pays to derive something
    notes.py        what reading did, for `explain`
    query_memory.py the bytes that a query holds, refused before they are built
    selection.py    a set of row positions
    arrays.py       the NumPy arrays that hold positions, masks and weights
    columns.py      decoded values and their ranks
    nested.py       lists and objects as numbers with their equality and order
    number_masks.py a numeric column compared with one value
    table_view.py   one table addressed by position: decode, fetch, select
    value_lookup.py the positions of one value, by rank
    rooms.py        arrays that later versions add to in place
    shifts.py       slots, which rows have for good, to positions and back
    id_index.py     where the entities with a few ids stand
    runs.py         runs of neighbours: as they were built, few, patched or shifted
    adjacency.py    the edges of a table as runs of neighbours, both ways
    patches.py      an adjacency of an earlier version, with the edges that changed since
    relations.py    the adjacency of an edge table, cached, or a few edges looked up
    edge_lookup.py  those few edges, from storage; background.py makes the adjacency meanwhile
    carry_over.py   what a version shares with an earlier one, taken over instead of decoded
    removed_rows.py which rows of the earlier one are gone
    sealed_file.py  arrays in one file, mapped, and checked where they are read
    addressed.py    what is derived of data files, row by row
    parts.py        the parts of it that make up a version, shared by versions and branches
    text_index.py   the tokens of a text column in some data files (text_words.py, merge_texts.py)
    text_files.py   text indexes beside the graph, mapped by the next open
    layout.py       in which fragments the rows of a version lie
    full_text.py    the text indexes that together cover a version
    text_parts.py   finds, makes and merges them
    vector_index.py the vectors of a column in some data files; vector_parts.py those of a version
    prefetch.py     what queries will want of a version, derived before it is published
                    (prefetch_table.py: of one table)
    open_tables.py  the views and edge indexes of one snapshot
    derived.py      adjacency as files beside the graph, mapped by the next open
    saved_runs.py   one side of it, read where a query touches it
"""

from omnigraph.index.cache import RuntimeCache
from omnigraph.index.derived import DerivedStore
from omnigraph.index.edge_lookup import Walk
from omnigraph.index.open_tables import OpenTables, open_tables
from omnigraph.index.prefetch import prefetch
from omnigraph.index.relations import EdgeIndex
from omnigraph.index.selection import Selection
from omnigraph.index.table_view import TableView

__all__ = [
    "DerivedStore",
    "EdgeIndex",
    "OpenTables",
    "RuntimeCache",
    "Selection",
    "TableView",
    "Walk",
    "open_tables",
    "prefetch",
]
