"""How deep a run goes: `make test` proves every claim on a sample, `make torture` on every case."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Case = TypeVar("Case")

IS_TORTURE = os.environ.get("OMNIGRAPH_TORTURE") == "1"


def depth(sample: int, full: int) -> int:
    """How many rounds, seeds or examples to run."""
    return full if IS_TORTURE else sample


def sample(cases: Sequence[Case], every: int) -> list[Case]:
    """Every n-th case, or all of them."""
    return list(cases if IS_TORTURE else cases[::every])


def cover(cases: Iterable[Case], features: Callable[[Case], set[Hashable]]) -> list[Case]:
    """Few cases that together show every feature; the same ones on every run."""
    # By a checksum of their names, equals are taken from all over the list.
    left = sorted(cases, key=lambda case: zlib.crc32(str(case).encode()))
    if IS_TORTURE:
        return left
    missing = {feature for case in left for feature in features(case)}
    chosen: list[Case] = []
    while missing:
        chosen.append(max(left, key=lambda case: len(features(case) & missing)))
        missing -= features(chosen[-1])
    return chosen
