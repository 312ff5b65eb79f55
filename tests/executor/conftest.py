"""One shared graph: reads change nothing."""

from __future__ import annotations

import pytest

from omnigraph.graph import Graph
from tests.executor.people import make_graph


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return make_graph(tmp_path_factory.mktemp("people"))
