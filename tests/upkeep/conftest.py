from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.ready import copy_ready
from tests.upkeep.graphs import fill, new_library


@pytest.fixture
def library(tmp_path: Path) -> og.Graph:
    """Twelve authors and a paper."""

    def make(path: Path) -> og.Graph:
        graph = new_library(path)
        fill(graph)
        return graph

    copy_ready("library", make, tmp_path / "graph")
    return og.open(tmp_path / "graph", durability="process", self_care=False)
