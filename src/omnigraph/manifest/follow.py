"""Follow: the state that a publish made of a branch, from the state before it, without reading."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from omnigraph.manifest.model import (
    ManifestState,
    PublishDelta,
    RegisterTable,
    TableEntry,
    Tombstone,
    UpdatePin,
)
from omnigraph.manifest.rows import ancestor_to_row, commit_to_row, default_path, rows_to_table

CHUNKS_MAX = 64
"""Pieces of the commits in memory that are worth joining: one a publish, of kilobytes each."""


def followed(state: ManifestState, step: PublishDelta) -> ManifestState:
    """The state after a step that was taken from `state`."""
    assert (state.branch_id, state.version) == (step.branch_id, step.from_version)
    entries = dict(state.entries)
    hidden = dict(state.hidden)
    paths = dict(state.paths)
    gone = set(state.hidden_paths)
    for change in step.changes:
        match change:
            case UpdatePin(key):
                entries[key] = TableEntry(
                    table_key=key,
                    table_path=paths[key],
                    version=change.version,
                    table_branch=change.table_branch,
                    row_count=change.row_count,
                    transaction_uuid=change.transaction_uuid,
                )
            case Tombstone(key, hidden_version):
                hidden[key] = max(hidden.get(key, 0), hidden_version)
                gone.add(paths.get(key, default_path(key)))
                if key in entries and entries[key].version <= hidden_version:
                    del entries[key]
            case RegisterTable(key, path):
                hidden.pop(key, None)
                paths[key] = path
    new = replace(
        state,
        version=step.from_version + 1,
        entries=dict(sorted(entries.items())),
        hidden=hidden,
        paths=paths,
        hidden_paths=frozenset(gone - {entry.table_path for entry in entries.values()}),
        schema_hash=step.schema_hash or state.schema_hash,
        schema_id=step.schema_id if step.schema_hash is not None else state.schema_id,
    )
    if step.ancestors:
        brought = rows_to_table(map(ancestor_to_row, step.ancestors))
        new = replace(new, ancestor_rows=_extended(state.ancestor_rows, brought))
    if not step.commits:
        return new
    made = rows_to_table(map(commit_to_row, step.commits))
    return replace(new, head=step.commits[-1], commit_rows=_extended(state.commit_rows, made))


def _extended(rows: pa.Table, new: pa.Table) -> pa.Table:
    joined = pa.concat_tables([rows, new])
    return joined.combine_chunks() if joined["object_id"].num_chunks > CHUNKS_MAX else joined
