"""Rows of `__manifest`: their schema, and folding them into a state.

object_type      object_id                                meaning
table            {table_key}                              the table exists at `location`
table_version    {table_key}${version:020d}               that version is published here
table_tombstone  {table_key}$tombstone${version:020d}     versions up to it are hidden
                 …${location}                             the same, elsewhere than the default
graph_commit     {commit ULID}                            one commit on the line of the branch
graph_ancestor   {commit ULID}                            a commit that came in with a merge
graph_head       graph_head:{branch}                      the row every publish contends for
schema           schema                                   hash and id of the schema of the tables
embedding_models embedding_models                         what made the vectors of each property
checks           checks                                   the queries that have to hold
reset            reset                                    the id of the last reset of the branch
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvariantViolated
from omnigraph.manifest.checks import Checks, checks_from_text, checks_to_text
from omnigraph.manifest.model import (
    Change,
    GraphCommit,
    ManifestState,
    RegisterTable,
    TableEntry,
    Tombstone,
    UpdatePin,
)
from omnigraph.manifest.vector_models import VectorModels, models_from_text, models_to_text
from omnigraph.storage.location import table_path

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

RESET_KEY = "reset"
LINEAGE_KEY = "__graph__"
"""The table key of rows that are about the graph and not about one table."""

Row = dict[str, Any]

_BLOCK_ROWS = 16
STATE_TYPES = (
    *("table", "table_version", "table_tombstone"),
    *("graph_commit", "graph_ancestor", "schema", "embedding_models", "checks", "reset"),
)


def keep_stamps(pin: Row, created: int, updated: int) -> Row:
    """A row of a version that is written again, as one that says itself when it was first."""
    metadata = json.loads(_require(pin, "metadata")) | {"stamps": [created, updated]}
    return {**pin, "metadata": json.dumps(metadata)}


def read_stamps(rows: pa.Table, created: str, updated: str) -> pa.Table:
    """Rows with their metadata, and in these two columns the stamps that count."""
    says_itself = pc.fill_null(pc.match_substring(rows["metadata"], '"stamps"'), False)
    if not pc.any(says_itself).as_py():
        return rows
    columns = {name: rows[name].to_pylist() for name in (created, updated)}
    for place in np.flatnonzero(says_itself.to_numpy()).tolist():
        stamps = json.loads(rows["metadata"][place].as_py())["stamps"]
        columns[created][place], columns[updated][place] = stamps
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, pa.array(values, rows.schema.field(name).type))
    return rows


def rows_to_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as the Arrow table that a merge into `__manifest` takes."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def default_path(table_key: str) -> str:
    """Where the first table of a key lies; a renamed type keeps the path it had."""
    kind, _, name = table_key.partition(":")
    return table_path("node" if kind == "node" else "edge", name)


def change_to_row(change: Change, path: str | None = None) -> Row:
    """The row of a change to the table at `path`, which is the default one if it is not given.

    Versions and tombstones belong to the table at their location: a key that is used again for
    another table starts anew. The default location is not spelled out.
    """
    location = None if path == default_path(change.table_key) else path
    match change:
        case RegisterTable(key, table_path):
            return _row(key, "table", key, location=table_path)
        case UpdatePin(key, version):
            metadata = {
                "manifest_path": change.manifest_path,
                "manifest_size": None,
                "e_tag": None,
                "naming_scheme": "V2",
                "transaction_uuid": change.transaction_uuid,
            }
            return _row(
                f"{key}${version:020d}",
                "table_version",
                key,
                location=location,
                metadata=json.dumps(metadata),
                table_version=version,
                table_branch=change.table_branch,
                row_count=change.row_count,
            )
        case Tombstone(key, version):
            object_id = f"{key}$tombstone${version:020d}" + (f"${location}" if location else "")
            return _row(object_id, "table_tombstone", key, location=location, table_version=version)


def row_to_pin(row: Row) -> UpdatePin:
    """The change that wrote a `table_version` row."""
    metadata = json.loads(_require(row, "metadata"))
    return UpdatePin(
        row["table_key"],
        row["table_version"],
        row["table_branch"],
        row["row_count"],
        metadata.get("manifest_path"),
        metadata.get("transaction_uuid"),
    )


def _row(object_id: str, object_type: str, table_key: str = LINEAGE_KEY, **columns: Any) -> Row:
    return {
        "object_id": object_id,
        "object_type": object_type,
        "table_key": table_key,
        **columns,
    }


def revoke_tombstone(table_key: str, version: int, path: str) -> Row:
    """The row that takes a tombstone back: its table is shown under this key again."""
    row = change_to_row(Tombstone(table_key, version), path)
    return {**row, "table_version": 0}


def ancestor_to_row(commit: GraphCommit) -> Row:
    """A commit of another line: it is known here, and never the head."""
    return commit_to_row(commit) | {"object_type": "graph_ancestor"}


def commit_to_row(commit: GraphCommit) -> Row:
    metadata: Row = {
        "branch": commit.branch,
        "parent": commit.parent_id,
        "merged_parent": commit.merged_parent_id,
        "actor": commit.actor,
        "created_at": commit.created_at,
    }
    if commit.properties:
        metadata["properties"] = dict(commit.properties)
    if commit.pins:
        metadata["pins"] = dict(commit.pins)
    if commit.is_kept:
        metadata["is_kept"] = True
    # The manifest version that the commit makes is in a column, so that finding the newest commit
    # needs no JSON.
    return _row(
        commit.commit_id,
        "graph_commit",
        metadata=json.dumps(metadata),
        table_version=commit.manifest_version,
    )


def head_key(branch: str) -> str:
    """The key of the row that every publish on a branch contends for."""
    return f"graph_head:{branch}"


def head_to_row(branch: str, commit_id: str) -> Row:
    metadata = json.dumps({"commit": commit_id})
    return _row(head_key(branch), "graph_head", metadata=metadata)


def schema_to_row(schema_hash: str, schema_id: str | None) -> Row:
    metadata = {"schema_ir_hash": schema_hash}
    if schema_id is not None:
        metadata["schema_id"] = schema_id
    return _row("schema", "schema", metadata=json.dumps(metadata))


def models_to_row(models: VectorModels) -> Row:
    return _row("embedding_models", "embedding_models", metadata=models_to_text(models))


def checks_to_row(checks: Checks) -> Row:
    return _row("checks", "checks", metadata=checks_to_text(checks))


def reset_to_row(reset_id: str) -> Row:
    return _row(RESET_KEY, "reset", metadata=json.dumps({"reset_id": reset_id}))


def rows_to_state(
    branch: str, version: int, rows: pa.Table, branch_id: str | None = None
) -> ManifestState:
    """Reduce all rows of one manifest version to what is visible there.

    Costs a few column passes however long the history is; commits are parsed when asked for.

    Raises:
        InvariantViolated: A row lacks what its kind requires, or no commit is visible.
    """
    # A fragment is a chunk, and each pass pays for every chunk.
    rows = rows.combine_chunks()
    by_type = {kind: rows.filter(pc.equal(rows["object_type"], kind)) for kind in STATE_TYPES}
    commit_rows = by_type["graph_commit"]
    if commit_rows.num_rows == 0:
        raise InvariantViolated(f"the manifest of branch '{branch}' names no graph commit")
    paths = {row["table_key"]: _require(row, "location") for row in by_type["table"].to_pylist()}
    tombstones = select_tombstones(by_type["table_tombstone"])
    own = select_registered(tombstones, paths)
    hidden = _find_greatest(own["table_key"], own["table_version"])
    versions = select_registered(by_type["table_version"], paths)
    entries = dict(_build_visible_entries(paths, versions, hidden))
    shown = {entry.table_path for entry in entries.values()}
    schema = _read_facts(by_type["schema"])
    return ManifestState(
        branch=branch,
        version=version,
        entries=entries,
        hidden=hidden,
        paths=paths,
        hidden_paths=frozenset(list_locations(tombstones)) - shown,
        commit_rows=commit_rows,
        ancestor_rows=by_type["graph_ancestor"],
        head=find_head(commit_rows),
        branch_id=branch_id,
        schema_hash=schema.get("schema_ir_hash"),
        schema_id=schema.get("schema_id"),
        pinned=_find_greatest(
            by_type["table_version"]["table_key"], by_type["table_version"]["table_version"]
        ),
        vector_models=_read_models(by_type["embedding_models"]),
        checks=_read_checks(by_type["checks"]),
        reset_id=_read_facts(by_type["reset"]).get("reset_id"),
    )


def _read_models(rows: pa.Table) -> VectorModels:
    for row in rows.to_pylist():
        return models_from_text(_require(row, "metadata"))
    return {}


def _read_checks(rows: pa.Table) -> Checks:
    for row in rows.to_pylist():
        return checks_from_text(_require(row, "metadata"))
    return {}


def _read_facts(rows: pa.Table) -> dict[str, str]:
    for row in rows.to_pylist():
        facts: dict[str, str] = json.loads(_require(row, "metadata"))
        return facts
    return {}


def _find_greatest(keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> dict[str, int]:
    """Key → its greatest version."""
    grouped = (
        pa.table({"key": keys, "version": versions}).group_by("key").aggregate([("version", "max")])
    )
    return dict(zip(grouped["key"].to_pylist(), grouped["version_max"].to_pylist(), strict=True))


def select_registered(rows: pa.Table, paths: Mapping[str, str]) -> pa.Table:
    """The rows about the table that each key is registered for, not one it had before."""
    elsewhere = {key: path for key, path in paths.items() if path != default_path(key)}
    if not elsewhere and rows["location"].null_count == rows.num_rows:
        return rows
    keys = pa.array(list(elsewhere), pa.utf8())
    places = pc.index_in(rows["table_key"], value_set=keys)
    expected = pa.chunked_array([pa.array(list(elsewhere.values()), pa.utf8())]).take(places)
    is_default = pc.and_(rows["location"].is_null(), expected.is_null())
    return rows.filter(pc.or_(is_default, pc.equal(rows["location"], expected).fill_null(False)))


def select_tombstones(rows: pa.Table) -> pa.Table:
    """The tombstones that were not taken back."""
    return rows.filter(pc.greater(rows["table_version"], 0))


def list_locations(rows: pa.Table) -> Iterator[str]:
    """Where the tables lie that some rows are about."""
    for key, location in zip(
        rows["table_key"].to_pylist(), rows["location"].to_pylist(), strict=True
    ):
        yield location or default_path(key)


def _build_visible_entries(
    paths: Mapping[str, str], versions: pa.Table, hidden: Mapping[str, int]
) -> Iterator[tuple[str, TableEntry]]:
    greatest = _find_greatest(versions["table_key"], versions["table_version"])
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
        metadata = json.loads(_require(row, "metadata"))
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


def find_head(commit_rows: pa.Table) -> GraphCommit:
    """The newest of the commits of a line."""
    newest = pc.equal(commit_rows["table_version"], pc.max(commit_rows["table_version"]))
    # Commits of one publish are told apart by time: each is later than its parents.
    last = map(row_to_commit, commit_rows.filter(newest).to_pylist())
    return max(last, key=lambda each: each.order)


def find_row(rows: pa.Table, object_id: str) -> Row | None:
    """The row of this id among some rows."""
    position = pc.index(rows["object_id"], pa.scalar(object_id)).as_py()
    return rows.slice(position, 1).to_pylist()[0] if position >= 0 else None


def find_known_commit(state: ManifestState, commit_id: str) -> GraphCommit | None:
    """A commit that a branch knows: on its own line, or brought in by a merge."""
    for rows in (state.commit_rows, state.ancestor_rows):
        row = find_row(rows, commit_id)
        if row is not None:
            return row_to_commit(row)
    return None


def row_to_commit(row: Row) -> GraphCommit:
    """Read one `graph_commit` row."""
    metadata = json.loads(_require(row, "metadata"))
    return GraphCommit(
        commit_id=row["object_id"],
        branch=metadata["branch"],
        manifest_version=row["table_version"],
        parent_id=metadata["parent"],
        merged_parent_id=metadata["merged_parent"],
        actor=metadata["actor"],
        created_at=metadata["created_at"],
        properties=metadata.get("properties", {}),
        pins=metadata.get("pins", {}),
        is_kept=metadata.get("is_kept", False),
    )


def commits_newest_first(rows: pa.Table, expected: int = _BLOCK_ROWS) -> Iterator[GraphCommit]:
    """The commits of some rows, the head first; a row is parsed shortly before it is needed.

    `expected` is how many the caller will probably take.
    """
    versions = rows["table_version"].to_numpy()
    places = np.argsort(versions)[::-1]
    start, size = 0, min(expected, len(places))
    while start < len(places):
        # What one publish made is told apart by what is parsed, so it stays in one block.
        last = versions[places[min(start + size, len(places)) - 1]]
        end = len(places) - int(np.searchsorted(versions, last, sorter=places[::-1]))
        block = rows.take(places[start:end]).to_pylist()
        yield from sorted(map(row_to_commit, block), key=lambda each: each.order, reverse=True)
        start, size = end, 2 * size


def _require(row: Row, column: str) -> str:
    value = row[column]
    if value is None:
        raise InvariantViolated(
            f"the manifest row '{row['object_id']}' ({row['object_type']}) has no {column}"
        )
    return str(value)
