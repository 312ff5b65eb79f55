"""Writers: one life of a graph, every writer once or more, in a process that is traced.

    python -m tests.power.writers <life> <graph> <pictures> <durability>

A mark says when a step starts and when it is acknowledged. What the graph shows after each step
goes to the file `pictures`, which is not below the traced directory.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.testing.together import run_together
from tests.power.calls import MARKS

SCHEMA = """
node Person { name: String @key  age: I32?  note: String? @index }
node City { name: String @key  size: I32? }
edge Knows: Person -> Person { since: I32? }
"""
NEXT_SCHEMA = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")').replace(
    "node City", "node Tag { name: String @key }\nnode City"
)
DEEP, FLAT = "review/a/b", "feature"

Step = Callable[[Graph], object]


def people(*names: str, **data: Any) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": {"name": name, **data}} for name in names]


def mutate(text: str, branch: str = "main") -> Step:
    return lambda graph: graph.mutate(f"query q() {{ {text} }}", branch=branch)


def insert_together(graph: Graph, *names: str) -> None:
    """One commit for several callers."""
    text = "query q($name: String) { insert Person { name: $name } insert City { name: $name } }"
    calls = [partial(graph.mutate, text, "q", {"name": name}) for name in names]
    for outcome in run_together(graph, calls):
        if isinstance(outcome, Exception):
            raise outcome


ALL_ANEW = people("ann", "bob", "lee")
INSERT = mutate(
    'insert Person { name: "ann", age: 1 } insert Person { name: "bob", note: "by the sea" } '
    'insert City { name: "oslo" } insert Knows { from: "ann", to: "bob" }'
)

EVERY_WRITER: dict[str, Step] = {
    "insert": INSERT,
    "update": mutate('update Person set { age: 7 } where name = "ann"'),
    "load append": lambda g: g.load(people("cy", "dan", "eve"), mode="append", engine="inline"),
    "delete": mutate('delete Person where name = "dan"'),
    "load merge": lambda g: g.load(people("eve", "fay", age=9), mode="merge", engine="inline"),
    "ensure_indices": lambda g: g.ensure_indices(),
    "create branch": lambda g: g.create_branch(DEEP),
    "branch insert": mutate('insert Person { name: "gil" } insert City { name: "rome" }', DEEP),
    "branch update": mutate('update Person set { age: 8 } where name = "gil"', DEEP),
    "branch insert too many": mutate('insert Person { name: "err" }', DEEP),
    "reset branch": lambda g: g.reset_branch(DEEP, f"{DEEP}~1"),
    "insert beside": mutate('insert Person { name: "hal" }'),
    "insert together": lambda g: insert_together(g, "mia", "noa", "ole"),
    "merge three-way": lambda g: g.merge(DEEP),
    "create second branch": lambda g: g.create_branch(FLAT),
    "branch load": lambda g: g.load(people("ida"), mode="append", branch=FLAT, engine="inline"),
    "branch delete": mutate('delete City where name = "rome"', FLAT),
    "merge fast-forward": lambda g: g.merge(FLAT),
    "delete branch": lambda g: g.delete_branch(FLAT),
    "delete deep branch": lambda g: g.delete_branch(DEEP),
    "create branch again": lambda g: g.create_branch(DEEP),
    "branch insert again": mutate('insert Person { name: "jon" }', DEEP),
    "delete branch again": lambda g: g.delete_branch(DEEP),
    "optimize": lambda g: g.optimize(),
    "cleanup": lambda g: g.cleanup(keep=2, confirm=True),
    "apply_schema": lambda g: g.apply_schema(NEXT_SCHEMA),
    "insert at last": mutate('insert Tag { name: "new" } insert Person { name: "kim" }'),
    "load overwrite": lambda g: g.load(
        people("ann", "bob", "lee"), mode="overwrite", engine="inline"
    ),
}

ON_SPARK: dict[str, Step] = {
    "insert": INSERT,
    "spark append": lambda g: g.load(people("cy", "dan", "eve"), mode="append", engine="spark"),
    "spark merge": lambda g: g.load(people("eve", "fay", age=9), mode="merge", engine="spark"),
    "spark overwrite": lambda g: g.load(
        people("ann", "bob", "lee"), mode="overwrite", engine="spark"
    ),
}

NAMES: dict[str, Step] = {
    "insert": INSERT,
    "update": EVERY_WRITER["update"],
    "tag": lambda g: g.tag("v1", "main~1"),
    "branch at a commit": lambda g: g.create_branch(DEEP, "main~1"),
    "branch insert": mutate('insert Person { name: "gil" } insert City { name: "rome" }', DEEP),
    "second branch at a commit": lambda g: g.create_branch(FLAT, f"{DEEP}~1"),
    "delete branch": lambda g: g.delete_branch(FLAT),
    "branch again": lambda g: g.create_branch(FLAT, DEEP),
    "branch delete": mutate('delete City where name = "rome"', FLAT),
    "second tag": lambda g: g.tag("v2", FLAT),
    "delete tag": lambda g: g.delete_tag("v1"),
}

INSERTS: dict[str, Step] = {
    "insert": INSERT,
    "insert again": mutate('insert Person { name: "hal" } insert City { name: "rome" }'),
    "insert once more": mutate('insert Person { name: "ivy" }'),
    "insert together": lambda g: insert_together(g, "mia", "noa", "ole"),
    "insert at last": mutate('insert Person { name: "pia" }'),
}
"""All but the first go on from versions that were written without Lance."""

LIVES: dict[str, dict[str, Step]] = {
    "every writer": EVERY_WRITER,
    "spark": ON_SPARK,
    "names": NAMES,
    "inserts": INSERTS,
    "short": dict(list(EVERY_WRITER.items())[:3]),
}


def picture(graph: Graph) -> dict[str, Any]:
    """What a graph shows: schema, tags, rows and commits of every branch."""
    return {
        "schema": graph.schema,
        "tags": {tag.name: tag.commit_id for tag in graph.tags()},
        "branches": {
            branch: {
                "rows": sorted(
                    json.dumps(each, sort_keys=True, default=str)
                    for each in graph.export(branch=branch)
                ),
                "commits": sorted(commit.commit_id for commit in graph.commits(branch)),
            }
            for branch in graph.branches()
        },
    }


def mark(step: str, what: str) -> None:
    """Be seen by the tracer: this call never succeeds."""
    with suppress(OSError):
        os.mkdir(f"{MARKS}{step}/{what}")


def live(life: str, path: str, durability: Any) -> list[dict[str, Any]]:
    """Run every step of a life; returns a picture after each."""
    mark("init", "start")
    graph = og.init(path, schema=SCHEMA, durability=durability, actor="ada")
    mark("init", "ack")
    pictures = [picture(graph)]
    for name, step in LIVES[life].items():
        mark(name, "start")
        step(graph)
        mark(name, "ack")
        pictures.append(picture(graph))
    return pictures


if __name__ == "__main__":
    life, graph_path, pictures_path, chosen = sys.argv[1:]
    Path(pictures_path).write_text(json.dumps(live(life, graph_path, chosen)))
