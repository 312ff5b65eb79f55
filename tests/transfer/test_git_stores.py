"""Random histories of three stores that do everything to their branches and exchange them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.depth import depth
from tests.transfer.git_stores import run_seed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(depth(1, 60)))
def test_what_stores_exchange_is_what_git_would_have(tmp_path: Path, seed: int) -> None:
    run_seed(tmp_path, seed, depth(25, 100))
