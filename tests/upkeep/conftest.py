from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.upkeep.graphs import fill, new_library


@pytest.fixture
def library(tmp_path: Path) -> og.Graph:
    """Twelve authors and a paper."""
    graph = new_library(tmp_path / "graph")
    fill(graph)
    return graph
