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

from omnigraph.policy.cases import Case, CaseFailure, explain_decision, read_cases, run_cases
from omnigraph.policy.load import load_policy, load_standalone
from omnigraph.policy.model import Action, Decision, Kind, Request
from omnigraph.policy.policy import Policy

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
