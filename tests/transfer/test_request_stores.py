"""Merge requests whose branches are pushed, pulled, fetched, reset and deleted meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.depth import depth
from tests.transfer.request_stores import run_seed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(depth(1, 40)))
def test_a_request_is_what_the_rules_say_while_branches_travel(tmp_path: Path, seed: int) -> None:
    run_seed(tmp_path, seed, depth(40, 120))
