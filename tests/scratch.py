"""Scratch: where the files of the suite are, and that they are not flushed to a disk.

No test cuts the power of the machine, so nothing is proved by the disk: the files are in memory
where there is room, and no process of the suite waits for a flush. Everything up to the system call
stays: files are opened to be flushed, and flushes are counted and fail where a test says so.
`tests/power` records the flushes of processes that do not import this. `make torture` uses the
disk, and flushes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import psutil

from tests.depth import IS_TORTURE

MEMORY = Path("/dev/shm")
ROOM = 6 * 1024**3
_PREFIX = "omnigraph-suite-"
_is_removed = False


def skip_flushes() -> None:
    """Make a flush of this process, and of those that it forks, refuse what is no open file."""
    if not IS_TORTURE:
        os.fsync = os.fstat  # type: ignore[assignment]


def move_to_memory() -> None:
    """Put what this process and its children make for a while into memory.

    The worker processes inherit the folder, as a choice of the user's.
    """
    if IS_TORTURE or "TMPDIR" in os.environ or not _has_room():
        return
    for former in MEMORY.glob(f"{_PREFIX}*"):
        # What a failed run has left is there until the next one.
        if not psutil.pid_exists(int(former.name.removeprefix(_PREFIX))):
            shutil.rmtree(former, ignore_errors=True)
    folder = MEMORY / f"{_PREFIX}{os.getpid()}"
    folder.mkdir()
    # Before anything that makes a folder in it, so that those are removed before it.
    atexit.register(_remove_if_wanted)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # the answer of an earlier call


def _has_room() -> bool:
    if not os.access(MEMORY, os.W_OK):
        return False
    available: int = psutil.virtual_memory().available
    return min(shutil.disk_usage(MEMORY).free, available) > ROOM


def remove_from_memory() -> None:
    """Remove what this process has made there, when it ends."""
    global _is_removed
    _is_removed = True


def _remove_if_wanted() -> None:
    if _is_removed:
        shutil.rmtree(MEMORY / f"{_PREFIX}{os.getpid()}", ignore_errors=True)
