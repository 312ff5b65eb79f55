"""Graph: every call of an open graph, and the two ways to get one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omnigraph.catalog import build_catalog
from omnigraph.errors import BadRequestError, GraphNotFound
from omnigraph.graph.branching import Branching
from omnigraph.graph.handle import Mode
from omnigraph.graph.maintaining import Maintaining
from omnigraph.graph.reading import Reading
from omnigraph.graph.store import open_store
from omnigraph.graph.writing import Writing
from omnigraph.manifest import (
    create_graph,
    migrate,
    read_stamp,
)
from omnigraph.storage.durability import Durability
from omnigraph.syntax import parse_schema


class Graph(Reading, Writing, Branching, Maintaining):
    """One graph, open. Synchronous and thread-safe; use as a context manager or call `close`."""


def init(
    uri: str | Path,
    *,
    schema: str,
    storage_options: Mapping[str, str] | None = None,
    actor: str | None = None,
    durability: Durability = "power",
    self_care: bool = True,
) -> Graph:
    """Create an empty graph and open it.

    Raises:
        GraphExists: There is one already.
    """
    catalog = build_catalog(parse_schema(schema))
    store = open_store(uri, storage_options, durability)
    create_graph(
        store.texts,
        store.tables,
        store.manifest,
        store.history,
        source=schema,
        catalog=catalog,
        actor=actor,
    )
    return Graph(store, mode="rw", actor=actor, self_care=self_care)


def open(  # noqa: A001 — `omnigraph.open` is the name programs use
    uri: str | Path,
    *,
    mode: Mode = "rw",
    storage_options: Mapping[str, str] | None = None,
    actor: str | None = None,
    durability: Durability = "power",
    self_care: bool = True,
) -> Graph:
    """Open a graph. Mode `"r"` never writes, not even to recover.

    Raises:
        GraphNotFound: There is no graph there.
    """
    if mode not in ("rw", "r"):
        raise BadRequestError(f"mode is {mode!r}, expected 'rw' or 'r'")
    store = open_store(uri, storage_options, durability)
    if not store.manifest.exists():
        raise GraphNotFound(str(uri))
    if mode == "rw":
        migrate(store.manifest)
    else:
        read_stamp(store.manifest)
    return Graph(store, mode=mode, actor=actor, self_care=self_care)
