"""A bundle is valid, or refused with everything that is wrong, line by line."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequestError, PolicyInvalid
from omnigraph.policy import Action, Kind, Request, load_policy, load_standalone
from tests.policy.bundles import SERVER, TEAM, bundle_of, problems_of, rule, team


def test_the_bundle_of_the_specification_is_valid() -> None:
    policy = team()

    assert policy.name == "team"
    assert policy.actors == {"act-ada", "act-bob"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: 2\n", "line 1: version is the number 2, expected the number 1"),
        ("version: '1'\n", "line 1: version is a text, expected the number 1"),
        ("version: true\n", "line 1: version is true, expected the number 1"),
        ("rules: []\n", "line 1: the bundle: the key 'version' is missing"),
        ("version: 1\ngroups: { '': [ann] }\n", "line 2: a group has a blank name"),
        (
            "version: 1\ngroups: { g: [] }\n",
            "line 2: group 'g' is empty — name an actor, or remove it",
        ),
        ("version: 1\ngroups: { g: }\n", "line 2: group 'g' is empty, expected a list"),
        ("version: 1\ngroups: { g: [' '] }\n", "line 2: group 'g': an actor is blank"),
        (
            "version: 1\ngroups: { g: [7] }\n",
            "line 2: group 'g': an actor is the number 7, expected a text — put it in quotes",
        ),
        (
            "version: 1\nprotected_branches: [main, '']\n",
            "line 2: protected_branches: a branch is blank",
        ),
        (
            "version: 1\nprotected_branches: main\n",
            "line 2: protected_branches is a text, expected a list",
        ),
        (bundle_of(rule("actions: [read]", "' '")), "line 4: rule 1: the id is blank"),
        (
            bundle_of(rule("actions: [read]") * 2),
            "line 5: rule 'r': the id is taken by line 4",
        ),
        (
            bundle_of("- { id: r, allow: { actors: { group: h }, actions: [read] } }\n"),
            "line 4: rule 'r': there is no group 'h'",
        ),
        (
            bundle_of(rule("actions: []")),
            "line 4: rule 'r': there are no actions — name at least one",
        ),
        (
            bundle_of("- { id: r, allow: { actors: { group: g } } }\n"),
            "line 4: rule 'r': the key 'actions' is missing",
        ),
        (
            bundle_of("- { id: r, allow: { actions: [read] } }\n"),
            "line 4: rule 'r': the key 'actors' is missing",
        ),
        (bundle_of("- { id: r }\n"), "line 4: rule 1: the key 'allow' is missing"),
        (
            bundle_of(rule("actions: [read], branch_scope: any, target_branch_scope: any")),
            "line 4: rule 'r': has both branch_scope and target_branch_scope — "
            "split it into two rules",
        ),
        (
            bundle_of(rule("actions: [read, branch_merge], branch_scope: any")),
            "line 4: rule 'r': branch_scope does not apply to 'branch_merge' — "
            "use target_branch_scope, in a rule of its own",
        ),
        (
            bundle_of(rule("actions: [change], target_branch_scope: any")),
            "line 4: rule 'r': target_branch_scope does not apply to 'change' — "
            "use branch_scope, in a rule of its own",
        ),
        (
            bundle_of(rule("actions: [invoke_query], branch_scope: any")),
            "line 4: rule 'r': 'invoke_query' has no scope — remove branch_scope, "
            "or move the action to another rule",
        ),
        (
            bundle_of(rule("actions: [read], types: [A], except_types: [B]")),
            "line 4: rule 'r': has both types and except_types — keep one of them",
        ),
        (
            bundle_of(rule("actions: [read, change], types: [A]")),
            "line 4: rule 'r': types does not apply to 'change' — "
            "remove it, or move the action to another rule",
        ),
        (
            bundle_of(rule("actions: [read], except_types: []")),
            "line 4: rule 'r': except_types is empty — name a type, or remove it",
        ),
        (
            bundle_of(rule("actions: [read, graph_list]")),
            "line 4: rule 'r': mixes actions of a graph and of a server — split it into two rules",
        ),
        (
            bundle_of(rule("actions: [graph_list]")),
            "line 4: rule 'r': 'graph_list' is an action of a server, "
            "but this is the policy of a graph",
        ),
        (
            bundle_of(rule("actions: [raed]")),
            "line 4: rule 'r': an action: 'raed' is not one of read, export, change, "
            "schema_apply, branch_create, branch_delete, branch_merge, merge_request, "
            "merge_approve, invoke_query, optimize, cleanup, repair, verify, admin, "
            "graph_list — did you mean `read`?",
        ),
        (
            bundle_of(rule("actions: [read], branch_scope: all")),
            "line 4: rule 'r': branch_scope: 'all' is not one of any, protected, unprotected",
        ),
        (
            bundle_of(rule("actions: [read], branch_scoop: any")),
            "line 4: rule 'r': the key 'branch_scoop' is not one of actors, actions, branch_scope, "
            "target_branch_scope, types, except_types — did you mean `branch_scope`?",
        ),
        (
            bundle_of("- { id: r, deny: {}, allow: { actors: { group: g }, actions: [read] } }\n"),
            "line 4: rule 1: the key 'deny' is not one of id, allow",
        ),
        (
            "version: 1\nruels: []\n",
            "line 2: the bundle: the key 'ruels' is not one of version, kind, groups, "
            "protected_branches, required_approvals, rules — did you mean `rules`?",
        ),
        ("version: 1\nversion: 1\n", "line 2: the key 'version' is on line 1 already"),
        (
            "version: 1\nkind: grape\n",
            "line 2: kind: 'grape' is not one of graph, server — did you mean `graph`?",
        ),
        ("version: 1\nkind: server\n", "line 2: kind is server, but this is the policy of a graph"),
        ("[1]\n", "line 1: the bundle is a list, expected a mapping"),
        ("", "line 1: the bundle is empty, expected a mapping"),
    ],
)
def test_a_wrong_bundle_is_refused(text: str, problem: str) -> None:
    assert problems_of(text) == (problem,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            bundle_of(rule("actions: [read]")),
            "line 4: rule 'r': 'read' is an action of a graph, but this is the policy of a server",
        ),
        (
            bundle_of(rule("actions: [graph_list], branch_scope: any")),
            "line 4: rule 'r': 'graph_list' is an action of a server and has no scope — "
            "remove branch_scope",
        ),
        ("version: 1\nkind: graph\n", "line 2: kind is graph, but this is the policy of a server"),
    ],
)
def test_a_wrong_server_bundle_is_refused(text: str, problem: str) -> None:
    assert problems_of(text, resource=None) == (problem,)


def test_one_run_finds_every_problem_in_the_order_of_the_file() -> None:
    text = """\
