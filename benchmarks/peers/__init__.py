"""Peers: the same graph and the same questions in other systems, each driven as its users would.

A peer that is not installed takes no part. Every one runs in a process of its own (`compare.py`),
loads the frames of `social.py` into its own store on disk, and keeps its own defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pyarrow as pa

MODULES = {
    "omnigraph": "benchmarks.peers.own",
    "sqlite": "benchmarks.peers.sqlite",
    "duckdb": "benchmarks.peers.duck",
    "kuzu": "benchmarks.peers.kuzu_cypher",
    "plain lance": "benchmarks.peers.plain_lance",
}


class Peer(Protocol):
    """One system with the social graph in it."""

    version: str
    questions: tuple[str, ...]

    def load(self, frames: Mapping[str, pa.Table], folder: Path) -> None:
        """Make the graph durable below `folder`, with the indexes its users would give it."""

    def ask(self, question: str) -> list[float]:
        """The last column of every row of an answer."""

    def find(self, key: int) -> int:
        """The age of one person."""


def open_peer(name: str) -> Peer | None:
    """A peer by name, None when it is not installed."""
    try:
        made: Peer = import_module(MODULES[name]).make()
    except ImportError:
        return None
    return made


def with_numbers(table: pa.Table) -> pa.Table:
    """An edge table with its ends as numbers, which is what its systems would use."""
    if "src" not in table.column_names:
        return table
    ends = [table.column(end).cast(pa.int64()) for end in ("src", "dst")]
    return pa.table(ends, names=["src", "dst"])
