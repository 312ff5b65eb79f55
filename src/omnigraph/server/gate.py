"""Gate: whether an actor may do an action.

tokens   policy of the graph   what an actor may do
none     none                  everything but list the graphs: the server was opened on purpose
some     none                  read
some     some                  what the policy allows
"""

from __future__ import annotations

from itertools import product

from omnigraph.dataclass import dataclass
from omnigraph.errors import PolicyError
from omnigraph.manifest import MAIN
from omnigraph.policy import Action, Policy, Request
from omnigraph.server.branch_bound import BranchBound

_OTHER = "a branch that nothing protects"


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides for one graph, or for the server as a whole."""

    is_open: bool
    policy: Policy | None

    def require(
        self,
        actor: str | None,
        action: Action,
        branch: str | None = None,
        target_branch: str | None = None,
        type_name: str | None = None,
    ) -> None:
        """Let the actor pass.

        Raises:
            PolicyError: The actor may not do that.
        """
        if self.policy is not None and actor is not None:
            decision = self.policy.decide(Request(actor, action, branch, target_branch, type_name))
            if not decision.allowed:
                raise PolicyError(decision.message)
        elif self.is_open and action is not Action.GRAPH_LIST:
            return
        elif self.policy is not None or self.is_open or action is not Action.READ:
            raise PolicyError(f"{_denial(actor, action)} — no policy allows it")

    @property
    def limits_types(self) -> bool:
        """Whether the types that a request reads have to be asked for one by one."""
        return self.policy is not None and self.policy.limits_types

    def may_read(self, actor: str | None, branch: str, type_name: str | None = None) -> bool:
        """Whether the actor may read it. Nothing is read, so nothing is logged."""
        if self.policy is None or actor is None:
            return self.may(actor, Action.READ)
        return self.policy.would_allow(Request(actor, Action.READ, branch, None, type_name))

    def may(self, actor: str | None, action: Action, bound: BranchBound | None = None) -> bool:
        """Whether the actor may do it on some branch. Nothing is done, so nothing is logged."""
        if self.policy is None or actor is None:
            try:
                self.require(actor, action)
            except PolicyError:
                return False
            return True
        names = [MAIN, _OTHER, *(() if bound is None else bound.list_examples())]
        targets = [MAIN] if action is Action.SCHEMA_APPLY else names  # a graph has one schema
        return any(
            self.policy.would_allow(Request(actor, action, branch, target))
            for branch, target in [(None, None), *product(names, targets)]
            if bound is None or bound.allows(action, branch, target)
        )


def _denial(actor: str | None, action: Action) -> str:
    who = "a caller without a token" if actor is None else f"actor '{actor}'"
    return f"policy denied action '{action}' for {who}"
