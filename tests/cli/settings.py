"""Settings of the person who runs the tests must not leak into them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def forget_settings(patch: pytest.MonkeyPatch, folders: pytest.TempPathFactory) -> Path:
    """Forget every variable of ours, and make an empty operator directory."""
    for name in list(os.environ):
        if name.startswith("OMNIGRAPH_"):
            patch.delenv(name)
    home = folders.mktemp("home")
    patch.setenv("OMNIGRAPH_HOME", str(home))
    return home
