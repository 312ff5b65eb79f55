"""Processes for races: forked from a server that has imported everything and never used Lance.

Lance is not safe to fork once it has been used, and starting each process from nothing costs it a
second of imports.
"""

from __future__ import annotations

import multiprocessing
import warnings

# Lance warns of every fork. It is right about processes that have used it; the server has not.
warnings.filterwarnings("ignore", message="lance is not fork-safe")

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        __name__,
        "tests.graph.racers",
        "tests.storage.racers",
        "tests.model.history_actors",
        "tests.warm",
        "omnigraph.server.write_worker",
    ]
)
