"""Measuring: CPU seconds beside wall time, medians with their spread, figures as JSON.

Machines are noisy and differ, so a figure means something only beside another one of the same
run or machine. Nothing here passes or fails.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

RECORD = Path(__file__).parent / "last.json"
QUICK_VARIABLE = "OMNIGRAPH_BENCH_QUICK"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `unit` is `cpu ms`, `wall ms`, `rows/cpu s`, `MB`, `count` or `x`.

    Of a median, `least` and `most` are the smallest and the greatest of `repeat` measurements.
    `subject` is the system that was measured, when there are several.
    """

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    repeat: int = 1
    subject: str = ""


def is_quick() -> bool:
    """Whether only the machinery is tried out: everything is as small as it can be."""
    return os.environ.get(QUICK_VARIABLE) == "1"


def measure(
    name: str, action: Callable[[], object], *, repeat: int, subject: str = ""
) -> Iterator[Figure]:
    """Run `action` and give the median and the spread of its CPU and wall milliseconds."""
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(repeat):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        action()
        cpu.append(1_000 * (time.process_time() - cpu_start))
        wall.append(1_000 * (time.perf_counter() - wall_start))
    for values, unit in ((cpu, "cpu ms"), (wall, "wall ms")):
        middle = statistics.median(values)
        yield Figure(name, middle, unit, min(values), max(values), repeat, subject)


def median_of(action: Callable[[], object], *, repeat: int, name: str) -> Iterator[Figure]:
    """Run `action` and give the median of its CPU and wall milliseconds."""
    return measure(name, action, repeat=repeat)


def report(figures: list[Figure], *, record: bool) -> None:
    """Print figures beside the recorded ones, and record them when asked to."""
    known: dict[str, float] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for figure in figures:
        name = f"{figure.name}, {figure.subject}" if figure.subject else figure.name
        key = f"{name} [{figure.unit}]"
        before = f"{known[key]:>12.3f}" if key in known else f"{'—':>12}"
        print(f"{name:<58} {figure.value:>12.3f} {figure.unit:<10} last {before}", flush=True)
        known[key] = figure.value
    if record:
        RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
