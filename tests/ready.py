"""Ready graphs: made once per process and copied for each test, in a third of the time."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import omnigraph as og


def copy_ready(name: str, make: Callable[[Path], og.Graph], path: Path) -> None:
    """Put the graph that `make` makes at `path`; its `name` is unique in the suite.

    With branches it is cheap only if it takes many writes: the next open mends their files, which
    know the place of their origin.
    """
    saved = _folder() / name
    if not saved.exists():
        with make(saved) as graph:
            place = graph.uri
        # The first open after a write lists its commits: here, once for all the copies.
        og.open(place, durability="process", self_care=False).close()
    shutil.copytree(saved, path, copy_function=shutil.copyfile)


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-ready-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
