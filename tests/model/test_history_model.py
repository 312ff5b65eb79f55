"""Random histories, next to a commit DAG of plain dicts: whatever was true stays readable.

Branches are made, written, merged in every direction, deleted and made again; schemas change;
tables are compacted and history is cleaned up, by one handle or by several that know nothing of
each other. After every step the branches it touched are compared, and in the end every commit
that ever was: it answers as it did when it was head, or it was allowed to go and is not found.

A failure shows its seed and its steps. `replay` runs such a list again, and shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from pprint import pformat

import pytest

from tests.depth import IS_TORTURE, depth
from tests.model.history_actors import Actor, Local, Remote
from tests.model.history_base import Step
from tests.model.history_scenarios import SCENARIOS
from tests.model.history_steps import ALL, Chooser
from tests.model.history_world import World

pytestmark = pytest.mark.slow

STEPS, STEPS_TORTURE = depth(40, 60), 110
STEPS_BETWEEN_CHECKS = 20


def replay(
    path: Path,
    steps: Iterable[Step] | Callable[[World], Iterable[Step]],
    actors: Sequence[Callable[[str], Actor]] = (Local,),
) -> World:
    """Run steps on a new graph and its model, and compare them as they go on and in the end."""
    world = World.create(path, actors)
    try:
        for count, step in enumerate(steps(world) if callable(steps) else steps, 1):
            world.run(step)
            if count % STEPS_BETWEEN_CHECKS == 0:
                world.check_branches()
        world.check_branches()
        world.check_commits()
        assert world.actors[0].call("verify").errors == ()
    except Exception as error:
        error.add_note(f"the steps so far:\n{pformat(world.steps, width=100)}")
        raise
    finally:
        world.close()
    return world


def run_seed(
    path: Path, seed: int, count: int, actors: Sequence[Callable[[str], Actor]] = (Local,)
) -> World:
    """Run as many steps as wanted, chosen by a seed."""
    try:
        return replay(path, lambda world: Chooser(seed, ALL).steps(world, count), actors)
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_short_history_is_what_the_model_says(name: str, tmp_path: Path) -> None:
    replay(tmp_path / "graph", SCENARIOS[name])


@pytest.mark.parametrize("seed", range(depth(1, 3)))
def test_a_random_history_is_what_the_model_says(seed: int, tmp_path: Path) -> None:
    run_seed(tmp_path / "graph", seed, STEPS)


def test_handles_of_two_processes_share_one_history(tmp_path: Path) -> None:
    """Any handle may be behind the others: what they wrote, merged or deleted is never lost."""
    run_seed(tmp_path / "graph", 100, STEPS // 2, (Local, Local, Remote))


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
@pytest.mark.parametrize("seed", range(1_000, 1_024))
def test_long_random_histories_are_what_the_model_says(seed: int, tmp_path: Path) -> None:
    run_seed(tmp_path / "graph", seed, STEPS_TORTURE)


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
@pytest.mark.parametrize("seed", range(2_000, 2_006))
def test_long_histories_of_two_processes_are_shared(seed: int, tmp_path: Path) -> None:
    run_seed(tmp_path / "graph", seed, STEPS_TORTURE, (Local, Local, Remote))
