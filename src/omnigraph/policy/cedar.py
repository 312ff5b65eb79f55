"""Cedar: parse a compiled bundle once, check it strictly, answer requests.

The only module that imports cedarpy. Its handles are immutable, so any number of threads may ask.
"""

from __future__ import annotations

import cedarpy

from omnigraph.errors import PolicyEvaluationFailed, PolicyInvalid
from omnigraph.policy.compile import SCHEMA, CedarText, uid, well_formed
from omnigraph.policy.model import Request

_POSITION = "policy"  # Cedar names the permits of a text policy0, policy1, ...


class CedarEngine:
    """Answers requests over one compiled bundle."""

    def __init__(self, text: CedarText, *, what: str) -> None:
        """Parse and check the texts.

        Raises:
            PolicyInvalid: Cedar does not accept what the bundle became.
        """
        schema = cedarpy.Schema.from_str(SCHEMA)
        checked = cedarpy.validate_policies(text.policies, schema)
        if not checked.validation_passed:
            wrong = {text.rule_ids[_position(error.policy_id)] for error in checked.errors}
            raise PolicyInvalid(what, [f"rule '{rule_id}' is refused" for rule_id in sorted(wrong)])
        self._schema = schema
        self._policies = cedarpy.PolicySet.from_str(text.policies)
        self._entities = cedarpy.Entities.from_json_str(text.entities, schema)
        self._text = text
        self._what = what

    def find_rules(
        self, request: Request, is_protected: bool, target_is_protected: bool
    ) -> list[str]:
        """The rules that allow a request; none when it is denied.

        Raises:
            PolicyEvaluationFailed: Cedar came to no answer.
        """
        answer = cedarpy.is_authorized(
            {
                "principal": uid("Actor", request.actor),
                "action": uid("Action", request.action.value),
                "resource": self._text.resource,
                "context": {
                    "has_branch": request.branch is not None,
                    "branch": well_formed(request.branch or ""),
                    "has_target_branch": request.target_branch is not None,
                    "target_branch": well_formed(request.target_branch or ""),
                    "branch_is_protected": is_protected,
                    "target_branch_is_protected": target_is_protected,
                    "has_type": request.type_name is not None,
                    "type_name": well_formed(request.type_name or ""),
                },
            },
            self._policies,
            self._entities,
            self._schema,
        )
        if answer.decision is cedarpy.Decision.NoDecision or answer.diagnostics.errors:
            raise PolicyEvaluationFailed(self._what, request.action.value, request.actor)
        if not answer.allowed:
            return []
        return [self._text.rule_ids[_position(each)] for each in answer.diagnostics.reasons]


def _position(policy_id: str) -> int:
    return int(policy_id.removeprefix(_POSITION))
