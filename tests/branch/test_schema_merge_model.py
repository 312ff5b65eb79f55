"""Random histories of schema changes, writes and merges on several branches, against plain Python.

After every step each branch shows what the model says, in the schema that the model says; a merge
is refused exactly where the model finds that the sides contradict each other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.branch.schema_world import World
from tests.depth import depth

pytestmark = pytest.mark.slow

STEPS = 22


@pytest.mark.parametrize("seed", range(depth(sample=3, full=60)))
def test_every_branch_shows_what_the_model_says(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path / "graph", seed)
    world.branch("main")
    for _ in range(STEPS):
        world.step()
        world.check()

    assert world.graph.verify().errors == (), world.log
    again = og.open(world.graph.uri, durability="process", self_care=False)
    world.graph = again
    world.check()


def test_the_histories_show_merges_and_conflicts(tmp_path: Path) -> None:
    """The model would prove nothing if all of its merges were refused, or none."""
    world = World(tmp_path / "graph", 1)
    world.branch("main")
    for _ in range(3 * STEPS):
        world.step()

    assert world.merges
    assert world.conflicts
