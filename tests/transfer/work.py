"""Work for processes that die."""

from __future__ import annotations

import omnigraph as og
from omnigraph.failpoints import arm_from_environment
from tests.transfer.conftest import OPTIONS


def clone(src: str, dst: str, arm: str) -> None:
    arm_from_environment(arm)
    og.clone(src, dst, durability="process")


def backup(src: str, dst: str, arm: str) -> None:
    arm_from_environment(arm)
    with og.open(src, **OPTIONS) as graph:
        graph.backup(dst)


def push(src: str, dst: str, branch: str, arm: str = "") -> None:
    arm_from_environment(arm)
    with og.open(src, **OPTIONS) as graph:
        graph.push(dst, branch)


def pull(src: str, dst: str, branch: str, arm: str = "") -> None:
    arm_from_environment(arm)
    with og.open(src, **OPTIONS) as graph:
        graph.pull(dst, branch)


def fetch(src: str, dst: str, branch: str, arm: str = "") -> None:
    arm_from_environment(arm)
    with og.open(src, **OPTIONS) as graph:
        graph.fetch(dst, branch=branch)
