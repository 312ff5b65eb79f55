"""Review: which verdicts on a merge request count now, and what the policy still asks for.

A verdict is on the head that the source had, and on the target that the request had. An approval
of anything else is stale, and one by an actor who made a commit that the merge would bring is that
of an author. An objection stands until its actor approves or withdraws it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from omnigraph.branch.commit_dag import compare_histories, read_dag
from omnigraph.branch.merge_request import BranchPresence, MergeRequest, Review, Verdict
from omnigraph.errors import ApprovalsMissing, BranchNotFound
from omnigraph.manifest import Coordinator, ManifestState
from omnigraph.policy import Policy

APPROVERS_SHOWN_MAX = 20


def review_request(
    coordinator: Coordinator, policy: Policy | None, request: MergeRequest
) -> Review:
    """Hold the verdicts to the branches as they are now, and to the policy."""
    source = find_source(coordinator, request)
    head = source.head.commit_id if isinstance(source, ManifestState) else None
    is_there = coordinator.has_branch(request.target)
    authors = {request.author}
    if isinstance(source, ManifestState) and is_there:
        authors |= _list_committers(coordinator, request, source)
    weighed = (_weigh(policy, request, head, authors, each) for each in request.verdicts)
    verdicts = tuple(weighed)
    approved = {each.actor for each in verdicts if each.counts and each.is_approval}
    required = 0 if policy is None else policy.count_required(request.target)
    return Review(
        head=head,
        source_state=BranchPresence.PRESENT if isinstance(source, ManifestState) else source,
        target_state=BranchPresence.PRESENT if is_there else BranchPresence.DELETED,
        verdicts=verdicts,
        required=required,
        missing=max(required - len(approved), 0),
        objectors=tuple(
            str(each.actor) for each in verdicts if each.counts and not each.is_approval
        ),
        approvers=_list_approvers(policy, request, approved | authors),
    )


def _list_committers(
    coordinator: Coordinator, request: MergeRequest, source: ManifestState
) -> set[str | None]:
    """Who made the commits that a merge would bring."""
    target = coordinator.fresh(request.target)
    dag = read_dag(coordinator, [source, target])
    brought = compare_histories(dag, [source.head], [target.head]).only_one
    return {each.actor for each in brought} - {None}


def find_source(coordinator: Coordinator, request: MergeRequest) -> ManifestState | BranchPresence:
    """The branch that was asked to be merged; or what became of it."""
    try:
        state = coordinator.fresh(request.source)
    except BranchNotFound:
        return BranchPresence.DELETED
    return state if state.branch_id == request.source_id else BranchPresence.REPLACED


def require_approvals(
    coordinator: Coordinator, policy: Policy | None, request: MergeRequest, source: ManifestState
) -> None:
    """Refuse a merge of the source as it is here that the policy does not let pass yet.

    Raises:
        ApprovalsMissing: Approvals are missing, or there is an objection.
    """
    if policy is None:
        return
    required = policy.count_required(request.target)
    if not required:
        return
    authors = {request.author} | _list_committers(coordinator, request, source)
    head = source.head.commit_id
    verdicts = [_weigh(policy, request, head, authors, each) for each in request.verdicts]
    approved = {each.actor for each in verdicts if each.counts and each.is_approval}
    objectors = [str(each.actor) for each in verdicts if each.counts and not each.is_approval]
    missing = max(required - len(approved), 0)
    if missing or objectors:
        raise ApprovalsMissing(
            request.target,
            number=request.number,
            required=required,
            missing=missing,
            objectors=objectors,
            approvers=_list_approvers(policy, request, approved | authors),
        )


def _weigh(
    policy: Policy | None,
    request: MergeRequest,
    head: str | None,
    authors: Collection[str | None],
    verdict: Verdict,
) -> Verdict:
    is_current = (verdict.head, verdict.target) == (head, request.target)
    is_stale = verdict.is_approval and not is_current
    may = policy is None or policy.may_approve(verdict.actor, request.source, request.target)
    is_own = verdict.actor == request.author or (verdict.is_approval and verdict.actor in authors)
    counts = may and not is_stale and not is_own
    return replace(verdict, is_stale=is_stale, counts=counts)


def _list_approvers(
    policy: Policy | None, request: MergeRequest, without: Collection[str | None]
) -> tuple[str, ...]:
    if policy is None:
        return ()
    known = policy.list_approvers(request.source, request.target)
    left = [each for each in known if each not in without]
    return tuple(left[:APPROVERS_SHOWN_MAX])
