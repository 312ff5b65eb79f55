"""Load: bundle text → `Policy`."""

from __future__ import annotations

from omnigraph.policy.check import read_bundle
from omnigraph.policy.compile import SERVER_ID, compile_bundle
from omnigraph.policy.model import Bundle, Kind
from omnigraph.policy.policy import Policy
from omnigraph.yaml_fields import quote


def load_policy(text: str, *, name: str, resource: str | None) -> Policy:
    """The policy of the graph whose id is `resource`, or with None that of a server.

    Raises:
        PolicyInvalid: The bundle is wrong; every problem is listed with its place.
    """
    kind = Kind.SERVER if resource is None else Kind.GRAPH
    return _compile(read_bundle(text, name=name, kind=kind), name, resource)


def load_standalone(text: str, *, name: str, kind: Kind | None = None) -> Policy:
    """A bundle by itself, of a kind or of the one it says it is: to check it and to try it out.

    Raises:
        PolicyInvalid: The bundle is wrong; every problem is listed with its place.
    """
    bundle = read_bundle(text, name=name, kind=kind)
    return _compile(bundle, name, name if bundle.kind is Kind.GRAPH else None)


def _compile(bundle: Bundle, name: str, resource: str | None) -> Policy:
    # Cedar is loaded with the first policy: a graph without one never needs it.
    from omnigraph.policy.cedar import CedarEngine

    text = compile_bundle(bundle, SERVER_ID if resource is None else resource)
    engine = CedarEngine(text, what=f"policy bundle {quote(name)}")
    return Policy(name, bundle, engine.find_rules)
