"""Measuring: CPU seconds beside wall time, medians, and the figures of the last recorded run.

Machines are noisy and differ, so a figure means something only beside another one of the same
run or machine. Nothing here passes or fails.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

RECORD = Path(__file__).parent / "last.json"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `unit` is `cpu ms`, `wall ms`, `rows/cpu s`, `MB`, `count` or `x`."""

    name: str
    value: float
    unit: str


def median_of(action: Callable[[], object], *, repeat: int, name: str) -> Iterator[Figure]:
    """Run `action` and give the median of its CPU and wall milliseconds."""
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(repeat):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        action()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
    yield Figure(name, 1_000 * statistics.median(cpu), "cpu ms")
    yield Figure(name, 1_000 * statistics.median(wall), "wall ms")


def report(figures: list[Figure], *, record: bool) -> None:
    """Print figures beside the recorded ones, and record them when asked to."""
    known: dict[str, float] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for figure in figures:
        key = f"{figure.name} [{figure.unit}]"
        before = f"{known[key]:>12.3f}" if key in known else f"{'—':>12}"
        print(f"{figure.name:<58} {figure.value:>12.3f} {figure.unit:<10} last {before}")
        known[key] = figure.value
    if record:
        RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
