"""What grows with branches and commits: opening, cleanup, a merge, a look at the log.

Each size is a graph of its own. Every tenth branch has a commit, and each branch starts at another
commit of main. Opens, merges and cleanups are those of a handle that knows nothing yet.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import omnigraph as og
from benchmarks.harness import Figure, is_quick, measure

SCHEMA = "node Person { slug: String @key  age: I32? }\n"
ADD = "query add($slug: String) { insert Person { slug: $slug, age: 1 } }"
SIZES = ((2, 8), (4, 16)) if is_quick() else ((5, 20), (50, 200), (150, 600))
"""Branches, and commits of main."""
REPEAT = 3


def run() -> Iterator[Figure]:
    for branches, commits in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            _make(path, branches, commits)
            size = f"{branches} branches, {commits} commits"
            yield from measure(f"open, {size}", partial(_open, path), repeat=REPEAT)
            names = iter(range(0, branches, 10))
            for what, work in _works(names).items():
                yield from _with_new_handles(f"{what}, {size}", path, work)


def _open(path: Path) -> None:
    og.open(path).close()


def _works(names: Iterator[int]) -> dict[str, Callable[[og.Graph], object]]:
    return {
        "ten newest commits": lambda graph: graph.commits(limit=10),
        "log of ten": lambda graph: graph.log(limit=10),
        "cleanup, dry": lambda graph: graph.cleanup(keep=5),
        "merge of one row": lambda graph: graph.merge(f"b{next(names)}", into="main"),
    }


def _with_new_handles(
    name: str, path: Path, work: Callable[[og.Graph], object]
) -> Iterator[Figure]:
    graph = og.open(path)
    repeat = 1 if name.startswith("merge") else REPEAT

    def act() -> None:
        work(graph)

    yield from measure(name, act, repeat=repeat)
    graph.close()


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
