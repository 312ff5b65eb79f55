"""Short histories that a wrong or lost merge base gets wrong; random ones meet them rarely."""

from __future__ import annotations

from collections.abc import Mapping

from tests.model.history_base import Step

START: list[Step] = [
    (0, "put", "main", "person", "ann", {"age": 1}),
    (0, "put", "main", "person", "bob", {"age": 1}),
    (0, "branch", "b", "main"),
]


def cross(one: str, other: str) -> list[Step]:
    """Each branch merges what the other was, keeping its own rows where they differ."""
    return [
        (0, "branch", "s", one),
        (0, "branch", "t", other),
        (0, "merge", "t", one, "ours"),
        (0, "merge", "s", other, "ours"),
        (0, "delete", "s"),
        (0, "delete", "t"),
    ]


HOTFIX: list[Step] = [
    (0, "branch", "s", "main"),
    (0, "put", "s", "person", "cy", {"age": 1}),
    (0, "merge", "s", "main"),
    (0, "put", "b", "firm", "x", {"size": 1}),
    (0, "merge", "s", "b"),
]

SCENARIOS: Mapping[str, list[Step]] = {
    "a hotfix in both, deleted in one": [
        *START,
        *HOTFIX,
        (0, "drop", "b", "person", "cy"),
        (0, "put", "main", "firm", "y", {"size": 1}),
        (0, "merge", "main", "b"),
    ],
    "a hotfix in both whose branch is gone": [
        *START,
        *HOTFIX,
        (0, "delete", "s"),
        (0, "cleanup", 1),
        (0, "set", "b", "person", "cy", "age", 2),
        (0, "put", "main", "firm", "y", {"size": 1}),
        (0, "merge", "main", "b"),
    ],
    "two bases that deleted a row each": [
        *START,
        (0, "drop", "main", "person", "ann"),
        (0, "drop", "b", "person", "bob"),
        *cross("main", "b"),
        (0, "put", "main", "person", "ann", {"age": 2}),
        (0, "put", "b", "person", "bob", {"age": 2}),
        (0, "merge", "main", "b"),
    ],
    "two bases, one of which added a row": [
        *START,
        (0, "drop", "main", "person", "bob"),
        (0, "put", "b", "person", "cy", {"age": 1}),
        *cross("main", "b"),
        (0, "drop", "main", "person", "cy"),
        (0, "set", "b", "person", "ann", "age", 3),
        (0, "preview", "main", "b"),
        (0, "merge", "main", "b"),
    ],
    "two bases that disagree": [
        *START,
        (0, "set", "main", "person", "ann", "age", 2),
        (0, "set", "b", "person", "ann", "age", 3),
        (0, "drop", "main", "person", "bob"),
        (0, "set", "b", "person", "bob", "age", 3),
        *cross("main", "b"),
        (0, "merge", "main", "b"),
        (0, "set", "main", "person", "ann", "age", 3),
        (0, "merge", "main", "b", "theirs"),
    ],
    "bases that have two bases": [
        *START,
        (0, "set", "main", "person", "ann", "age", 2),
        (0, "put", "b", "person", "cy", {"age": 1}),
        *cross("main", "b"),
        (0, "drop", "main", "person", "ann"),
        (0, "set", "b", "person", "cy", "age", 2),
        *cross("main", "b"),
        (0, "put", "b", "person", "ann", {"age": 2}),
        (0, "drop", "main", "person", "cy"),
        (0, "merge", "b", "main"),
    ],
    "a merged branch, made again and written": [
        *START,
        (0, "set", "b", "person", "ann", "age", 2),
        (0, "branch", "c", "main"),
        (0, "merge", "b", "c"),
        (0, "merge", "b", "main"),
        (0, "delete", "b"),
        (0, "branch", "b", "c"),
        (0, "set", "b", "person", "ann", "age", 3),
        (0, "drop", "c", "person", "bob"),
        (0, "merge", "b", "c"),
        (0, "merge", "c", "main"),
    ],
    "a base that only a deleted branch had": [
        *START,
        (0, "set", "b", "person", "ann", "age", 2),
        (0, "branch", "c", "b"),
        (0, "put", "b", "person", "cy", {"age": 1}),
        (0, "drop", "c", "person", "ann"),
        (0, "merge", "c", "main", None, True),
        (0, "merge", "main", "b"),
    ],
    "a branch that goes back, on and back again": [
        *START,
        (0, "set", "b", "person", "ann", "age", 2),
        (0, "set", "b", "person", "ann", "age", 3),
        (0, "put", "b", "firm", "x", {"size": 1}),
        (0, "reset", "b", 2),
        (0, "reset", "b", 0),
        (0, "set", "b", "person", "bob", "age", 4),
        (0, "branch", "c", "b"),
        (0, "reset", "b", 1),
        (0, "delete", "c"),
        (0, "set", "b", "person", "bob", "age", 5),
        (0, "reset", "b", 1),
        (0, "cleanup", 2),
        (0, "put", "b", "firm", "y", {"size": 1}),
        (0, "merge", "b", "main"),
        (0, "reset", "b", 1),
        (0, "reset", "b", 3),
    ],
    "a cleanup that keeps what a branch came with": [
        *START,
        (0, "put", "main", "person", "cy", {"age": 1}),
        (0, "set", "main", "person", "cy", "age", 2),
        (0, "cleanup", 3),
    ],
}
