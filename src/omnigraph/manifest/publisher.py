"""Publisher: a set of pins becomes visible by one commit on `__manifest`, or not at all.

Invariant: what is visible on a branch changes only here, and when it goes back (`reset.py`): all
pins of a write in one commit, with the graph commit that records it, and only while every table
that the write touched or read is still at the version that the write saw.

The fence is the row `graph_head:{branch}`, which every publish replaces by its primary key
`object_id`, so any two publishes of one branch contend: the second one reads again, checks its
expectations again and then lands or fails. Lance's own rebase is off.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import (
    ConflictError,
    ExpectedVersionMismatch,
    InvariantViolated,
    PreconditionFailed,
    RowLevelCasContention,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.facts import derive_facts, read_facts
from omnigraph.manifest.model import (
    Change,
    GraphCommit,
    ManifestState,
    Publish,
    PublishDelta,
    RegisterTable,
    TableEntry,
    Tombstone,
    UpdatePin,
)
from omnigraph.manifest.rows import (
    Row,
    ancestor_to_row,
    change_to_row,
    checks_to_row,
    commit_to_row,
    head_key,
    head_to_row,
    models_to_row,
    revoke_tombstone,
    rows_to_table,
    schema_to_row,
)

RETRY_BUDGET = 5


def publish(coordinator: Coordinator, request: Publish) -> ManifestState:
    """Make `request` visible and return the branch's new state.

    Raises:
        ExpectedVersionMismatch: A table moved since the write was prepared. Nothing is visible.
        PreconditionFailed: The branch head is not the one the caller named. Nothing is visible.
        ConflictError: The request does not fit the manifest, or contention did not end.
    """
    for _ in range(RETRY_BUDGET + 1):
        coordinator.migrate()
        state = coordinator.fresh(request.branch)
        _check_expectations(state, request)
        is_commit = bool(request.commits or request.adopted)
        if not request.changes and not is_commit and not request.ancestors:
            return state
        _check_changes(state, request.changes)
        ancestors = _select_unknown(state, request.ancestors)
        commits = _build_commits(state, request, ancestors)
        rows = _build_table_rows(state, request.changes)
        rows += [commit_to_row(commit) for commit in commits]
        rows += [ancestor_to_row(commit) for commit in ancestors]
        if request.schema_hash is not None:
            rows.append(schema_to_row(request.schema_hash, request.schema_id))
        facts = derive_facts(state, commits, request.facts)
        if facts.vector_models != state.vector_models:
            rows.append(models_to_row(facts.vector_models))
        if facts.checks != state.checks:
            rows.append(checks_to_row(facts.checks))
        # Every publish writes the head row, moved or not: it is what publishes contend for.
        rows.append(head_to_row(state.branch, (commits or [state.head])[-1].commit_id))
        hit(Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT)
        delta = PublishDelta(
            state.branch,
            state.branch_id,
            state.version,
            request.changes,
            tuple(commits),
            request.schema_hash,
            request.schema_id,
            ancestors,
            request.facts,
        )
        replaced = None if facts != read_facts(state) else _find_only_update(state, request)
        try:
            made = coordinator.merge(state, rows_to_table(rows), delta, replaced=replaced)
        except RowLevelCasContention:
            continue
        hit(Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT)
        return made
    raise ConflictError(
        f"publishing on branch '{request.branch}' exhausted {RETRY_BUDGET} retries against "
        "concurrent writers — nothing was written; retry"
    )


def _find_only_update(state: ManifestState, request: Publish) -> str | None:
    """The key of the head row, when every other row of a request is new; None when one may not be.

    Ids of commits are new, and a pin is unless its key was once that of a table with more versions.
    """
    is_new = request.schema_hash is None and all(
        isinstance(change, UpdatePin) and change.version > state.pinned.get(change.table_key, 0)
        for change in request.changes
    )
    return head_key(state.branch) if is_new else None


def _build_table_rows(state: ManifestState, changes: tuple[Change, ...]) -> list[Row]:
    """The rows of the changes; a table that comes back under a key it had takes its tombstone."""
    paths, rows, revoked = dict(state.paths), list[Row](), list[Row]()
    for change in changes:
        if isinstance(change, RegisterTable):
            key, path = change.table_key, change.table_path
            if key in state.hidden and paths[key] == path:
                revoked.append(revoke_tombstone(key, state.hidden[key], path))
            paths[key] = path
        rows.append(change_to_row(change, paths.get(change.table_key)))
    return [*revoked, *rows]


def _check_expectations(state: ManifestState, request: Publish) -> None:
    if request.checks is not None and request.checks != state.checks:
        raise ConflictError(
            f"the checks of branch '{request.branch}' have changed meanwhile — nothing was "
            "written; retry"
        )
    if request.if_commit is not None and state.head.commit_id != request.if_commit:
        raise PreconditionFailed(expected=request.if_commit, actual=state.head.commit_id)
    for table_key, expected in sorted(request.expected.items()):
        actual = state.latest_version(table_key)
        if actual != expected:
            raise ExpectedVersionMismatch(table_key, expected=expected, actual=actual)


def _check_changes(state: ManifestState, changes: tuple[Change, ...]) -> None:
    """Refuse what could not be meant: these are mistakes of ours, not races."""
    seen: set[str] = set()
    registered = {change.table_key for change in changes if isinstance(change, RegisterTable)}
    given_up: set[str] = set()
    for change in changes:
        object_id = change_to_row(change)["object_id"]
        if object_id in seen:
            raise InvariantViolated(f"one publish names '{object_id}' twice")
        seen.add(object_id)
        entry = None if change.table_key in given_up else state.entries.get(change.table_key)
        match change:
            case Tombstone(key):
                given_up.add(key)  # so that another table may be registered under it
            case RegisterTable(key, path) if entry is not None and entry.table_path != path:
                raise InvariantViolated(f"table '{key}' is registered at '{entry.table_path}'")
            case UpdatePin(key) if entry is None and key not in registered:
                raise InvariantViolated(f"table '{key}' is pinned but not registered")
            case UpdatePin() if entry is not None and _is_repeat(entry, change):
                raise InvariantViolated(
                    f"version {change.version} of table '{change.table_key}' is already published"
                )
            case _:
                pass


def _is_repeat(entry: TableEntry, change: UpdatePin) -> bool:
    """Whether a pin goes back or stays. A hand-over to another lineage may keep its number."""
    if change.version > entry.version:
        return False
    return change.table_branch == entry.table_branch or change.row_count != entry.row_count


def _select_unknown(
    state: ManifestState, ancestors: tuple[GraphCommit, ...]
) -> tuple[GraphCommit, ...]:
    """The commits that this branch does not have yet."""
    if not ancestors:
        return ()
    ids = pa.array([each.commit_id for each in ancestors])
    known = [pc.is_in(ids, rows["object_id"]) for rows in (state.commit_rows, state.ancestor_rows)]
    is_known = pc.or_(*known).to_pylist()
    return tuple(each for each, there in zip(ancestors, is_known, strict=True) if not there)


def _build_commits(
    state: ManifestState, request: Publish, ancestors: tuple[GraphCommit, ...]
) -> list[GraphCommit]:
    """The commits to make, each later than its parents, by whatever clock those were made.

    A walk that takes the latest commit first then meets every commit before its parents.
    """
    commits: list[GraphCommit] = [
        replace(each, manifest_version=state.version + 1) for each in request.adopted
    ]
    for lineage in request.commits:
        parent = commits[-1] if commits else state.head
        earlier = [parent.created_at, *(each.created_at for each in ancestors)]
        commits.append(
            GraphCommit(
                commit_id=lineage.commit_id,
                branch=request.branch,
                manifest_version=state.version + 1,
                parent_id=parent.commit_id,
                merged_parent_id=lineage.merged_parent_id,
                actor=lineage.actor,
                created_at=max(lineage.created_at, 1 + max(earlier)),
                properties=lineage.properties,
                pins=lineage.pins,
            )
        )
    return commits
