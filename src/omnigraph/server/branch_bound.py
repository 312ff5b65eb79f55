"""Branch bound: the branches that a token may write to, whatever the policy allows its actor.

A bound only takes away. What it does not cover is refused before the policy is asked, and what it
covers still has to be allowed. Reading is not bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, PolicyError
from omnigraph.policy import Action
from omnigraph.policy.model import (
    ANY_REST,
    BRANCH_SCOPE,
    TARGET_BRANCH_SCOPE,
    is_branch_pattern,
    matches_branch,
)

_READS = frozenset(
    {Action.READ, Action.EXPORT, Action.INVOKE_QUERY, Action.GRAPH_LIST, Action.VERIFY}
)


@dataclass(frozen=True, slots=True)
class BranchBound:
    """Names of branches, and prefixes that end in `*`."""

    patterns: tuple[str, ...]

    @classmethod
    def parse(cls, patterns: Iterable[str]) -> BranchBound:
        """Check the patterns.

        Raises:
            BadRequestError: There are none, or one is not a name or a prefix and `*`.
        """
        found = tuple(pattern.strip() for pattern in patterns)
        if not found:
            raise BadRequestError("names no branches — name some, or leave `branches` out")
        for pattern in found:
            if not is_branch_pattern(pattern):
                raise BadRequestError(
                    f"'{pattern[:80]}' is not a branch, or the beginning of one and '{ANY_REST}'"
                )
        return cls(found)

    def covers(self, branch: str | None) -> bool:
        """Whether a branch is one of those; a write to no branch in particular is not."""
        name = "" if branch is None else branch.strip()
        return any(matches_branch(pattern, name) for pattern in self.patterns)

    def allows(self, action: Action, branch: str | None, target_branch: str | None) -> bool:
        """Whether the policy may be asked. An action that is new is a write until it is listed."""
        if action in _READS:
            return True
        written = {BRANCH_SCOPE: branch, TARGET_BRANCH_SCOPE: target_branch}
        return self.covers(written.get(action.scope_key or ""))

    def require(
        self, actor: str | None, action: Action, branch: str | None, target_branch: str | None
    ) -> None:
        """Let a request pass to the policy.

        Raises:
            PolicyError: It would write to another branch.
        """
        if not self.allows(action, branch, target_branch):
            covered = ", ".join(self.patterns)
            raise PolicyError(
                f"the token of actor '{actor}' may write only to {covered}: "
                f"action '{action}' is denied elsewhere"
            )

    def list_examples(self) -> list[str]:
        """One branch that each pattern covers."""
        return [
            f"{pattern.removesuffix(ANY_REST)}any" if pattern.endswith(ANY_REST) else pattern
            for pattern in self.patterns
        ]
