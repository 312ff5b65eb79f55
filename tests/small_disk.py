"""A disk of a size of our choosing, which a test can fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
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
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(path)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let its root mount a disk")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def resize(disk: Path, size: int) -> None:
    command = ["mount", "-o", f"remount,size={size}", str(disk)]
    subprocess.run(command, check=True)


def used(disk: Path) -> int:
    facts = os.statvfs(disk)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize
