"""Calls: what was done to the files below one directory, in order, as data.

A recording has the bytes of every write, so that the directory can be built again as it was, or as
a crash may have left it, at any moment.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "create",
    "write",
    "truncate",
    "sync",
    "mkdir",
    "rmdir",
    "link",
    "unlink",
    "rename",
    "mark",
]

MARKS = "/omnigraph-mark/"
"""A tracee that makes a directory here only leaves a mark: `<step>/start` or `<step>/ack`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One effect. Paths are relative to the directory; a file is known by its inode number.

    `offset` is None for a write that appends. A sync of a directory has a path, one of a file its
    inode.
    """

    kind: Kind
    path: str = ""
    target: str = ""
    inode: int = 0
    offset: int | None = 0
    data: bytes = b""


def save(path: Path, calls: Iterable[Call]) -> None:
    path.write_bytes(pickle.dumps(list(calls)))


def read(path: Path) -> list[Call]:
    found: list[Call] = pickle.loads(path.read_bytes())
    return found
