"""Leftovers: the schema files of an `init` that died, removed so that it can run again."""

from __future__ import annotations


def remove_leftovers(uri: str) -> None:
    """Remove schema files where there is no graph; where there is one, nothing is touched."""
    from omnigraph.graph.store import open_store
    from omnigraph.manifest.contract import FILES

    store = open_store(uri, None, "power")
    if store.manifest.exists():
        return  # `init` says that a graph is there
    for name in FILES:
        if store.texts.exists(name):
            store.texts.delete(name)
