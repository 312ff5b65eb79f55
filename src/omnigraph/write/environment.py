"""Environment: what a write works with, and the queues it takes."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.dataclass import dataclass
from omnigraph.index import RuntimeCache
from omnigraph.manifest import Coordinator
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.storage.control import ControlTable
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.queues import Guard, QueueKey, WriterQueues
from omnigraph.storage.tables import TableStorage

PUBLISH_QUEUE = "__publish__"
"""Held around a publish, after the table queues: publishes of one branch take turns."""
BRANCHES_QUEUE = "__branches__"
"""Held while branches are made or removed, and by a schema change; taken before table queues."""
HISTORY_QUEUE = "__history__"
"""Held while the past gets a name, or is removed; taken with or without the turn of branches."""


@dataclass(frozen=True, slots=True)
class WriteEnvironment:
    """What a write works with. Holds no state of its own: all of it is in storage.

    `audit` is where recovery records what it recovered. `schema_name` is that of the schema that
    the write was checked against, when that is known. `check_cache` holds what checks decode.
    """

    tables: TableStorage
    texts: GraphTexts
    coordinator: Coordinator
    queues: WriterQueues
    audit: ControlTable
    schema_name: str | None = None
    check_cache: RuntimeCache | None = None

    @property
    def has_system_locks(self) -> bool:
        """Whether a held queue proves that no other process is at work on its table.

        It does on a local disk, where it is a lock of the operating system as well. There, too, a
        call that has failed cannot take effect later.
        """
        return self.tables.root.is_local


def queue_keys(table_keys: Iterable[str], branch: str) -> list[QueueKey]:
    return [(key, lance_branch(branch)) for key in table_keys]


def publish_turn(environment: WriteEnvironment, branch: str) -> Guard:
    """Wait for the turn to publish on a branch. Table queues are taken before it, never after."""
    return environment.queues.acquire_many([(PUBLISH_QUEUE, lance_branch(branch))])
