"""Graph metrics: how each graph stands, read when it is asked for.

A scrape opens the tables that were written since the last one, and no others.

Only for callers who may verify the graph: how much there is of something is a fact about it. On a
server with tokens a scraper therefore sends one, and without it gets the metrics of the server.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from omnigraph.errors import OmnigraphError
from omnigraph.graph.graph import get_session
from omnigraph.manifest import MAIN, TableEntry
from omnigraph.server.graphs import OpenGraph
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin
from omnigraph.write.sidecar_files import list_sidecars

_TEXTS = {
    "up": "Whether the graph could be read for these metrics.",
    "branches": "Branches.",
    "commits": "Commits that led to main.",
    "rows": "Nodes and edges on main.",
    "fragments": "Fragments of the tables of main; optimize merges small ones.",
    "manifest_version": "The version of the manifest that main shows.",
    "cache_bytes": "What queries keep in memory.",
    "cache_budget_bytes": "What queries may keep in memory.",
    "pending_recoveries": "Writes that recovery has to finish or undo, and writes under way.",
}

log = logging.getLogger("omnigraph.server")


def graph_text(graphs: Iterable[OpenGraph]) -> bytes:
    """The metrics of these graphs, in the format of Prometheus."""
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(f"omnigraph_graph_{name}", text, ["graph"], registry=registry)
        for name, text in _TEXTS.items()
    }
    for opened in graphs:
        for name, value in _measure(opened).items():
            gauges[name].labels(opened.graph_id).set(value)
    return generate_latest(registry)


def _measure(opened: OpenGraph) -> dict[str, int]:
    session = get_session(opened.graph)
    cache = {"cache_bytes": session.cache.nbytes, "cache_budget_bytes": session.cache.budget_bytes}
    try:
        environment = session.environment()
        main = environment.coordinator.fresh(MAIN)
        return {
            "up": 1,
            "branches": len(environment.coordinator.branches()),
            "commits": main.commit_rows.num_rows,
            "rows": sum(entry.row_count for entry in main.entries.values()),
            "fragments": _count_fragments(opened, environment.tables, main.entries.values()),
            "manifest_version": main.version,
            "pending_recoveries": len(list_sidecars(environment.texts)),
            **cache,
        }
    except OmnigraphError as error:
        log.warning("graph '%s' cannot be measured: %s", opened.graph_id, error)
        return {"up": 0, **cache}


def _count_fragments(opened: OpenGraph, tables: TableStorage, entries: Iterable[TableEntry]) -> int:
    """The fragments of all tables; of a table that shows the same version they are counted once."""
    before, now = opened.fragments_counted, dict[TableEntry, int]()
    for entry in entries:
        count = before.get(entry)
        if count is None:
            count = len(tables.reads.fragment_ids(open_pin(tables, entry)))
        now[entry] = count
    opened.fragments_counted = now
    return sum(now.values())
