"""Load: bundle text → `Policy`."""

from __future__ import annotations

from omnigraph.policy.compile import SERVER_ID, compile_bundle
from omnigraph.policy.model import Bundle, Kind, Request
from omnigraph.policy.policy import Policy
from omnigraph.yaml_fields import quote


def load_policy(text: str, *, name: str, resource: str | None) -> Policy:
    """The policy of the graph whose id is `resource`, or with None that of a server.

    Raises:
        PolicyInvalid: The bundle is wrong; every problem is listed with its line.
    """
    from omnigraph.policy.check import read_bundle

    kind = Kind.SERVER if resource is None else Kind.GRAPH
    return _compile(read_bundle(text, name=name, kind=kind), name, resource)


def load_standalone(text: str, *, name: str, kind: Kind | None = None) -> Policy:
    """A bundle by itself, of a kind or of the one it says it is: to check it and to try it out.

    Raises:
        PolicyInvalid: The bundle is wrong; every problem is listed with its line.
    """
    from omnigraph.policy.check import read_bundle

    bundle = read_bundle(text, name=name, kind=kind)
    return _compile(bundle, name, name if bundle.kind is Kind.GRAPH else None)


def _compile(bundle: Bundle, name: str, resource: str | None) -> Policy:
    # Cedar is loaded with the first policy: a graph without one never needs it.
    from omnigraph.policy.cedar import CedarEngine

    text = compile_bundle(bundle, SERVER_ID if resource is None else resource)
    engine = CedarEngine(text, what=f"policy bundle {quote(name)}")

    def match(request: Request, is_protected: bool, target_is_protected: bool) -> list[str]:
        return engine.find_rules(
            request.actor,
            request.action,
            branch=request.branch,
            is_protected=is_protected,
            target_branch=request.target_branch,
            target_is_protected=target_is_protected,
        )

    return Policy(name, bundle, match)
