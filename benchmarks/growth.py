"""What grows with branches and commits: opening, cleanup, a merge, a look at the log, a name.

Each size is a graph of its own. Every tenth branch has a commit, and each branch starts at another
commit of main; the branches that are merged are the newest ones, whatever the size. Opens, logs,
merges and cleanups are those of a handle that knows nothing yet, names those of one at work.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import omnigraph as og
from benchmarks.harness import Figure, is_quick, measure

SCHEMA = "node Person { slug: String @key  age: I32? }\n"
ADD = "query add($slug: String) { insert Person { slug: $slug, age: 1 } }"
SIZES = ((2, 8), (4, 16)) if is_quick() else ((10, 40), (50, 200), (200, 800))
"""Branches, and commits of main."""
REPEAT = 3


def run() -> Iterator[Figure]:
    for branches, commits in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            _make(path, branches, commits)
            size = f"{branches} branches, {commits} commits"
            yield from measure(f"open, {size}", partial(_open, path), repeat=REPEAT)
            changed = iter(range(0, branches, 10)[::-1])
            for what, work in _works(changed).items():
                yield from _with_new_handles(f"{what}, {size}", path, work)
            yield from _name(path, size)


def _open(path: Path) -> None:
    og.open(path).close()


def _works(changed: Iterator[int]) -> dict[str, Callable[[og.Graph], object]]:
    return {
        "ten newest commits": lambda graph: graph.commits(limit=10),
        "log of ten": lambda graph: graph.log(limit=10),
        "cleanup, dry": lambda graph: graph.cleanup(keep=5),
        "merge of one row": lambda graph: graph.merge(f"b{next(changed)}", into="main"),
    }


def _with_new_handles(
    name: str, path: Path, work: Callable[[og.Graph], object]
) -> Iterator[Figure]:
    """The median of several runs, each by a handle of its own; opening it is not measured."""
    found: list[Figure] = []
    repeat = 1 if name.startswith("merge") else REPEAT
    for _ in range(repeat):
        with og.open(path) as graph:
            found += measure(name, partial(work, graph), repeat=1)
    for unit in ("cpu ms", "wall ms"):
        values = [each.value for each in found if each.unit == unit]
        yield Figure(name, median(values), unit, min(values), max(values), repeat)


def _name(path: Path, size: str) -> Iterator[Figure]:
    """Names for an early commit."""
    with og.open(path) as graph:
        commit, numbers = graph.commits()[-3].commit_id, count()
        works: dict[str, Callable[[], object]] = {
            "tag": lambda: graph.tag(f"v{next(numbers)}", commit),
            "branch": lambda: graph.create_branch(f"n{next(numbers)}", from_=commit),
        }
        for what, work in works.items():
            work()
            yield from measure(f"{what} at an early commit, {size}", work, repeat=REPEAT)


def _make(path: Path, branches: int, commits: int) -> None:
    og.init(path, schema=SCHEMA).close()
    graph = og.open(path, durability="process")
    made = 0
    for number in range(commits):
        graph.mutate(ADD, "add", {"slug": f"m{number}"})
        while made < branches and made * commits <= number * branches:
            graph.create_branch(f"b{made}")
            if made % 10 == 0:
                graph.mutate(ADD, "add", {"slug": f"b{made}"}, branch=f"b{made}")
            made += 1
    graph.close()
    og.open(path).close()  # brings the table of commits up to date
