"""The suite runs as its marks say."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="needs workers: `make test`")
@pytest.mark.xdist_group("suite")
def test_workers_keep_groups_together(request: pytest.FixtureRequest) -> None:
    """Otherwise each of them starts its own Spark and builds its own graphs."""
    assert request.node.nodeid.endswith("@suite")


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="needs workers: `make test`")
def test_a_worker_runs_whole_files(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@test_suite.py test_suite")
