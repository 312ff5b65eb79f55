"""Matrix threads: those that NumPy starts for large products sleep when they have nothing to do.

OpenBLAS starts a thread per core when NumPy is loaded, and lets each wait for its first product in
a loop that takes all of its core for 30 ms. A program that reads a few rows has no product of that
size: the threads took more of the processor than loading NumPy did.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_HOW_LONG = "OPENBLAS_THREAD_TIMEOUT"
_CYCLES = "16"
"""As a power of two. Twenty microseconds: products that follow at once find the threads awake."""


@contextmanager
def wait_asleep() -> Iterator[None]:
    """If NumPy is loaded in the block, its threads wait asleep, unless the environment says how.

    The variable is read once, then. It is not there afterwards, for processes that we start.
    """
    if "numpy" in sys.modules or _HOW_LONG in os.environ:
        yield
        return
    os.environ[_HOW_LONG] = _CYCLES
    try:
        yield
    finally:
        os.environ.pop(_HOW_LONG, None)
