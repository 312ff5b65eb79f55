"""Store: the parts of one graph in storage."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.dataclass import dataclass
from omnigraph.manifest import Coordinator
from omnigraph.manifest.history import KEY as HISTORY_KEY
from omnigraph.manifest.history import TABLE as HISTORY_TABLE
from omnigraph.manifest.model import MANIFEST_TABLE
from omnigraph.storage.control import ControlTable
from omnigraph.storage.durability import Durability
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.location import GraphRoot, resolve_root
from omnigraph.storage.queues import writer_queues
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text import open_text_store
from omnigraph.write.audit import KEY as AUDIT_KEY
from omnigraph.write.audit import TABLE as AUDIT_TABLE
from omnigraph.write.environment import WriteEnvironment

if TYPE_CHECKING:
    from omnigraph.storage.content import Spread


@dataclass(frozen=True, slots=True)
class Store:
    """The parts of one graph in storage."""

    root: GraphRoot
    tables: TableStorage
    texts: GraphTexts
    manifest: ControlTable
    history: ControlTable
    audit: ControlTable

    def environment(self, coordinator: Coordinator) -> WriteEnvironment:
        """What a write to this graph works with."""
        return WriteEnvironment(
            self.tables, self.texts, coordinator, writer_queues(self.root), self.audit
        )


def open_store(
    uri: str | Path,
    storage_options: Mapping[str, str] | None,
    durability: Durability,
    spread: Spread | None = None,
) -> Store:
    """The parts of the graph at `uri`; with `spread`, heavy work on large tables goes to it."""
    root = resolve_root(str(uri))

    def control(name: str, key: str) -> ControlTable:
        return ControlTable(
            root, name, key=key, storage_options=storage_options, durability=durability
        )

    return Store(
        root=root,
        tables=TableStorage(root, storage_options, durability, spread),
        texts=GraphTexts(open_text_store(root, dict(storage_options or {}), durability), root),
        manifest=control(MANIFEST_TABLE, "object_id"),
        history=control(HISTORY_TABLE, HISTORY_KEY),
        audit=control(AUDIT_TABLE, AUDIT_KEY),
    )
