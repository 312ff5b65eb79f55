"""Verify at: check a graph that may be too damaged to open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omnigraph.errors import GraphNotFound
from omnigraph.graph.store import MANIFEST_TABLE, open_store
from omnigraph.manifest import Coordinator, accepted_contract
from omnigraph.manifest.contract import FILES
from omnigraph.manifest.kept_commits import KeptCommits
from omnigraph.storage.queues import writer_queues
from omnigraph.upkeep.findings import Verification
from omnigraph.upkeep.verify import verify_graph
from omnigraph.write.environment import WriteEnvironment


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
    environment = WriteEnvironment(
        tables=store.tables,
        texts=store.texts,
        coordinator=Coordinator(store.manifest, KeptCommits(store.texts)),
        queues=writer_queues(store.root),
        audit=store.audit,
    )
    return verify_graph(
        environment,
        lambda: accepted_contract(store.texts, environment.coordinator, None).catalog,
        content=content,
    )
