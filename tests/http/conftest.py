"""One open server a module; tests that need another kind start their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.server.logs import LOGGERS
from tests.http.serving import Client, Served, make_graph, served, single


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of one small graph that several tests read."""
    with served(single(make_graph(tmp_path_factory.mktemp("shared") / "graph"))) as server:
        yield server


@pytest.fixture
def client(shared: Served) -> Iterator[Client]:
    with shared.client() as client:
        yield client


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """Undo what starting a server in this process does to its logs."""
    loggers = [logging.getLogger(name) for name in (*LOGGERS, "uvicorn.access")]
    before = [(each, each.handlers, each.propagate, each.level, each.disabled) for each in loggers]
    yield
    for each, handlers, propagate, level, disabled in before:
        each.handlers, each.propagate, each.disabled = handlers, propagate, disabled
        each.setLevel(level)


@pytest.fixture
def graph_path(tmp_path: Path) -> Path:
    return make_graph(tmp_path / "graph")


@pytest.fixture
def own(graph_path: Path) -> Iterator[Served]:
    """A server of a graph that one test may change as it likes."""
    with served(single(graph_path)) as server:
        yield server
