"""A load in a process of its own, which may be killed at a failpoint."""

from __future__ import annotations

import os

import omnigraph as og
from omnigraph import failpoints
from omnigraph.pipeline.engine import PART_BYTES_VARIABLE


def load(path: str, data: str, mode: str, arm: str) -> dict[str, int]:
    os.environ[PART_BYTES_VARIABLE] = "300"
    with og.open(path) as graph:
        failpoints.arm_from_environment(arm)
        return dict(graph.load(data, mode=mode, engine="inline").tables)