version: 3
groups: { empty: [], g: [ann, ''] }
protected_branches: ['']
unknown: 1
rules:
  - id: r
    allow: { actors: { group: gone }, actions: [fly] }
  - id: r
    allow: { actors: { group: g }, actions: [] }
"""

    lines = [int(problem.split()[1].rstrip(":")) for problem in problems_of(text)]

    assert lines == [1, 2, 2, 3, 4, 7, 7, 8, 9]


def test_an_error_names_the_bundle_and_is_a_bad_request() -> None:
    with pytest.raises(BadRequestError) as refusal:
        load_policy("version: 2\nrules: 1\n", name="team", resource="team")

    assert str(refusal.value) == (
        "policy bundle 'team' is not valid:\n"
        "  team:1:10: version is the number 2, expected the number 1\n"
        "  team:2:8: rules is the number 1, expected a list"
    )


def test_a_kind_that_agrees_is_accepted() -> None:
    assert load_policy(f"kind: graph\n{TEAM}", name="team", resource="x").kind is Kind.GRAPH
    assert load_policy(f"kind: server\n{SERVER}", name="all", resource=None).kind is Kind.SERVER


@pytest.mark.parametrize(("text", "kind"), [(TEAM, Kind.GRAPH), (SERVER, Kind.SERVER)])
def test_a_bundle_by_itself_is_of_the_kind_of_its_actions(text: str, kind: Kind) -> None:
    assert load_standalone(text, name="x").kind is kind


def test_a_bundle_without_rules_denies_everything() -> None:
    policy = load_policy("version: 1\ngroups: { g: [ann] }\n", name="x", resource="x")

    assert not any(policy.decide(Request("ann", action, "b", "t")).allowed for action in Action)


def test_an_optional_key_may_be_left_empty() -> None:
    text = bundle_of(rule("actions: [read], branch_scope:"), rest="protected_branches:\n")

    assert load_policy(text, name="x", resource="x").decide(Request("ann", Action.READ)).allowed


def test_boolean_words_of_yaml_1_1_are_names() -> None:
    text = bundle_of(
        "- { id: on, allow: { actors: { group: no }, actions: [read] } }\n", groups="{ no: [off] }"
    )

    assert load_policy(text, name="x", resource="x").decide(Request("off", Action.READ)).allowed


def test_a_key_that_is_a_number_is_refused() -> None:
    problem = "line 2: a key is not a text — put it in quotes"

    assert problems_of("version: 1\ngroups: { 7: [ann] }\n") == (problem,)


def test_actions_and_actors_may_repeat() -> None:
    text = bundle_of(rule("actions: [read, read]"), groups="{ g: [ann, ann] }")

    decision = load_policy(text, name="x", resource="x").decide(Request("ann", Action.READ))

    assert decision.matched_rule == "r"


def test_names_in_problems_are_short_and_on_one_line() -> None:
    name = "n" * 500
    text = bundle_of(
        f'- {{ id: "a\\n\\eb", allow: {{ actors: {{ group: {name} }}, actions: [read] }} }}\n'
    )

    (problem,) = problems_of(text)

    assert problem == f"line 4: rule 'a\\n\\x1bb': there is no group '{'n' * 80}…'"


def test_very_many_problems_are_cut_short() -> None:
    with pytest.raises(PolicyInvalid) as refusal:
        load_policy(bundle_of("- {}\n" * 5_000), name="x", resource="x")

    assert len(refusal.value.problems) == 101
    assert refusal.value.problems[-1] == "and 9900 more"
