"""Cases: the decisions that are expected of a bundle, and whether it makes them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import partial

from omnigraph.dataclass import dataclass
from omnigraph.errors import PolicyInvalid
from omnigraph.policy.model import Action, Decision, Request
from omnigraph.policy.policy import Policy
from omnigraph.yaml_fields import Fields, quote
from omnigraph.yaml_text import Mark, Node, Problems, read_yaml

_FILE_KEYS = ("version", "cases")
_CASE_KEYS = ("id", "actor", "action", "branch", "target_branch", "type", "expect")
_REQUIRED_KEYS = ("id", "actor", "action", "expect")


class Expectation(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Case:
    """A request and the answer it should get."""

    id: str
    request: Request
    expect: Expectation


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """A case that got the other answer."""

    case: Case
    decision: Decision

    def __str__(self) -> str:
        got = "allow" if self.decision.allowed else "deny"
        return f"{self.case.id}: expected {self.case.expect.capitalize()} but got {got}"


def read_cases(text: str, *, name: str) -> tuple[Case, ...]:
    """Read a file of cases.

    Raises:
        PolicyInvalid: The text is no such file; every problem is listed with its place.
    """
    problems = Problems(name, partial(PolicyInvalid, f"policy tests {quote(name)}"))
    fields = Fields(problems)
    tree = read_yaml(text, problems)
    entries = fields.mapping(tree, "the file", known=_FILE_KEYS, required=_FILE_KEYS)
    fields.version(entries.get("version"))
    taken: dict[str, Mark] = {}
    cases = [
        _case(fields, item, f"case {position}", taken)
        for position, item in enumerate(fields.items(entries.get("cases"), "cases"), start=1)
    ]
    problems.raise_if_any()
    return tuple(case for case in cases if case is not None)


def run_cases(policy: Policy, cases: Iterable[Case]) -> tuple[CaseFailure, ...]:
    """The cases that do not get the answer they expect."""
    failures = []
    for case in cases:
        decision = policy.decide(case.request)
        if decision.allowed != (case.expect is Expectation.ALLOW):
            failures.append(CaseFailure(case, decision))
    return tuple(failures)


def explain_decision(request: Request, decision: Decision) -> dict[str, str | None]:
    """A request and its answer, fact by fact; None where there is nothing to say."""
    return {
        "decision": "allow" if decision.allowed else "deny",
        "actor": request.actor,
        "action": request.action.value,
        "branch": request.branch,
        "target_branch": request.target_branch,
        "type": request.type_name,
        "matched_rule": decision.matched_rule,
        "message": decision.message,
    }


def _case(fields: Fields, node: Node, place: str, taken: dict[str, Mark]) -> Case | None:
    """One case, or None with its problems noted. `taken` has the ids so far."""
    entries = fields.mapping(node, place, known=_CASE_KEYS, required=_REQUIRED_KEYS)
    case_id = fields.text(entries.get("id"), f"{place}: the id")
    where = place if case_id is None else f"case {quote(case_id)}"
    if case_id in taken:
        fields.note(node.mark, where, f"the id is taken by line {taken[case_id].line}")
    elif case_id is not None:
        taken[case_id] = node.mark
    actor = fields.text(entries.get("actor"), f"{where}: actor")
    action = fields.word(entries.get("action"), f"{where}: action", Action)
    branch = fields.text(entries.get("branch"), f"{where}: branch")
    target_branch = fields.text(entries.get("target_branch"), f"{where}: target_branch")
    type_name = fields.text(entries.get("type"), f"{where}: type")
    expect = fields.word(entries.get("expect"), f"{where}: expect", Expectation)
    if case_id is None or actor is None or action is None or expect is None:
        return None
    return Case(case_id, Request(actor, action, branch, target_branch, type_name), expect)
