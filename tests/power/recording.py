"""Recording: one traced life of a graph, and what it showed after each of its steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.power import calls as recorded
from tests.power.calls import Call
from tests.power.disk import Disk, Tree

GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class Recording:
    """All calls of a life below `folder`, and what the graph showed after each step."""

    folder: Path
    calls: list[Call]
    pictures: list[dict[str, Any]]

    @property
    def steps(self) -> list[str]:
        """The names of the steps in order."""
        marks = [call.path for call in self.calls if call.kind == "mark"]
        return [mark.removesuffix("/start") for mark in marks if mark.endswith("/start")]

    def with_calls(self, calls: list[Call]) -> Recording:
        """The same life with other calls."""
        return replace(self, calls=calls)


def record(life: str, base: Path, durability: str = "power") -> Recording:
    """Run a life of a graph below `base` and record it."""
    folder, log, pictures = (base / "disk").resolve(), base / "calls", base / "pictures.json"
    folder.mkdir(parents=True)
    tracer = [sys.executable, "-m", "tests.power.tracer", str(log), str(folder)]
    writers = [sys.executable, "-m", "tests.power.writers", life, str(folder / GRAPH)]
    subprocess.run(
        [*tracer, *writers, str(pictures), durability],
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    recording = Recording(folder, recorded.read(log), json.loads(pictures.read_text()))
    # No call that changes a file may be missing, or every state below would be one of fantasy.
    assert replay(recording.calls) == tree_of(folder)
    return recording


def replay(calls: list[Call]) -> Tree:
    """The directory that a recording leads to."""
    disk = Disk()
    disk.apply(calls)
    return disk.tree()


def tree_of(folder: Path) -> Tree:
    """A directory as it is."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }
