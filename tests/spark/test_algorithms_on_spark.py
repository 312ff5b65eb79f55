"""Graph algorithms on Spark give what plain Python gives, however few vertices a block has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.pipeline import spark_blocks
from tests.algorithms.test_algorithms import NAMES, expect, random_graph
from tests.depth import depth, sample

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]


@pytest.mark.parametrize("name", sample(NAMES, 4))
def test_an_algorithm_agrees_with_plain_python_on_spark(
    name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_blocks, "EDGES_PER_BLOCK", depth(10, 30))
    with random_graph(tmp_path, seed=1, nodes=depth(10, 20), edges=depth(10, 30)) as graph:
        expect(graph, name, "spark")
