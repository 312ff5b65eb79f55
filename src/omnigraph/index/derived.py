"""Derived files: adjacency kept beside the graph, so that a cold open maps it instead of building.

One directory per relation, named by the physical versions of the tables it was made from, so a
file is never stale: a new version has a new name. Where the graph lies is no part of the name, so
a graph that was moved maps them too. Everything here may be deleted at any time. A read-only graph
maps what is there and writes nothing; a failure to write is no failure.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np

from omnigraph.index.adjacency import Csr, Relation

DIRECTORY = "__derived"
ENTRIES_MAX = 64
_FORMAT = 1


class DerivedStore:
    """Relations on the local disk, by name."""

    def __init__(self, root: Path, *, is_writable: bool) -> None:
        self._root = root
        self._folder = root / DIRECTORY
        self._is_writable = is_writable

    def load(self, name: str) -> Relation | None:
        """Map a relation; None when it is not there or not whole."""
        folder = self._path(name)
        try:
            forward = _mapped(folder, "forward")
            backward = forward if (folder / "symmetric").exists() else _mapped(folder, "backward")
        except (OSError, ValueError):
            return None
        return Relation(forward, backward)

    def has(self, name: str) -> bool:
        return self._path(name).is_dir()

    def save(self, name: str, relation: Relation) -> None:
        """Keep a relation, all of it or nothing."""
        if not self._is_writable:
            return
        target = self._path(name)
        made = target.with_name(f"{target.name}.{os.getpid()}.{id(relation)}.tmp")
        try:
            made.mkdir(parents=True)
            _write(made, "forward", relation.forward)
            if relation.backward is relation.forward:
                (made / "symmetric").touch()
            else:
                _write(made, "backward", relation.backward)
            made.rename(target)
            self._forget_oldest()
        except OSError:
            # Another writer was first, or the disk is full or read-only: the next open builds it.
            shutil.rmtree(made, ignore_errors=True)

    def _path(self, name: str) -> Path:
        relative = name.replace(f"{self._root}/", "")
        digest = hashlib.sha256(f"{_FORMAT}\0{relative}".encode()).hexdigest()[:32]
        return self._folder / digest

    def _forget_oldest(self) -> None:
        entries = sorted(self._folder.iterdir(), key=lambda entry: entry.stat().st_mtime)
        for entry in entries[:-ENTRIES_MAX]:
            shutil.rmtree(entry, ignore_errors=True)


def _mapped(folder: Path, side: str) -> Csr:
    offsets = np.load(folder / f"{side}.offsets.npy", mmap_mode="r")
    targets = np.load(folder / f"{side}.targets.npy", mmap_mode="r")
    if offsets.ndim != 1 or len(offsets) == 0 or int(offsets[-1]) != len(targets):
        raise ValueError(f"{folder} is not whole")
    return Csr(np.asarray(offsets), np.asarray(targets), None)


def _write(folder: Path, side: str, csr: Csr) -> None:
    np.save(folder / f"{side}.offsets.npy", csr.offsets)
    np.save(folder / f"{side}.targets.npy", csr.targets)
