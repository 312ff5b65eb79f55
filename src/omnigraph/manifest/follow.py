"""Follow: the state that a publish made of a branch, from the state before it, without reading."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from omnigraph.manifest.model import (
    ManifestState,
    RegisterTable,
    Step,
    TableEntry,
    Tombstone,
    UpdatePin,
)
from omnigraph.manifest.rows import row_of_ancestor, row_of_commit, table_of

CHUNKS_MAX = 64
"""Pieces of the commits in memory that are worth joining: one a publish, of kilobytes each."""


def followed(state: ManifestState, step: Step) -> ManifestState:
    """The state after a step that was taken from `state`."""
    assert (state.native_id, state.version) == (step.native_id, step.from_version)
    entries = dict(state.entries)
    hidden = dict(state.hidden)
    paths = {c.table_key: c.table_path for c in step.changes if isinstance(c, RegisterTable)}
    for change in step.changes:
        match change:
            case UpdatePin(key):
                path = paths.get(key) or entries[key].table_path
                entries[key] = TableEntry(
                    table_key=key,
                    table_path=path,
                    version=change.version,
                    table_branch=change.table_branch,
                    row_count=change.row_count,
                    transaction_uuid=change.transaction_uuid,
                )
            case Tombstone(key, hidden_version):
                hidden[key] = max(hidden.get(key, 0), hidden_version)
                if key in entries and entries[key].version <= hidden_version:
                    del entries[key]
            case RegisterTable():
                pass
    new = replace(
        state,
        version=step.from_version + 1,
        entries=dict(sorted(entries.items())),
        hidden=hidden,
        schema_hash=step.schema_hash or state.schema_hash,
    )
    if step.ancestors:
        brought = table_of(map(row_of_ancestor, step.ancestors))
        new = replace(new, ancestor_rows=_extended(state.ancestor_rows, brought))
    if not step.commits:
        return new
    made = table_of(map(row_of_commit, step.commits))
    return replace(new, head=step.commits[-1], commit_rows=_extended(state.commit_rows, made))


def _extended(rows: pa.Table, new: pa.Table) -> pa.Table:
    joined = pa.concat_tables([rows, new])
    return joined.combine_chunks() if joined["object_id"].num_chunks > CHUNKS_MAX else joined
