"""Recording: one traced life of a graph, and where in it each step began and was acknowledged."""

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

GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class Recording:
    """All calls of a life below `folder`, and what the graph showed after each step."""

    folder: Path
    calls: list[Call]
    steps: list[str]
    pictures: list[dict[str, Any]]

    @property
    def graph(self) -> Path:
        return self.folder / GRAPH

    def changed(self, calls: list[Call]) -> Recording:
        """The same life with other calls."""
        return replace(self, calls=calls)


def record(life: str, base: Path, durability: str = "power") -> Recording:
    """Run a life of a graph below `base` and record it."""
    folder, log, pictures = base / "disk", base / "calls", base / "pictures.json"
    folder.mkdir(parents=True)
    folder = folder.resolve()
    command = [sys.executable, "-m", "tests.power.writers", life]
    subprocess.run(
        [sys.executable, "-m", "tests.power.tracer", str(log), str(folder)]
        + [*command, str(folder / GRAPH), str(pictures), durability],
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    found = recorded.read(log)
    started = [c.path.removesuffix("/start") for c in found if c.kind == "mark" and c.path.endswith("/start")]
    return Recording(folder, found, started, json.loads(pictures.read_text()))
