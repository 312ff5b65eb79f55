"""Pin history: which commits of a branch published which version of one table.

A manifest has a row for every version that was ever pinned, and Lance stamps each row with the
manifest version that wrote it. So one read of the newest manifest tells what a reader would
otherwise have to learn from one manifest per commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.manifest.model import GraphCommit, ManifestState, TableEntry
from omnigraph.manifest.rows import read_stamps, row_to_commit, select_registered
from omnigraph.storage.control import STAMP, ControlTable
from omnigraph.storage.predicates import Compare, CompareOp
from omnigraph.storage.reads import CREATED

_COLUMNS = ["object_type", "table_key", "location", "table_version", "table_branch", "row_count"]


@dataclass(frozen=True, slots=True)
class PinnedCommit:
    """A commit, and what it shows of one table.

    `version` is what the commit itself published. `entry` has the same rows; it is of a later
    compaction if there was one, whose files stay when a cleanup removes the first ones.
    """

    commit: GraphCommit
    entry: TableEntry
    version: int


def list_pinned_commits(
    control: ControlTable, state: ManifestState, entry: TableEntry
) -> list[PinnedCommit]:
    """The commits of a branch's line that published a version of a table, newest first.

    `entry` is what `state` shows of the table. What it was called before a rename is not found.
    """
    same_key = Compare("table_key", CompareOp.EQ, pa.scalar(entry.table_key))
    columns = [*_COLUMNS, "metadata", CREATED]
    rows = control.read_stamped(lance_branch(state.branch), state.version, columns, same_key)
    rows = read_stamps(rows, CREATED, STAMP)
    pins = rows.filter(pc.equal(rows["object_type"], "table_version"))
    pins = select_registered(pins, {entry.table_key: entry.table_path})
    commits = _group_commits(state, pins[STAMP])
    newest_first = pins.sort_by([(STAMP, "descending"), ("table_version", "descending")])
    return list(_pair(newest_first.to_pylist(), commits, entry))


def _group_commits(state: ManifestState, versions: pa.ChunkedArray) -> dict[int, list[GraphCommit]]:
    """Manifest version → the commits that its publish made, newest first."""
    rows = state.commit_rows
    wanted = rows.filter(pc.is_in(rows["table_version"], pc.unique(versions)))
    found: dict[int, list[GraphCommit]] = {}
    commits = map(row_to_commit, wanted.to_pylist())
    for commit in sorted(commits, key=lambda each: each.order, reverse=True):
        found.setdefault(commit.manifest_version, []).append(commit)
    return found


def _pair(
    pins: list[dict[str, Any]], commits: dict[int, list[GraphCommit]], shown: TableEntry
) -> Iterator[PinnedCommit]:
    newest: TableEntry | None = None
    for pin in pins:
        entry = replace(
            shown,
            version=pin["table_version"],
            table_branch=pin["table_branch"],
            row_count=pin["row_count"],
            transaction_uuid=json.loads(pin["metadata"]).get("transaction_uuid"),
        )
        newest = newest or entry
        for commit in commits.get(pin[STAMP], ()):
            if commit.is_kept and shown.table_key not in commit.pins:
                continue  # it does not have the table, or not under this key
            own = entry
            # Commits of one publish: all but the last say themselves what they show.
            if shown.table_key in commit.pins:
                version, branch, count, uuid = commit.pins[shown.table_key]
                newest = own = replace(
                    entry,
                    version=version,
                    table_branch=branch,
                    row_count=count,
                    transaction_uuid=uuid,
                )
            yield PinnedCommit(commit, newest, own.version)
        if pin[STAMP] in commits:
            newest = None
