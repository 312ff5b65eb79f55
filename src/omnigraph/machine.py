"""Machine: how much memory and how many cores this process has."""

from __future__ import annotations

import ctypes
import os
import sys

_M_ARENA_MAX = -8
"""The name of the setting in the interface of glibc."""


def measure_memory() -> int:
    """Bytes of memory of this machine; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def count_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def keep_few_heaps() -> None:
    """Let this process have one heap per core, and at least two, for everything.

    Threads that decode rows take turns, and each heap that one of them used keeps what it grew to:
    the C library makes eight, and the pool of Arrow one per thread. Has no effect where there is no
    such setting, and none on what the environment says.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        import pyarrow as pa

        pa.set_memory_pool(pa.system_memory_pool())
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, max(2, count_cores()))


def give_memory_back() -> None:
    """Give the system what the heaps of this process keep free, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def measure_peak() -> int:
    """The most bytes of memory that this process has had; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
