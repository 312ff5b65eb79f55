"""Verify at: check a graph that may be too damaged to open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from omnigraph.errors import GraphNotFound, StorageError
from omnigraph.graph.store import Store, open_store
from omnigraph.manifest import Coordinator, load_accepted_contract
from omnigraph.manifest.contract import FILES
from omnigraph.manifest.model import MANIFEST_TABLE
from omnigraph.manifest.retained_commits import RetainedCommits
from omnigraph.upkeep.findings import Finding, Verification
from omnigraph.upkeep.verify import verify_graph
from omnigraph.upkeep.verify_files import BACKUP
from omnigraph.write.power_cut import look_past_torn


def verify_at(
    uri: str | Path, storage_options: Mapping[str, str] | None = None, *, content: bool = False
) -> Verification:
    """What `Graph.verify` finds, also where `open` fails.

    Raises:
        GraphNotFound: There is no graph there, nor part of one.
    """
    store = open_store(uri, storage_options, "process")
    if not any(store.texts.exists(name) for name in (*FILES, MANIFEST_TABLE)):
        raise GraphNotFound(str(uri))
    environment = store.environment(Coordinator(store.manifest, RetainedCommits(store.texts)))
    torn = _find_torn_manifest(store)
    found = verify_graph(
        environment,
        lambda: load_accepted_contract(store.texts, environment.coordinator, None),
        content=content,
    )
    return replace(found, findings=(*torn, *found.findings))


def _find_torn_manifest(store: Store) -> tuple[Finding, ...]:
    """What keeps the graph from being opened, if its newest publish was cut off after the fact."""
    if not store.root.is_local:
        return ()
    try:
        look_past_torn(store.texts, store.manifest)
    except StorageError as error:
        return (Finding("manifest", "'__manifest'", error.message, BACKUP),)
    return ()
