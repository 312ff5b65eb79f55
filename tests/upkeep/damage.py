"""A graph with a file of every kind, and ways to damage one file at a time."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph import failpoints
from tests.upkeep.graphs import READS, new_library

SCHEMA = """
node Author {
    slug: String @key
    name: String
    tags: [String]?
    bio: String? @index
    face: Vector(4)? @index
    photo: Blob?
}
node Paper { doi: String @key  year: I32? @index }
edge Wrote: Author -> Paper { pos: I32? }
"""

BRANCH = "dev/x"
LARGE_BLOB = 100_000
"""So large that Lance keeps it in a file of its own."""

NOT_NEEDED = ("__locks", "__quarantine", "__load", "__location.json")
"""Nothing is read from them; where a graph is, the next open finds out by itself."""
HINT = "latest_version_hint.json"


def author(number: int) -> dict[str, Any]:
    photo = random.Random(number).randbytes(LARGE_BLOB if number % 5 == 0 else 20)
    data = {
        "slug": f"a{number:03}",
        "name": f"Name {number}",
        "tags": ["one", f"t{number}"],
        "bio": f"lives near the river {number}",
        "face": [float(number)] * 4,
        "photo": f"base64:{base64.b64encode(photo).decode()}",
    }
    return {"type": "Author", "data": data}


def paper(number: int) -> dict[str, Any]:
    return {"type": "Paper", "data": {"doi": f"p{number}", "year": 2000 + number}}


def wrote(number: int) -> dict[str, Any]:
    return {"edge": "Wrote", "from": f"a{number:03}", "to": f"p{number % 5}"}


def new_graph_of_all_kinds(path: Path, **options: Any) -> og.Graph:
    """Node, edge, list, vector and blob; all indexes; forks, deletions, a merge, a compaction."""
    graph = new_library(path, SCHEMA, **options)
    first = [*map(author, range(10)), *map(paper, range(5)), *map(wrote, range(10))]
    graph.load(first, mode="append")
    graph.optimize()
    graph.create_branch(BRANCH)
    graph.mutate('query q() { delete Author where slug = "a001" }', branch=BRANCH)
    graph.load([author(10)], mode="append", branch=BRANCH)
    graph.mutate('query q() { delete Paper where doi = "p4" }')
    graph.merge(BRANCH, "main")
    graph.load([author(20)], mode="append", branch=BRANCH)
    graph.optimize()
    graph.mutate('query q() { delete Author where slug = "a002" }')
    graph.create_branch("merged")
    graph.load([author(30)], mode="append", branch="merged")
    graph.merge("merged", "main", delete_branch=True)  # its commits outlive it
    graph.query(READS, "written")  # keeps the adjacency that it has built
    return graph


def files_below(root: Path) -> list[Path]:
    """Every file that a read of some commit may need."""
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and path.name != HINT
        and path.relative_to(root).parts[0] not in NOT_NEEDED
    )


@contextmanager
def flipped_byte(path: Path, seed: int = 0) -> Iterator[None]:
    """One byte of a file is another one; afterwards it is what it was."""
    whole = path.read_bytes()
    place = random.Random(f"{seed} {path.name}").randrange(len(whole))
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
    try:
        yield
    finally:
        path.write_bytes(whole)


@contextmanager
def without(path: Path) -> Iterator[None]:
    """A file is gone; afterwards it is back."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)


def log_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a log, read without our own reader."""
    return [json.loads(line.rsplit(b" ", 2)[0]) for line in path.read_bytes().splitlines()]


def insert_author(path: str, arm: str) -> str:
    """Work for a process of its own: one insert, with a point armed."""
    graph = og.open(path, self_care=False)
    failpoints.arm_from_environment(arm)
    graph.mutate('query q() { insert Author { slug: "zed", name: "Zed" } }')
    return "acknowledged"
