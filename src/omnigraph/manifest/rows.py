"""Rows of `__manifest`: their schema, and folding them into a state.

object_type      object_id                                meaning
table            {table_key}                              the table exists at `location`
table_version    {table_key}${version:020d}               that version is published here
table_tombstone  {table_key}$tombstone${version:020d}     versions up to it are hidden
graph_commit     {commit ULID}                            one commit on the line of the branch
graph_ancestor   {commit ULID}                            a commit that came in with a merge
graph_head       graph_head:{branch}                      the row every publish contends for
schema           schema                                   the hash of the schema the tables are in
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvariantViolated
from omnigraph.manifest.model import (
    Change,
    GraphCommit,
    ManifestState,
    RegisterTable,
    TableEntry,
    Tombstone,
    UpdatePin,
)

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.utf8(), nullable=False),
        pa.field("object_type", pa.utf8(), nullable=False),
        pa.field("location", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("base_objects", pa.list_(pa.utf8())),
        pa.field("table_key", pa.utf8(), nullable=False),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.utf8()),
        pa.field("row_count", pa.uint64()),
    ]
)

LINEAGE_KEY = "__graph__"
"""The table key of rows that are about the graph and not about one table."""

Row = dict[str, Any]


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Rows as the Arrow table that a merge into `__manifest` takes."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def row_of_change(change: Change) -> Row:
    match change:
        case RegisterTable(table_key, table_path):
            return {
                "object_id": table_key,
                "object_type": "table",
                "location": table_path,
                "table_key": table_key,
            }
        case UpdatePin(table_key, version, table_branch, row_count):
            metadata = {
                "manifest_path": change.manifest_path,
                "manifest_size": None,
                "e_tag": None,
                "naming_scheme": "V2",
                "transaction_uuid": change.transaction_uuid,
            }
            return {
                "object_id": f"{table_key}${version:020d}",
                "object_type": "table_version",
                "metadata": json.dumps(metadata),
                "table_key": table_key,
                "table_version": version,
                "table_branch": table_branch,
                "row_count": row_count,
            }
        case Tombstone(table_key, version):
            return {
                "object_id": f"{table_key}$tombstone${version:020d}",
                "object_type": "table_tombstone",
                "table_key": table_key,
                "table_version": version,
            }


def row_of_ancestor(commit: GraphCommit) -> Row:
    """A commit of another line: it is known here, and never the head."""
    return row_of_commit(commit) | {"object_type": "graph_ancestor"}


def row_of_commit(commit: GraphCommit) -> Row:
    metadata: Row = {
        "branch": commit.branch,
        "parent": commit.parent_id,
        "merged_parent": commit.merged_parent_id,
        "actor": commit.actor,
        "created_at": commit.created_at,
    }
    if commit.properties:
        metadata["properties"] = dict(commit.properties)
    return {
        "object_id": commit.commit_id,
        "object_type": "graph_commit",
        "metadata": json.dumps(metadata),
        "table_key": LINEAGE_KEY,
        # The manifest version that the commit makes, in a column so that finding the newest
        # commit needs no JSON.
        "table_version": commit.manifest_version,
    }


def row_of_head(branch: str, commit_id: str) -> Row:
    return {
        "object_id": f"graph_head:{branch}",
        "object_type": "graph_head",
        "metadata": json.dumps({"commit": commit_id}),
        "table_key": LINEAGE_KEY,
    }


def row_of_schema(schema_hash: str) -> Row:
    return {
        "object_id": "schema",
        "object_type": "schema",
        "metadata": json.dumps({"schema_ir_hash": schema_hash}),
        "table_key": LINEAGE_KEY,
    }


def fold(branch: str, version: int, rows: pa.Table, native_id: str | None = None) -> ManifestState:
    """Reduce all rows of one manifest version to what is visible there.

    Costs a few column passes however long the history is; commits are parsed when asked for.

    Raises:
        InvariantViolated: A row lacks what its kind requires, or no commit is visible.
    """
    by_type = {kind: rows.filter(pc.equal(rows["object_type"], kind)) for kind in _FOLDED_TYPES}
    commit_rows = by_type["graph_commit"]
    if commit_rows.num_rows == 0:
        raise InvariantViolated(f"the manifest of branch '{branch}' names no graph commit")
    # Two commits of one publish are told apart by their ids, which are in order of time.
    newest_first = pc.sort_indices(
        commit_rows, sort_keys=[("table_version", "descending"), ("object_id", "descending")]
    )
    tombstones = by_type["table_tombstone"]
    hidden = _greatest(tombstones["table_key"], tombstones["table_version"])
    return ManifestState(
        branch=branch,
        version=version,
        entries=dict(_visible_entries(by_type["table"], by_type["table_version"], hidden)),
        hidden=hidden,
        commit_rows=commit_rows,
        ancestor_rows=by_type["graph_ancestor"],
        head=commit_of_row(commit_rows.take(newest_first[:1]).to_pylist()[0]),
        native_id=native_id,
        schema_hash=_schema_hash(by_type["schema"]),
    )


_FOLDED_TYPES = (
    "table",
    "table_version",
    "table_tombstone",
    "graph_commit",
    "graph_ancestor",
    "schema",
)


def _schema_hash(rows: pa.Table) -> str | None:
    for row in rows.to_pylist():
        return str(json.loads(_required(row, "metadata"))["schema_ir_hash"])
    return None


def _greatest(keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> dict[str, int]:
    """Key → its greatest version."""
    grouped = (
        pa.table({"key": keys, "version": versions}).group_by("key").aggregate([("version", "max")])
    )
    return dict(zip(grouped["key"].to_pylist(), grouped["version_max"].to_pylist(), strict=True))


def _visible_entries(
    tables: pa.Table, versions: pa.Table, hidden: dict[str, int]
) -> Iterator[tuple[str, TableEntry]]:
    paths = {row["table_key"]: _required(row, "location") for row in tables.to_pylist()}
    greatest = _greatest(versions["table_key"], versions["table_version"])
    visible = {
        f"{key}${version:020d}": key
        for key, version in greatest.items()
        if hidden.get(key, -1) < version
    }
    pinned = versions.filter(pc.is_in(versions["object_id"], pa.array(visible, pa.utf8())))
    for row in sorted(pinned.to_pylist(), key=lambda row: str(row["table_key"])):
        key = row["table_key"]
        if key not in paths:
            raise InvariantViolated(f"the manifest pins table '{key}' but does not register it")
        metadata = json.loads(_required(row, "metadata"))
        yield (
            key,
            TableEntry(
                table_key=key,
                table_path=paths[key],
                version=row["table_version"],
                table_branch=row["table_branch"],
                row_count=row["row_count"],
                transaction_uuid=metadata.get("transaction_uuid"),
            ),
        )


def commit_of_row(row: Row) -> GraphCommit:
    """Read one `graph_commit` row."""
    metadata = json.loads(_required(row, "metadata"))
    return GraphCommit(
        commit_id=row["object_id"],
        branch=metadata["branch"],
        manifest_version=row["table_version"],
        parent_id=metadata["parent"],
        merged_parent_id=metadata["merged_parent"],
        actor=metadata["actor"],
        created_at=metadata["created_at"],
        properties=metadata.get("properties", {}),
    )


def _required(row: Row, column: str) -> str:
    value = row[column]
    if value is None:
        raise InvariantViolated(
            f"the manifest row '{row['object_id']}' ({row['object_type']}) has no {column}"
        )
    return str(value)
