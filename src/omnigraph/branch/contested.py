"""Contested merges: those that resolved a conflict about one entity, as they noted it themselves.

A merge notes which conflicts it resolved and which side it kept, of a row or of its properties.
What the other side had is read from the states that were merged, so nothing else has to be noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.commit_dag import CommitDag
from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm
from omnigraph.manifest import GraphCommit, ManifestState
from omnigraph.manifest.rows import row_to_commit

NOTE = "resolved"
"""What a merge that resolved conflicts notes on itself: one item per row."""


@dataclass(frozen=True, slots=True)
class LostValue(JsonForm):
    """A value that a merge gave up: it kept `kept`, the side of the target (ours) or the source,
    or a `value` that it was given.

    `commit_id` wrote it, on `branch`. With `is_deletion` the losing side had deleted the entity.
    """

    value: Any
    merge_id: str
    kept: str
    commit_id: str
    actor: str | None
    at: int
    branch: str
    is_deletion: bool = False


@dataclass(frozen=True, slots=True)
class Contested:
    """A merge, and what it kept of the entity under each key that the type had.

    That is a side, or what it kept of each property that was chosen: a side, or `value`.
    """

    merge: GraphCommit
    kept: dict[str, str | dict[str, str]]


def find_contested(state: ManifestState, entity_id: str) -> dict[str, Contested]:
    """The merges that led to a branch and resolved a conflict about an entity, by commit."""
    found = {}
    rows = pa.concat_tables([state.commit_rows, state.ancestor_rows])
    noted = rows.filter(pc.match_substring(rows["metadata"], f'"{NOTE}"'))
    for merge in map(row_to_commit, noted.to_pylist()):
        items = merge.properties.get(NOTE, ())
        kept = {each["table_key"]: each["take"] for each in items if each["row_id"] == entity_id}
        if kept and merge.merged_parent_id is not None:
            found[merge.commit_id] = Contested(merge, kept)
    return found


def list_on_line(
    contested: dict[str, Contested], dag: CommitDag, start: GraphCommit
) -> Iterator[Contested]:
    """Those on the line that leads to a commit, newest first; walks no further than the oldest."""
    if not contested:
        return
    oldest = min(each.merge.created_at for each in contested.values())
    commit: GraphCommit | None = start
    while commit is not None and commit.created_at >= oldest:
        if commit.commit_id in contested:
            yield contested[commit.commit_id]
        commit = None if commit.parent_id is None else dag.get(commit.parent_id)
