"""Merges: run one on an open graph. Whether the caller may was asked before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.branch.merge import MergeResult, delete_merged
from omnigraph.branch.merge import merge as merge_branches
from omnigraph.branch.request_review import APPROVERS_SHOWN_MAX
from omnigraph.commit_note import CommitNote
from omnigraph.errors import ApprovalsMissing
from omnigraph.policy import Action
from omnigraph.write.environment import queue_keys
from omnigraph.write.recovery import retry_after_recovery

if TYPE_CHECKING:
    from omnigraph.branch.choices import Resolution
    from omnigraph.graph.session import Session


def permit_merge(session: Session, source: str, target: str, actor: str | None) -> str | None:
    """Say who merges, once the policy lets them, without a merge request.

    Raises:
        PolicyError: It does not.
        ApprovalsMissing: Merges into the target need approvals.
    """
    who = session.permit(Action.BRANCH_MERGE, actor=actor, branch=source, target_branch=target)
    policy = session.policy
    required = 0 if policy is None else policy.count_required(target)
    if policy is not None and required:
        approvers = [each for each in policy.list_approvers(source, target) if each != who]
        raise ApprovalsMissing(
            target,
            number=None,
            required=required,
            missing=required,
            approvers=approvers[:APPROVERS_SHOWN_MAX],
        )
    return who


def run_merge(
    session: Session,
    source: str,
    target: str,
    *,
    actor: str | None,
    note: CommitNote,
    resolution: Resolution | None,
    deletes: bool = False,
    source_head: str | None = None,
    before_publish: Callable[[str], object] = lambda _: None,
) -> MergeResult:
    """Merge, after what dead writers left is recovered; see `branch.merge`."""
    session.require_writable()
    environment = session.environment()
    seen = session.coordinator.last_seen(target)
    queues = queue_keys(frozenset(seen.entries), seen.branch)
    session.recover(wait_for=queues)
    schema = session.require_writable(target)
    environment = replace(environment, schema_name=schema.name)
    permit = partial(session.permit, Action.SCHEMA_APPLY, actor=actor, target_branch=target)
    result = retry_after_recovery(
        environment,
        queues,
        lambda: merge_branches(
            environment,
            schema.catalog,
            source,
            target,
            actor=actor,
            note=note,
            resolution=resolution,
            permit_schema=permit,
            source_head=source_head,
            before_publish=before_publish,
        ),
    )
    session.compact_if_due(target, result.tables)
    return delete_source(session, result) if deletes else result


def delete_source(session: Session, result: MergeResult) -> MergeResult:
    """Remove the source of a merge. The merge stands, whatever comes of this."""
    return delete_merged(session.environment(), result, session.store.history)
