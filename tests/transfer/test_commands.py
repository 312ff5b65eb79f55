"""`clone`, `backup`: what a person types and sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.transfer.conftest import show

pytestmark = pytest.mark.slow


def test_clone_says_what_it_moved(home: Path, tmp_path: Path) -> None:
    outcome = run("clone", home, tmp_path / "copy", "--json")

    moved = json.loads(outcome.out)
    assert outcome.code == 0
    assert moved["commits"] == len(show(home)["commits"])
    assert moved["files"] > 0 < moved["bytes"]
    again = run("clone", home, tmp_path / "copy")
    assert again.code == 1
    assert "already exists" in again.err


def test_backups_are_made_listed_and_restored(home: Path, tmp_path: Path) -> None:
    vault, before = tmp_path / "vault", show(home)

    made = run("backup", "create", vault, "--store", home)
    assert made.out.startswith(f"backed up {home} to {vault}: ")
    again = run("backup", "create", vault, "--store", home)
    assert again.out == f"backed up {home} to {vault}: 0 files, 0 bytes, 0 commits\n"
    listed = json.loads(run("backup", "list", vault, "--json").out)["backups"]
    assert len(listed) == 2
    assert set(listed[0]["heads"]) == set(before["branches"])
    restored = run("backup", "restore", vault, tmp_path / "back", "--name", listed[0]["name"])

    assert restored.code == 0
    assert show(tmp_path / "back") == before
    unknown = run("backup", "restore", vault, tmp_path / "other", "--name", "mine")
    assert (unknown.code, unknown.out) == (1, "")
    assert "no backup 'mine'" in unknown.err
