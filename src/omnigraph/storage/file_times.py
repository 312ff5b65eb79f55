"""File times: when the attributes of a file are proof that it has not changed since.

The system notes the time of a change in ticks. A file that changed a moment ago might change again
within the same tick, so only attributes that have been stable for a while can be trusted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TypeAlias

Attributes: TypeAlias = tuple[int, int, int]
"""Inode, time of change and size of a file."""

STABLE_NS = 25_000_000
"""Longer than the ticks of a system's clock: ten milliseconds at most."""
STABLE_COARSE_NS = 3_000_000_000
"""Longer than those of a file system that keeps whole seconds: two seconds at most."""
_SECOND_NS = 1_000_000_000


def stable_after(changed_ns: int) -> int:
    """How long after its last change a file is stable."""
    return STABLE_COARSE_NS if is_coarse(changed_ns) else STABLE_NS


def is_coarse(changed_ns: int) -> bool:
    """Whether a file system seems to keep whole seconds."""
    return changed_ns % _SECOND_NS == 0


def read_attributes(path: str) -> Attributes | None:
    """What shows every change of a file or directory; None when it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, found.st_size


def read_stable_attributes(paths: Iterable[str]) -> tuple[Attributes, ...] | None:
    """The attributes of files that are all there and stable; None when they prove nothing."""
    if os.name != "posix":
        return None
    now = time.time_ns()
    found = list[Attributes]()
    for path in paths:
        each = read_attributes(path)
        if each is None or now - each[1] <= stable_after(each[1]):
            return None
        found.append(each)
    return tuple(found)
