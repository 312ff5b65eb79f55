"""Collection: the garbage collector stays out of the way while modules are loaded, and at the end.

Loading makes tens of thousands of objects that stay. The collector looks at all of them again and
again and finds nothing, and three times more when the process ends: a quarter of what a short
program takes.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Iterator[None]:
    """Collect nothing while the block runs, in any thread.

    If it has loaded a module, what is there at its end counts as old, so that no collection of
    young objects looks at it.
    """
    was_enabled, modules_before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        # Freezing moves every object out of the way, thawing moves it to the old ones. A program
        # that has frozen its own objects keeps them so; they are counted one by one, which takes
        # as long as a query where there are a million: only when there was something to load.
        if len(sys.modules) != modules_before and gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def leave_the_end_alone() -> None:
    """Do not look for garbage when the process ends. For a process that is ours from its start:
    an object in a cycle is not told that it goes."""
    atexit.register(gc.freeze)
