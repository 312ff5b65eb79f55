"""Policy: who may do what. A pure decision: text goes in, an answer comes out, no I/O.

    bundle YAML → yaml_text → check → Bundle → compile → Cedar text → cedar → Policy.decide

model.py      actions, scopes, rules, requests and decisions
check.py      tree → a checked bundle
compile.py    bundle → Cedar schema, policies and entities, as text
cedar.py      sole importer of cedarpy: parses the texts once, answers requests
policy.py     `Policy`: what others ask
load.py       bundle text → `Policy`
cases.py      expectations about a bundle, and whether they hold
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from omnigraph.policy.model import Action, Decision, Kind, Request
from omnigraph.policy.policy import Policy

if TYPE_CHECKING:
    from omnigraph.policy.cases import Case, CaseFailure, explain_decision, read_cases, run_cases
    from omnigraph.policy.load import load_policy, load_standalone

# What reads bundles is imported on first use: a graph without a policy needs no YAML.
_CASES = ("Case", "CaseFailure", "explain_decision", "read_cases", "run_cases")
_HOMES = dict.fromkeys(_CASES, "cases") | dict.fromkeys(("load_policy", "load_standalone"), "load")

__all__ = [
    "Action",
    "Case",
    "CaseFailure",
    "Decision",
    "Kind",
    "Policy",
    "Request",
    "explain_decision",
    "load_policy",
    "load_standalone",
    "read_cases",
    "run_cases",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'omnigraph.policy' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"omnigraph.policy.{_HOMES[name]}"), name)
    return value
