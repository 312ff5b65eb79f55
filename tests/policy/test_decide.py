"""A decision: its words, its rule, its record, and who may ask at the same time."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from omnigraph.errors import PolicyError, PolicyEvaluationFailed, PolicyInvalid
from omnigraph.policy import Action, Decision, Request, load_policy
from omnigraph.policy.cedar import CedarEngine
from omnigraph.policy.compile import SCHEMA, CedarText, compile_bundle
from omnigraph.policy.model import Bundle, Kind, Rule, Scope
from tests.policy.bundles import SERVER, bundle_of, rule, team


def test_what_a_rule_allows_is_allowed_and_names_the_rule() -> None:
    decision = team().decide(Request("act-bob", Action.CHANGE, branch="review/x"))

    assert decision == Decision(
        allowed=True,
        message="policy allowed action 'change' for actor 'act-bob'",
        matched_rule="writers-off-main",
    )


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            Request("act-bob", Action.CHANGE, branch="main"),
            "policy denied action 'change' on branch 'main' for actor 'act-bob'",
        ),
        (
            Request("act-bob", Action.BRANCH_MERGE, branch="work", target_branch="main"),
            "policy denied action 'branch_merge' on branch 'work' targeting branch 'main' "
            "for actor 'act-bob'",
        ),
        (
            Request("act-bob", Action.SCHEMA_APPLY, target_branch="main"),
            "policy denied action 'schema_apply' targeting branch 'main' for actor 'act-bob'",
        ),
        (
            Request("act-bob", Action.ADMIN),
            "policy denied action 'admin' for actor 'act-bob'",
        ),
        (
            Request("eve", Action.CHANGE, branch="main"),
            "policy denied action 'change' for unknown actor 'eve'",
        ),
    ],
)
def test_a_denial_says_what_was_asked(request_: Request, message: str) -> None:
    assert team().decide(request_) == Decision(allowed=False, message=message)


def test_a_scoped_rule_does_not_reach_a_request_without_a_branch() -> None:
    policy = team()

    assert not policy.decide(Request("act-bob", Action.CHANGE)).allowed
    assert not policy.decide(Request("act-ada", Action.BRANCH_MERGE, branch="work")).allowed
    assert policy.decide(Request("act-bob", Action.READ)).allowed


def test_spaces_around_a_branch_name_do_not_bypass_its_protection() -> None:
    decision = team().decide(Request("act-bob", Action.CHANGE, branch=" main\n"))

    assert decision.message == "policy denied action 'change' on branch 'main' for actor 'act-bob'"


def test_the_smallest_of_several_matching_rules_is_named() -> None:
    text = bundle_of("".join(rule("actions: [read]", each) for each in ["r10", "r9", "b", "r1"]))

    decision = load_policy(text, name="x", resource="x").decide(Request("ann", Action.READ))

    assert decision.matched_rule == "b"


def test_a_rule_is_found_behind_many_others() -> None:
    """Cedar names permits by position; `policy10` must not be taken for the second."""
    rules = [
        rule(f"actions: [{action}]", f"z-{action}") for action in Action if action.kind == "graph"
    ]
    text = bundle_of("".join([*rules, rule("actions: [read, export, admin]", "a")]))
    policy = load_policy(text, name="x", resource="x")

    found = {
        action: policy.decide(Request("ann", action)).matched_rule
        for action in (Action.ADMIN, Action.CHANGE, Action.READ, Action.INVOKE_QUERY)
    }

    assert list(found.values()) == ["a", "z-change", "a", "z-invoke_query"]


def test_a_server_bundle_answers_for_the_server_only() -> None:
    policy = load_policy(SERVER, name="server", resource=None)

    assert policy.decide(Request("act-ada", Action.GRAPH_LIST)).matched_rule == "operators-list"
    assert not policy.decide(Request("act-ada", Action.READ, branch="main")).allowed
    assert not team().decide(Request("act-ada", Action.GRAPH_LIST)).allowed


@pytest.mark.parametrize("odd", ['a"b', "a\\", "a\nb", "a\0b", "\ud800", "漢字", "*", ""])
def test_odd_names_of_branches_and_graphs_are_only_names(odd: str) -> None:
    policy = team(resource=odd or "x")

    assert policy.decide(Request("act-bob", Action.CHANGE, branch=odd)).allowed
    assert not policy.decide(Request("act-ada", Action.BRANCH_MERGE, odd, odd)).allowed
    assert not policy.decide(Request(odd, Action.READ)).allowed


def test_every_decision_is_logged_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    policy = team()

    with caplog.at_level(logging.INFO, logger="omnigraph.policy"):
        policy.decide(Request("act-bob", Action.CHANGE, branch="work"))
        policy.decide(Request("eve\nact-ada", Action.BRANCH_MERGE, "work", "main"))
        with pytest.raises(PolicyError):
            policy.require(Action.CHANGE, actor=None, branch="main")

    assert [record.getMessage() for record in caplog.records] == [
        "policy decision actor='act-bob' action=change branch='work' target_branch=None "
        "allowed=True matched_rule='writers-off-main'",
        "policy decision actor='eve\\nact-ada' action=branch_merge branch='work' "
        "target_branch='main' allowed=False matched_rule=None",
        "policy decision actor=None action=change branch='main' target_branch=None "
        "allowed=False matched_rule=None",
    ]


def test_without_an_actor_every_action_is_denied() -> None:
    with pytest.raises(PolicyError) as denial:
        team().require(Action.READ, actor=None, branch="main")

    assert str(denial.value) == (
        "policy denied action 'read' on branch 'main' — no actor is given, say who acts"
    )


@pytest.mark.slow
def test_threads_get_the_same_answers() -> None:
    """Eight threads meet a policy that nobody has asked before, in different orders."""
    requests = [
        Request(*each)
        for each in product(
            ["act-ada", "act-bob", "eve"],
            list(Action),
            [None, "main", "work"],
            [None, "main", "work"],
        )
    ]
    expected = {request: team().decide(request) for request in requests}
    policy = team()

    def ask(turn: int) -> dict[Request, Decision]:
        rotated = requests[turn * 30 :] + requests[: turn * 30]
        return {request: policy.decide(request) for request in rotated}

    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(ask, range(8)):
            assert found == expected


def test_a_bundle_compiles_to_one_permit_per_rule_and_action() -> None:
    bundle = Bundle(
        Kind.GRAPH,
        {'a"b': frozenset({"ann"})},
        frozenset({"main"}),
        (
            Rule("r", 'a"b', (Action.READ, Action.CHANGE), branch_scope=Scope.UNPROTECTED),
            Rule("s", 'a"b', (Action.BRANCH_MERGE,), target_branch_scope=Scope.PROTECTED),
            Rule("t", 'a"b', (Action.INVOKE_QUERY,)),
        ),
    )

    text = compile_bundle(bundle, "team")

    principal = 'principal in Omnigraph::Group::"a\\u{22}b"'
    graph = 'resource == Omnigraph::Graph::"team"'
    action = 'action == Omnigraph::Action::"{}"'.format
    unprotected = "when { context.has_branch && !context.branch_is_protected }"
    protected = "when { context.has_target_branch && context.target_branch_is_protected }"
    assert text.policies.splitlines() == [
        '@id("r:read")',
        f"permit ({principal}, {action('read')}, {graph}) {unprotected};",
        '@id("r:change")',
        f"permit ({principal}, {action('change')}, {graph}) {unprotected};",
        '@id("s:branch_merge")',
        f"permit ({principal}, {action('branch_merge')}, {graph}) {protected};",
        '@id("t:invoke_query")',
        f"permit ({principal}, {action('invoke_query')}, {graph});",
    ]
    assert text.rule_ids == ("r", "r", "s", "t")


def test_the_schema_knows_every_action_on_its_resource() -> None:
    for action in Action:
        resource = "Server" if action is Action.GRAPH_LIST else "Graph"
        assert (
            f'action "{action}" appliesTo {{ principal: [Actor], resource: [{resource}]' in SCHEMA
        )


def engine(policies: str) -> CedarEngine:
    bundle = Bundle(Kind.GRAPH, {"g": frozenset({"ann"})}, frozenset(), ())
    compiled = compile_bundle(bundle, "team")
    return CedarEngine(
        CedarText(policies, compiled.entities, ("r",), compiled.resource), what="policy bundle 'x'"
    )


def test_permits_that_do_not_fit_the_schema_are_refused_at_load() -> None:
    """Strict validation is on: our own compiler could not slip past it."""
    with pytest.raises(PolicyInvalid, match="rule 'r' is refused"):
        engine('permit (principal, action == Omnigraph::Action::"fly", resource);')


def test_an_evaluation_that_fails_is_a_denial_of_its_own_kind() -> None:
    """Arithmetic that overflows fits the schema and fails when it is run."""
    broken = engine("permit (principal, action, resource) when { 9223372036854775807 + 1 > 0 };")

    with pytest.raises(PolicyEvaluationFailed) as failure:
        broken.find_rules(Request("ann", Action.READ), False, False)

    assert failure.value.http_status == 500
    assert isinstance(failure.value, PolicyError)
