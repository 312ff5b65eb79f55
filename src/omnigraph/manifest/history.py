"""`_graph_commits.lance`: the commit history as a table that people can query.

A projection. The truth is the `graph_commit` rows of `__manifest`, written in the publish itself,
so there is no moment in which a commit is visible but missing from history. Read-write opens bring
the projection up to date with the branches that changed, refreshes with all; deleting it loses
nothing.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ParseOptions, read_json

from omnigraph.errors import BranchNotFound, CommitConflict, RowLevelCasContention, StorageError
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.model import MAIN, GraphCommit, ManifestState
from omnigraph.manifest.rows import row_to_commit
from omnigraph.storage.control import ControlTable
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.queues import QueueKey, WriterQueues

TABLE = "_graph_commits.lance"
KEY = "graph_commit_id"
MARK = "__history.json"
"""When the projection was last brought up to date. Without it, all branches are read once."""
FRAGMENTS_MAX = 32
"""Fragments of the projection that are worth a compaction: each time adds one."""
HISTORY_QUEUE: QueueKey = ("__history__", None)
FEW_COMMITS = 64
"""So many are parsed faster than it takes to find out which ones are wanted."""
_ATTEMPTS_MAX = 5
_LINEAGE = ParseOptions(
    explicit_schema=pa.schema(
        {"parent": pa.utf8(), "merged_parent": pa.utf8(), "created_at": pa.int64()}
    ),
    unexpected_field_behavior="ignore",
)

log = logging.getLogger("omnigraph.manifest")

SCHEMA = pa.schema(
    [
        pa.field(KEY, pa.utf8(), nullable=False),
        pa.field("manifest_branch", pa.utf8()),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parent_commit_id", pa.utf8()),
        pa.field("merged_parent_commit_id", pa.utf8()),
        pa.field("actor_id", pa.utf8()),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)


def commits_to_rows(commits: list[GraphCommit]) -> pa.Table:
    """Commits as rows of the projection."""
    return pa.Table.from_pylist(
        [
            {
                KEY: commit.commit_id,
                "manifest_branch": None if commit.branch == MAIN else commit.branch,
                "manifest_version": commit.manifest_version,
                "parent_commit_id": commit.parent_id,
                "merged_parent_commit_id": commit.merged_parent_id,
                "actor_id": commit.actor,
                "created_at": commit.created_at,
            }
            for commit in commits
        ],
        schema=SCHEMA,
    )


def reconcile_changed(
    coordinator: Coordinator, history: ControlTable, texts: GraphTexts, queues: WriterQueues
) -> list[str]:
    """Add the commits of branches that changed since this was done last.

    Returns the branches that cannot be read: what they have is not known.

    Which ones did is known from the file system, so that none of the others is read.
    """
    now = time.time_ns()
    branches = coordinator.list_changed(_read_mark(texts, now))
    unread: list[str] = []
    reconcile(coordinator, history, queues, branches, unread)
    # A branch that could not be read counts as changed until it can.
    if branches != [MAIN] and texts.root.is_local and not unread:
        texts.write_text(MARK, write_mark(now))
    return unread


def find_makers(
    coordinator: Coordinator, history: ControlTable, texts: GraphTexts, commit_ids: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """The branches that commits were made on, and those that the projection may not cover.

    A commit that is not in it is known to none but the latter: those that changed since it was
    brought up to date. One that is in it was known to some branch once.
    """
    since = _read_mark(texts, time.time_ns())
    uncovered = coordinator.list_changed(since)
    if since is None:
        return {}, uncovered
    wanted = IsIn(KEY, pa.array(sorted(commit_ids), pa.utf8()))
    rows = history.read(columns=[KEY, "manifest_branch"], predicate=wanted).rows.to_pylist()
    return {row[KEY]: row["manifest_branch"] or MAIN for row in rows}, uncovered


def list_branches_after(history: ControlTable, commit_ids: Collection[str]) -> set[str]:
    """The branches that made a commit which comes from one of these, over either parent."""
    columns = [KEY, "manifest_branch", "parent_commit_id", "merged_parent_commit_id"]
    made_on: dict[str, str] = {}
    children: dict[str, list[str]] = defaultdict(list)
    for row in history.read(columns=columns).rows.to_pylist():
        made_on[row[KEY]] = row["manifest_branch"] or MAIN
        for parent in (row["parent_commit_id"], row["merged_parent_commit_id"]):
            if parent is not None:
                children[parent].append(row[KEY])
    found: set[str] = set()
    pending = list(commit_ids)
    while pending:
        later = [each for each in children.get(pending.pop(), ()) if each not in found]
        found.update(later)
        pending += later
    return {made_on[each] for each in found}


def write_mark(now: int) -> str:
    """The text of a mark. It carries a checksum: a time that is too late hides commits."""
    return json.dumps({"reconciled_at_ns": now, "checksum": _sum_up(now)})


def _sum_up(now: int) -> str:
    return sha256(str(now).encode()).hexdigest()[:16]


def _read_mark(texts: GraphTexts, now: int) -> int | None:
    """When the projection was last up to date; None when that cannot be told."""
    text = texts.read_text_if_exists(MARK)
    with suppress(ValueError, KeyError, TypeError):
        mark = json.loads(text or "")
        found = int(mark["reconciled_at_ns"])
        # A clock that was set back says nothing about what came before.
        return found if mark["checksum"] == _sum_up(found) and found <= now else None
    return None


def reconcile(
    coordinator: Coordinator,
    history: ControlTable,
    queues: WriterQueues,
    branches: Collection[str],
    unread: list[str] | None = None,
) -> int:
    """Add the commits of these branches that the projection lacks; returns how many.

    Those that cannot be read are left out, and added to `unread`.

    Handles that open at the same time all do this: rows are merged by key, so none is added twice,
    and a handle that loses the race reads again and finds the work done.
    """
    states = []
    for branch in branches:
        try:
            states.append(coordinator.last_seen(branch))
        except BranchNotFound:
            continue  # deleted since it was listed
        except StorageError as error:
            # A read of the branch raises it; an open is not about this branch.
            log.warning("branch '%s' is left out of the commit history table: %s", branch, error)
            if unread is not None:
                unread.append(branch)
    if _has_heads(history, states):
        return 0
    with queues.acquire_many([HISTORY_QUEUE]):
        added = _add_missing(history, states)
        if added and history.fragment_count() >= FRAGMENTS_MAX:
            with suppress(CommitConflict):  # an Omnigraph that takes no turn adds rows as well
                history.compact()
    return added


def _has_heads(history: ControlTable, states: Sequence[ManifestState]) -> bool:
    """Whether the projection has the heads. A commit comes with all before it, in one step."""
    heads = {state.head.commit_id for state in states}
    wanted = IsIn(KEY, pa.array(sorted(heads), pa.utf8()))
    known = history.read(columns=[KEY], predicate=wanted).rows[KEY].to_pylist()
    return heads == set(known)


def _add_missing(history: ControlTable, states: Sequence[ManifestState]) -> int:
    for _ in range(_ATTEMPTS_MAX):
        known = history.read(columns=[KEY])
        missing = _find_missing(states, known.rows[KEY].combine_chunks())
        if not missing:
            return 0
        try:
            history.merge_rows(commits_to_rows(missing), read_version=known.version)
        except RowLevelCasContention:
            continue
        return len(missing)
    log.info("the commit history table is left to the handles that are writing it now")
    return 0


def _find_missing(states: Iterable[ManifestState], known_ids: pa.Array) -> list[GraphCommit]:
    missing: dict[str, GraphCommit] = {}
    for state in states:
        rows = pa.concat_tables([state.commit_rows, state.ancestor_rows])
        unknown = pc.invert(pc.is_in(rows["object_id"], known_ids))
        for row in rows.filter(unknown).to_pylist():
            missing[row["object_id"]] = row_to_commit(row)
    return sorted(missing.values(), key=lambda commit: commit.order)


def list_ancestry(
    coordinator: Coordinator, history: ControlTable, state: ManifestState
) -> Iterator[GraphCommit]:
    """The commits that led to a branch, over both parents, newest first; parsed as they are read.

    A branch knows all of them. What merges of an older Omnigraph did not bring along is known from
    the other branches, or from the projection alone.
    """
    if state.commit_rows.num_rows > FEW_COMMITS:
        newest = _sort_newest_first(state)
        if newest is not None:
            yield from newest
            return
    known = _read_commits(state)
    found: dict[str, GraphCommit] = {}
    pending = [state.head.commit_id]
    is_all_read = False
    while pending:
        commit_id = pending.pop()
        if commit_id not in known and not is_all_read:
            known = _read_all_commits(coordinator, history) | known
            is_all_read = True
        commit = known.get(commit_id)
        if commit is None or commit_id in found:
            continue
        found[commit_id] = commit
        pending += [each for each in (commit.parent_id, commit.merged_parent_id) if each]
    yield from sorted(
        found.values(), key=lambda each: (each.created_at, each.commit_id), reverse=True
    )


def _sort_newest_first(state: ManifestState) -> Iterator[GraphCommit] | None:
    """The commits that led to a branch; None when its rows do not prove which these are.

    All rows are what the head comes from when all parents are among them, and each but the head is
    a parent. Then no more of them are parsed than are wanted.
    """
    rows = pa.concat_tables([state.commit_rows, state.ancestor_rows])
    if rows["metadata"].null_count:
        return None
    lines = "\n".join(rows["metadata"].to_pylist()).encode()
    facts = read_json(pa.BufferReader(lines), parse_options=_LINEAGE)
    ids = rows["object_id"].combine_chunks()
    pairs = [*facts["parent"].chunks, *facts["merged_parent"].chunks]
    parents = pa.chunked_array(pairs, pa.utf8()).combine_chunks().drop_null()
    heads = ids.filter(pc.invert(pc.is_in(ids, parents))).to_pylist()
    if heads != [state.head.commit_id] or not pc.all(pc.is_in(parents, ids)).as_py():
        return None
    times = pa.table({"created_at": facts["created_at"], "id": ids})
    newest = pc.sort_indices(times, [("created_at", "descending"), ("id", "descending")])
    return _parse_on_demand(rows, newest)


def _parse_on_demand(rows: pa.Table, places: pa.Array) -> Iterator[GraphCommit]:
    start, size = 0, max(1, FEW_COMMITS)
    while start < len(places):
        yield from map(row_to_commit, rows.take(places[start : start + size]).to_pylist())
        start, size = start + size, 2 * size


def _read_commits(state: ManifestState) -> dict[str, GraphCommit]:
    rows = pa.concat_tables([state.commit_rows, state.ancestor_rows]).to_pylist()
    return {commit.commit_id: commit for commit in map(row_to_commit, rows)}


def _read_all_commits(coordinator: Coordinator, history: ControlTable) -> dict[str, GraphCommit]:
    known = {row[KEY]: _history_row_to_commit(row) for row in _read_history_rows(history)}
    for each in coordinator.branches():
        known |= _read_commits(coordinator.fresh(each))
    return known


def _read_history_rows(history: ControlTable) -> list[dict[str, Any]]:
    rows = history.read().rows
    numbers = rows["created_at"].cast(pa.int64())
    column = rows.schema.get_field_index("created_at")
    plain: list[dict[str, Any]] = rows.set_column(column, "created_at", numbers).to_pylist()
    return plain


def _history_row_to_commit(row: dict[str, Any]) -> GraphCommit:
    return GraphCommit(
        commit_id=row[KEY],
        branch=row["manifest_branch"] or MAIN,
        manifest_version=row["manifest_version"],
        parent_id=row["parent_commit_id"],
        merged_parent_id=row["merged_parent_commit_id"],
        actor=row["actor_id"],
        created_at=row["created_at"],
    )
