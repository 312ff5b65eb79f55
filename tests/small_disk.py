"""A disk of a size of our choosing, which a test can fill."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PAGE = 4_096
ROOMY = 16 * 1024 * 1024
SMALL = 2 * 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 2 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    with mounted(path, SMALL) as reason:
        if reason is not None:
            pytest.skip(reason)
        yield path


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[str | None]:
    """Make a folder a disk of its own for a while; gives the reason if that is not possible."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0:
        yield "mounting a small disk needs root"
    elif subprocess.run(command, capture_output=True, check=False).returncode != 0:
        yield "this machine does not let its root mount a disk"
    else:
        yield None
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk: Path, size: int) -> Iterator[None]:
    """Keep a disk full for a while, whatever is removed from it meanwhile; then it has a size."""
    resize(disk, used(disk))
    filler = (disk / "filler").open("ab", buffering=0)
    is_over = threading.Event()

    def fill() -> None:
        while not is_over.wait(0.005):
            with suppress(OSError):
                filler.write(bytes(PAGE))

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        filler.close()
        (disk / "filler").unlink()
        resize(disk, size)


def resize(disk: Path, size: int) -> None:
    command = ["mount", "-o", f"remount,size={size}", str(disk)]
    subprocess.run(command, check=True)


def used(disk: Path) -> int:
    facts = os.statvfs(disk)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize
