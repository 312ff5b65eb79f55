"""Random undoes and purges on branches of different schemas, against plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.branch.purge_world import PurgeWorld
from tests.depth import depth

pytestmark = pytest.mark.slow

STEPS = 30


def run_seed(path: Path, seed: int, steps: int) -> PurgeWorld:
    world = PurgeWorld(path, seed)
    world.branch("main")
    for _ in range(steps):
        world.step()
        world.check()
    world.check_commits()
    assert world.graph.verify().errors == (), world.log
    return world


@pytest.mark.parametrize("seed", range(depth(sample=1, full=60)))
def test_every_undo_does_what_the_model_says(tmp_path: Path, seed: int) -> None:
    run_seed(tmp_path / "graph", seed, STEPS)
