"""What version control costs by the size of the graph: names by nothing, all else by the change.

Each size is a graph of one type, with its indexes, as self-care leaves it. A change is 1,000 rows
scattered over it, or one, written with another value. Names are also measured beside many commits
and many types. Sizes are set by OMNIGRAPH_BENCH_SIZES.

MB read and written are those of the calls of the process to the system, whether a disk is asked or
its cache; waits are the times that it waited for the disk.
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from tests.branch.bulk import appending, upserting, write_bulk

import omnigraph as og
from benchmarks.harness import Figure, is_quick
from benchmarks.merge import plain_rows, to_table
from omnigraph.storage.counters import counting

SCHEMA = "node Doc { slug: String @key  x: I64? }\n"
DEFAULT_SIZES = "10000 1000000 10000000"
SIZES = [int(size) for size in os.environ.get("OMNIGRAPH_BENCH_SIZES", DEFAULT_SIZES).split()]
NAMED = ((5, 2),) if is_quick() else ((10, 10), (1_000, 10), (10, 100))
"""Commits and types of a graph in which commits get names."""
CHANGED = 200 if is_quick() else 1_000
LANES = 3
"""Branches change rows of their own: every so many, each from another one on."""
REPEAT = 2 if is_quick() else 5
NAMES = 3 if is_quick() else 40
"""Names are given in milliseconds: enough of them to tell the slowest in twenty."""


@dataclass(frozen=True)
class _Cost:
    """What one call took."""

    cpu: float
    wall: float
    read: float
    written: float
    waits: int


def run() -> Iterator[Figure]:
    for size in (2_000,) if is_quick() else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            yield from _measure_size(Path(folder), size)
    for commits, types in NAMED:
        with tempfile.TemporaryDirectory() as folder:
            yield from _measure_names(Path(folder), commits, types)


def _measure_size(folder: Path, size: int) -> Iterator[Figure]:
    with og.init(folder / "here", schema=SCHEMA, self_care=False) as here:
        write_bulk(here, "node:Doc", appending(plain_rows(np.arange(size), 0)))
        here.optimize()
        names = count()
        yield from _tell(
            f"clone, {size:,} rows",
            [_cost_of(lambda: og.clone(folder / "here", folder / f"clone{next(names)}"))],
        )
        yield from _push(here, folder / "clone0", size)
        yield from _name(here, f"{size:,} rows")
        yield from _undo(here, size)
        yield from _look_back(here, size)


def _push(here: og.Graph, away: Path, size: int) -> Iterator[Figure]:
    """One file of rows, one of what they replace for each file of rows, and their transactions."""
    moved: list[og.TransferResult] = []
    costs = []
    for number in range(REPEAT):
        _change(here, size, number)
        costs.append(_cost_of(lambda: moved.append(here.push(away))))
    name = f"push of {CHANGED:,} rows of {size:,}"
    yield from _tell(name, costs)
    middle = sorted(moved, key=lambda each: each.bytes)[len(moved) // 2]
    yield Figure(f"{name}, files", middle.files, "count")
    yield Figure(f"{name}, moved", middle.bytes / 1e6, "MB")


def _name(here: og.Graph, where: str) -> Iterator[Figure]:
    """Names for a commit that is not the newest."""
    commit, numbers = here.commits()[2].commit_id, count()
    works: dict[str, Callable[[], object]] = {
        "tag": lambda: here.tag(f"v{next(numbers)}", commit),
        "branch": lambda: here.create_branch(f"b{next(numbers)}", from_=commit),
    }
    for what, work in works.items():
        work()
        costs = [_cost_of(work) for _ in range(NAMES)]
        yield from _tell(f"{what} at a commit, {where}", costs)
        for unit in ("cpu", "wall"):
            slow = float(np.percentile([getattr(each, unit) for each in costs], 95))
            yield Figure(f"{what} at a commit, {where}, p95", slow, f"{unit} ms")


def _undo(here: og.Graph, size: int) -> Iterator[Figure]:
    """Changes of scattered rows taken back, made again elsewhere, and merged.

    Both branches have changed the type themselves, so none is only pointed at what another has.
    """
    found: dict[str, list[_Cost]] = {}
    for number in range(REPEAT):
        side, other, before = f"side{number}", f"other{number}", here.commits()[0].commit_id
        for lane, branch in enumerate((side, other), 1):
            here.create_branch(branch)
            _change(here, size, number, branch, lane)
        _change(here, size, REPEAT + number)
        commit = here.commits()[0].commit_id
        works: dict[str, Callable[[], object]] = {
            "cherry-pick": partial(here.cherry_pick, commit, into=side),
            "revert": partial(here.revert, commit),
            "revert of the revert": partial(here.revert, "main"),
            "restore": partial(here.restore, before, types=["Doc"]),
            "merge": partial(here.merge, other),
        }
        for what, work in works.items():
            found.setdefault(what, []).append(_cost_of(work))
    for what, costs in found.items():
        yield from _tell(f"{what}, {CHANGED:,} rows of {size:,}", costs)


def _look_back(here: og.Graph, size: int) -> Iterator[Figure]:
    _change(here, size, REPEAT)
    slugs = iter([f"d{number:07d}" for number in _choose(size, REPEAT).tolist()])
    before = here.commits()[1].commit_id
    works: dict[str, Callable[[], object]] = {
        "restore": lambda: here.restore(before, types=["Doc"], ids=[next(slugs)]),
        "blame": lambda: here.blame("Doc", next(slugs)),
        "history": lambda: here.history("Doc", next(slugs)),
    }
    for what, work in works.items():
        costs = [_cost_of(work) for _ in range(REPEAT)]
        yield from _tell(f"{what} of one entity, {size:,} rows", costs)


def _measure_names(folder: Path, commits: int, types: int) -> Iterator[Figure]:
    schema = "".join(f"node N{each} {{ slug: String @key }}\n" for each in range(types))
    og.init(folder / "graph", schema=schema).close()
    with og.open(folder / "graph", durability="process") as made:
        for number in range(commits):
            kind = f"N{number % types}"
            made.mutate(
                f'query add() {{ insert {kind} {{ slug: "m{number}" }} }}',
            )
    with og.open(folder / "graph") as graph:
        yield from _name(graph, f"{commits:,} commits, {types} types")


def _choose(size: int, number: int, lane: int = 0) -> np.ndarray:
    chosen = np.random.default_rng(number).choice(size // LANES, CHANGED, replace=False)
    return LANES * chosen + lane


def _change(graph: og.Graph, size: int, number: int, branch: str = "main", lane: int = 0) -> None:
    rows = to_table(plain_rows(_choose(size, number, lane), number + 1))
    write_bulk(graph, "node:Doc", upserting(rows), branch)


def _cost_of(work: Callable[[], object]) -> _Cost:
    gc.collect()
    before = _moved_bytes()
    with counting() as counters:
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    read, written = (after - each for after, each in zip(_moved_bytes(), before, strict=True))
    return _Cost(1_000 * cpu, 1_000 * wall, read / 1e6, written / 1e6, counters.sync_waits)


def _moved_bytes() -> tuple[int, int]:
    """Bytes that this process has read and written so far; none where a system does not tell."""
    path = Path("/proc/self/io")
    if not path.exists():
        return 0, 0
    counted = dict(line.split(": ") for line in path.read_text().splitlines())
    return int(counted["rchar"]), int(counted["wchar"])


def _tell(name: str, costs: list[_Cost]) -> Iterator[Figure]:
    units = {"cpu": "cpu ms", "wall": "wall ms", "read": "MB", "written": "MB", "waits": "count"}
    for field, unit in units.items():
        values = [getattr(each, field) for each in costs]
        label = name if unit.endswith("ms") else f"{name}, {field}"
        middle = statistics.median(values)
        yield Figure(label, middle, unit, min(values), max(values), len(values))
