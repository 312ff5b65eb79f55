"""The manifest: which version of each table a branch shows, and the only code that changes it.

In: pins to publish, branches and commits to look up. Out: snapshots.

    model.py             the values
    rows.py              their form in `__manifest`
    vector_models.py     which model made the vectors of a property
    checks.py            the queries that have to hold; facts.py derives both
    freshness.py         which call sees which state of a branch, and what that costs
    snapshot_cache.py    what a query found, until a file of its branch changes
    coordinator.py       commits and branches (unlisted_branches.py: those that no reader is shown)
    commit_states.py     what a commit left, wherever that is still found
    publisher.py         the only code that publishes
    reset.py             the other way to publish: a branch goes back
    branch_names.py      the names a branch may have
    revisions.py         the words for a state: main~3, tag:v1, main@{2026-11-01}
    pin_history.py       which commits published which version of a table
    line_states.py       a branch at every version, from one read; line_reader.py asks it
    retained_commits.py  states that outlived their branch
    tags.py              names for commits that stay
    request_events.py    merge requests, one immutable text per event
    state_text.py        states written down, for both
    contract.py          the schema files
    schema_files.py      how they change
    schemas.py           every schema that the graph has had
    schema_view.py       a snapshot of the past in another schema
    genesis.py           creates a graph
    stamp.py             migrates the format
    history.py           the projection of commits that people query
"""

from omnigraph.manifest.contract import SchemaContract, load_contract
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.history import reconcile, reconcile_changed
from omnigraph.manifest.model import (
    MAIN,
    CommitLog,
    Facts,
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
    "CommitLog",
    "Coordinator",
    "Facts",
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
    "load_accepted_contract",
    "load_contract",
    "migrate",
    "publish",
    "read_stamp",
    "reconcile",
    "reconcile_changed",
]
