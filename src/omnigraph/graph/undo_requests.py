"""Undo requests: from the arguments of a call to what is replayed, and running that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from omnigraph.branch.choices import Resolution
from omnigraph.branch.commit_changes import PICKED, RESTORED, REVERTS, find_commits, note_commits
from omnigraph.branch.merge import MergePreview, MergeResult
from omnigraph.branch.replay import Replay, preview_replay, replay
from omnigraph.branch.restore import Restoration
from omnigraph.commit_note import CommitNote
from omnigraph.errors import SchemaMoved
from omnigraph.graph.session import Session
from omnigraph.manifest import Snapshot
from omnigraph.manifest.revisions import find_revision
from omnigraph.manifest.schema_view import project_to_schema
from omnigraph.manifest.schemas import find_catalog
from omnigraph.pipeline.frames import table_key
from omnigraph.policy import Action
from omnigraph.write.environment import queue_keys
from omnigraph.write.recovery import retry_after_recovery


def permit_undo(session: Session, branch: str, actor: str | None, *, preview: bool) -> str | None:
    """Who changes a branch; a preview changes nothing and needs no permission here."""
    if preview:
        session.read_contract()
        return None
    who = session.permit(Action.CHANGE, actor=actor, branch=branch)
    session.require_writable()
    return who


def plan_revert(
    session: Session, commits: Sequence[str], branch: str, actor: str | None, note: CommitNote
) -> Replay:
    """Take commits back."""
    found = find_commits(session.coordinator, _show_in(session, branch), commits)
    noted = note_commits(note, REVERTS, "revert", found.commits)
    return Replay("revert", found.source, branch, found.invert, noted, actor)


def plan_cherry_pick(
    session: Session, commits: Sequence[str], branch: str, actor: str | None, note: CommitNote
) -> Replay:
    """Make commits again."""
    found = find_commits(session.coordinator, _show_in(session, branch), commits)
    noted = note_commits(note, PICKED, "cherry-pick", found.commits)
    return Replay("cherry-pick", found.source, branch, found.repeat, noted, actor)


def plan_restore(
    session: Session,
    revision: str,
    branch: str,
    types: Collection[str] | None,
    ids: Collection[str] | None,
    actor: str | None,
    note: CommitNote,
) -> Replay:
    """Go back to a state."""
    catalog = session.read_schema(branch).catalog
    state = _show_in(session, branch)(find_revision(session.coordinator, revision))
    if types is None:
        keys = [each.table_key for each in catalog.entities()]
    else:
        keys = [table_key(catalog, each) for each in types]
    coordinator = session.coordinator
    wanted = Restoration(session.store.tables, coordinator, state, keys, ids)
    noted = note_commits(note, RESTORED, "restore", [state.head])
    return Replay(
        "restore",
        state.head.commit_id,
        branch,
        wanted.find_changes,
        replace(noted, message=note.message or _describe(keys, ids, state)),
        actor,
        is_partial=types is not None,
        ids=ids,
    )


def _describe(keys: Sequence[str], ids: Collection[str] | None, state: Snapshot) -> str:
    what = ", ".join(sorted(ids)[:3]) if ids else ", ".join(key.partition(":")[2] for key in keys)
    return f"Restore {what[:60]} as of {state.head.commit_id}"


def run_replay(
    session: Session, wanted: Replay, resolution: Resolution | None, *, preview: bool
) -> MergeResult | MergePreview:
    """Replay what is permitted, or say what that would do."""
    environment = session.environment()
    if preview:
        catalog = session.read_schema(wanted.branch).catalog
        return preview_replay(environment, catalog, wanted, resolution)
    seen = session.coordinator.last_seen(wanted.branch)
    queues = queue_keys(frozenset(seen.entries), seen.branch)
    session.recover(wait_for=queues)

    def run() -> MergeResult:
        schema = session.require_writable(wanted.branch)
        checked = replace(session.environment(), schema_name=schema.name)
        return replay(checked, schema.catalog, wanted, resolution)

    try:
        result = retry_after_recovery(environment, queues, run)
    except SchemaMoved:
        # What was planned in the schema before is planned in the present one.
        result = retry_after_recovery(environment, queues, run)
    session.compact_if_due(wanted.branch, result.tables)
    return result


def _show_in(session: Session, branch: str) -> Callable[[Snapshot], Snapshot]:
    """States of any time in the present schema of a branch."""

    def show(snapshot: Snapshot) -> Snapshot:
        present = session.read_schema(branch)
        if present.name is not None and snapshot.schema_name == present.name:
            return snapshot
        own = find_catalog(session.store.texts, snapshot, session.read_contract())
        return project_to_schema(snapshot, own, present.catalog)

    return show
