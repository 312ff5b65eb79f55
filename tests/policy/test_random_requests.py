"""Cedar and a second opinion agree on ten thousand random requests."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from omnigraph.policy import Action, Request, load_policy
from tests.policy import model

# Names that would break text built by hand, next to plain ones.
NAMES = [
    "ann",
    "bob",
    'quo"te',
    "back\\slash",
    "line\nbreak",
    '"}); permit(principal, action, resource);//',
    "ünïcode ✓ 漢字",
    "\U0001f600",
    "\u202eright-to-left",
    "a::b",
    "null",
    "*",
    "${x}",
]
BRANCHES = ["main", "release/1", "work", "review/ann", *NAMES[:6]]
TYPES = ["Person", "Salary", *NAMES[:7]]
BUNDLES = 100
REQUESTS = 100


def random_bundle(random: Random) -> dict[str, Any]:
    groups = {
        name: random.sample(NAMES, random.randint(1, 4))
        for name in random.sample(NAMES, random.randint(1, 4))
    }
    ids = random.sample([f"{name}-{n}" for name in NAMES for n in range(3)], random.randint(1, 8))
    return {
        "version": 1,
        "groups": groups,
        "protected_branches": random.sample(BRANCHES, random.randint(0, 3)),
        "rules": [{"id": each, "allow": random_allow(random, list(groups))} for each in ids],
    }


def random_allow(random: Random, groups: list[str]) -> dict[str, Any]:
    key = random.choice(["branch_scope", "target_branch_scope", None])
    fitting = [
        action
        for action, scoped_by in model.SCOPED_BY.items()
        if action != "graph_list" and (key is None or scoped_by == key)
    ]
    allow: dict[str, Any] = {
        "actors": {"group": random.choice(groups)},
        "actions": random.sample(fitting, random.randint(1, 3)),
    }
    if random.random() < 0.3:
        allow["actions"] = random.sample(["read", "export"], random.randint(1, 2))
        allow[random.choice(["types", "except_types"])] = random.sample(TYPES, random.randint(1, 3))
        key = "branch_scope" if key is not None else None
    if key is not None:
        allow[key] = random.choice(["any", "protected", "unprotected"])
    return allow


@pytest.mark.parametrize("seed", range(10))
def test_a_decision_is_the_one_of_the_model(seed: int) -> None:
    random = Random(seed)
    allowed = 0
    for _ in range(BUNDLES // 10):
        bundle = random_bundle(random)
        policy = load_policy(
            json.dumps(bundle, ensure_ascii=False), name="x", resource=random.choice(NAMES)
        )
        for _ in range(REQUESTS):
            actor, action = random.choice(NAMES), random.choice(list(Action))
            branch, target = (random.choice([None, *BRANCHES]) for _ in range(2))
            type_name = random.choice([None, *TYPES])

            found = policy.decide(Request(actor, action, branch, target, type_name))

            expected = model.decide(bundle, actor, action.value, branch, target, type_name)
            assert (found.allowed, found.message, found.matched_rule) == expected, bundle
            allowed += found.allowed

    assert allowed > 25, "random bundles should allow something"
