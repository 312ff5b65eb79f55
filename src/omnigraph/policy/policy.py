"""Policy: one compiled bundle, which decides requests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from omnigraph.errors import PolicyError
from omnigraph.policy.model import Action, Bundle, Decision, Kind, Request

Match: TypeAlias = Callable[[Request, bool, bool], list[str]]
"""The rules that allow a request, given whether its two branches are protected."""

_Facts: TypeAlias = tuple[str, Action, bool, bool, bool, bool, str | None]

_UNPROTECTED = "a branch that nothing protects"
_OTHER_TYPE = ""  # stands for every type that no rule names

_log = logging.getLogger("omnigraph.policy")


class Policy:
    """Who may do what, to one graph or server. Thread-safe; compiled once."""

    def __init__(self, name: str, bundle: Bundle, match: Match) -> None:
        self.name = name
        self.kind: Kind = bundle.kind
        self.actors = bundle.actors
        self._protected = bundle.protected_branches
        self._match = match
        self._types = bundle.types
        self._count_required = bundle.count_required
        # No permit looks at the name of a branch, only at whether there is one and whether it is
        # protected, nor at the name of a type that no rule names: what was answered once holds for
        # all requests that agree in these facts. The keys are bounded by actors times actions times
        # named types, since unknown actors never get here.
        self._matched: dict[_Facts, str | None] = {}

    def count_required(self, branch: str) -> int:
        """How many approvals a merge into a branch needs."""
        return self._count_required(branch.strip())

    def may_approve(self, actor: str | None, source: str, target: str) -> bool:
        """Whether an actor's approval of a merge counts. It is only looked up, so not logged."""
        return actor is not None and self.would_allow(
            Request(actor, Action.MERGE_APPROVE, source, target)
        )

    def list_approvers(self, source: str, target: str) -> list[str]:
        """The actors whose approval of a merge counts, by name."""
        return [each for each in sorted(self.actors) if self.may_approve(each, source, target)]

    @property
    def limits_types(self) -> bool:
        """Whether some rule speaks of types, so that each type that is read has to be asked for."""
        return bool(self._types)

    def decide(self, request: Request) -> Decision:
        """Answer a request, and log the answer. What no rule allows is denied.

        Raises:
            PolicyEvaluationFailed: There is no answer; take it as a denial.
        """
        asked = replace(
            request, branch=_trim(request.branch), target_branch=_trim(request.target_branch)
        )
        decision = self._decide(asked)
        _record(asked.actor, asked, decision)
        return decision

    def would_allow(self, request: Request) -> bool:
        """Whether a request would be allowed. No actor makes it, so it is not logged."""
        return self._decide(request).allowed

    def require(
        self,
        action: Action,
        *,
        actor: str | None,
        branch: str | None = None,
        target_branch: str | None = None,
    ) -> None:
        """Return when the actor may do it; without an actor everything is denied.

        Raises:
            PolicyError: The policy denies it.
        """
        if actor is None:
            asked = Request("", action, _trim(branch), _trim(target_branch))
            where = _where(asked)
            message = f"policy denied action '{action}'{where} — no actor is given, say who acts"
            decision = Decision(allowed=False, message=message)
            _record(None, asked, decision)
        else:
            decision = self.decide(Request(actor, action, branch, target_branch))
        if not decision.allowed:
            raise PolicyError(decision.message)

    def require_somewhere(self, action: Action, *, actor: str | None) -> None:
        """Return when the actor may do it on some branch; which one is asked later.

        Raises:
            PolicyError: The policy denies it on every branch.
        """
        names = [None, next(iter(self._protected), None), _UNPROTECTED]
        asked = (Request(actor or "", action, *pair) for pair in product(names, names))
        if actor is None or not any(map(self.would_allow, asked)):
            self.require(action, actor=actor)

    def _decide(self, asked: Request) -> Decision:
        if asked.actor not in self.actors:
            message = f"policy denied action '{asked.action}' for unknown actor '{asked.actor}'"
            return Decision(allowed=False, message=message)
        rule_id = self._find_rule(asked) if asked.action.kind is self.kind else None
        if rule_id is None:
            message = (
                f"policy denied action '{asked.action}'{_where(asked)} for actor '{asked.actor}'"
            )
            return Decision(allowed=False, message=message)
        message = f"policy allowed action '{asked.action}' for actor '{asked.actor}'"
        return Decision(allowed=True, message=message, matched_rule=rule_id)

    def _find_rule(self, asked: Request) -> str | None:
        is_protected = asked.branch in self._protected
        target_is_protected = asked.target_branch in self._protected
        facts = (
            asked.actor,
            asked.action,
            asked.branch is not None,
            is_protected,
            asked.target_branch is not None,
            target_is_protected,
            _OTHER_TYPE if asked.type_name not in (None, *self._types) else asked.type_name,
        )
        if facts not in self._matched:
            rules = self._match(asked, is_protected, target_is_protected)
            self._matched[facts] = min(rules, default=None)
        return self._matched[facts]


def _trim(branch: str | None) -> str | None:
    """The name as the engine uses it: spaces around a branch must not hide that it is protected."""
    return None if branch is None else branch.strip()


def _where(asked: Request) -> str:
    of = "" if asked.type_name is None else f" of type '{asked.type_name}'"
    on = "" if asked.branch is None else f" on branch '{asked.branch}'"
    to = "" if asked.target_branch is None else f" targeting branch '{asked.target_branch}'"
    return of + on + to


def _record(actor: str | None, asked: Request, decision: Decision) -> None:
    # %r keeps a name with line breaks on the one line of its record.
    _log.info(
        "policy decision actor=%r action=%s branch=%r target_branch=%r allowed=%s matched_rule=%r",
        actor,
        asked.action.value,
        asked.branch,
        asked.target_branch,
        decision.allowed,
        decision.matched_rule,
    )
