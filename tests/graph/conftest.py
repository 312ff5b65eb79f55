"""Fixtures of the tests of a whole graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.graph.reading import add, new_graph
from tests.storage.conftest import s3_endpoint, s3_store

__all__ = ["s3_endpoint", "s3_store"]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """An empty graph."""
    return new_graph(tmp_path / "graph")


@pytest.fixture
def pair(graph: og.Graph) -> og.Graph:
    """A graph in which Ann knows Bob."""
    add(graph, "pair", a="ann", b="bob")
    return graph
