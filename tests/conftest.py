"""Suite-wide hooks: which acceptance rows a run has proved."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.small_disk import disk

__all__ = ["disk"]

# A busy machine is no failure: no test has a time to keep.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

RESULTS_VARIABLE = "OMNIGRAPH_ACCEPTANCE_RESULTS"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Append each finished test's rows and outcome to the results file, when one is asked for."""
    report = yield
    path = os.environ.get(RESULTS_VARIABLE)
    if path is not None and (report.when == "call" or report.outcome != "passed"):
        rows = [row for mark in item.iter_markers("accepts") for row in mark.args]
        # One short line a write: atomic enough for several worker processes to share the file.
        with Path(path).open("a", encoding="utf-8") as results:
            results.write(json.dumps([item.nodeid, report.outcome, rows]) + "\n")
    return report
