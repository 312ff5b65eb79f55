"""Suite-wide settings and hooks: property tests, the order of tests, proved acceptance rows."""

from __future__ import annotations

import gc
import json
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import scratch
from tests.depth import IS_TORTURE
from tests.small_disk import disk
from tests.suite_spark import spark, spark_disk

__all__ = ["disk", "spark", "spark_disk"]

scratch.move_to_memory()
scratch.skip_flushes()

# A shell that runs the suite in the background has it ignore what some tests send to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure: no example has a deadline. `make test` draws the same examples on
# every run, so that a change is to blame for a failure; `make torture` draws new ones.
settings.register_profile("test", deadline=None, derandomize=True, database=None, max_examples=40)
settings.register_profile("torture", deadline=None, print_blob=True, max_examples=400)
settings.load_profile("torture" if IS_TORTURE else "test")

# Collection makes much and frees little of it: `pytest_collection_finish` turns this on again.
gc.disable()

TESTS = Path(__file__).parent

# Whole directories that start servers, kill writers or load files.
SLOW_PARTS = frozenset(
    {"client", "http", "model", "pipeline", "power", "recovery", "spark", "surfaces", "upkeep"}
)

RESULTS_VARIABLE = "OMNIGRAPH_ACCEPTANCE_RESULTS"


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the slow tests first, and run each file in one worker.

    What starts last keeps a single worker busy at the end. What a file builds once would be built
    by every worker that runs a test of it, and so would the server of those on an object store.
    What has a group of its own is slow: it has one because of what it starts or builds.
    """
    ranks: dict[str, int] = {}
    for item in items:
        part, *_ = item.path.relative_to(TESTS).parts
        groups = {mark.args[0] for mark in item.iter_markers("xdist_group")}
        assert len(groups) < 2, f"{item.nodeid}: xdist makes one more group of {groups}"
        is_grouped = bool(groups)
        if not is_grouped and _is_on_s3(item):
            # With a group of its own it needs Spark, which takes longer to start than the server.
            item.add_marker(pytest.mark.xdist_group("s3"))
            is_grouped = True
        if is_grouped or part in SLOW_PARTS:
            item.add_marker(pytest.mark.slow)
        if not is_grouped:
            is_slow = item.get_closest_marker("slow") is not None
            group = f"{part} {item.path.stem}{' slow' if is_slow else ''}"
            item.add_marker(pytest.mark.xdist_group(group))
            ranks[item.nodeid] = 1 if is_slow else 2
    items.sort(key=lambda item: ranks.get(item.nodeid, 0))


def _is_on_s3(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None)
    fixtures: list[str] = getattr(item, "fixturenames", [])
    return "s3_endpoint" in fixtures or (case is not None and "s3" in case.params.values())


def pytest_collection_finish() -> None:
    """Keep what was collected out of garbage collection: no test frees any of it."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    """Leave the files of a run that failed until the next one."""
    if exitstatus == pytest.ExitCode.OK:
        scratch.remove_from_memory()


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
