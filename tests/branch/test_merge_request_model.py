"""Random verbs on merge requests, against the same rules in plain Python."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from omnigraph.errors import ApprovalsMissing
from omnigraph.policy import load_policy
from tests.branch.people import CHANGES, new_people
from tests.branch.request_model import (
    ACTORS,
    POLICY,
    VERBS,
    Asked,
    Model,
    describe_graph,
    describe_model,
    try_call,
)
from tests.depth import depth

pytestmark = pytest.mark.slow

CHOICES = ["branch", "write", "open", "open", "retarget", "direct", "merge", *VERBS, *VERBS]
NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(depth(1, 25)))
def test_random_verbs_come_to_what_the_rules_say(tmp_path: Path, seed: int) -> None:
    random, model = Random(seed), Model()
    new_people(tmp_path / "graph").close()
    policy = load_policy(POLICY, name="team", resource="team")
    graph = og.open(tmp_path / "graph", policy=policy, durability="process", self_care=False)

    for step in range(depth(110, 250)):
        actor, name = random.choice(ACTORS), random.choice(NAMES)
        branches = [each for each in model.branches if each != "main"]
        number = random.randint(1, len(model.asked) + (random.random() < 0.1) or 1)
        what = random.choice(CHOICES) if step > 5 else ["branch", "write", "open"][step % 3]
        if what == "branch" and name in model.branches and random.random() < 0.5:
            graph.delete_branch(name, actor=actor)
            del model.branches[name]
        elif what == "branch" and name not in model.branches:
            graph.create_branch(name, actor=actor)
            model.create(name)
        elif what == "write" and branches:
            where = random.choice(branches)
            params = {"name": f"p{step}", "age": 1}
            graph.mutate(CHANGES, "person", params, branch=where, actor=actor)
            model.write(where, actor)
        elif what == "open" and branches and len(model.asked) < 12:
            source = random.choice(branches)
            target = random.choice([each for each in model.branches if each != source])
            graph.open_merge_request(source, target, title="t", actor=actor)
            made = model.branches[source].made
            model.asked.append(Asked(source, made, target, actor, "t"))
        elif what == "retarget":
            target = random.choice([*NAMES, "main"])
            expected = model.retarget(number, target)
            try_call(
                lambda n=number, t=target, a=actor: graph.edit_merge_request(n, target=t, actor=a),  # type: ignore[misc]
                expected,
            )
        elif what == "direct" and len(branches) > 1:
            source, target = random.sample(branches, 2)
            graph.merge(source, target, actor=actor)
            model.merge(source, target, actor)
            with pytest.raises(ApprovalsMissing):
                graph.merge(source, "main", actor=actor)
        elif what in VERBS:
            expected = model.say(number, what, actor)
            try_call(
                lambda v=VERBS[what], n=number, a=actor: v(graph, n, a),  # type: ignore[misc]
                expected,
            )
        numbers = range(1, len(model.asked) + 1)
        touched = numbers if step % 10 == 0 else [each for each in numbers if each == number]
        for each in touched:
            assert describe_graph(graph, each) == describe_model(model, each), (seed, step, what)
        for state in ("open", "merged", "closed"):
            listed = [each.number for each in graph.merge_requests(state)]
            wanted = [each for each in reversed(numbers) if model.asked[each - 1].state == state]
            assert listed == wanted, (seed, step, what, state)
    if seed == 0:
        assert {each.state for each in model.asked} >= {"merged", "closed"}, "it went nowhere"
    assert graph.verify().is_clean
