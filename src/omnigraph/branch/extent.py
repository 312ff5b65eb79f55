"""Extent: about how many rows a merge is about, before any of them is read."""

from __future__ import annotations

from omnigraph.branch.descent import open_entry
from omnigraph.manifest import Snapshot
from omnigraph.storage.tables import TableStorage


def estimate_differing_rows(tables: TableStorage, one: Snapshot, other: Snapshot) -> int:
    """About how many rows two states do not share, by the fragments that their tables consist of.

    Rows that a compaction has moved count as well, and a row that each side deleted another of
    may not.
    """
    total = 0
    for key in one.entries.keys() & other.entries.keys():
        pins = one.entries[key], other.entries[key]
        if pins[0].shows_same_rows(pins[1]):
            continue
        ours, theirs = (
            {each.key: each.rows for each in tables.reads.fragments(open_entry(tables, pin))}
            for pin in pins
        )
        total += sum(abs(ours.get(each, 0) - theirs.get(each, 0)) for each in {*ours, *theirs})
    return total
