"""Systems that search documents, each with the indexes its users would give them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

from benchmarks.documents import Documents

MODULES = {
    "omnigraph": "benchmarks.peers.own_search",
    "plain lance": "benchmarks.peers.lance_search",
    "lancedb": "benchmarks.peers.lancedb_search",
}


class Searcher(Protocol):
    """One system with the documents in it; a search returns the keys of the best ten."""

    version: str
    has_hybrid: bool

    def load(self, documents: Documents, folder: Path) -> None:
        """Store and index the documents below `folder`."""

    def open_again(self, folder: Path) -> None:
        """Let go of what is open, and open it."""

    def match(self, text: str) -> list[str]:
        """By full text."""

    def nearest(self, vector: list[float]) -> list[str]:
        """By distance."""

    def fuse(self, text: str, vector: list[float]) -> list[str]:
        """By both, fused by reciprocal ranks."""

    def add(self, key: str, documents: Documents) -> None:
        """Commit one more document."""


def open_searcher(name: str) -> Searcher | None:
    """A searcher by name, None when it is not installed."""
    try:
        made: Searcher = import_module(MODULES[name]).make()
    except ImportError:
        return None
    return made
