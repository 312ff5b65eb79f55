"""Relocation: what a read-write open does with a graph that was moved or copied.

    step                        a crash here leaves
    version files, one by one   some of them rewritten; reads are right either way
    sidecars                    all files rewritten; the rest is done again
    the marker                  a graph that knows its location

One process at a time. An open that cannot write goes on: what it opens has the right paths in
memory.
"""

from __future__ import annotations

import logging

from omnigraph.errors import StorageError
from omnigraph.graph.store import Store
from omnigraph.storage.location import is_same_place
from omnigraph.storage.queues import writer_queues
from omnigraph.storage.relocation import mend_tables, read_marker, write_marker
from omnigraph.write.sidecar_files import relocate_sidecars

LOCATION_KEY = ("__location__", None)

log = logging.getLogger("omnigraph")


def relocate_if_moved(store: Store) -> None:
    """Rewrite a graph that was moved or copied, so that no file in it names its former location."""
    if _is_at_recorded_location(store):
        return
    try:
        with writer_queues(store.root).acquire_many([LOCATION_KEY]):
            if not _is_at_recorded_location(store):
                _relocate(store)
    except StorageError as error:
        log.warning("'%s' was moved or copied and cannot be mended: %s", store.root, error.message)


def record_location(store: Store) -> None:
    """Record where a new graph is."""
    write_marker(store.root, store.texts.store)


def _is_at_recorded_location(store: Store) -> bool:
    marked = read_marker(store.root, store.texts.store)
    return marked is not None and is_same_place(marked, store.root.uri)


def _relocate(store: Store) -> None:
    tables = store.tables
    marked = read_marker(store.root, store.texts.store)
    former = mend_tables(store.root, tables.storage_options, tables.durability)
    former |= {marked} if marked is not None else set()
    relocate_sidecars(store.texts, former - {store.root.uri}, store.root.uri)
    write_marker(store.root, store.texts.store)
    if former:
        log.info("'%s' was moved or copied from %s", store.root, ", ".join(sorted(former)))
