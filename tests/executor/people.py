"""A small graph of people, towns and notes that the executor tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnigraph.graph import Graph, init

SCHEMA = """
node Person { name: String @key  age: I32?  town: String?  score: F32? }
node Town { name: String @key  size: I64? }
node Note { slug: String @key  body: String? @index  vec: Vector(3)? }
edge Knows: Person -> Person { since: Date?  weight: I32? }
edge LivesIn: Person -> Town @card(0..1)
edge Wrote: Person -> Note
"""


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name} | data}


def edge(kind: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": data}


def note_of(slug: str, body: str | None, vec: list[float] | None) -> dict[str, Any]:
    return {"type": "Note", "data": {"slug": slug, "body": body, "vec": vec}}


RECORDS: list[dict[str, Any]] = [
    person("ada", age=36, town="London", score=0.5),
    person("bo", age=25, town="Oslo"),
    person("cy", age=25, score=1.5),
    person("di", town="London"),
    {"type": "Town", "data": {"name": "London", "size": 9}},
    {"type": "Town", "data": {"name": "Oslo", "size": 1}},
    note_of("n1", "apples and pears", [1.0, 0.0, 0.0]),
    note_of("n2", "pears", [0.0, 1.0, 0.0]),
    note_of("n3", "whales", [0.9, 0.1, 0.0]),
    note_of("n4", None, None),
    edge("Knows", "ada", "bo", weight=1),
    edge("Knows", "ada", "bo", weight=2),
    edge("Knows", "bo", "cy", weight=3),
    edge("Knows", "cy", "ada"),
    edge("Knows", "bo", "bo"),
    edge("LivesIn", "ada", "London"),
    edge("LivesIn", "bo", "Oslo"),
    edge("LivesIn", "di", "London"),
    edge("Wrote", "ada", "n1"),
    edge("Wrote", "ada", "n2"),
    edge("Wrote", "bo", "n3"),
    edge("Wrote", "cy", "n1"),
    edge("Wrote", "di", "n4"),
]


def make_graph(folder: Path) -> Graph:
    graph = init(folder / "people.omni", schema=SCHEMA, durability="process")
    graph.load(RECORDS, mode="overwrite")
    return graph
