"""Costs: the CPU seconds of every test, with those of the processes that it started; `make costs`.

CPU, and not time: tests run beside one another, so the time of one says how busy the others were.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Iterator

import pytest

FILES, TESTS = 40, 60
_PROPERTY = "cpu seconds"
_TICKS = os.sysconf("SC_CLK_TCK")
_seen = 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    global _seen
    _seen = _measure()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note with each phase what it took; workers send the notes along with their reports."""
    global _seen
    report = yield
    now = _measure()
    report.user_properties.append((_PROPERTY, now - _seen))
    _seen = now
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    files: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    tests: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                spent = _spent(report)
                name = report.nodeid.partition("[")[0].partition("@")[0]
                files[name.partition("::")[0]][report.when] += spent
                tests[name] += spent
                counts[name] += report.when == "call"
    write = terminalreporter.write_line
    terminalreporter.section(f"{sum(tests.values()):.0f} CPU seconds")
    write("   all  setup   call  file")
    for file in sorted(files, key=lambda each: -sum(files[each].values()))[:FILES]:
        phases = files[file]
        spent = sum(phases.values())
        write(f"{spent:6.1f} {phases['setup']:6.1f} {phases['call']:6.1f}  {file}")
    write("   all   each  cases  test")
    for name in sorted(tests, key=lambda each: -tests[each])[:TESTS]:
        cases = max(counts[name], 1)
        write(f"{tests[name]:6.2f} {tests[name] / cases:6.2f} {cases:6}  {name}")


def _spent(report: pytest.TestReport) -> float:
    noted = dict(report.user_properties).get(_PROPERTY)
    return noted if isinstance(noted, float) else 0.0


def _measure() -> float:
    """The CPU seconds of this process, of those it has waited for, and of those that still run."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(_running(os.getpid()))


def _running(parent: int) -> Iterator[float]:
    """What each process below one has taken, with those that it has waited for."""
    try:
        for task in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{task}/children") as file:
                children = file.read().split()
            for child in map(int, children):
                with open(f"/proc/{child}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
                yield sum(map(int, fields[11:15])) / _TICKS
                yield from _running(child)
    except OSError:  # it has just ended
        return
