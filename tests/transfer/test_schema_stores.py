"""Random histories of three stores whose branches change schemas and lose data for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.depth import depth
from tests.transfer.schema_stores import run_seed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(depth(1, 60)))
def test_stores_that_change_schemas_exchange_what_git_would(tmp_path: Path, seed: int) -> None:
    run_seed(tmp_path, seed, depth(25, 80))
