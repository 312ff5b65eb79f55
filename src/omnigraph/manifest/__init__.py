"""The manifest: which version of each table a branch shows, and the one door that changes it.

In: pins to publish, branches and commits to look up. Out: snapshots. `model.py` holds the values,
`rows.py` their form in `__manifest`, `coordinator.py` reads and caches, `publisher.py` is the door,
`follow.py` what a publish makes of a state, `kept_commits.py` states that outlived their branch,
`contract.py` the schema files, `schema_files.py` how they change, `genesis.py` creates a graph,
`stamp.py` migrates the format and `history.py` keeps the projection that people query.
"""

from omnigraph.manifest.contract import SchemaContract, load_contract
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.genesis import create_graph
from omnigraph.manifest.history import reconcile
from omnigraph.manifest.model import (
    MAIN,
    GraphCommit,
    Lineage,
    ManifestState,
    Publish,
    PublishDelta,
    RegisterTable,
    Snapshot,
    TableEntry,
    Tombstone,
    UpdatePin,
)
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.schema_files import load_accepted_contract
from omnigraph.manifest.stamp import migrate, read_stamp

__all__ = [
    "MAIN",
    "Coordinator",
    "GraphCommit",
    "Lineage",
    "ManifestState",
    "Publish",
    "PublishDelta",
    "RegisterTable",
    "SchemaContract",
    "Snapshot",
    "TableEntry",
    "Tombstone",
    "UpdatePin",
    "create_graph",
    "load_accepted_contract",
    "load_contract",
    "migrate",
    "publish",
    "read_stamp",
    "reconcile",
]
