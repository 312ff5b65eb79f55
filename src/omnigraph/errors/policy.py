"""Errors of permission: ask for it."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors.base import OmnigraphError


class PolicyError(OmnigraphError):
    """The policy does not let this actor do that."""

    kind = "policy"
    http_status = 403


class ApprovalsMissing(PolicyError):
    """A merge into the branch needs approvals that it does not have. Nothing was merged.

    `number` is the merge request; None for a merge without one.
    """

    kind = "approvals_missing"

    def __init__(
        self,
        branch: str,
        *,
        number: int | None,
        required: int,
        missing: int,
        objectors: Sequence[str] = (),
        approvers: Sequence[str] = (),
    ) -> None:
        named = ", ".join(approvers) or "an actor whom the policy lets approve"
        who = f"approval can come from {named}"
        if number is None:
            text = (
                f"a merge into '{branch}' needs {_count_approvals(required)} — nothing was merged; "
                f"open a merge request ({who})"
            )
        elif missing:
            text = (
                f"merge request {number} has {required - missing} of the {required} approvals that "
                f"a merge into '{branch}' needs, {missing} missing — nothing was merged; {who}"
            )
        else:
            text = (
                f"merge request {number} has an objection by {', '.join(objectors)} — nothing was "
                "merged; they have to approve, or withdraw the objection"
            )
        super().__init__(text)
        self.branch, self.number = branch, number
        self.required, self.missing = required, missing
        self.objectors, self.approvers = tuple(objectors), tuple(approvers)


def _count_approvals(count: int) -> str:
    return f"{count} approval" if count == 1 else f"{count} approvals"


class PolicyEvaluationFailed(PolicyError):
    """The policy could not be evaluated, which counts as a denial. Nothing was done."""

    kind = "policy_evaluation"
    http_status = 500

    def __init__(self, what: str, action: str, actor: str) -> None:
        super().__init__(
            f"{what} has no answer for action '{action}' of actor '{actor}' — nothing was done; "
            "check the bundle with `omnigraph policy validate`"
        )
