"""What version control costs by the size of the graph: transfers by their change, names by nothing.

Each size is a graph of one type, with its indexes, as self-care leaves it. A change is 1,000 rows
of it, or one, written with another value. Sizes are set by OMNIGRAPH_BENCH_SIZES. Files and bytes
are those that a transfer moved.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
from tests.branch.bulk import appending, upserting, write_bulk

import omnigraph as og
from benchmarks.harness import Figure, is_quick, measure
from benchmarks.merge import plain_rows, to_table

SCHEMA = "node Doc { slug: String @key  x: I64? }\n"
SIZES = [int(size) for size in os.environ.get("OMNIGRAPH_BENCH_SIZES", "10000 1000000").split()]
CHANGED = 1_000
REPEAT = 5


def run() -> Iterator[Figure]:
    for size in (2_000,) if is_quick() else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            yield from _measure(Path(folder), size)


def _measure(folder: Path, size: int) -> Iterator[Figure]:
    with og.init(folder / "here", schema=SCHEMA, self_care=False) as here:
        write_bulk(here, "node:Doc", appending(plain_rows(np.arange(size), 0)))
        here.optimize()
        moved: list[og.TransferResult] = []
        numbers = count()

        def clone() -> None:
            moved.append(og.clone(folder / "here", folder / f"clone{next(numbers)}"))

        yield from measure(f"clone, {size:,} rows", clone, repeat=1)
        yield from _count(f"clone, {size:,} rows", moved)
        yield from _push(here, folder / "clone0", size)
        yield from _name(here, size)
        yield from _undo(here, size)


def _push(here: og.Graph, away: Path, size: int) -> Iterator[Figure]:
    """One file of rows, one of what they replace, and their transactions, whatever the size."""
    moved: list[og.TransferResult] = []
    name = f"push of {CHANGED:,} rows of {size:,}"
    cpu: list[Figure] = []
    for number in range(REPEAT):
        _change(here, size, number)
        cpu += measure(name, lambda: moved.append(here.push(away)), repeat=1)
    for unit in ("cpu ms", "wall ms"):
        values = sorted(each.value for each in cpu if each.unit == unit)
        yield Figure(name, values[REPEAT // 2], unit, values[0], values[-1], REPEAT)
    yield from _count(name, moved)


def _name(here: og.Graph, size: int) -> Iterator[Figure]:
    commit, numbers = here.commits()[1].commit_id, count()
    works: dict[str, Callable[[], object]] = {
        "tag": lambda: here.tag(f"v{next(numbers)}", commit),
        "branch": lambda: here.create_branch(f"b{next(numbers)}", from_=commit),
    }
    for what, work in works.items():
        yield from measure(f"{what} at a commit, {size:,} rows", work, repeat=REPEAT)


def _undo(here: og.Graph, size: int) -> Iterator[Figure]:
    here.create_branch("side")
    _change(here, size, REPEAT)
    commit = here.commits()[0].commit_id
    changed = f"{CHANGED:,} rows of {size:,}"
    yield from measure(
        f"cherry-pick of {changed}", lambda: here.cherry_pick(commit, into="side"), repeat=1
    )
    yield from measure(f"revert of {changed}", lambda: here.revert(commit), repeat=1)
    slugs = iter([f"d{number:07d}" for number in _choose(size, REPEAT).tolist()])
    before = here.commits()[1].commit_id
    works: dict[str, Callable[[], object]] = {
        "restore": lambda: here.restore(before, types=["Doc"], ids=[next(slugs)]),
        "blame": lambda: here.blame("Doc", next(slugs)),
        "history": lambda: here.history("Doc", next(slugs)),
    }
    for what, work in works.items():
        yield from measure(f"{what} of one entity, {size:,} rows", work, repeat=REPEAT)


def _choose(size: int, number: int) -> np.ndarray:
    return np.random.default_rng(number).choice(size, CHANGED, replace=False)


def _change(graph: og.Graph, size: int, number: int) -> None:
    rows = to_table(plain_rows(_choose(size, number), number + 1))
    write_bulk(graph, "node:Doc", upserting(rows))


def _count(name: str, moved: list[og.TransferResult]) -> Iterator[Figure]:
    """What transfers moved, the median of several."""
    middle = sorted(moved, key=lambda each: each.bytes)[len(moved) // 2]
    yield Figure(f"{name}, files", middle.files, "count")
    yield Figure(f"{name}, moved", middle.bytes / 1e6, "MB")
