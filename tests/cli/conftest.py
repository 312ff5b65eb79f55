"""Commands under test see no configuration but what a test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.settings import forget_settings


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator directory of the test's own, empty."""
    return forget_settings(monkeypatch, tmp_path_factory)
