"""Priority: who comes first when processors are short. Queries do."""

from __future__ import annotations

import os

NICENESS = 5


def leave_room() -> None:
    """Leave a processor to queries: waiting for a turn on one is most of what they would notice.

    Holds for the calling thread and what it starts; in a new process, for all of it.
    """
    os.nice(NICENESS)
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, usable[1:] or usable)
