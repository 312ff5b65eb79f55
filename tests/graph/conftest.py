"""Fixtures of the tests of a whole graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from tests.graph.reading import add, new_graph
from tests.ready import copy_ready
from tests.storage.conftest import s3_endpoint, s3_store

__all__ = ["s3_endpoint", "s3_store"]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """An empty graph."""
    return copy_graph("empty", new_graph, tmp_path)


@pytest.fixture
def pair(tmp_path: Path) -> og.Graph:
    """A graph in which Ann knows Bob."""

    def make(path: Path) -> og.Graph:
        graph = new_graph(path)
        add(graph, "pair", a="ann", b="bob")
        return graph

    return copy_graph("pair", make, tmp_path)


def copy_graph(name: str, make: Callable[[Path], og.Graph], folder: Path) -> og.Graph:
    copy_ready(name, make, folder / "graph")
    return og.open(folder / "graph", durability="process")
